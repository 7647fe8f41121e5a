// Runs an epilogue Region row by row on the blocks that a matrix product hands out.
#include "cpu/select/gemm_tile.h"

#include "cpu/kernels/region_frame.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr size_t max_outputs = 16;

RegionProgram::Spec spec_of(const Region& region, const SelectRequest& request,
                            std::span<const TensorDesc> inputs) {
  RegionProgram::Spec spec;
  spec.region = &region;
  spec.numbers = request.numbers;
  spec.inputs = inputs;
  spec.outputs = request.outputs;
  spec.row_rank = int(region.shape.size()) - 1;
  spec.given_first = true;
  return spec;
}

std::vector<TensorDesc> with_product(const TensorDesc& product,
                                     std::span<const TensorDesc> extras) {
  std::vector<TensorDesc> all = {product};
  all.insert(all.end(), extras.begin(), extras.end());
  return all;
}

}  // namespace

GemmTile::GemmTile(const Region& region, const SelectRequest& request, const TensorDesc& product,
                   std::span<const TensorDesc> extras)
    : program_(spec_of(region, request, with_product(product, extras))),
      inputs_(1 + extras.size()),
      columns_(product.shape[product.shape.size() - 1]) {
  for (const TensorDesc& output : request.outputs) items_.push_back(size_of(output.dtype));
  if (items_.size() > max_outputs) {
    throw Error(ErrorKind::unsupported, "an epilogue has too many results");
  }
}

GemmTile::Use::Use(const GemmTile& tile, const params::Gemm& shape, int threads,
                   void* const* operands, void* scratch)
    : tile_(tile),
      outputs_(operands + tile.inputs_),
      scratch_(static_cast<std::byte*>(scratch)),
      rows_(shape.m),
      columns_(shape.n) {
  const size_t bytes = tile.program_.scratch_bytes();
  for (int i = 0; i < threads; ++i) tile.program_.begin(scratch_ + size_t(i) * bytes, operands);
}

template <class Sum>
void GemmTile::Use::apply(void* self, Sum* c, int64_t row, int64_t col, int64_t rows,
                          int64_t cols, int64_t ldc) {
  const Use& use = *static_cast<const Use*>(self);
  const GemmTile& tile = use.tile_;
  const size_t thread = size_t(team_share());
  auto& frame = *reinterpret_cast<RegionProgram::Frame*>(
      use.scratch_ + thread * tile.program_.scratch_bytes());
  if (use.columns_ < tile.columns_) {  // one of several matrices side by side
    col += row / use.rows_ * use.columns_;
    row %= use.rows_;
  }
  void* outputs[max_outputs];
  for (int64_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < tile.items_.size(); ++k) {
      const size_t at = size_t((row + i) * tile.columns_ + col) * tile.items_[k];
      outputs[k] = static_cast<std::byte*>(use.outputs_[k]) + at;
    }
    tile.program_.evaluate(frame, row + i, col, cols, outputs, c + i * ldc);
  }
}

void GemmTile::claim(GemmCall& call) {
  call.store = false;
  call.epilogue.tile = Use::apply<float>;
}

void GemmTile::claim(GemmS8Call& call) {
  call.store = false;
  call.tile = Use::apply<int32_t>;
}

}  // namespace rlx::cpu
