// Stops the unwinding of a thread that Python wants to end.
#include "bindings/interpreter_lock.h"

#include <cxxabi.h>
#include <unistd.h>

namespace rlx::bindings {

void take_lock(PyThreadState* thread) {
  try {
    PyEval_RestoreThread(thread);
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

}  // namespace rlx::bindings
