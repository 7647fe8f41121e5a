// Half values to float32 and back, on the team.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace rlx::cpu {

// `type` is float16 or bfloat16; values are rounded to the nearest, ties to even.
void widen(DType type, const void* from, float* to, int64_t count, int threads);
void narrow(DType type, const float* from, void* to, int64_t count, int threads);

}  // namespace rlx::cpu
