// Reductions: rows or columns, split over the card when there are few results, then merged.
#include "cuda/select/parts.h"
#include "kernels/params/reduce.h"
#include "program/names.h"

namespace rlx::cuda {
namespace {

struct Axes {
  Dims extents, strides;
};

// Axes of one class next to each other are one; the source counts its elements row by row.
struct Classes {
  Axes kept, reduced;
  bool reduced_last = true;
};

Classes classes_of(const Dims& shape, const std::vector<int>& axes) {
  Classes made;
  int64_t stride = element_count(shape);
  int before = -1;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 0) return made;
    stride /= shape[k];
    if (shape[k] == 1) continue;
    const bool reduced = std::find(axes.begin(), axes.end(), int(k)) != axes.end();
    Axes& list = reduced ? made.reduced : made.kept;
    if (before == int(reduced)) {
      list.extents.back() *= shape[k];
      list.strides.back() = stride;
    } else {
      list.extents.push_back(shape[k]);
      list.strides.push_back(stride);
    }
    before = int(reduced);
  }
  made.reduced_last = before != 0;
  return made;
}

void fill(const Axes& axes, params::Divisor* extents, long long* strides) {
  if (axes.extents.size() > size_t(params::reduce_axes)) {
    throw Error(ErrorKind::unsupported, "a reduction over so many separate axes");
  }
  const size_t lead = size_t(params::reduce_axes) - axes.extents.size();
  for (size_t k = 0; k < axes.extents.size(); ++k) {
    extents[lead + k] = params::Divisor(axes.extents[k]);
    strides[lead + k] = axes.strides[k];
  }
  // The kernel takes the rest of the index along axis 0.
  if (lead > 0) strides[0] = 0;
}

bool takes(ReduceKind kind, DType type) {
  if (type == DType::boolean) return kind == ReduceKind::max || kind == ReduceKind::min;
  if (is_complex(type)) return false;
  return kind != ReduceKind::log_sum_exp || is_float(type);
}

size_t state_bytes(ReduceKind kind) {
  if (kind == ReduceKind::argmax || kind == ReduceKind::argmin ||
      kind == ReduceKind::log_sum_exp) {
    return 16;
  }
  return 8;
}

}  // namespace

Selection select_reduce(const Reduce& prim, const SelectRequest& request, const Tools& tools) {
  std::vector<size_t> operands(request.inputs.size());
  for (size_t k = 0; k < operands.size(); ++k) operands[k] = k;
  const SourceRegion source = source_region(prim.prologue, request, operands);
  if (!takes(prim.kind, source.type)) {
    throw Error(ErrorKind::unsupported, "reduction " + std::string(name_of(prim.kind)) +
                                            " is not defined for " + name_of(source.type));
  }
  LaunchBuilder<params::Reduce> launch;
  params::Reduce& p = launch.params;
  p.kept = request.outputs[0].count();
  if (p.kept == 0) return {};
  p.reduced = 1;
  for (int axis : prim.axes) p.reduced *= source.shape[size_t(axis)];
  const Classes classes = classes_of(source.shape, prim.axes);
  fill(classes.kept, p.kept_extents, p.kept_strides);
  fill(classes.reduced, p.reduced_extents, p.reduced_strides);

  const bool rows = classes.reduced_last;
  const int64_t run = classes.reduced.extents.empty() ? 1 : classes.reduced.extents.back();
  const int vector = rows ? fitting_vector(source.source.vector, run) : 1;
  const int threads = rows && p.reduced <= 1024 * vector ? 32 : 256;
  const int64_t row_blocks = rows ? ceil_div(p.kept * threads, 256) : ceil_div(p.kept, 32);
  const int64_t wanted = int64_t(tools.driver.info().multiprocessors) * 4;
  const int64_t least = rows ? int64_t(threads) * vector * 8 : 128;  // worth a split
  p.splits = std::clamp<int64_t>(std::min<int64_t>(wanted / row_blocks, p.reduced / least), 1, 64);
  p.per_split = ceil_div(ceil_div(p.reduced, p.splits), vector) * vector;
  p.splits = std::max<int64_t>(1, ceil_div(p.reduced, std::max<int64_t>(p.per_split, 1)));

  const size_t y = request.inputs.size();
  bind_region(launch, p.source, source.source,
              [&](int load) { return Source::operand(source.operands[size_t(load)]); });
  launch.bind(p.y, Source::operand(y));
  launch.bind(p.parts, Source::workspace());
  KernelSpec kernel{"kernels/reduce.cu", "reduce",
                    {define("RLX_KIND", std::string(name_of(prim.kind))),
                     define("RLX_LAST", prim.select_last_index ? "true" : "false"),
                     define("RLX_OUT", storage_name(request.outputs[0].dtype)),
                     define("RLX_THREADS", threads), define("RLX_VECTOR", vector),
                     define("RLX_BLOCK", 256), define("RLX_FORM", rows ? 0 : 1)},
                    {{"generated/source.h", source.source.text}}};
  LaunchShape shape = blocks_of(
      rows ? ceil_div(p.kept * p.splits * threads, 256) : row_blocks * p.splits, 256);
  if (!rows) shape.block = {32, 8, 1};
  Selection selection = one_step(rows ? "rows" : "columns",
                                 launch.finish(tools.jit.get(kernel), shape));
  selection.reason = std::to_string(p.splits) + " splits";
  if (p.splits == 1) return selection;
  selection.workspace = size_t(p.kept * p.splits) * state_bytes(prim.kind);
  kernel.defines.back() = define("RLX_FORM", 2);
  selection.steps.push_back(launch.finish(tools.jit.get(kernel), walk_of(tools, p.kept)));
  return selection;
}

}  // namespace rlx::cuda
