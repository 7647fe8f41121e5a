// ScatterElements and ScatterND: data is copied unless y may overwrite it, then updates go in.
#include <bit>

#include "cuda/select/parts.h"
#include "cuda/select/sort_passes.h"
#include "kernels/params/gather.h"
#include "kernels/params/move.h"
#include "program/names.h"

namespace rlx::cuda {
namespace {

// A thread that takes the rows of a line in turn waits about 0.4 us for each. Sorting them costs
// two to four more launches and 20 to 80 steps in shared memory, 10 to 30 us together, so it gains
// from 64 rows on. It moves some 200 bytes a row and line besides, which take less time than the
// waiting while lines are no more than a thousand; more lines fill the card by themselves.
constexpr int64_t long_line = 64, many_lines = 1024;
// From so many rows on updates without a reduction, too, get a thread each along few lines.
constexpr int64_t many_rows = 512;
// Keys that are sorted at a time, unless updates or one line's keys are larger: blocks that sort so
// many fill the card.
constexpr int64_t key_bytes = int64_t{8} << 20;

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

void require_shape(const TensorDesc& updates, const Dims& expected) {
  if (updates.shape == expected) return;
  throw Error(ErrorKind::input, "updates have the wrong shape");
}

params::Scatter elements_params(const Scatter& prim, const SelectRequest& request) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  require_shape(request.inputs[2], indices.shape);
  params::Scatter p;
  if (indices.shape.size() > size_t(params::gather_axes)) {
    throw Error(ErrorKind::unsupported, "indices over more than 8 axes");
  }
  const size_t axis = size_t(prim.axis);
  p.lengths[0] = data.shape[axis];
  p.strides[0] = data.strides[axis];
  p.rows = indices.shape[axis];
  int64_t step = 1;
  for (size_t k = indices.shape.size(); k-- > 0; step *= indices.shape[k]) {
    if (k == axis) {
      p.row_step = step;
      continue;
    }
    if (indices.shape[k] > data.shape[k]) {
      throw Error(ErrorKind::input, "indices are longer than data along axis " + std::to_string(k));
    }
    p.line_rows[p.axes] = step;
    p.line_strides[p.axes] = data.strides[k];
    p.extents[p.axes++] = params::Divisor(indices.shape[k]);
    p.lines *= indices.shape[k];
  }
  return p;
}

params::Scatter nd_params(const SelectRequest& request) {
  const TensorDesc &data = request.inputs[0], &indices = request.inputs[1];
  const size_t depth = size_t(indices.shape.back());
  if (depth > size_t(params::gather_axes)) {
    throw Error(ErrorKind::unsupported, "indices over more than 8 axes");
  }
  params::Scatter p;
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
  return p;
}

// Rows of each line sorted by target, then a thread for each column of each target; as many lines
// at a time as the workspace holds.
void add_sorted(LaunchBuilder<params::Scatter>& launch, const Scatter& prim,
                const SelectRequest& request, const Tools& tools, Selection& selection) {
  params::Scatter& p = launch.params;
  p.padded = int64_t(std::bit_ceil(uint64_t(p.rows)));
  const int64_t line_bytes = p.padded * int64_t(sizeof(uint64_t) + sizeof(int64_t));
  const int64_t most = std::max(key_bytes, int64_t(request.inputs[2].bytes()));
  const int64_t lines = p.lines, group = std::clamp<int64_t>(most / line_bytes, 1, lines);
  const int64_t places = group * p.padded * int64_t(sizeof(uint64_t));
  LaunchBuilder<params::Sort> sort;
  sort.params.padded = p.padded;
  launch.bind(p.keys, Source::workspace());
  launch.bind(p.places, Source::workspace(places));
  sort.bind(sort.params.keys, Source::workspace());
  sort.bind(sort.params.places, Source::workspace(places));
  selection.workspace = size_t(group * line_bytes);
  selection.reason = "many updates: sorted by target";
  if (group < lines) {
    selection.reason += ", " + std::to_string(group) + " of " + std::to_string(lines) +
                        " lines at a time: the keys of all would take " +
                        std::to_string(ceil_div(lines * line_bytes, 1 << 20)) + " MiB";
  }
  const auto add = [&](int form, int64_t items) {
    selection.steps.push_back(launch.finish(tools.jit.get(kernel_of(prim, request, form)),
                                            walk_of(tools, items)));
  };
  for (p.first = 0; p.first < lines; p.first += group) {
    p.lines = sort.params.outer = std::min<int64_t>(group, lines - p.first);
    add(2, p.lines * p.padded);
    add_sort_passes(sort, tools, selection);
    add(3, p.lines * p.rows * p.inner.value);
  }
}

void add_updates(const Scatter& prim, const SelectRequest& request, const Tools& tools,
                 Selection& selection) {
  LaunchBuilder<params::Scatter> launch;
  params::Scatter& p = launch.params;
  const bool nd = prim.kind == ScatterKind::nd, reduces = prim.reduction != ScatterReduction::none;
  p = nd ? nd_params(request) : elements_params(prim, request);
  if (request.inputs[2].count() == 0) return;
  launch.bind(p.updates, Source::operand(2));
  launch.bind(p.indices, Source::operand(1));
  launch.bind(p.y, Source::operand(3));
  launch.bind(p.fault, Source::fault());
  const bool few = p.lines <= many_lines;
  if (reduces && few && p.rows >= long_line) {
    return add_sorted(launch, prim, request, tools, selection);
  }
  const bool apart = !reduces && (nd || (few && p.rows >= many_rows));
  const int64_t columns = p.lines * p.inner.value;
  selection.steps.push_back(
      launch.finish(tools.jit.get(kernel_of(prim, request, apart ? 1 : 0)),
                    apart ? walk_of(tools, columns * p.rows) : walk_of(tools, columns, 64)));
}

}  // namespace

Selection select_scatter(const Scatter& prim, const SelectRequest& request, const Tools& tools) {
  Selection selection;
  selection.rung = "scatter";
  if (request.outputs[0].count() == 0) return selection;
  selection.steps.push_back(copy_data(request, tools));
  add_updates(prim, request, tools, selection);
  return selection;
}

}  // namespace rlx::cuda
