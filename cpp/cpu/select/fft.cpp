// Fft: lines along the axis, several at a time, in float or double; even real ones at half length.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "cpu/kernels/fft.h"
#include "cpu/kernels/strided_copy.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t most_lines = 16;
constexpr size_t room_bytes = size_t(1) << 18;  // buffers of one thread stay within this L2 share

enum class FftForm { complex, from_real, to_real };

// Lines of an [outer, points, inner, parts] tensor.
struct FftSide {
  int64_t points = 0, inner = 1;
  int parts = 2;

  int64_t line(int64_t index) const {
    return (index / inner * points * inner + index % inner) * parts;
  }
  int64_t step() const { return inner * parts; }
};

// T is stored, W computed in. Transforms run forwards: an inverse one exchanges the parts.
template <class T, class W>
class FftStep final : public StepBody {
 public:
  FftStep(int64_t n, bool inverse, FftForm form, FftSide x, FftSide y, int64_t lines, int threads)
      : n_(n), inverse_(inverse), form_(form), halved_(form != FftForm::complex && n % 2 == 0),
        x_(x), y_(y), lines_(lines), transform_(halved_ ? n / 2 : n) {
    const int64_t bytes = 4 * transform_.room() * int64_t(sizeof(W));
    together_ = std::clamp<int64_t>(int64_t(room_bytes) / bytes, 1, most_lines);
    together_ = std::clamp<int64_t>(lines / std::max(threads, 1), 1, together_);
    if (halved_) {
      for (int64_t k = 0; k <= n / 2; ++k) {
        const double angle = 2 * std::numbers::pi * double(k) / double(n);
        turns_.push_back(W(std::cos(angle)));
        turns_.push_back(W(-std::sin(angle)));
      }
    }
  }

  size_t room(int threads) const { return part() * 4 * size_t(std::max(threads, 1)); }

  void run(const RunArgs& args) const override {
    const auto* x = static_cast<const T*>(args.operands[0]);
    auto* y = static_cast<T*>(args.operands[1]);
    const int64_t groups = (lines_ + together_ - 1) / together_;
    parallel_tasks(args.threads, groups, [&](int64_t group, int thread) {
      auto* memory = static_cast<std::byte*>(args.workspace) + size_t(thread) * 4 * part();
      W* parts[4];
      for (size_t k = 0; k < 4; ++k) parts[k] = reinterpret_cast<W*>(memory + k * part());
      const int64_t first = group * together_, count = std::min(together_, lines_ - first);
      lines(x, y, first, count, {parts[0], parts[1]}, {parts[2], parts[3]});
    });
  }

 private:
  size_t part() const {
    return (size_t(transform_.room() * together_) * sizeof(W) + 63) / 64 * 64;
  }

  void lines(const T* x, T* y, int64_t first, int64_t count, FftParts<W> a, FftParts<W> b) const {
    for (int64_t l = 0; l < count; ++l) load(x + x_.line(first + l), l, count, a);
    const bool exchanged = inverse_;
    if (exchanged) std::swap(a.re, a.im), std::swap(b.re, b.im);
    FftParts<W> found = transform_.run(a, b, count);
    if (exchanged) std::swap(found.re, found.im);
    for (int64_t l = 0; l < count; ++l) store(y + y_.line(first + l), l, count, found);
  }

  // Part `part` of point j; 0 beyond the input, and for the part that a real input lacks.
  W input(const T* line, int64_t j, int part) const {
    if (j >= x_.points || part >= x_.parts) return W(0);
    return W(line[j * x_.step() + part]);
  }

  // A point of the one-sided spectrum of a real line, whose ends are real.
  void spectrum(const T* line, int64_t k, W& re, W& im) const {
    re = input(line, k, 0);
    im = k == 0 || 2 * k == n_ ? W(0) : input(line, k, 1);
  }

  void load(const T* line, int64_t l, int64_t count, FftParts<W> to) const {
    if (form_ == FftForm::to_real) return load_spectrum(line, l, count, to);
    const int64_t points = transform_.points(), step = x_.step();
    // The parts of a point lie side by side; of an even real line, two points make one.
    const int64_t next = halved_ ? 2 * step : step, other = halved_ ? step : 1;
    const int64_t whole = std::min(points, halved_ ? x_.points / 2 : x_.points);
    const bool both = halved_ || x_.parts == 2;
    for (int64_t j = 0; j < whole; ++j) {
      to.re[j * count + l] = W(line[j * next]);
      to.im[j * count + l] = both ? W(line[j * next + other]) : W(0);
    }
    for (int64_t j = whole; j < points; ++j) {
      to.re[j * count + l] = halved_ ? input(line, 2 * j, 0) : W(0);
      to.im[j * count + l] = W(0);
    }
  }

  void load_spectrum(const T* line, int64_t l, int64_t count, FftParts<W> to) const {
    if (!halved_) {
      for (int64_t k = 0; k < n_; ++k) {
        const bool mirrored = 2 * k > n_;
        W re, im;
        spectrum(line, mirrored ? n_ - k : k, re, im);
        to.re[k * count + l] = re;
        to.im[k * count + l] = mirrored ? -im : im;
      }
      return;
    }
    // Even and odd samples as parts of one line: Z = E + i O, with O turned back.
    for (int64_t k = 0; k < n_ / 2; ++k) {
      W a, b, c, d;
      spectrum(line, k, a, b);
      spectrum(line, n_ / 2 - k, c, d);
      const W even_re = a + c, even_im = b - d, odd_re = a - c, odd_im = b + d;
      const W cosine = turns_[size_t(2 * k)], sine = -turns_[size_t(2 * k + 1)];
      const W re = odd_re * cosine - odd_im * sine, im = odd_re * sine + odd_im * cosine;
      to.re[k * count + l] = even_re - im;
      to.im[k * count + l] = even_im + re;
    }
  }

