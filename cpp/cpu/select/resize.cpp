// Resize: nearest copies through index tables; the rest filters axis by axis in float or double.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/kernels/resize_taps.h"
#include "cpu/kernels/storage.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// One filtered axis of a [outer, input, inner] view.
struct Pass {
  Taps taps;
  int64_t outer = 1, input = 1, output = 1, inner = 1;
};

struct Nearest : StepBody {
  std::vector<Taps> taps;
  Dims in, out, strides;
  int size = 4;

  void run(const RunArgs& args) const override {
    const auto* x = static_cast<const std::byte*>(args.operands[0]);
    auto* y = static_cast<std::byte*>(args.operands[1]);
    size_t tail = out.size();  // trailing axes that stay as they are move as one block
    int64_t block = size;
    while (tail > 0 && taps[tail - 1].identity) block *= out[--tail];
    int64_t rows = 1;
    for (size_t k = 0; k < tail; ++k) rows *= out[k];
    parallel_for(args.threads, rows, std::max<int64_t>(1, (1 << 14) / block),
                 [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t at = 0, rest = r;
        for (size_t k = tail; k-- > 0;) {
          at += taps[k].index[size_t(rest % out[k])] * strides[k];
          rest /= out[k];
        }
        std::memcpy(y + r * block, x + at * size, size_t(block));
      }
    });
  }
};

// y[o, j, :] = sum over taps of w * x[o, i, :].
template <class From, class To, class Wide>
void filter(const Pass& p, const From* x, To* y, int threads) {
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(p.inner, 1));
  parallel_for(threads, p.outer * p.output, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t o = r / p.output, j = r % p.output;
      const int64_t first = p.taps.begin[size_t(j)], last = p.taps.begin[size_t(j) + 1];
      const From* base = x + o * p.input * p.inner;
      To* row = y + r * p.inner;
      for (int64_t i = 0; i < p.inner; ++i) {
        Wide sum = 0;
        for (int64_t t = first; t < last; ++t) {
          const From* tap = base + p.taps.index[size_t(t)] * p.inner;
          sum += Wide(p.taps.weight[size_t(t)]) * Wide(typename Storage<From>::wide(tap[i]));
        }
        row[i] = To(typename Storage<To>::wide(sum));
      }
    }
  });
}

template <class T>
struct Filtered : StepBody {
  using Wide = std::conditional_t<std::is_same_v<T, double> || (std::is_integral_v<T> &&
                                  sizeof(T) > 2), double, float>;
  std::vector<Pass> passes;
  std::vector<std::vector<uint8_t>> outside;  // per axis, for extrapolation
  Dims out;
  bool extrapolates = false;
  double extrapolation = 0.0;
  size_t half = 0;  // bytes of one of the two intermediate buffers

  void run(const RunArgs& args) const override {
    const auto* x = static_cast<const T*>(args.operands[0]);
    auto* y = static_cast<T*>(args.operands[1]);
    auto* buffers = static_cast<std::byte*>(args.workspace);
    const Wide* from = nullptr;
    for (size_t k = 0; k < passes.size(); ++k) {
      auto* to = reinterpret_cast<Wide*>(buffers + (k % 2) * half);
      const bool first = k == 0, last = k + 1 == passes.size();
      if (first && last) filter<T, T, Wide>(passes[k], x, y, args.threads);
      else if (first) filter<T, Wide, Wide>(passes[k], x, to, args.threads);
      else if (last) filter<Wide, T, Wide>(passes[k], from, y, args.threads);
      else filter<Wide, Wide, Wide>(passes[k], from, to, args.threads);
      from = to;
    }
    if (extrapolates) extrapolate(y);
  }

  void extrapolate(T* y) const {
    const int64_t n = element_count(out);
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i;
      bool out_of_input = false;
      for (size_t k = out.size(); k-- > 0;) {
        out_of_input |= !outside[k].empty() && outside[k][size_t(rest % out[k])];
        rest /= out[k];
      }
      if (out_of_input) y[i] = T(typename Storage<T>::wide(extrapolation));
    }
  }
};

