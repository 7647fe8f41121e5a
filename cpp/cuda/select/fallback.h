// A library that is passed over: refused where its rung was asked for, else logged on request.
#pragma once

#include <string>
#include <string_view>

namespace rlx::cuda {

// Throws Error(device) if `force` insists on a rung of the library that is missing.
void check_not_forced(std::string_view force, std::string_view library, const std::string& reason);
// On stderr where it is wanted, once for each cause of the process.
void log_fallback(bool wanted, const char* prim, const std::string& reason);

}  // namespace rlx::cuda
