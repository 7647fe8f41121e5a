// Products by quantised weights and by the weights of each row's group, while select makes them.
#pragma once

#include <string>

#include "backend.h"
#include "cpu/kernels/quantised.h"

namespace rlx::cpu {

// The quantised b of a product without its pointers; of one matrix where there are several.
Quantised quantised_of(const MatMul& prim, const SelectRequest& request);
// Its pointers, from the operands of a step.
Quantised with_operands(Quantised q, void* const* operands);

// Whether b, its scales and its zero points are all constant; then they can be packed once.
bool quantised_constant(const SelectRequest& request);
// Names the scales and zero points that floats were made with; they may be updated by themselves.
std::string quantised_source(const SelectRequest& request);
Quantised with_constants(Quantised q, const SelectRequest& request);

// How far apart the codes and scales of several matrices are: bytes, and scales.
struct MatrixSteps {
  int64_t codes = 0, scales = 0;
};
MatrixSteps matrix_steps(const MatMul& prim, const SelectRequest& request);

Selection matmul_quantised(const MatMul& prim, const SelectRequest& request);
Selection matmul_grouped(const MatMul& prim, const SelectRequest& request);

}  // namespace rlx::cpu
