// The ways to compute a convolution without its epilogue; select/conv.cpp chooses among them.
#pragma once

#include <optional>
#include <string>

#include "backend.h"
#include "cpu/kernels/conv.h"
#include "cpu/select/epilogue.h"

namespace rlx::cpu {

// Operands of every rung: x, w, x_zero, w_zero, then the product. Where these types differ from
// the request of the whole convolution, so does the request a rung is given.
constexpr size_t conv_operands = 4;

// An epilogue that a rung shall do itself: the Region, and the named chain if it is one.
struct ConvFusion {
  const Region& region;
  TensorDesc product;  // what the Region's load 0 is
  std::optional<Epilogue> chain;
};

// Channels last and dense. On nullopt, `refusal` says why.
std::optional<Selection> conv_depthwise(const SelectRequest& request, const ConvGeometry& geometry,
                                        std::string& refusal);
// With `fused` the request is the whole convolution's, and the Region is applied to the product.
std::optional<Selection> conv_gemm(const SelectRequest& request, const ConvGeometry& geometry,
                                   const ConvFusion* fused, std::string& refusal);
std::optional<Selection> conv_s8(const SelectRequest& request, const ConvGeometry& geometry,
                                 const ConvFusion* fused, std::string& refusal);
// Any strides and every type that there is.
Selection conv_direct(const SelectRequest& request, const ConvGeometry& geometry);

}  // namespace rlx::cpu