std::vector<Taps> taps_of(const Resize& prim, const SelectRequest& request) {
  const Dims &in = request.inputs[0].shape, &out = request.outputs[0].shape;
  std::vector<Taps> taps(in.size());
  for (size_t k = 0; k < in.size(); ++k) {
    AxisResize a;
    a.mode = "nearest";
    a.coordinates = "asymmetric";
    a.nearest = "floor";
    a.input = in[k];
    a.output = out[k];
    for (size_t j = 0; j < prim.axes.size(); ++j) {
      if (prim.axes[j] != int(k)) continue;
      a.mode = prim.mode;
      a.coordinates = prim.coordinate_transformation_mode;
      a.nearest = prim.nearest_mode;
      a.cubic_a = prim.cubic_coeff_a;
      a.exclude_outside = prim.exclude_outside;
      a.antialias = prim.antialias;
      a.scale = request.real(prim.scales[j]);
      if (!prim.roi.empty()) {
        a.roi_start = request.real(prim.roi[j]);
        a.roi_end = request.real(prim.roi[j + prim.axes.size()]);
      }
    }
    if (a.input == 0) throw Error(ErrorKind::input, "cannot resize an empty axis");
    taps[k] = resize_taps(a);
  }
  return taps;
}

template <class T>
Selection select_filtered(const Resize& prim, const SelectRequest& request,
                          std::vector<Taps> taps) {
  auto body = std::make_shared<Filtered<T>>();
  Dims shape = request.inputs[0].shape;
  const Dims& out = request.outputs[0].shape;
  int64_t largest = 0;
  for (size_t k = 0; k < taps.size(); ++k) {
    const bool beyond = std::any_of(taps[k].outside.begin(), taps[k].outside.end(),
                                    [](uint8_t o) { return o != 0; });
    body->extrapolates |= beyond;
    body->outside.push_back(taps[k].outside);
    if (taps[k].identity) continue;
    Pass pass;
    pass.input = shape[k];
    pass.output = out[k];
    for (size_t j = 0; j < k; ++j) pass.outer *= shape[j];
    for (size_t j = k + 1; j < taps.size(); ++j) pass.inner *= shape[j];
    pass.taps = std::move(taps[k]);
    shape[k] = out[k];
    largest = std::max(largest, element_count(shape));
    body->passes.push_back(std::move(pass));
  }
  if (body->passes.empty()) {  // nothing changes: one pass over an axis of 1 copies
    Pass copy;
    copy.inner = element_count(shape);
    copy.taps = resize_taps({"nearest", "asymmetric", "floor", -0.75, false, false, 1, 0, 1, 1, 1});
    body->passes.push_back(std::move(copy));
  }
  body->out = out;
  body->extrapolation = prim.extrapolation_value;
  body->half = (size_t(largest) * sizeof(typename Filtered<T>::Wide) + 63) / 64 * 64;
  Selection selection;
  selection.rung = "separable " + prim.mode;
  selection.workspace = body->passes.size() > 1 ? 2 * body->half : 0;
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace

Selection select_resize(const Resize& prim, const SelectRequest& request) {
  std::vector<Taps> taps = taps_of(prim, request);
  const TensorDesc& x = request.inputs[0];
  const bool crops = prim.coordinate_transformation_mode == "tf_crop_and_resize";
  if (prim.mode == "nearest" && !crops) {
    auto body = std::make_shared<Nearest>();
    body->taps = std::move(taps);
    body->in = x.shape;
    body->out = request.outputs[0].shape;
    body->strides = x.strides;
    body->size = int(size_of(x.dtype));
    Selection selection;
    selection.rung = "nearest";
    selection.steps.push_back({StepKind::copy, std::move(body)});
    return selection;
  }
  return with_ordered(x.dtype, [&](auto tag) {
    return select_filtered<typename decltype(tag)::type>(prim, request, std::move(taps));
  });
}

}  // namespace rlx::cpu
