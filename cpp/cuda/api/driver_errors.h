// What the driver's results mean.
#pragma once

#include "core/error.h"
#include "cuda/api/types.h"

namespace rlx::cuda::api {

// Errors after which every call of the process fails, on all of its GPUs and after a reset too:
// illegal addresses, launches that failed ... CUDA wants the process ended.
bool is_sticky(Result result);
// Error(device), or memory_limit where none is left, naming the call and CUDA's reason.
Error failure(Result result, const char* call);
// Throws Error(device) for a call before there is a context.
void check_start(Result result, const char* call);

}  // namespace rlx::cuda::api
