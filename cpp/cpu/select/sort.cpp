// TopK and the compactions NonZero and Compress; Unique is in unique.cpp.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/kernels/storage.h"
#include "cpu/select/select.h"
#include "cpu/select/unique.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// [outer, length, inner] view of an axis.
struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;
};

AxisView view_of(const TensorDesc& x, int axis) {
  AxisView v;
  for (size_t k = 0; k < x.shape.size(); ++k) {
    (int(k) < axis ? v.outer : int(k) == axis ? v.length : v.inner) *= x.shape[k];
  }
  return v;
}

// The k first of each row; equal values in index order, NaN above every number.
template <class T>
struct TopK : StepBody {
  AxisView view;
  int64_t k = 0;
  bool largest = true, sorted = true;

  void run(const RunArgs& args) const override {
    const auto* x = static_cast<const T*>(args.operands[0]);
    auto* values = static_cast<T*>(args.operands[1]);
    auto* indices = static_cast<int64_t*>(args.operands[2]);
    auto* scratch = static_cast<int64_t*>(args.workspace);
    parallel(args.threads, [&](int thread, int count) {
      int64_t* order = scratch + thread * view.length;
      const int64_t rows = view.outer * view.inner;
      for (int64_t r = rows * thread / count; r < rows * (thread + 1) / count; ++r) {
        const int64_t o = r / view.inner, i = r % view.inner;
        const T* row = x + o * view.length * view.inner + i;
        pick(row, order);
        const int64_t to = o * k * view.inner + i;
        for (int64_t j = 0; j < k; ++j) {
          if (values) values[to + j * view.inner] = row[order[j] * view.inner];
          if (indices) indices[to + j * view.inner] = order[j];
        }
      }
    });
  }

  void pick(const T* row, int64_t* order) const {
    using Wide = typename Storage<T>::wide;
    const int64_t stride = view.inner;
    std::iota(order, order + view.length, int64_t{0});
    auto before = [&](int64_t a, int64_t b) {
      const Wide x = Wide(row[a * stride]), y = Wide(row[b * stride]);
      if (is_nan(x) || is_nan(y)) {
        if (is_nan(x) && is_nan(y)) return a < b;
        return is_nan(x) == largest;
      }
      return x == y ? a < b : (largest ? x > y : x < y);
    };
    if (k < view.length) std::nth_element(order, order + k, order + view.length, before);
    if (sorted) std::sort(order, order + k, before);
    else std::sort(order, order + k);
  }
};

Selection select_topk(const Sort& prim, const SelectRequest& request) {
  const TensorDesc& x = request.inputs[0];
  return with_ordered(x.dtype, [&](auto tag) {
    auto body = std::make_shared<TopK<typename decltype(tag)::type>>();
    body->view = view_of(x, prim.axis);
    body->k = request.dim(prim.k);
    body->largest = prim.largest;
    body->sorted = prim.sorted;
    Selection selection;
    selection.rung = "nth element";
    selection.workspace = size_t(body->view.length * std::max(request.threads, 1)) * 8;
    selection.steps.push_back({StepKind::launch, std::move(body)});
    return selection;
  });
}

// Coordinates of the non-zero elements, [rank, n] for the n that is found.
template <class T>
struct NonZero : StepBody {
  Dims shape;
  int64_t count = 0;

  void run(const RunArgs& args) const override {
    using Wide = typename Storage<T>::wide;
    const auto* x = static_cast<const T*>(args.operands[0]);
    auto* y = static_cast<int64_t*>(args.operands[1]);
    int64_t n = 0;
    for (int64_t i = 0; i < count; ++i) n += Wide(x[i]) != Wide{};
    *static_cast<int64_t*>(args.operands[2]) = n;
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (Wide(x[i]) == Wide{}) continue;
      int64_t rest = i;
      for (size_t k = shape.size(); k-- > 0;) {
        y[int64_t(k) * n + found] = rest % shape[k];
        rest /= shape[k];
      }
      ++found;
    }
  }
};

Selection select_nonzero(const SelectRequest& request) {
  const TensorDesc& x = request.inputs[0];
  return with_ordered(x.dtype, [&](auto tag) {
    auto body = std::make_shared<NonZero<typename decltype(tag)::type>>();
    body->shape = x.shape;
    body->count = x.count();
    Selection selection;
    selection.rung = "compaction";
    selection.steps.push_back({StepKind::launch, std::move(body)});
    return selection;
  });
}

// The slices along an axis whose condition holds.
struct Compress : StepBody {
  AxisView view;
  int64_t conditions = 0;
  int size = 0;

  void run(const RunArgs& args) const override {
    const auto* x = static_cast<const std::byte*>(args.operands[0]);
    const auto* keep = static_cast<const uint8_t*>(args.operands[1]);
    auto* y = static_cast<std::byte*>(args.operands[2]);
    const size_t bytes = size_t(view.inner * size);
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < conditions; ++i) {
        if (!keep[i]) continue;
        std::memcpy(y, x + (o * view.length + i) * view.inner * size, bytes);
        y += bytes;
      }
    }
    *static_cast<int64_t*>(args.operands[3]) = std::count_if(
        keep, keep + conditions, [](uint8_t k) { return k != 0; });
  }
};

Selection select_compress(const Sort& prim, const SelectRequest& request) {
  const TensorDesc& x = request.inputs[0];
  auto body = std::make_shared<Compress>();
  body->view = prim.axis < 0 ? AxisView{1, x.count(), 1} : view_of(x, prim.axis);
  body->conditions = request.inputs[1].count();
  body->size = int(size_of(x.dtype));
  if (body->conditions > body->view.length) {
    throw Error(ErrorKind::input, "the condition is longer than the axis")
        .expected_got("at most " + std::to_string(body->view.length),
                      std::to_string(body->conditions));
  }
  Selection selection;
  selection.rung = "compaction";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace

Selection select_sort(const Sort& prim, const SelectRequest& request) {
  switch (prim.kind) {
    case SortKind::topk: return select_topk(prim, request);
    case SortKind::nonzero: return select_nonzero(request);
    case SortKind::compress: return select_compress(prim, request);
    case SortKind::unique: break;
  }
  return select_unique(prim, request);
}

}  // namespace rlx::cpu
