// Gather, GatherElements and GatherND: one launch; bad indices are reported, not followed.
#include "cuda/select/parts.h"
#include "kernels/params/gather.h"

namespace rlx::cuda {
namespace {

int64_t count_of(const Dims& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t k = begin; k < end; ++k) n *= shape[k];
  return n;
}

void require_axes(size_t axes) {
  if (axes > size_t(params::gather_axes)) {
    throw Error(ErrorKind::unsupported, "indices over more than 8 axes");
  }
}

Selection gather_rows(const Gather& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  LaunchBuilder<params::Gather> launch;
  params::Gather& p = launch.params;
  const size_t rank = data.shape.size();
  int64_t inner = 1, per_group = 1;
  if (prim.kind == GatherKind::axis) {
    const size_t axis = size_t(prim.axis);
    inner = count_of(data.shape, axis + 1, rank);
    per_group = indices.count();
    p.rows = count_of(data.shape, 0, axis) * per_group;
    p.group_stride = inner * data.shape[axis];
    p.indices_by_place = true;
    p.lengths[0] = data.shape[axis];
    p.strides[0] = inner;
  } else {
    const size_t batch = size_t(prim.batch_dims), depth = size_t(indices.shape.back());
    require_axes(depth);
    inner = count_of(data.shape, batch + depth, rank);
    per_group = count_of(indices.shape, batch, indices.shape.size() - 1);
    p.rows = count_of(data.shape, 0, batch) * per_group;
    p.group_stride = count_of(data.shape, batch, rank);
    p.depth = int(depth);
    for (size_t k = 0; k < depth; ++k) {
      p.lengths[k] = data.shape[batch + k];
      p.strides[k] = count_of(data.shape, batch + k + 1, rank);
    }
  }
  if (p.rows * inner == 0) return {};
  // Several elements move as one word where rows allow it.
  const int64_t size = int64_t(size_of(data.dtype));
  const int word = fitting_vector(int(16 / size), inner);
  inner /= word;
  p.group_stride /= word;
  for (long long& stride : p.strides) stride /= word;
  const int64_t reach = p.rows * std::max<int64_t>(inner, p.depth);
  p.inner = params::Divisor(inner);
  p.per_group = params::Divisor(per_group);
  launch.bind(p.data, Source::operand(0));
  launch.bind(p.indices, Source::operand(1));
  launch.bind(p.y, Source::operand(2));
  launch.bind(p.fault, Source::fault());
  KernelSpec kernel{"kernels/gather.cu", "gather",
                    {define("RLX_WORD", integer_name(size_t(size * word))),
                     define("RLX_INDICES", storage_name(indices.dtype)),
                     define("RLX_INDEX", index_name(narrow_index(reach))),
                     define("RLX_FORM", 0)},
                    {}};
  return one_step("gather", launch.finish(tools.jit.get(kernel),
                                          walk_of(tools, p.rows * inner)));
}

Selection gather_elements(const Gather& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  LaunchBuilder<params::Elements> launch;
  params::Elements& p = launch.params;
  p.axes = int(indices.shape.size());
  require_axes(indices.shape.size());
  p.axis = prim.axis;
  p.length = data.shape[size_t(prim.axis)];
  p.count = indices.count();
  for (int k = 0; k < p.axes; ++k) {
    p.extents[k] = params::Divisor(indices.shape[size_t(k)]);
    p.strides[k] = data.strides[size_t(k)];
    if (k != p.axis && indices.shape[size_t(k)] > data.shape[size_t(k)]) {
      throw Error(ErrorKind::input, "indices are longer than data along axis " + std::to_string(k));
    }
  }
  if (p.count == 0) return {};
  launch.bind(p.data, Source::operand(0));
  launch.bind(p.indices, Source::operand(1));
  launch.bind(p.y, Source::operand(2));
  launch.bind(p.fault, Source::fault());
  KernelSpec kernel{"kernels/gather.cu", "gather",
                    {define("RLX_WORD", integer_name(size_of(data.dtype))),
                     define("RLX_INDICES", storage_name(indices.dtype)),
                     define("RLX_INDEX", index_name(narrow_index(p.count))),
                     define("RLX_FORM", 1)},
                    {}};
  return one_step("gather", launch.finish(tools.jit.get(kernel), walk_of(tools, p.count)));
}

}  // namespace

Selection select_gather(const Gather& prim, const SelectRequest& request, const Tools& tools) {
  return prim.kind == GatherKind::elements ? gather_elements(prim, request, tools)
                                           : gather_rows(prim, request, tools);
}

}  // namespace rlx::cuda
