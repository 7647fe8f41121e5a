// ScatterElements and ScatterND: data is copied unless y may overwrite it, then updates go in
// index order to each element, so that duplicates and reductions are deterministic.
#include <cstring>

#include "cpu/kernels/elements.h"
#include "cpu/kernels/storage.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

using Combine = void (*)(void* target, const void* update, int64_t n);

template <class T, class Op>
void combine(void* target, const void* update, int64_t n) {
  using Wide = typename Storage<T>::wide;
  auto* t = static_cast<T*>(target);
  const auto* u = static_cast<const T*>(update);
  for (int64_t i = 0; i < n; ++i) t[i] = T(Op{}(Wide(t[i]), Wide(u[i])));
}

struct Add {
  template <class W> W operator()(W a, W b) const { return W(a + b); }
};
struct Mul {
  template <class W> W operator()(W a, W b) const { return W(a * b); }
};
struct Max {
  template <class W> W operator()(W a, W b) const { return is_nan(a) || a > b ? a : b; }
};
struct Min {
  template <class W> W operator()(W a, W b) const { return is_nan(a) || a < b ? a : b; }
};

Combine combine_for(ScatterReduction reduction, DType type) {
  if (reduction == ScatterReduction::none) return nullptr;
  return with_ordered(type, [&](auto tag) -> Combine {
    using T = typename decltype(tag)::type;
    switch (reduction) {
      case ScatterReduction::add: return combine<T, Add>;
      case ScatterReduction::mul: return combine<T, Mul>;
      case ScatterReduction::max: return combine<T, Max>;
      default: return combine<T, Min>;
    }
  });
}

struct ScatterBody : StepBody {
  Combine combine = nullptr;
  int64_t bytes = 0;  // of data
  int size = 0;
  bool narrow = false;

  void copy_data(const RunArgs& args) const {
    const auto* data = static_cast<const std::byte*>(args.operands[0]);
    auto* y = static_cast<std::byte*>(args.operands[3]);
    if (data == y) return;
    parallel_for(args.threads, bytes, 1 << 16, [&](int64_t begin, int64_t end) {
      std::memcpy(y + begin, data + begin, size_t(end - begin));
    });
  }

  void put(std::byte* target, const std::byte* update, int64_t n) const {
    if (combine) {
      combine(target, update, n);
    } else {
      std::memcpy(target, update, size_t(n * size));
    }
  }
};

struct ScatterElements : ScatterBody {
  explicit ScatterElements(ElementRows where) : rows(std::move(where)) {}

  ElementRows rows;

  void run(const RunArgs& args) const override {
    const Indices indices{args.operands[1], narrow};
    const auto* updates = static_cast<const std::byte*>(args.operands[2]);
    auto* y = static_cast<std::byte*>(args.operands[3]);
    check_indices(indices, rows.count(), rows.length(), args.threads);
    copy_data(args);
    auto place = [&](int64_t i) { return indices.place(i, rows.length()) * rows.stride(); };
    parallel_for(args.threads, rows.parts(), rows.grain(), [&](int64_t begin, int64_t end) {
      rows.each(begin, end, [&](int64_t i, int64_t at, int64_t n) {
        const std::byte* update = updates + i * size;
        if (rows.across() && all_equal(indices, i, n)) {
          return put(y + (at + place(i)) * size, update, n);
        }
        const int64_t step = rows.across() ? 1 : 0;
        for (int64_t k = 0; k < n; ++k) {
          put(y + (at + k * step + place(i + k)) * size, update + k * size, 1);
        }
      });
    });
  }
};

struct ScatterNd : ScatterBody {
  Dims dims, steps;  // of the indexed axes, in elements
  int64_t rows = 0, inner = 0;

  void run(const RunArgs& args) const override {
    const Indices indices{args.operands[1], narrow};
    const auto* updates = static_cast<const std::byte*>(args.operands[2]);
    auto* y = static_cast<std::byte*>(args.operands[3]);
    const int64_t depth = int64_t(dims.size());
    for (int64_t i = 0; i < rows * depth; ++i) checked_index(indices[i], dims[size_t(i % depth)]);
    copy_data(args);
    const int64_t grain = 16 + (1 << 14) / std::max<int64_t>(rows, 1);
    parallel_for(args.threads, inner, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = 0; r < rows; ++r) {
        int64_t at = begin;
        for (int64_t k = 0; k < depth; ++k) {
          at += indices.place(r * depth + k, dims[size_t(k)]) * steps[size_t(k)];
        }
        put(y + at * size, updates + (r * inner + begin) * size, end - begin);
      }
    });
  }
};

void require_shape(const TensorDesc& updates, const Dims& expected) {
  if (updates.shape == expected) return;
  throw Error(ErrorKind::input, "updates have the wrong shape");
}

std::shared_ptr<ScatterBody> scatter_elements(const Scatter& prim, const SelectRequest& request) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  require_shape(request.inputs[2], indices.shape);
  const size_t axis = size_t(prim.axis);
  require_within(indices, data, axis);
  return std::make_shared<ScatterElements>(ElementRows(indices.shape, data.shape, axis));
}

std::shared_ptr<ScatterBody> scatter_nd(const SelectRequest& request) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  const size_t depth = size_t(indices.shape.back());
  auto body = std::make_shared<ScatterNd>();
  Dims expected;
  body->rows = body->inner = 1;
  for (size_t k = 0; k + 1 < indices.shape.size(); ++k) {
    body->rows *= indices.shape[k];
    expected.push_back(indices.shape[k]);
  }
  for (size_t k = 0; k < data.shape.size(); ++k) {
    if (k < depth) {
      body->dims.push_back(data.shape[k]);
      body->steps.push_back(data.strides[k]);
    } else {
      body->inner *= data.shape[k];
      expected.push_back(data.shape[k]);
    }
  }
  require_shape(request.inputs[2], expected);
  return body;
}

}  // namespace

Selection select_scatter(const Scatter& prim, const SelectRequest& request) {
  const TensorDesc& data = request.inputs[0];
  auto body = prim.kind == ScatterKind::elements ? scatter_elements(prim, request)
                                                 : scatter_nd(request);
  body->combine = combine_for(prim.reduction, data.dtype);
  body->bytes = int64_t(data.bytes());
  body->size = int(size_of(data.dtype));
  body->narrow = narrow_indices(request.inputs[1]);
  Selection selection;
  selection.rung = "scatter";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
