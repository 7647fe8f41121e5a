// A product as our own kernels see it, and which of them does it, how.
#pragma once

#include "cuda/select/parts.h"
#include "kernels/params/tile_product.h"

namespace rlx::cuda {

// A product as our kernels see it. A batch that shares B is more rows.
struct ProductShape {
  DType a = DType::none, b = DType::none, accumulate = DType::none;
  bool zero_points = false, tf32 = false;
  int64_t m = 0, n = 0, k = 0, batches = 1;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;
  Dims batch, a_batch, b_batch;
  int64_t result_bytes = 0;  // what is written, and read by the Region behind it

  // Where one axis has one element both may be dense: the same answer as for more of them.
  bool a_along_k() const { return a_column == 1; }
  bool b_along_k() const { return b_row == 1 && b_column != 1; }
  // How many neighbours lie together wherever a run of them begins: 16 bytes at most.
  int a_chunk() const;
  int b_chunk() const;
};

ProductShape product_shape(const MatMul& prim, const SelectRequest& request, const Tools& tools);

// Sizes and strides of a product as the parameters of its kernel.
template <class Params>
void fill(const ProductShape& s, Params& p) {
  p.m = s.m, p.n = s.n, p.k = s.k, p.batches = s.batches;
  p.a_row = s.a_row, p.a_column = s.a_column, p.b_row = s.b_row, p.b_column = s.b_column;
  const size_t lead = 3 - s.batch.size();
  for (size_t k = 0; k < s.batch.size(); ++k) {
    p.batch[lead + k] = params::Divisor(s.batch[k]);
    p.a_batch[lead + k] = s.a_batch[k];
    p.b_batch[lead + k] = s.b_batch[k];
  }
}

enum class ProductRung : uint8_t { tensor_cores, gemv, tiled };
// The one of our kernels that `force` names; none where it names a library's rung, one of another
// primitive, or nothing.
std::optional<ProductRung> product_rung(std::string_view force);

struct ProductChoice {
  ProductRung rung = ProductRung::tiled;
  double microseconds = 0;  // expected
  int form = 0;             // of the tensor cores' tiles
  int64_t splits = 1, k_part = 0;
  std::string reason;       // why not a faster kind, or how k is split
};

using params::TileForm;
inline int threads_of(const TileForm& f) { return f.m / f.warp_m * (f.n / f.warp_n) * 32; }
// Bytes of shared memory, as tile_mma.h lays them out.
size_t tile_bytes(const TileForm& form, size_t item, bool a_along_k, bool b_along_k);
// Rows that gemv takes.
constexpr int64_t gemv_rows = 16;
// Why a kernel cannot be asked; empty when it can.
std::string tensor_cores_refusal(const ProductShape& shape, const DeviceInfo& card);
std::string gemv_refusal(const ProductShape& shape);
// Tensor cores where they can be asked, else the tiled kernel; or the kernel that was asked for
// where it can be.
ProductChoice choose_product(const ProductShape& shape, const DeviceInfo& card,
                             std::optional<ProductRung> asked);
// The steps of a choice other than the tiled kernel.
Selection chosen_product(const ProductChoice& choice, const ProductShape& shape,
                         const MatMul& prim, const SelectRequest& request, const Tools& tools);

}  // namespace rlx::cuda
