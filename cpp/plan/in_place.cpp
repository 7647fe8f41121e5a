// In-place permission of Region (identity accesses) and Scatter (its data).
#include "plan/in_place.h"

namespace rlx::plan {
namespace {

bool same_layout(const TensorDesc& x, const TensorDesc& y) {
  return x.constant == nullptr && size_of(x.dtype) == size_of(y.dtype) && x.shape == y.shape &&
         x.contiguous() && y.contiguous();
}

// Whether an access reads element i for the result's element i.
bool is_identity(const std::vector<AxisMap>& access, std::span<const Number> numbers) {
  const auto is = [&](ExprId id, int64_t neutral) {
    return id < 0 || (numbers[size_t(id)].known && numbers[size_t(id)].i == neutral);
  };
  for (size_t k = 0; k < access.size(); ++k) {
    if (access[k].axis != int(k) || !is(access[k].div, 1) || !is(access[k].mod, 0)) return false;
  }
  return true;
}

}  // namespace

InPlacePairs in_place_pairs(const Prim& prim, std::span<const TensorDesc> inputs,
                            std::span<const TensorDesc> outputs, std::span<const Number> numbers) {
  InPlacePairs pairs;
  if (const auto* region = std::get_if<Region>(&prim)) {
    for (size_t y = 0; y < outputs.size(); ++y) {
      for (size_t x = 0; x < inputs.size(); ++x) {
        if (same_layout(inputs[x], outputs[y]) && is_identity(region->accesses[x], numbers)) {
          pairs.push_back({int16_t(x), int16_t(y)});
        }
      }
    }
  } else if (std::holds_alternative<Scatter>(prim) && same_layout(inputs[0], outputs[0])) {
    pairs.push_back({0, 0});
  }
  return pairs;
}

}  // namespace rlx::plan
