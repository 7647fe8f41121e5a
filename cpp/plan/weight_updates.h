// What a Device offers whose copies of weights stay where recorded work reads them.
#pragma once

#include "program/program.h"

namespace rlx::plan {

struct WeightUpdates {
  virtual ~WeightUpdates() = default;
  // Whether no other Session reads the device's copies of `constant`.
  virtual bool only_mine(const Constant& constant) const = 0;
  // They hold `now`'s bytes from here on; packed forms as soon as they are asked for again.
  virtual void replace(const Constant& constant, const Constant& now) const = 0;
};

}  // namespace rlx::plan
