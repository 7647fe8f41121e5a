// Unique: slices along an axis (or elements) compared in order, numbered by sort or appearance.
#include "cpu/select/unique.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpu/kernels/storage.h"
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

template <class T>
struct Unique : StepBody {
  int64_t outer = 1, length = 1, inner = 1;
  bool sorted = true;

  // Lexicographic order of two slices of [outer, length, inner].
  int compare(const T* x, int64_t a, int64_t b) const {
    using Wide = typename Storage<T>::wide;
    for (int64_t o = 0; o < outer; ++o) {
      const T* row = x + o * length * inner;
      for (int64_t i = 0; i < inner; ++i) {
        const Wide p = Wide(row[a * inner + i]), q = Wide(row[b * inner + i]);
        if (is_nan(p) || is_nan(q)) {  // NaN is equal to NaN and above every number
          if (is_nan(p) != is_nan(q)) return is_nan(p) ? 1 : -1;
        } else if (p != q) {
          return p < q ? -1 : 1;
        }
      }
    }
    return 0;
  }

  void run(const RunArgs& args) const override {
    const auto* x = static_cast<const T*>(args.operands[0]);
    auto* order = static_cast<int64_t*>(args.workspace);  // slices, sorted, stable
    int64_t* group = order + length;                      // slice -> its group
    int64_t* first = group + length;                      // group -> first slice
    std::iota(order, order + length, int64_t{0});
    std::sort(order, order + length, [&](int64_t a, int64_t b) {
      const int c = compare(x, a, b);
      return c == 0 ? a < b : c < 0;
    });
    int64_t n = 0;
    for (int64_t i = 0; i < length; ++i) {
      if (i == 0 || compare(x, order[i - 1], order[i]) != 0) first[n++] = order[i];
      group[order[i]] = n - 1;
    }
    if (!sorted) by_appearance(n, order, group, first);
    write(args, x, n, group, first);
  }

  // Renumbers groups by where they first appear; order is free to be overwritten.
  void by_appearance(int64_t n, int64_t* order, int64_t* group, int64_t* first) const {
    std::sort(first, first + n);
    for (int64_t g = 0; g < n; ++g) order[group[first[g]]] = g;
    for (int64_t i = 0; i < length; ++i) group[i] = order[group[i]];
  }

  void write(const RunArgs& args, const T* x, int64_t n, const int64_t* group,
             const int64_t* first) const {
    auto* y = static_cast<T*>(args.operands[1]);
    auto* indices = static_cast<int64_t*>(args.operands[2]);
    auto* inverse = static_cast<int64_t*>(args.operands[3]);
    auto* counts = static_cast<int64_t*>(args.operands[4]);
    for (int64_t o = 0; y && o < outer; ++o) {
      for (int64_t g = 0; g < n; ++g) {
        std::memcpy(y + (o * n + g) * inner, x + (o * length + first[g]) * inner,
                    size_t(inner) * sizeof(T));
      }
    }
    if (indices) std::copy(first, first + n, indices);
    if (inverse) std::copy(group, group + length, inverse);
    if (counts) {
      std::fill(counts, counts + n, int64_t{0});
      for (int64_t i = 0; i < length; ++i) ++counts[group[i]];
    }
    *static_cast<int64_t*>(args.operands[5]) = n;
  }
};

}  // namespace

Selection select_unique(const Sort& prim, const SelectRequest& request) {
  const TensorDesc& x = request.inputs[0];
  return with_ordered(x.dtype, [&](auto tag) {
    auto body = std::make_shared<Unique<typename decltype(tag)::type>>();
    body->sorted = prim.sorted;
    body->length = prim.axis < 0 ? x.count() : x.shape[size_t(prim.axis)];
    for (size_t k = 0; prim.axis >= 0 && k < x.shape.size(); ++k) {
      if (int(k) < prim.axis) body->outer *= x.shape[k];
      if (int(k) > prim.axis) body->inner *= x.shape[k];
    }
    Selection selection;
    selection.rung = "sort";
    selection.workspace = size_t(body->length) * 3 * sizeof(int64_t);
    selection.steps.push_back({StepKind::launch, std::move(body)});
    return selection;
  });
}

}  // namespace rlx::cpu
