// Gather, GatherElements and GatherND: indices are checked before anything is copied.
#include <cstring>

#include "cpu/kernels/elements.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// y[o, i, :] = data[o, indices[i], :] in blocks of `bytes`.
struct GatherAxis : StepBody {
  int64_t outer, length, count, bytes;
  bool narrow;

  void run(const RunArgs& args) const override {
    const auto* data = static_cast<const std::byte*>(args.operands[0]);
    const Indices indices{args.operands[1], narrow};
    auto* y = static_cast<std::byte*>(args.operands[2]);
    check_indices(indices, count, length, args.threads);
    const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(bytes, 1));
    parallel_for(args.threads, outer * count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t i = indices.place(r % count, length);
        std::memcpy(y + r * bytes, data + (r / count * length + i) * bytes, size_t(bytes));
      }
    });
  }
};

// y[i] = data[i with axis replaced by indices[i]], over the shape of indices.
struct GatherElements : StepBody {
  explicit GatherElements(ElementRows where) : rows(std::move(where)) {}

  ElementRows rows;
  int size;
  bool narrow;

  template <class T>
  void copy(const RunArgs& args, const Indices& indices) const {
    const auto* data = static_cast<const T*>(args.operands[0]);
    auto* y = static_cast<T*>(args.operands[2]);
    const int64_t length = rows.length(), stride = rows.stride(), step = rows.across() ? 1 : 0;
    parallel_for(args.threads, rows.parts(), rows.grain(), [&](int64_t begin, int64_t end) {
      rows.each(begin, end, [&](int64_t i, int64_t at, int64_t n) {
        for (int64_t k = 0; k < n; ++k) {
          y[i + k] = data[at + k * step + indices.place(i + k, length) * stride];
        }
      });
    });
  }

  void run(const RunArgs& args) const override {
    const Indices indices{args.operands[1], narrow};
    check_indices(indices, rows.count(), rows.length(), args.threads);
    struct Sixteen { uint64_t low, high; };
    switch (size) {
      case 1: return copy<uint8_t>(args, indices);
      case 2: return copy<uint16_t>(args, indices);
      case 4: return copy<uint32_t>(args, indices);
      case 8: return copy<uint64_t>(args, indices);
      default: return copy<Sixteen>(args, indices);
    }
  }
};

// y[b, i, :] = data[b, indices[b, i, 0], ..., :].
struct GatherNd : StepBody {
  Dims dims;  // the indexed dims of data
  int64_t batches, per_batch, batch_bytes, bytes;
  Dims steps;  // bytes of one step along each indexed dim
  bool narrow;

  void run(const RunArgs& args) const override {
    const auto* data = static_cast<const std::byte*>(args.operands[0]);
    const Indices indices{args.operands[1], narrow};
    auto* y = static_cast<std::byte*>(args.operands[2]);
    const int64_t depth = int64_t(dims.size()), rows = batches * per_batch;
    for (int64_t i = 0; i < rows * depth; ++i) checked_index(indices[i], dims[size_t(i % depth)]);
    const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(bytes, 1));
    parallel_for(args.threads, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t at = r / per_batch * batch_bytes;
        for (int64_t k = 0; k < depth; ++k) {
          at += indices.place(r * depth + k, dims[size_t(k)]) * steps[size_t(k)];
        }
        std::memcpy(y + r * bytes, data + at, size_t(bytes));
      }
    });
  }
};

int64_t count_of(const Dims& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t k = begin; k < end; ++k) n *= shape[k];
  return n;
}

std::shared_ptr<StepBody> gather_axis(const Gather& prim, const SelectRequest& request) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  const size_t axis = size_t(prim.axis);
  auto body = std::make_shared<GatherAxis>();
  body->outer = count_of(data.shape, 0, axis);
  body->length = data.shape[axis];
  body->count = indices.count();
  body->bytes = count_of(data.shape, axis + 1, data.shape.size()) * int64_t(size_of(data.dtype));
  body->narrow = narrow_indices(indices);
  return body;
}

std::shared_ptr<StepBody> gather_elements(const Gather& prim, const SelectRequest& request) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  const size_t axis = size_t(prim.axis);
  require_within(indices, data, axis);
  auto body = std::make_shared<GatherElements>(ElementRows(indices.shape, data.shape, axis));
  body->size = int(size_of(data.dtype));
  body->narrow = narrow_indices(indices);
  return body;
}

std::shared_ptr<StepBody> gather_nd(const Gather& prim, const SelectRequest& request) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  const size_t batch = size_t(prim.batch_dims), depth = size_t(indices.shape.back());
  const int64_t size = int64_t(size_of(data.dtype));
  auto body = std::make_shared<GatherNd>();
  body->batches = count_of(data.shape, 0, batch);
  body->per_batch = count_of(indices.shape, batch, indices.shape.size() - 1);
  body->batch_bytes = count_of(data.shape, batch, data.shape.size()) * size;
  body->bytes = count_of(data.shape, batch + depth, data.shape.size()) * size;
  for (size_t k = 0; k < depth; ++k) {
    body->dims.push_back(data.shape[batch + k]);
    body->steps.push_back(count_of(data.shape, batch + k + 1, data.shape.size()) * size);
  }
  body->narrow = narrow_indices(indices);
  return body;
}

}  // namespace

Selection select_gather(const Gather& prim, const SelectRequest& request) {
  Selection selection;
  selection.rung = "gather";
  std::shared_ptr<StepBody> body;
  switch (prim.kind) {
    case GatherKind::axis: body = gather_axis(prim, request); break;
    case GatherKind::elements: body = gather_elements(prim, request); break;
    case GatherKind::nd: body = gather_nd(prim, request); break;
  }
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
