// Reads the environment variables of rlx.
#include "core/env.h"

#include <charconv>
#include <cstdlib>

#include "core/error.h"

namespace rlx {
namespace {

std::string variable(std::string_view name) { return "RLX_" + std::string(name); }

}  // namespace

std::optional<std::string> system_env(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

std::optional<std::string> env(std::string_view name) {
  return system_env(variable(name).c_str());
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
