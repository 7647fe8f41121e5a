// The passes of Fourier transforms for AVX2.
#include "cpu/kernels/fft_body.h"

namespace rlx::cpu {

const FftKernels fft_kernels_avx2 = fft_kernels;

}  // namespace rlx::cpu
