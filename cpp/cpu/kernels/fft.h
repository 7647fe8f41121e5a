// Fourier transforms of any length: mixed-radix passes, and Bluestein's convolution for lengths
// with a large prime factor. Real and imaginary parts lie apart, several lines interleaved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rlx::cpu {

// One pass: n = radix * rest points become `rest` transforms of `radix` points, with twiddles.
struct FftPass {
  int radix;
  int64_t rest;
  size_t twiddles;  // of its radix - 1 pairs for each of `rest`, and then its roots
};

// The parts of `lines` interleaved lines: point j of line l is element j * lines + l.
template <class T>
struct FftParts {
  T *re, *im;
};

// What each instruction set contributes: one pass over points that are `stride` elements apart.
template <class T>
using FftKernel = void (*)(const FftPass& pass, const T* twiddles, int64_t stride,
                           FftParts<const T> from, FftParts<T> to);

struct FftKernels {
  FftKernel<float> narrow;
  FftKernel<double> wide;
};

extern const FftKernels fft_kernels_portable, fft_kernels_avx2, fft_kernels_avx512;

// A forward transform of n points without a prime factor above 13.
template <class T>
class FftPasses {
 public:
  explicit FftPasses(int64_t n);
  static bool takes(int64_t n);  // n > 0

  // Overwrites both; the result is in the one that it returns.
  FftParts<T> run(FftParts<T> from, FftParts<T> other, int64_t lines) const;

 private:
  std::vector<FftPass> passes_;
  std::vector<T> twiddles_;
  FftKernel<T> kernel_;
};

// A forward transform of n > 0 points in T.
template <class T>
class FftTransform {
 public:
  explicit FftTransform(int64_t n);

  int64_t points() const { return n_; }
  int64_t room() const { return room_; }  // points that both buffers must have room for
  // Overwrites both; the result is in the one that it returns.
  FftParts<T> run(FftParts<T> from, FftParts<T> other, int64_t lines) const;

 private:
  FftParts<T> convolve(FftParts<T> from, FftParts<T> other, int64_t lines) const;

  int64_t n_, room_;
  FftPasses<T> passes_;                    // of `room` points
  std::vector<T> chirp_, filter_;          // pairs; empty without Bluestein
};

}  // namespace rlx::cpu
