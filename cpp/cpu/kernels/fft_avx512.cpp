// The passes of Fourier transforms for AVX-512.
#include "cpu/kernels/fft_body.h"

namespace rlx::cpu {

const FftKernels fft_kernels_avx512 = fft_kernels;

}  // namespace rlx::cpu
