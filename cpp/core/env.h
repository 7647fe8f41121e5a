// The environment variables of rlx; the only place that reads any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

// The value of RLX_<name>: what override_env said last, else what the process was given; nothing
// when it is unset or empty.
std::optional<std::string> env(std::string_view name);

// From now on RLX_<name> has this value here, whatever the process was given; nothing: that again.
void override_env(std::string_view name, std::optional<std::string> value);

// The same as a whole number; throws Error(input) when it is not one or is out of range.
std::optional<int64_t> env_int(std::string_view name, int64_t least, int64_t most);

// A variable that is not ours: HOME, XDG_CACHE_HOME, CUDA_HOME ...; nothing when unset or empty.
std::optional<std::string> system_env(const char* name);

}  // namespace rlx
