// Says, where RLX_CUDA_LOG_FALLBACK=1 asks for it, why a library was passed over.
#pragma once

#include <string>

namespace rlx::cuda {

// Once for each cause.
void log_fallback(const char* prim, const std::string& reason);

}  // namespace rlx::cuda
