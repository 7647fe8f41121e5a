// Pooling by our own kernels: vectorised ones for the common types, plain loops for the rest.
//
// oneDNN is not asked. On one AVX2 core its float32 max pool is 0.06 to 0.14 ms faster per layer
// when channels are last (resnet50's 0.19 ms against 0.33: ours keeps NaN), 3 to 17 times slower
// when they are first, and for dilations, other types and indices it has reference loops.
#include "cpu/kernels/pool.h"

#include "cpu/select/image.h"
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

struct PoolBody : StepBody {
  PoolShape shape;
  bool fast = false;

  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    if (fast) return pool_fast(shape, o[0], o[1], args.threads);
    pool_plain(shape, o[0], o[1], static_cast<int64_t*>(o[2]), args.threads);
  }
};

PoolShape shape_of(const Pool& prim, const SelectRequest& request) {
  const TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  PoolShape s;
  s.kind = prim.kind;
  s.dtype = x.dtype;
  s.p = prim.p;
  s.storage_order = prim.storage_order;
  s.batch = x.shape[0];
  s.channels = x.shape[prim.channels_last ? x.shape.size() - 1 : 1];
  const size_t spatial = x.shape.size() - 2;
  for (size_t k = 0; k < spatial; ++k) {
    const size_t space = (prim.channels_last ? 1 : 2) + k;
    WindowAxis& axis = s.axes[3 - spatial + k];
    axis = {x.shape[space],
            y.shape[space],
            prim.kernel[k],
            prim.strides[k],
            prim.dilations[k],
            request.dim(prim.pads_begin[k]),
            request.dim(prim.pads_end[k])};
  }
  for (const WindowAxis& axis : s.axes) {
    if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1) {
      throw Error(ErrorKind::model, "kernels, strides and dilations of pooling must be positive");
    }
  }
  for (int k = 0; k < 3; ++k) s.spans[k] = window_spans(s.axes[k], prim.count_include_pad);
  s.x = image_strides(x, prim.channels_last);
  s.y = image_strides(y, prim.channels_last);
  return s;
}

}  // namespace

Selection select_pool(const Pool& prim, const SelectRequest& request) {
  auto body = std::make_shared<PoolBody>();
  body->shape = shape_of(prim, request);
  const bool indices = request.outputs.size() > 1 && request.outputs[1].dtype != DType::none;
  if (!pool_takes(prim.kind, body->shape.dtype)) {
    throw Error(ErrorKind::unsupported, std::string("pooling takes no ") +
                                            name_of(body->shape.dtype));
  }
  body->fast = request.force != "plain" && pool_has_fast(body->shape, indices);
  Selection selection;
  selection.rung = body->fast ? "vectorised" : "plain";
  if (!body->fast) selection.reason = indices ? "indices are wanted" : "type, kind or strides";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
