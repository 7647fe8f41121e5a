// Packs a convolution's constant weights: the channels of a group innermost, half types widened.
#include "cuda/select/conv_weights.h"

#include <cstring>

#include "core/half.h"

namespace rlx::cuda {
namespace {

struct Sizes {  // of weights as they lie: [filters, channels, taps], transposed by groups
  int64_t groups, filters, channels, taps;  // filters of all groups, channels of one
  bool transposed;
  size_t item;
};

Sizes sizes_of(const Conv& prim, const TensorDesc& w, size_t item) {
  Sizes s{prim.groups, w.shape[0], w.shape[1], 1, prim.transposed, item};
  if (prim.transposed) s.filters = w.shape[1] * s.groups, s.channels = w.shape[0] / s.groups;
  for (size_t k = 2; k < w.shape.size(); ++k) s.taps *= w.shape[k];
  return s;
}

void channels_behind(const std::byte* from, const Sizes& s, std::byte* to) {
  const int64_t each = s.filters / s.groups;
  const int64_t step = s.transposed ? each * s.taps : s.taps;  // from a channel to the next
  for (int64_t filter = 0; filter < s.filters; ++filter) {
    const int64_t first = s.transposed
                              ? (filter / each * s.channels * each + filter % each) * s.taps
                              : filter * s.channels * s.taps;
    for (int64_t c = 0; c < s.channels; ++c) {
      const std::byte* source = from + size_t(first + c * step) * s.item;
      for (int64_t t = 0; t < s.taps; ++t) {
        std::memcpy(to + size_t((filter * s.taps + t) * s.channels + c) * s.item,
                    source + size_t(t) * s.item, s.item);
      }
    }
  }
}

template <class Half>
void widen_values(const void* from, int64_t count, float* to) {
  std::copy_n(static_cast<const Half*>(from), count, to);
}

}  // namespace

bool widens_weights(const TensorDesc& x, const TensorDesc& w) {
  return w.constant && x.dtype == DType::float32 && is_half(w.dtype);
}

std::shared_ptr<const void> pack_conv_weights(const Conv& prim, const SelectRequest& request,
                                              const Tools& tools, bool last) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1];
  const Sizes sizes = sizes_of(prim, w, size_of(x.dtype));
  const auto* data = static_cast<const std::byte*>(w.constant->data);
  const int64_t count = w.count();
  const size_t bytes = size_t(count) * sizes.item;
  const auto widen_as = !widens_weights(x, w)         ? nullptr
                        : w.dtype == DType::float16 ? widen_values<Float16>
                                                    : widen_values<Bfloat16>;
  const auto fill = [=](void* to) {
    const std::byte* from = data;
    std::vector<float> wide(widen_as ? size_t(count) : 0);
    if (widen_as) {
      widen_as(data, count, wide.data());
      from = reinterpret_cast<const std::byte*>(wide.data());
    }
    if (last) channels_behind(from, sizes, static_cast<std::byte*>(to));
    else std::memcpy(to, from, bytes);
  };
  std::string format = std::string(last ? "channels last " : "") + name_of(x.dtype);
  if (last && prim.transposed) format += " transposed " + std::to_string(prim.groups);
  // A device without a copy of its own reads the host's.
  if (!tools.weights) return request.packs.get(*w.constant, format, bytes, fill);
  return tools.weights->pack(tools.user, *w.constant, format, bytes, bytes,
                             [fill](void* to, size_t, size_t) { fill(to); });
}

}  // namespace rlx::cuda
