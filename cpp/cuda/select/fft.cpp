// Fourier transforms: load, a pass for each factor of the length or of a chirp's, store.
#include "cuda/select/parts.h"
#include "kernels/params/fft.h"

namespace rlx::cuda {
namespace {

// A pass of a larger prime factor, which sums so many terms for each point, is slower than the
// passes of a chirp.
constexpr int64_t largest_factor = 64;

int64_t greatest_factor(int64_t n) {
  int64_t greatest = 1;
  for (int64_t k = 2; k * k <= n; ++k) {
    for (; n % k == 0; n /= k) greatest = k;
  }
  return std::max(greatest, n);
}

class FftSteps {
 public:
  FftSteps(LaunchBuilder<params::Fft> launch, DType type, const Tools& tools)
      : launch_(std::move(launch)), type_(type), tools_(tools) {
    params::Fft& p = launch_.params;
    p.given = p.lines;
    if (greatest_factor(p.n) > largest_factor) {
      p.padded = 1;
      while (p.padded < 2 * p.n - 1) p.padded *= 2;
    }
    const int64_t point = 2 * int64_t(size_of(compute_type(type)));
    const int64_t points = p.padded ? (p.lines + 1) * p.padded : p.lines * p.n;
    half_ = (points * point + 255) / 256 * 256;
  }

  Selection steps() {
    const params::Fft given = launch_.params;
    params::Fft& p = launch_.params;
    add(0, p.lines * p.n, 0, at_);
    if (given.padded) {
      add(3, (p.given + 1) * p.padded);
      passes(given.padded, given.lines + 1);
      add(4, p.given * p.padded);
      passes(given.padded, given.lines);
      add(5, p.given * p.n);
    } else {
      passes(given.n, given.lines);
    }
    add(2, p.lines * p.y_points, 0, at_);
    selection_.rung = given.padded ? "chirps of " + std::to_string(given.padded) + " points"
                                   : "Stockham passes";
    selection_.workspace = size_t(2 * half_);
    selection_.reason = std::to_string(selection_.steps.size() - 2) + " passes";
    return std::move(selection_);
  }

 private:
  void passes(int64_t n, int64_t lines) {
    params::Fft& p = launch_.params;
    const params::Fft before = p;
    p.n = n, p.lines = lines, p.done = 1;
    for (int64_t rest = n; rest > 1;) {
      int64_t radix = rest % 4 == 0 ? 4 : 2;
      while (rest % radix != 0) radix = radix * radix > rest ? rest : radix + 1;
      rest /= radix;
      p.radix = radix, p.rest = rest;
      const bool fixed = radix <= 5;  // they have butterflies of their own
      add(1, lines * n / (fixed ? radix : 1), fixed ? radix : 0);
      p.done *= radix;
    }
    p = before;
  }

  // From the half of the workspace that holds the points to the other.
  void add(int form, int64_t items, int64_t radix = 0) {
    add(form, items, radix, half_ - at_);
    at_ = half_ - at_;
  }
  void add(int form, int64_t items, int64_t radix, int64_t to) {
    LaunchBuilder<params::Fft> step = launch_;
    step.bind(step.params.from, Source::workspace(at_));
    step.bind(step.params.to, Source::workspace(to));
    KernelSpec kernel{"kernels/fft.cu", "fft",
                      {define("RLX_T", storage_name(type_)), define("RLX_FORM", form),
                       define("RLX_RADIX", radix)},
                      {}};
    selection_.steps.push_back(step.finish(tools_.jit.get(kernel), walk_of(tools_, items)));
  }

  LaunchBuilder<params::Fft> launch_;
  const DType type_;
  const Tools& tools_;
  int64_t half_ = 0, at_ = 0;
  Selection selection_;
};

}  // namespace

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
  return FftSteps(launch, x.dtype, tools).steps();
}

}  // namespace rlx::cuda
