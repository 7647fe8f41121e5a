// Pooling: one launch, a thread for each output.
#include "cuda/select/parts.h"
#include "kernels/params/pool.h"

namespace rlx::cuda {
namespace {

bool takes(PoolKind kind, DType type) {
  switch (type) {
    case DType::float32: case DType::float64: case DType::float16: case DType::bfloat16:
      return true;
    case DType::int8: case DType::uint8: return kind == PoolKind::max;
    default: return false;
  }
}

void fill_axes(const Pool& prim, const SelectRequest& request, params::Pool& p) {
  const TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  const size_t spatial = x.shape.size() - 2, first = prim.channels_last ? 1 : 2;
  const size_t channel = prim.channels_last ? x.shape.size() - 1 : 1;
  p.channels = x.shape[channel];
  p.x_batch = x.strides[0], p.x_channel = x.strides[channel];
  p.y_batch = y.strides[0], p.y_channel = y.strides[channel];
  p.extents[0] = params::Divisor(x.shape[0]);
  p.extents[prim.channels_last ? 4 : 1] = params::Divisor(p.channels);
  for (size_t k = 0; k < spatial; ++k) {
    const size_t at = 3 - spatial + k;
    if (prim.kernel[k] < 1 || prim.strides[k] < 1 || prim.dilations[k] < 1) {
      throw Error(ErrorKind::model, "kernels, strides and dilations of pooling must be positive");
    }
    p.axes[at] = {int(x.shape[first + k]), int(y.shape[first + k]), prim.kernel[k],
                  prim.strides[k], prim.dilations[k], int(request.dim(prim.pads_begin[k])),
                  int(request.dim(prim.pads_end[k])), x.strides[first + k], y.strides[first + k]};
    p.extents[(prim.channels_last ? 1 : 2) + at] = params::Divisor(y.shape[first + k]);
  }
}

}  // namespace

Selection select_pool(const Pool& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  if (!takes(prim.kind, x.dtype)) {
    throw Error(ErrorKind::unsupported, std::string("pooling takes no ") + name_of(x.dtype));
  }
  if (y.count() == 0) return {};
  LaunchBuilder<params::Pool> launch;
  params::Pool& p = launch.params;
  fill_axes(prim, request, p);
  p.count = y.count();
  p.p = prim.p;
  p.column_major = prim.storage_order;
  p.counts_padding = prim.count_include_pad;
  launch.bind(p.x, Source::operand(0));
  launch.bind(p.y, Source::operand(1));
  if (request.outputs.size() > 1 && request.outputs[1].dtype != DType::none) {
    launch.bind(p.indices, Source::operand(2));
  }
  static constexpr const char* kinds[] = {"max_pool", "average_pool", "lp_pool"};
  KernelSpec kernel{"kernels/pool.cu", "pool",
                    {define("RLX_T", storage_name(x.dtype)),
                     define("RLX_KIND", std::string(kinds[size_t(prim.kind)])),
                     define("RLX_CHANNELS_LAST", prim.channels_last),
                     define("RLX_INDEX", index_name(narrow_index(p.count)))},
                    {}};
  return one_step("pool", launch.finish(tools.jit.get(kernel), walk_of(tools, p.count)));
}

}  // namespace rlx::cuda
