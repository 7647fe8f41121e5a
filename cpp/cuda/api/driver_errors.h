// What the driver's results mean.
#pragma once

#include "core/error.h"
#include "cuda/api/types.h"

namespace rlx::cuda::api {

// Errors after which every call in the context fails: illegal addresses, launches that failed ...
bool is_sticky(Result result);
// Error(device), or memory_limit where none is left, naming the call and CUDA's reason.
Error failure(Result result, const char* call);
// Throws Error(device) for a call before there is a context.
void check_start(Result result, const char* call);

}  // namespace rlx::cuda::api
