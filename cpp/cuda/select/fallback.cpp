// One line on stderr for each new cause.
#include "cuda/select/fallback.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "core/env.h"

namespace rlx::cuda {

void log_fallback(const char* prim, const std::string& reason) {
  static const bool wanted = env_int("CUDA_LOG_FALLBACK", 0, 1).value_or(0) == 1;
  if (!wanted || reason.empty()) return;
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  const std::string line = std::string(prim) + " by a kernel of rlx: " + reason;
  if (said.insert(line).second) std::fprintf(stderr, "rlx: %s\n", line.c_str());
}

}  // namespace rlx::cuda
