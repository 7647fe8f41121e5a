// Tables of Fourier transforms, made in double; the passes in their order; Bluestein's convolution.
#include "cpu/kernels/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

#include "core/cpuid.h"

namespace rlx::cpu {
namespace {

constexpr int largest_radix = 13;

const FftKernels& kernels() {
#if defined(__x86_64__)
  if (cpu_isa() == Isa::avx512) return fft_kernels_avx512;
  if (cpu_isa() == Isa::avx2) return fft_kernels_avx2;
#endif
  return fft_kernels_portable;
}

// exp(-2 pi i k / n); the angle is taken from the nearest eighth of the circle, which keeps the
// roots exact where they are and equal where they should be.
std::pair<double, double> root(int64_t k, int64_t n) {
  k %= n;
  if (2 * k > n) {
    const auto [re, im] = root(n - k, n);
    return {re, -im};
  }
  if (4 * k > n) {
    const double angle = 2 * std::numbers::pi * (double(n) / 2 - double(k)) / double(n);
    return {-std::cos(angle), -std::sin(angle)};
  }
  if (8 * k > n) {
    const double angle = 2 * std::numbers::pi * (double(n) / 4 - double(k)) / double(n);
    return {std::sin(angle), -std::cos(angle)};
  }
  const double angle = 2 * std::numbers::pi * double(k) / double(n);
  return {std::cos(angle), -std::sin(angle)};
}

template <class T>
void push(std::vector<T>& to, std::pair<double, double> pair) {
  to.push_back(T(pair.first));
  to.push_back(T(pair.second));
}

// The smallest comfortable length from n on.
int64_t convolution_length(int64_t n) {
  int64_t best = 0;
  for (int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < n) length *= 2;
    best = best == 0 ? length : std::min(best, length);
  }
  return best;
}

}  // namespace

template <class T>
bool FftPasses<T>::takes(int64_t n) {
  for (int prime : {2, 3, 5, 7, 11, 13})
    while (n % prime == 0) n /= prime;
  return n == 1;
}

template <class T>
FftPasses<T>::FftPasses(int64_t n) {
  if constexpr (std::is_same_v<T, float>) kernel_ = kernels().narrow;
  else kernel_ = kernels().wide;
  for (int radix : {4, 2, 3, 5, 7, 11, largest_radix}) {
    while (n % radix == 0) {
      const int64_t rest = n / radix;
      passes_.push_back({radix, rest, twiddles_.size()});
      for (int64_t p = 0; p < rest; ++p)
        for (int k = 1; k < radix; ++k) push(twiddles_, root(p * k, n));
      for (int k = 0; k < radix; ++k) push(twiddles_, root(k, radix));
      n = rest;
    }
  }
}

template <class T>
FftParts<T> FftPasses<T>::run(FftParts<T> from, FftParts<T> other, int64_t lines) const {
  int64_t stride = lines;
  for (const FftPass& pass : passes_) {
    kernel_(pass, twiddles_.data(), stride, {from.re, from.im}, other);
    std::swap(from, other);
    stride *= pass.radix;
  }
  return from;
}

template <class T>
FftTransform<T>::FftTransform(int64_t n)
    : n_(n), room_(FftPasses<T>::takes(n) ? n : convolution_length(2 * n - 1)), passes_(room_) {
  if (room_ == n) return;
  // j^2 is taken modulo 2n, where the chirp repeats, step by step: it never overflows.
  int64_t square = 0;
  for (int64_t j = 0; j < n; ++j) {
    push(chirp_, root(square, 2 * n));
    square = (square + 2 * j + 1) % (2 * n);
  }
  std::vector<T> work(size_t(4 * room_), T(0));
  FftParts<T> filter{work.data(), work.data() + room_};
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t at : {j, (room_ - j) % room_}) {
      filter.re[at] = chirp_[size_t(2 * j)];
      filter.im[at] = -chirp_[size_t(2 * j + 1)];
    }
  }
  const FftParts<T> found =
      passes_.run(filter, {work.data() + 2 * room_, work.data() + 3 * room_}, 1);
  for (int64_t k = 0; k < room_; ++k)
    push(filter_, {double(found.re[k]) / double(room_), double(found.im[k]) / double(room_)});
}

template <class T>
FftParts<T> FftTransform<T>::run(FftParts<T> from, FftParts<T> other, int64_t lines) const {
  return chirp_.empty() ? passes_.run(from, other, lines) : convolve(from, other, lines);
}

namespace {

// Multiplies points [0, n) by a table of pairs.
template <class T>
void multiply(FftParts<T> x, const T* pairs, int64_t n, int64_t lines) {
  for (int64_t k = 0; k < n; ++k) {
    const T re = pairs[2 * k], im = pairs[2 * k + 1];
    T *__restrict a = x.re + k * lines, *__restrict b = x.im + k * lines;
    for (int64_t l = 0; l < lines; ++l) {
      const T kept = a[l] * re - b[l] * im;
      b[l] = a[l] * im + b[l] * re;
      a[l] = kept;
    }
  }
}

}  // namespace

// X[k] = c[k] * sum over j of (x[j] c[j]) conj(c[k - j]), a convolution of `room` points.
template <class T>
FftParts<T> FftTransform<T>::convolve(FftParts<T> from, FftParts<T> other, int64_t lines) const {
  multiply(from, chirp_.data(), n_, lines);
  std::fill(from.re + n_ * lines, from.re + room_ * lines, T(0));
  std::fill(from.im + n_ * lines, from.im + room_ * lines, T(0));
  const FftParts<T> spectrum = passes_.run(from, other, lines);
  const FftParts<T> unused = spectrum.re == from.re ? other : from;
  multiply(spectrum, filter_.data(), room_, lines);
  // A transform with its parts exchanged before and after is the inverse one.
  const FftParts<T> back =
      passes_.run({spectrum.im, spectrum.re}, {unused.im, unused.re}, lines);
  const FftParts<T> result{back.im, back.re};
  multiply(result, chirp_.data(), n_, lines);
  return result;
}

template class FftPasses<float>;
template class FftPasses<double>;
template class FftTransform<float>;
template class FftTransform<double>;

}  // namespace rlx::cpu
