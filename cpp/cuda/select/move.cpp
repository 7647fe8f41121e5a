// Move: every part is one strided copy; what no part covers is filled or found by a rule.
#include "cuda/select/parts.h"
#include "kernels/params/move.h"

namespace rlx::cuda {
namespace {

Dims dims_of(const std::vector<ExprId>& ids, const SelectRequest& request) {
  Dims dims;
  for (ExprId id : ids) dims.push_back(request.dim(id));
  return dims;
}

struct Block {
  Dims extents, from;
  int64_t start = 0;
};

// The part's block of x, with x's strides permuted and stepped; checks that it lies inside x.
Block block_of(const MovePart& part, const SelectRequest& request) {
  const TensorDesc& x = request.inputs[size_t(part.input)];
  const Dims starts = dims_of(part.starts, request), steps = dims_of(part.steps, request);
  Block block;
  block.extents = dims_of(part.extents, request);
  for (size_t k = 0; k < part.perm.size(); ++k) {
    const size_t axis = size_t(part.perm[k]);
    const int64_t n = block.extents[k], last = starts[k] + steps[k] * (n - 1);
    if (n > 0 && (starts[k] < 0 || starts[k] >= x.shape[axis] || last < 0 ||
                  last >= x.shape[axis])) {
      throw Error(ErrorKind::input, "a block reaches outside its tensor");
    }
    block.from.push_back(x.strides[axis] * steps[k]);
    block.start += n > 0 ? starts[k] * x.strides[axis] : 0;
  }
  return block;
}

// Axes in an order that serves a copy: y's innermost stays last, and where x is contiguous along
// another axis, that one comes second to last.
void order_for_transpose(Layout& layout) {
  Dims& extents = layout.extents;
  Dims &from = layout.strides[0], &to = layout.strides[1];
  const size_t n = extents.size();
  if (n < 2 || from[n - 1] == 1) return;
  for (size_t k = 0; k + 1 < n; ++k) {
    if (from[k] != 1) continue;
    for (Dims* dims : {&extents, &from, &to}) {
      const int64_t moved = (*dims)[k];
      for (size_t i = k; i + 2 < n; ++i) (*dims)[i] = (*dims)[i + 1];
      (*dims)[n - 2] = moved;
    }
    return;
  }
}

// How many elements lie together and aligned on both sides, in powers of two up to 16 bytes.
int64_t word_of(const Layout& layout, int64_t from, int64_t to, size_t size) {
  const size_t last = layout.extents.size() - 1;
  if (layout.strides[0][last] != 1 || layout.strides[1][last] != 1) return 1;
  int64_t word = int64_t(16 / size);
  const auto fits = [&] {
    if (layout.extents[last] % word || from % word || to % word) return false;
    for (size_t k = 0; k < last; ++k) {
      if (layout.strides[0][k] % word || layout.strides[1][k] % word) return false;
    }
    return true;
  };
  while (word > 1 && !fits()) word /= 2;
  return word;
}

bool far(const Layout& layout, int64_t count) {
  if (!narrow_index(count)) return true;
  for (const Dims& strides : layout.strides) {
    int64_t reach = 0;
    for (size_t k = 0; k < layout.extents.size(); ++k) {
      if (strides[k] < 0) return true;
      reach += strides[k] * (layout.extents[k] - 1);
    }
    if (!narrow_index(reach)) return true;
  }
  return false;
}

class MoveSteps {
 public:
  MoveSteps(const SelectRequest& request, const Tools& tools)
      : request_(request), tools_(tools), y_(request.outputs[0]), size_(size_of(y_.dtype)) {}

