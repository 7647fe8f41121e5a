// Finds steps that read memory nobody wrote or write beyond their outputs (tests only).
#pragma once

#include "exec/plan.h"

namespace rlx {

class MemoryCheck {
 public:
  MemoryCheck(const Plan& plan, std::byte* base) : plan_(plan), base_(base) {}

  // Fills what node `t` is about to write with NaN and puts canaries behind it.
  void before(size_t t) const;
  // Throws Error(internal) if a canary in use at node `t` was overwritten.
  void after(size_t t) const;

 private:
  const Plan& plan_;
  std::byte* base_;
};

}  // namespace rlx
