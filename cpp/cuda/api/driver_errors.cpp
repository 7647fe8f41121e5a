// Puts the driver's results into words.
#include "cuda/api/driver_errors.h"

#include "cuda/api/driver_table.h"

namespace rlx::cuda::api {

bool is_sticky(Result result) {
  return result == 700 || result == 702 || result == 710 || (result >= 714 && result <= 719);
}

Error failure(Result result, const char* call) {
  const char *name = nullptr, *text = nullptr;
  driver_table().error_name(result, &name);
  driver_table().error_string(result, &text);
  return Error(result == 2 ? ErrorKind::memory_limit : ErrorKind::device,
               std::string(call) + " failed: " + (name ? name : std::to_string(result).c_str()) +
                   (text ? std::string(", ") + text : ""));
}

void check_start(Result result, const char* call) {
  if (result == 0) return;
  Error error = failure(result, call);
  error.kind = ErrorKind::device;
  error.remedy = "rlx doctor";
  throw error;
}

}  // namespace rlx::cuda::api
