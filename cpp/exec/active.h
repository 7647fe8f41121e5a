// How many runs are active in this process: they share the cores.
#pragma once

namespace rlx {

// Counts a run for as long as it lives, and says how many threads it may use.
class ActiveRun {
 public:
  explicit ActiveRun(int all_threads);
  ~ActiveRun();
  ActiveRun(const ActiveRun&) = delete;
  ActiveRun& operator=(const ActiveRun&) = delete;

  int threads() const { return threads_; }

 private:
  int threads_;
};

}  // namespace rlx
