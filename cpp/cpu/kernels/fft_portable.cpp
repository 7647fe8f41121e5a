// The passes of Fourier transforms for any machine.
#include "cpu/kernels/fft_body.h"

namespace rlx::cpu {

const FftKernels fft_kernels_portable = fft_kernels;

}  // namespace rlx::cpu
