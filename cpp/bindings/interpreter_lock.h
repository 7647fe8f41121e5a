// Giving the interpreter's lock away during long work, and taking it back.
#pragma once

#include <pybind11/pybind11.h>

namespace rlx::bindings {

// PyEval_RestoreThread. A thread that comes back after the interpreter has begun to end never
// gets the lock; it then waits here for the end of the process, as Python 3.14 lets it: Python
// before that unwinds it, and C++ frames turn that into std::terminate.
void take_lock(PyThreadState* thread);

// Without the lock while it lives.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  ~Unlocked() { take_lock(thread_); }
  Unlocked(const Unlocked&) = delete;

 private:
  PyThreadState* thread_;
};

}  // namespace rlx::bindings
