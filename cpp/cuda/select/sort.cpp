// TopK by bitonic sorts; NonZero and Compress by a list of what holds; sizes stay on the device.
#include "cuda/select/parts.h"
#include "cuda/select/sort_passes.h"
#include "cuda/select/unique.h"

namespace rlx::cuda {
namespace {

constexpr int64_t shared_line = 2048;

Selection select_topk(const Sort& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc& x = request.inputs[0];
  const size_t rank = x.shape.size();
  const AxisView view = view_of(x.shape, size_t((prim.axis + int(rank)) % int(rank)));
  LaunchBuilder<params::Sort> launch;
  params::Sort& p = launch.params;
  p.outer = view.outer, p.length = view.length, p.inner = view.inner;
  p.k = request.dim(prim.k);
  p.largest = prim.largest;
  if (p.k < 0 || p.k > p.length) {
    throw Error(ErrorKind::input, "k is outside the axis")
        .expected_got("0 to " + std::to_string(p.length), std::to_string(p.k));
  }
  if (request.outputs[0].count() == 0) return {};
  p.padded = 64;
  while (p.padded < p.length) p.padded *= 2;
  launch.bind(p.x, Source::operand(0));
  launch.bind(p.values, Source::operand(1));
  if (request.outputs.size() > 1) launch.bind(p.indices, Source::operand(2));
  KernelSpec kernel{"kernels/sort.cu", "sort",
                    {define("RLX_T", storage_name(x.dtype)), define("RLX_PADDED", p.padded),
                     define("RLX_FORM", 0)},
                    {}};
  const int64_t lines = view.outer * view.inner;
  if (p.padded <= shared_line) {
    return one_step("sort in shared memory",
                    launch.finish(tools.jit.get(kernel), blocks_of(lines, int(p.padded / 2))));
  }
  Selection selection;
  selection.rung = "sort in memory";
  selection.workspace = size_t(lines * p.padded) * 16;
  launch.bind(p.keys, Source::workspace());
  launch.bind(p.places, Source::workspace(lines * p.padded * 8));
  const auto add = [&](int form, int64_t items) {
    kernel.defines = {define("RLX_T", storage_name(x.dtype)), define("RLX_FORM", form)};
    selection.steps.push_back(launch.finish(tools.jit.get(kernel), walk_of(tools, items)));
  };
  add(1, lines * p.padded);
  add_sort_passes(launch, tools, selection);
  add(3, lines * p.k);
  return selection;
}

}  // namespace

void add_sort_passes(LaunchBuilder<params::Sort>& launch, const Tools& tools,
                     Selection& selection) {
  params::Sort& p = launch.params;
  const int64_t pairs = p.outer * p.inner * p.padded;
  const int64_t block = std::min<int64_t>(p.padded, shared_line);
  const auto add = [&](int form, const LaunchShape& shape) {
    const KernelSpec kernel{"kernels/sort.cu", "sort",
                            {define("RLX_T", storage_name(DType::int64)),  // only keys are read
                             define("RLX_PADDED", block), define("RLX_FORM", form)},
                            {}};
    selection.steps.push_back(launch.finish(tools.jit.get(kernel), shape));
  };
  const LaunchShape shared = blocks_of(pairs / block, int(block / 2));
  p.run = 2, p.last_run = block;
  add(4, shared);
  for (p.run = 2 * block; p.run <= p.padded; p.run *= 2) {
    for (p.distance = p.run / 2; p.distance >= block; p.distance /= 2) {
      add(2, walk_of(tools, pairs / 2));
    }
    p.last_run = p.run;
    add(4, shared);
  }
}

CompactSteps::CompactSteps(LaunchBuilder<params::Compact>& launch, DType condition,
                           const Tools& tools, Selection& selection)
    : launch_(launch), condition_(condition), tools_(tools), selection_(selection) {}

size_t CompactSteps::workspace(int64_t length) {
  return (size_t(ceil_div(std::max<int64_t>(length, 1), 1024)) * 8 + 255) / 256 * 256 +
         size_t(length) * 8;
}

void CompactSteps::list(int64_t length, int64_t workspace) {
  params::Compact& p = launch_.params;
  p.length = length;
  p.blocks = ceil_div(std::max<int64_t>(length, 1), 1024);
  launch_.bind(p.sums, Source::workspace(workspace));
  launch_.bind(p.list, Source::workspace(workspace + (p.blocks * 8 + 255) / 256 * 256));
  add(0, blocks_of(p.blocks, 256));
  add(1, blocks_of(1, 256));
  add(2, blocks_of(p.blocks, 256));
}

void CompactSteps::add(int form, const LaunchShape& shape, const std::string& word) {
  KernelSpec kernel{"kernels/compact.cu", "compact",
                    {define("RLX_CONDITION", storage_name(condition_)), define("RLX_WORD", word),
                     define("RLX_FORM", form)},
                    {}};
  selection_.steps.push_back(launch_.finish(tools_.jit.get(kernel), shape));
}

namespace {

Selection select_nonzero(const SelectRequest& request, const Tools& tools) {
  const TensorDesc& x = request.inputs[0];
  Selection selection;
  selection.rung = "compaction";
  LaunchBuilder<params::Compact> launch;
  params::Compact& p = launch.params;
  p.axes = int(x.shape.size());
  if (p.axes > params::compact_axes) throw Error(ErrorKind::unsupported, "NonZero over 9 axes");
  for (int k = 0; k < p.axes; ++k) p.extents[k] = params::Divisor(x.shape[size_t(k)]);
  launch.bind(p.condition, Source::operand(0));
  launch.bind(p.y, Source::operand(1));
  launch.bind(p.count, Source::operand(2));
  CompactSteps steps(launch, x.dtype, tools, selection);
  steps.list(x.count(), 0);
  steps.add(3, walk_of(tools, x.count()));
  selection.workspace = CompactSteps::workspace(x.count());
  return selection;
}

Selection select_compress(const Sort& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc &x = request.inputs[0], &condition = request.inputs[1];
  Selection selection;
  selection.rung = "compaction";
  LaunchBuilder<params::Compact> launch;
  params::Compact& p = launch.params;
  p.axis = x.count();
  if (prim.axis >= 0) {
    const AxisView view = view_of(x.shape, size_t(prim.axis));
    p.outer = view.outer, p.axis = view.length, p.inner = view.inner;
  }
  const int64_t length = std::min<int64_t>(condition.count(), p.axis);
  launch.bind(p.condition, Source::operand(1));
  launch.bind(p.x, Source::operand(0));
  launch.bind(p.y, Source::operand(2));
  launch.bind(p.count, Source::operand(3));
  CompactSteps steps(launch, condition.dtype, tools, selection);
  steps.list(length, 0);
  steps.add(4, walk_of(tools, p.outer * length * p.inner), integer_name(size_of(x.dtype)));
  selection.workspace = CompactSteps::workspace(length);
  return selection;
}

}  // namespace

Selection select_sort(const Sort& prim, const SelectRequest& request, const Tools& tools) {
  switch (prim.kind) {
    case SortKind::topk: return select_topk(prim, request, tools);
    case SortKind::nonzero: return select_nonzero(request, tools);
    case SortKind::compress: return select_compress(prim, request, tools);
    case SortKind::unique: return select_unique(prim, request, tools);
  }
  return {};
}

}  // namespace rlx::cuda
