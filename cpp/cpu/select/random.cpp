// Random numbers from the Philox 4x32-10 counter generator (Salmon et al., SC 2011).
//
// Element i of a draw takes lane i % 4 of block (offset + i / 4), so that the stream depends
// neither on threads nor on the device. A seeded node starts at 0 in each run; the others share
// the counter of their Context, which starts at a random place.
#include "kernels/include/philox.h"

#include <cmath>
#include <cstring>

#include "cpu/kernels/storage.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

struct RandomBody : StepBody {
  Random prim;
  DType source = DType::none, target = DType::none;
  int64_t count = 0, classes = 0, samples = 0;

  void run(const RunArgs& args) const override {
    uint64_t seed = 0, offset = 0;
    if (prim.seed) {
      const float value = float(*prim.seed);
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      seed = bits;
    } else {
      offset = *args.random;
      *args.random += uint64_t(count + 3) / 4;
    }
    void* y = args.operands[1];
    const void* x = args.operands[0];
    if (prim.kind == RandomKind::multinomial) return multinomial(x, y, seed, offset);
    with_ordered(target, [&](auto tag) {
      draw<typename decltype(tag)::type>(x, y, seed, offset, args.threads);
    });
  }

  template <class T>
  void draw(const void* x, void* to, uint64_t seed, uint64_t offset, int threads) const {
    using Wide = typename Storage<T>::wide;
    auto* y = static_cast<T*>(to);
    parallel_for(threads, count, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double u = philox_uniform(seed, offset, uint64_t(i));
        double value = prim.a + (prim.b - prim.a) * u;
        if (prim.kind == RandomKind::normal) {
          value = prim.a + prim.b * philox_normal(seed, offset, uint64_t(i));
        } else if (prim.kind == RandomKind::bernoulli) {
          value = u < probability(x, i) ? 1.0 : 0.0;
        }
        y[i] = T(Wide(value));
      }
    });
  }

  double probability(const void* x, int64_t i) const {
    double p = 0.0;
    with_ordered(source, [&](auto tag) {
      using S = typename decltype(tag)::type;
      p = double(typename Storage<S>::wide(static_cast<const S*>(x)[i]));
    });
    return p;
  }

  // One draw a sample by walking the unnormalised distribution exp(x).
  void multinomial(const void* x, void* y, uint64_t seed, uint64_t offset) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = i / samples * classes;
      double top = -INFINITY, total = 0.0;
      for (int64_t c = 0; c < classes; ++c) top = std::max(top, probability(x, row + c));
      for (int64_t c = 0; c < classes; ++c) total += std::exp(probability(x, row + c) - top);
      double left = philox_uniform(seed, offset, uint64_t(i)) * total;
      int64_t chosen = 0;
      for (; chosen + 1 < classes; ++chosen) {
        left -= std::exp(probability(x, row + chosen) - top);
        if (left < 0.0) break;
      }
      if (target == DType::int32) static_cast<int32_t*>(y)[i] = int32_t(chosen);
      else static_cast<int64_t*>(y)[i] = chosen;
    }
  }
};

}  // namespace

Selection select_random(const Random& prim, const SelectRequest& request) {
  auto body = std::make_shared<RandomBody>();
  const TensorDesc& y = request.outputs[0];
  body->prim = prim;
  body->target = y.dtype;
  body->count = y.count();
  if (prim.kind == RandomKind::bernoulli || prim.kind == RandomKind::multinomial) {
    body->source = request.inputs[0].dtype;
  }
  if (prim.kind == RandomKind::multinomial) {
    body->classes = request.inputs[0].shape[1];
    body->samples = y.shape[1];
  }
  Selection selection;
  selection.rung = "philox";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
