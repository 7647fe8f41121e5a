// An error for a rung that cannot be had; one line on stderr for each new cause else.
#include "cuda/select/fallback.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "core/error.h"

namespace rlx::cuda {

void check_not_forced(std::string_view force, std::string_view library,
                      const std::string& reason) {
  if (!force.starts_with(library)) return;
  const std::string rung(force);
  Error error(ErrorKind::device, "rung '" + rung + "' needs a library that is missing");
  error.expected_got(std::string(library), reason.empty() ? "a device without libraries" : reason);
  error.remedy = "rlx doctor, or load without 'force'";
  throw error;
}

void log_fallback(bool wanted, const char* prim, const std::string& reason) {
  if (!wanted || reason.empty()) return;
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  const std::string line = std::string(prim) + " by a kernel of rlx: " + reason;
  if (said.insert(line).second) std::fprintf(stderr, "rlx: %s\n", line.c_str());
}

}  // namespace rlx::cuda