  void copy(const MovePart& part, const Block& block, const Dims& offsets) {
    int64_t to = 0;
    for (size_t k = 0; k < offsets.size(); ++k) to += offsets[k] * y_.strides[k];
    Layout layout = merged(block.extents, {block.from, y_.strides});
    if (element_count(layout.extents) == 0) return;
    const int64_t word = word_of(layout, block.start, to, size_);
    if (word > 1) {
      layout.extents.back() /= word;
      for (Dims& strides : layout.strides) {
        for (size_t k = 0; k + 1 < strides.size(); ++k) strides[k] /= word;
      }
    }
    order_for_transpose(layout);
    const size_t n = layout.extents.size();
    if (n > size_t(params::move_axes)) {
      throw Error(ErrorKind::unsupported, "a copy over more than 8 axes");
    }
    const bool tiled = n >= 2 && layout.strides[0][n - 1] != 1 && layout.strides[0][n - 2] == 1 &&
                       layout.strides[1][n - 1] == 1 && layout.extents[n - 1] >= 8 &&
                       layout.extents[n - 2] >= 8;
    LaunchBuilder<params::Move> launch;
    params::Move& p = launch.params;
    p.count = element_count(layout.extents);
    const size_t axes = tiled ? std::max<size_t>(n, 3) : n, lead = axes - n;
    for (size_t k = 0; k < n; ++k) {
      p.extents[lead + k] = params::Divisor(layout.extents[k]);
      p.from_strides[lead + k] = layout.strides[0][k];
      p.to_strides[lead + k] = layout.strides[1][k];
    }
    const int64_t bytes = int64_t(size_);
    launch.bind(p.x, Source::operand(size_t(part.input), block.start * bytes));
    launch.bind(p.y, Source::operand(request_.inputs.size(), to * bytes));
    KernelSpec kernel{"kernels/move.cu", "move",
                      {define("RLX_WORD", integer_name(size_t(word * bytes))),
                       define("RLX_INDEX", index_name(!far(layout, p.count))),
                       define("RLX_FORM", tiled), define("RLX_AXES", int64_t(axes))},
                      {}};
    LaunchShape shape = walk_of(tools_, p.count);
    if (tiled) {
      const int64_t plane = layout.extents[n - 1] * layout.extents[n - 2];
      shape = blocks_of(ceil_div(layout.extents[n - 1], 32) * ceil_div(layout.extents[n - 2], 32) *
                            (p.count / plane), 256);
      shape.block = {32, 8, 1};
    }
    selection.steps.push_back(launch.finish(tools_.jit.get(kernel), shape));
    selection.rung = tiled ? "tiled transpose" : "strided copy";
  }

  void fill(int value) {
    LaunchBuilder<params::Fill> launch;
    launch.params.count = y_.count();
    if (value >= 0) launch.bind(launch.params.value, Source::operand(size_t(value)));
    launch.bind(launch.params.y, Source::operand(request_.inputs.size()));
    KernelSpec kernel{"kernels/extend.cu", "extend",
                      {define("RLX_WORD", integer_name(size_)),
                       define("RLX_INDEX", index_name(narrow_index(y_.count()))),
                       define("RLX_FORM", 0)},
                      {}};
    selection.steps.push_back(launch.finish(tools_.jit.get(kernel),
                                            walk_of(tools_, y_.count())));
  }

  void extend(const Move& prim, const Block& block) {
    const Dims begins = dims_of(prim.parts[0].offsets, request_);
    LaunchBuilder<params::Extend> launch;
    params::Extend& p = launch.params;
    p.count = y_.count();
    p.axes = int(y_.shape.size());
    if (p.axes > params::move_axes) throw Error(ErrorKind::unsupported, "padding of so many axes");
    for (int k = 0; k < p.axes; ++k) {
      if (block.extents[size_t(k)] == 0) {
        throw Error(ErrorKind::input, "an empty axis cannot be extended from its own values");
      }
      p.extents[k] = params::Divisor(y_.shape[size_t(k)]);
      p.begins[k] = begins[size_t(k)];
      p.lengths[k] = block.extents[size_t(k)];
      p.strides[k] = block.from[size_t(k)];
    }
    launch.bind(p.x, Source::operand(size_t(prim.parts[0].input), block.start * int64_t(size_)));
    launch.bind(p.y, Source::operand(request_.inputs.size()));
    const int form = prim.mode == MoveMode::edge ? 1 : prim.mode == MoveMode::reflect ? 2 : 3;
    KernelSpec kernel{"kernels/extend.cu", "extend",
                      {define("RLX_WORD", integer_name(size_)),
                       define("RLX_INDEX", index_name(narrow_index(p.count))),
                       define("RLX_FORM", form)},
                      {}};
    selection.rung = "extend";
    selection.steps.push_back(launch.finish(tools_.jit.get(kernel), walk_of(tools_, p.count)));
  }

  Selection selection;

 private:
  const SelectRequest& request_;
  const Tools& tools_;
  const TensorDesc& y_;
  size_t size_;
};

}  // namespace

Selection select_move(const Move& prim, const SelectRequest& request, const Tools& tools) {
  MoveSteps steps(request, tools);
  const TensorDesc& y = request.outputs[0];
  if (y.count() == 0) return {};
  if (prim.mode != MoveMode::none && prim.mode != MoveMode::constant) {
    steps.extend(prim, block_of(prim.parts[0], request));
    return std::move(steps.selection);
  }
  std::vector<Block> blocks;
  int64_t covered = 0;
  for (const MovePart& part : prim.parts) {
    blocks.push_back(block_of(part, request));
    covered += element_count(blocks.back().extents);
  }
  if (prim.mode == MoveMode::constant && covered != y.count()) steps.fill(prim.fill);
  for (size_t k = 0; k < prim.parts.size(); ++k) {
    steps.copy(prim.parts[k], blocks[k], dims_of(prim.parts[k].offsets, request));
  }
  return std::move(steps.selection);
}

}  // namespace rlx::cuda
