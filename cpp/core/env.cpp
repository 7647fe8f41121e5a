// Reads the environment variables of rlx.
#include "core/env.h"

#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/error.h"

namespace rlx {
namespace {

std::string variable(std::string_view name) { return "RLX_" + std::string(name); }

std::mutex overrides_mutex;
// Never destroyed: threads may still ask when the process ends.
auto& overrides = *new std::map<std::string, std::string, std::less<>>;

}  // namespace

std::optional<std::string> system_env(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

std::optional<std::string> env(std::string_view name) {
  {
    const std::lock_guard lock(overrides_mutex);
    if (const auto found = overrides.find(name); found != overrides.end()) return found->second;
  }
  return system_env(variable(name).c_str());
}

void override_env(std::string_view name, std::optional<std::string> value) {
  const std::lock_guard lock(overrides_mutex);
  if (value) overrides.insert_or_assign(std::string(name), std::move(*value));
  else if (const auto old = overrides.find(name); old != overrides.end()) overrides.erase(old);
}

std::optional<int64_t> env_int(std::string_view name, int64_t least, int64_t most) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, status] = std::from_chars(text->data(), end, value);
  if (status == std::errc() && stop == end && value >= least && value <= most) return value;
  Error error(ErrorKind::input, "the environment variable " + variable(name) + " is not usable");
  error.expected_got(
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
      "'" + *text + "'");
  throw error;
}

}  // namespace rlx
