// The environment variables of rlx; the only place that reads any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

// The value of RLX_<name>; nothing when it is unset or empty.
std::optional<std::string> env(std::string_view name);

// The same as a whole number; throws Error(input) when it is not one or is out of range.
std::optional<int64_t> env_int(std::string_view name, int64_t least, int64_t most);

// A variable that is not ours: HOME, XDG_CACHE_HOME, CUDA_HOME ...; nothing when unset or empty.
std::optional<std::string> system_env(const char* name);

}  // namespace rlx
