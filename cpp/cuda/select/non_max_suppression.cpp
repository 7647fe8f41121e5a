// Non-maximum suppression: every batch and class at once, then one list of them all.
#include "cuda/select/parts.h"
#include "kernels/params/nms.h"

namespace rlx::cuda {

Selection select_non_max_suppression(const NonMaxSuppression& prim, const SelectRequest& request,
                                     const Tools& tools) {
  const TensorDesc &boxes = request.inputs[0], &scores = request.inputs[1];
  if (boxes.shape.size() != 3 || scores.shape.size() != 3 || boxes.shape[2] != 4 ||
      boxes.shape[0] != scores.shape[0] || boxes.shape[1] != scores.shape[2]) {
    throw Error(ErrorKind::input, "boxes must be [batch, n, 4] and scores [batch, classes, n]");
  }
  LaunchBuilder<params::Nms> launch;
  params::Nms& p = launch.params;
  p.batches = scores.shape[0], p.classes = scores.shape[1], p.box_count = scores.shape[2];
  const auto given = [&](size_t k) {
    return k < request.inputs.size() && request.inputs[k].dtype != DType::none;
  };
  launch.bind(p.boxes, Source::operand(0));
  launch.bind(p.scores, Source::operand(1));
  if (given(2)) launch.bind(p.limit, Source::operand(2));
  if (given(3)) launch.bind(p.iou, Source::operand(3));
  if (given(4)) launch.bind(p.least, Source::operand(4));
  const size_t outputs = request.inputs.size();
  launch.bind(p.selected, Source::operand(outputs));
  launch.bind(p.count, Source::operand(outputs + 1));
  const int64_t tasks = p.batches * p.classes, candidates = tasks * p.box_count;
  launch.bind(p.picked, Source::workspace());
  launch.bind(p.picks, Source::workspace(candidates * 8));
  launch.bind(p.state, Source::workspace((candidates + tasks) * 8));
  KernelSpec kernel{"kernels/nms.cu", "nms",
                    {define("RLX_CENTER", prim.center_point_box), define("RLX_FORM", 0)}, {}};
  Selection selection;
  selection.rung = "greedy";
  selection.workspace = size_t((candidates + tasks) * 8 + candidates);
  if (candidates > 0) {
    selection.steps.push_back(launch.finish(tools.jit.get(kernel), blocks_of(tasks, 256)));
  } else {
    p.batches = 0;
  }
  kernel.defines.back() = define("RLX_FORM", 1);
  selection.steps.push_back(launch.finish(tools.jit.get(kernel), blocks_of(1, 256)));
  return selection;
}

}  // namespace rlx::cuda
