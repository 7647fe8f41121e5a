// ScatterElements and ScatterND: data is copied unless y may overwrite it, then updates go in.
#include "cuda/select/parts.h"
#include "cuda/select/sort_passes.h"
#include "kernels/params/gather.h"
#include "kernels/params/move.h"
#include "program/names.h"

namespace rlx::cuda {
namespace {

// From so many updates on, a thread that takes one after the other is slower than sorting them.
constexpr int64_t many_rows = 512;
// Lines enough that one thread each fills the card.
constexpr int64_t many_lines = 1024;

SelectedStep copy_data(const SelectRequest& request, const Tools& tools) {
  const TensorDesc& data = request.inputs[0];
  const int64_t bytes = int64_t(data.bytes());
  const int word = fitting_vector(16, bytes);
  LaunchBuilder<params::Move> launch;
  params::Move& p = launch.params;
  p.count = bytes / word;
  p.extents[0] = params::Divisor(p.count);
  p.from_strides[0] = p.to_strides[0] = 1;
  launch.bind(p.x, Source::operand(0));
  launch.bind(p.y, Source::operand(3));
  KernelSpec kernel{"kernels/move.cu", "move",
                    {define("RLX_WORD", integer_name(size_t(word))),
                     define("RLX_INDEX", index_name(narrow_index(p.count))),
                     define("RLX_FORM", 0), define("RLX_AXES", 1)},
                    {}};
  return launch.finish(tools.jit.get(kernel), walk_of(tools, p.count));
}

KernelSpec kernel_of(const Scatter& prim, const SelectRequest& request, int form) {
  const bool reduces = prim.reduction != ScatterReduction::none;
  const DType type = request.inputs[0].dtype;
  if (reduces && (is_complex(type) || type == DType::string)) {
    throw Error(ErrorKind::unsupported, std::string("scatter has no reduction for ") +
                                            name_of(type));
  }
  std::string function(name_of(prim.reduction));
  if (type == DType::boolean && reduces) {
    function = prim.reduction == ScatterReduction::add || prim.reduction == ScatterReduction::max
                   ? "max" : "min";
  }
  return {"kernels/scatter.cu", "scatter",
          {define("RLX_T", reduces ? storage_name(type) : integer_name(size_of(type))),
           define("RLX_INDICES", storage_name(request.inputs[1].dtype)),
           define("RLX_REDUCES", reduces), define("RLX_REDUCTION", function),
           define("RLX_FORM", form)},
          {}};
}

template <class Params>
void bind_operands(LaunchBuilder<Params>& launch, const void*& updates) {
  launch.bind(updates, Source::operand(2));
  launch.bind(launch.params.indices, Source::operand(1));
  launch.bind(launch.params.y, Source::operand(3));
  launch.bind(launch.params.fault, Source::fault());
}

void require_shape(const TensorDesc& updates, const Dims& expected) {
  if (updates.shape == expected) return;
  throw Error(ErrorKind::input, "updates have the wrong shape");
}

// Rows sorted by target, then a thread for each column of each target.
void add_sorted(LaunchBuilder<params::ScatterNd> launch, const Scatter& prim,
                const SelectRequest& request, const Tools& tools, Selection& selection) {
  params::ScatterNd& p = launch.params;
  LaunchBuilder<params::Sort> sort;
  p.padded = 64;
  while (p.padded < p.rows) p.padded *= 2;
  sort.params.outer = sort.params.inner = 1;
  sort.params.padded = p.padded;
  const int64_t places = p.padded * int64_t(sizeof(uint64_t));
  launch.bind(p.keys, Source::workspace());
  launch.bind(p.places, Source::workspace(places));
  sort.bind(sort.params.keys, Source::workspace());
  sort.bind(sort.params.places, Source::workspace(places));
  selection.workspace = size_t(2 * places);
  selection.reason = "many updates: sorted by target";
  const auto add = [&](int form, int64_t items) {
    selection.steps.push_back(launch.finish(tools.jit.get(kernel_of(prim, request, form)),
                                            walk_of(tools, items)));
  };
  add(3, p.padded);
  add_sort_passes(sort, DType::int64, tools, selection);
  add(4, p.rows * p.inner.value);
}

void scatter_elements(const Scatter& prim, const SelectRequest& request, const Tools& tools,
                      Selection& selection) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  require_shape(request.inputs[2], indices.shape);
  LaunchBuilder<params::Elements> launch;
  params::Elements& p = launch.params;
  p.axes = int(indices.shape.size());
  if (p.axes > params::gather_axes) {
    throw Error(ErrorKind::unsupported, "indices over more than 8 axes");
  }
  p.axis = prim.axis;
  p.length = data.shape[size_t(p.axis)];
  p.line = indices.shape[size_t(p.axis)];
  int64_t stride = 1;
  for (int k = p.axes; k-- > 0; stride *= indices.shape[size_t(k)]) {
    if (k == p.axis) p.line_step = stride;
    else if (indices.shape[size_t(k)] > data.shape[size_t(k)]) {
      throw Error(ErrorKind::input, "indices are longer than data along axis " + std::to_string(k));
    }
    p.extents[k] = params::Divisor(k == p.axis ? 1 : indices.shape[size_t(k)]);
    p.strides[k] = data.strides[size_t(k)];
    p.line_strides[k] = stride;
  }
  p.count = p.line > 0 ? indices.count() / p.line : 0;
  bind_operands(launch, p.data);
  const bool reduces = prim.reduction != ScatterReduction::none;
  if (p.line >= many_rows && p.count == 1 && reduces) {
    LaunchBuilder<params::ScatterNd> rows;
    rows.params.rows = p.line;
    rows.params.inner = params::Divisor(1);
    rows.params.lengths[0] = p.length;
    rows.params.strides[0] = p.strides[p.axis];
    bind_operands(rows, rows.params.updates);
    return add_sorted(rows, prim, request, tools, selection);
  }
  const bool apart = p.line >= many_rows && p.count < many_lines && !reduces;
  selection.steps.push_back(launch.finish(tools.jit.get(kernel_of(prim, request, apart ? 5 : 0)),
                                          apart ? walk_of(tools, p.count * p.line)
                                                : walk_of(tools, p.count, 64)));
}

void scatter_nd(const Scatter& prim, const SelectRequest& request, const Tools& tools,
                Selection& selection) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  const size_t depth = size_t(indices.shape.back());
  LaunchBuilder<params::ScatterNd> launch;
  params::ScatterNd& p = launch.params;
  if (depth > size_t(params::gather_axes)) {
    throw Error(ErrorKind::unsupported, "indices over more than 8 axes");
  }
  p.depth = int(depth);
  p.rows = 1;
  int64_t inner = 1;
  Dims expected;
  for (size_t k = 0; k + 1 < indices.shape.size(); ++k) {
    p.rows *= indices.shape[k];
    expected.push_back(indices.shape[k]);
  }
  for (size_t k = 0; k < data.shape.size(); ++k) {
    if (k < depth) {
      p.lengths[k] = data.shape[k];
      p.strides[k] = data.strides[k];
    } else {
      inner *= data.shape[k];
      expected.push_back(data.shape[k]);
    }
  }
  require_shape(request.inputs[2], expected);
  p.inner = params::Divisor(inner);
  bind_operands(launch, p.updates);
  const bool reduces = prim.reduction != ScatterReduction::none;
  if (reduces && p.rows >= many_rows) return add_sorted(launch, prim, request, tools, selection);
  selection.steps.push_back(launch.finish(tools.jit.get(kernel_of(prim, request, reduces ? 2 : 1)),
                                          walk_of(tools, reduces ? inner : p.rows * inner)));
}

}  // namespace

Selection select_scatter(const Scatter& prim, const SelectRequest& request, const Tools& tools) {
  Selection selection;
  selection.rung = "scatter";
  if (request.outputs[0].count() == 0) return selection;
  selection.steps.push_back(copy_data(request, tools));
  Selection updates;
  if (prim.kind == ScatterKind::elements) scatter_elements(prim, request, tools, updates);
  else scatter_nd(prim, request, tools, updates);
  if (request.inputs[2].count() == 0) return selection;
  selection.workspace = updates.workspace;
  selection.reason = updates.reason;
  std::ranges::move(updates.steps, std::back_inserter(selection.steps));
  return selection;
}

}  // namespace rlx::cuda