  void store(T* line, int64_t l, int64_t count, FftParts<W> from) const {
    if (form_ == FftForm::from_real && halved_) return store_spectrum(line, l, count, from);
    const W scale = inverse_ ? W(1) / W(n_) : W(1);
    const int64_t step = y_.step();
    if (form_ == FftForm::to_real) {
      for (int64_t j = 0; j < y_.points; ++j) {
        const W* part = !halved_ ? from.re : j % 2 ? from.im : from.re;
        line[j * step] = T(part[(halved_ ? j / 2 : j) * count + l] * scale);
      }
      return;
    }
    for (int64_t k = 0; k < y_.points; ++k) {
      line[k * step] = T(from.re[k * count + l] * scale);
      line[k * step + 1] = T(from.im[k * count + l] * scale);
    }
  }

  // X[k] = E + w^k O, where Z = E + i O was transformed; beyond the half by symmetry.
  void store_spectrum(T* line, int64_t l, int64_t count, FftParts<W> from) const {
    const int64_t half = n_ / 2, step = y_.step();
    const W scale = inverse_ ? W(0.5) / W(n_) : W(0.5);
    for (int64_t k = 0; k <= half; ++k) {
      const int64_t at = (k < half ? k : 0) * count + l, to = (k > 0 ? half - k : 0) * count + l;
      const W a = from.re[at], b = from.im[at], c = from.re[to], d = from.im[to];
      const W odd_re = b + d, odd_im = c - a;
      const W cosine = turns_[size_t(2 * k)];
      const W sine = inverse_ ? -turns_[size_t(2 * k + 1)] : turns_[size_t(2 * k + 1)];
      const W re = (a + c + odd_re * cosine - odd_im * sine) * scale;
      const W im = (b - d + odd_re * sine + odd_im * cosine) * scale;
      line[k * step] = T(re), line[k * step + 1] = T(im);
      if (k > 0 && k < half && n_ - k < y_.points)
        line[(n_ - k) * step] = T(re), line[(n_ - k) * step + 1] = T(-im);
    }
  }

  int64_t n_;
  bool inverse_;
  FftForm form_;
  bool halved_;
  FftSide x_, y_;
  int64_t lines_, together_ = 1;
  FftTransform<W> transform_;
  std::vector<W> turns_;
};

FftSide side_of(const TensorDesc& desc, int axis) {
  FftSide side;
  side.points = desc.shape[size_t(axis)];
  for (size_t k = size_t(axis) + 1; k + 1 < desc.shape.size(); ++k) side.inner *= desc.shape[k];
  side.parts = int(desc.shape[desc.shape.size() - 1]);
  return side;
}

template <class T, class W>
void add_step(Selection& selection, const Fft& prim, const SelectRequest& request, int64_t n) {
  const FftSide x = side_of(request.inputs[0], prim.axis);
  const FftSide y = side_of(request.outputs[0], prim.axis);
  int64_t lines = y.inner;
  for (int k = 0; k < prim.axis; ++k) lines *= request.outputs[0].shape[size_t(k)];
  const FftForm form = y.parts == 1   ? FftForm::to_real
                       : x.parts == 1 ? FftForm::from_real
                                      : FftForm::complex;
  auto step = std::make_shared<FftStep<T, W>>(n, prim.inverse, form, x, y, lines,
                                              request.threads);
  selection.workspace = step->room(request.threads);
  selection.steps.push_back({StepKind::launch, std::move(step)});
}

void check(const Fft& prim, const SelectRequest& request, int64_t n) {
  const Dims &x = request.inputs[0].shape, &y = request.outputs[0].shape;
  const int64_t points = y[size_t(prim.axis)];
  const int64_t parts = y[y.size() - 1], given = x[x.size() - 1];
  const bool real = prim.inverse && prim.onesided;
  const bool fits = n > 0 && (given == 1 || given == 2) && parts == (real ? 1 : 2) &&
                    points == (prim.onesided && !prim.inverse ? n / 2 + 1 : n);
  if (!fits) throw Error(ErrorKind::input, "a Fourier transform does not fit these shapes");
}

}  // namespace

Selection select_fft(const Fft& prim, const SelectRequest& request) {
  const int64_t n = request.dim(prim.length);
  check(prim, request, n);
  const DType dtype = request.inputs[0].dtype;
  if (!request.inputs[0].contiguous() || !request.outputs[0].contiguous())
    throw Error(ErrorKind::unsupported, "a Fourier transform of rows that lie apart");
  Selection selection;
  const bool direct = FftPasses<double>::takes(n);
  selection.rung = direct ? "mixed radix" : "Bluestein";
  if (!direct) selection.reason = "the length has a prime factor above 13";
  // The convolution's rounding would show in float.
  if (dtype == DType::float64) {
    add_step<double, double>(selection, prim, request, n);
  } else if (dtype != DType::float32) {
    throw Error(ErrorKind::unsupported, std::string("no Fourier transform of ") + name_of(dtype));
  } else if (direct) {
    add_step<float, float>(selection, prim, request, n);
  } else {
    add_step<float, double>(selection, prim, request, n);
  }
  return selection;
}

}  // namespace rlx::cpu
