// Softmax: rows held in registers where they fit, long rows read twice, columns side by side.
#include "cuda/select/parts.h"
#include "kernels/params/softmax.h"

namespace rlx::cuda {

Selection select_softmax(const Softmax& prim, const SelectRequest& request, const Tools& tools) {
  std::vector<size_t> operands(request.inputs.size());
  for (size_t k = 0; k < operands.size(); ++k) operands[k] = k;
  const SourceRegion source = source_region(prim.prologue, request, operands);
  if (source.type != DType::float32 && source.type != DType::float64) {
    throw Error(ErrorKind::unsupported,
                std::string("softmax is not defined for ") + name_of(source.type));
  }
  const TensorDesc& y = request.outputs[0];
  if (y.count() == 0) return {};
  const size_t rank = source.shape.size();
  const size_t axis = size_t((prim.axis + int64_t(rank)) % int64_t(std::max<size_t>(rank, 1)));
  const AxisView view = view_of(source.shape, axis);
  LaunchBuilder<params::Softmax> launch;
  params::Softmax& p = launch.params;
  p.outer = view.outer, p.length = view.length, p.inner = view.inner;
  bind_region(launch, p.source, source.source,
              [&](int load) { return Source::operand(source.operands[size_t(load)]); });
  launch.bind(p.y, Source::operand(request.inputs.size()));

  int vector = fitting_vector(source.source.vector, view.length);
  while (vector * int(size_of(y.dtype)) > 16) vector /= 2;
  const int64_t runs = ceil_div(view.length, vector);
  const int threads = row_threads(tools, view.outer, runs);
  int held = 1;
  while (int64_t(held) * threads < runs) held *= 2;
  const int form = view.inner > 1 ? 2 : held * vector <= 32 ? 0 : 1;
  const int block = form == 1 ? 512 : std::max(threads, 128);
  KernelSpec kernel{"kernels/softmax.cu", "softmax",
                    {define("RLX_FORM", form), define("RLX_LOG", prim.log),
                     define("RLX_OUT", storage_name(y.dtype)), define("RLX_THREADS", threads),
                     define("RLX_BLOCK", block), define("RLX_VECTOR", form == 2 ? 1 : vector),
                     define("RLX_HELD", form == 0 ? held : 1)},
                    {{"generated/source.h", source.source.text}}};
  const LaunchShape shape = form == 2   ? walk_of(tools, view.outer * view.inner)
                            : form == 1 ? blocks_of(view.outer, block)
                                        : blocks_of(ceil_div(view.outer * threads, block), block);
  static constexpr const char* names[] = {"rows in registers", "long rows", "columns"};
  return one_step(names[form], launch.finish(tools.jit.get(kernel), shape));
}

}  // namespace rlx::cuda
