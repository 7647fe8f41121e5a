// Fourier transforms: load, a pass for each factor of the length, store.
#include "cuda/select/parts.h"
#include "kernels/params/fft.h"

namespace rlx::cuda {

Selection select_fft(const Fft& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  if (!is_float(x.dtype)) {
    throw Error(ErrorKind::unsupported, std::string("a Fourier transform takes no ") +
                                            name_of(x.dtype));
  }
  if (y.count() == 0) return {};
  const size_t axis = size_t(prim.axis), last = x.shape.size() - 1;
  LaunchBuilder<params::Fft> launch;
  params::Fft& p = launch.params;
  int64_t outer = 1;
  for (size_t k = 0; k < axis; ++k) outer *= y.shape[k];
  for (size_t k = axis + 1; k < last; ++k) p.inner *= y.shape[k];
  p.n = request.dim(prim.length);
  p.lines = outer * p.inner;
  p.x_points = x.shape[axis], p.y_points = y.shape[axis];
  p.x_parts = int(x.shape[last]), p.y_parts = int(y.shape[last]);
  p.inverse = prim.inverse, p.onesided = prim.onesided;
  launch.bind(p.x, Source::operand(0));
  launch.bind(p.y, Source::operand(1));
  const int64_t point = 2 * int64_t(size_of(compute_type(x.dtype)));
  const int64_t half = (p.lines * p.n * point + 255) / 256 * 256;
  Selection selection;
  selection.rung = "Stockham passes";
  selection.workspace = size_t(2 * half);
  int64_t at = 0;  // which half holds the points
  const auto add = [&](int form, int64_t items, int64_t radix = 0) {
    LaunchBuilder<params::Fft> step = launch;
    step.bind(step.params.from, Source::workspace(at));
    step.bind(step.params.to, Source::workspace(form == 0 ? at : half - at));
    KernelSpec kernel{"kernels/fft.cu", "fft",
                      {define("RLX_T", storage_name(x.dtype)), define("RLX_FORM", form),
                       define("RLX_RADIX", radix)},
                      {}};
    selection.steps.push_back(step.finish(tools.jit.get(kernel), walk_of(tools, items)));
  };
  add(0, p.lines * p.n);
  p.done = 1;
  for (int64_t rest = p.n; rest > 1;) {
    int64_t radix = rest % 4 == 0 ? 4 : 2;
    while (rest % radix != 0) radix = radix * radix > rest ? rest : radix + 1;
    rest /= radix;
    p.radix = radix, p.rest = rest;
    const bool fixed = radix <= 5;  // they have butterflies of their own
    add(1, p.lines * p.n / (fixed ? radix : 1), fixed ? radix : 0);
    at = half - at;
    p.done *= radix;
  }
  add(2, p.lines * p.y_points);
  selection.reason = std::to_string(selection.steps.size() - 2) + " passes";
  return selection;
}

}  // namespace rlx::cuda
