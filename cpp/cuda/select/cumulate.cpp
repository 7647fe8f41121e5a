// Running sums and products: rows by a block each, columns by a thread each.
#include "cuda/select/parts.h"
#include "kernels/params/cumulate.h"

namespace rlx::cuda {

Selection select_cumulate(const Cumulate& prim, const SelectRequest& request, const Tools& tools) {
  const SourceRegion source = source_region(nullptr, request, {0}, 1);
  const TensorDesc& y = request.outputs[0];
  if (source.type == DType::boolean || is_complex(source.type)) {
    throw Error(ErrorKind::unsupported,
                std::string("running sums are not defined for ") + name_of(source.type));
  }
  if (y.count() == 0) return {};
  const AxisView view = view_of(source.shape, size_t(prim.axis));
  LaunchBuilder<params::Cumulate> launch;
  params::Cumulate& p = launch.params;
  p.outer = view.outer, p.length = view.length, p.inner = view.inner;
  bind_region(launch, p.source, source.source, [](int) { return Source::operand(0); });
  launch.bind(p.y, Source::operand(1));
  const bool rows = view.inner == 1 && view.length > 1;
  const int block = view.length <= 128 ? 128 : 512;
  KernelSpec kernel{"kernels/cumulate.cu", "cumulate",
                    {define("RLX_OUT", storage_name(y.dtype)), define("RLX_FORM", rows ? 0 : 1),
                     define("RLX_PRODUCT", prim.kind == CumulateKind::prod),
                     define("RLX_EXCLUSIVE", prim.exclusive), define("RLX_REVERSE", prim.reverse),
                     define("RLX_BLOCK", block)},
                    {{"generated/source.h", source.source.text}}};
  return one_step(rows ? "rows" : "columns",
                  launch.finish(tools.jit.get(kernel),
                                rows ? blocks_of(view.outer, block)
                                     : walk_of(tools, view.outer * view.inner)));
}

}  // namespace rlx::cuda
