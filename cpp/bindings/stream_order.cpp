// Puts work of two streams in order, where one of them may be captured by another library.
#include "bindings/device_array.h"
#include "bindings/interpreter_lock.h"
#include "core/error.h"

namespace rlx::bindings {

void order_streams(cuda::Driver& driver, void* producer, void* consumer) {
  auto* const from = static_cast<cuda::Stream>(producer);
  auto* const to = static_cast<cuda::Stream>(consumer);
  const bool is_recorded = driver.is_captured(from), is_recording = driver.is_captured(to);
  if (is_recorded && !is_recording) {
    Error error(ErrorKind::input, "the array's contents are being captured into a graph");
    error.remedy = "its use on the captured stream, or after a launch of the graph";
    throw error;
  }
  if (is_recording && !is_recorded) {
    const Unlocked unlocked;  // what is waited for may need Python
    return driver.synchronize(from);
  }
  const cuda::Event event = driver.make_event(false);
  try {
    driver.record(event, from);
    driver.wait(to, event);
  } catch (const Error&) {
    driver.free(event);
    throw;
  }
  driver.free(event);
}

}  // namespace rlx::bindings
