// Unique: a bitonic sort of slices, the places where groups begin, then each output.
#include "cuda/select/unique.h"

#include "kernels/params/unique.h"

namespace rlx::cuda {

Selection select_unique(const Sort& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc& x = request.inputs[0];
  if (is_complex(x.dtype)) throw Error(ErrorKind::unsupported, "Unique takes no complex numbers");
  LaunchBuilder<params::Unique> launch;
  params::Unique& p = launch.params;
  p.length = x.count();
  if (prim.axis >= 0) {
    const AxisView view = view_of(x.shape, size_t(prim.axis));
    p.outer = view.outer, p.length = view.length, p.inner = view.inner;
  }
  for (p.padded = 2; p.padded < p.length;) p.padded *= 2;
  launch.bind(p.x, Source::operand(0));
  const auto wanted = [&](size_t k) { return request.outputs[k].dtype != DType::none; };
  if (wanted(0)) launch.bind(p.y, Source::operand(1));
  if (wanted(1)) launch.bind(p.indices, Source::operand(2));
  if (wanted(2)) launch.bind(p.inverse, Source::operand(3));
  if (wanted(3)) launch.bind(p.counts, Source::operand(4));
  launch.bind(p.count, Source::operand(5));

  // Workspace: order, heads, then what each of two compactions needs.
  const int64_t heads = p.padded * 8, first = heads + ceil_div(p.length + 1, 256) * 256;
  const int64_t compaction = ceil_div(int64_t(CompactSteps::workspace(p.length)), 256) * 256;
  const int64_t list = ceil_div(ceil_div(std::max<int64_t>(p.length, 1), 1024) * 8, 256) * 256;
  launch.bind(p.order, Source::workspace());
  launch.bind(p.heads, Source::workspace(heads));
  launch.bind(p.begins, Source::workspace(first + list));
  if (!prim.sorted) launch.bind(p.firsts, Source::workspace(first + compaction + list));

  Selection selection;
  selection.rung = "sort";
  selection.workspace = size_t(first + compaction * (prim.sorted ? 1 : 2));
  const auto add = [&](int form, int64_t items) {
    KernelSpec kernel{"kernels/unique.cu", "unique",
                      {define("RLX_T", storage_name(x.dtype)), define("RLX_FORM", form)}, {}};
    selection.steps.push_back(launch.finish(tools.jit.get(kernel), walk_of(tools, items)));
  };
  const auto compact = [&](int64_t workspace) {
    LaunchBuilder<params::Compact> part;
    part.bind(part.params.condition, Source::workspace(heads));
    part.bind(part.params.count, Source::operand(5));
    CompactSteps(part, DType::boolean, tools, selection).list(p.length, workspace);
  };
  add(0, p.padded);
  for (p.run = 2; p.run <= p.padded; p.run *= 2) {
    for (p.distance = p.run / 2; p.distance > 0; p.distance /= 2) add(1, p.padded / 2);
  }
  add(2, p.length);
  compact(first);
  if (!prim.sorted) {
    add(3, p.length);
    add(4, p.length);
    compact(first + compaction);
  }
  add(5, p.length);
  if (wanted(0)) add(6, p.outer * p.length * p.inner);
  return selection;
}

}  // namespace rlx::cuda
