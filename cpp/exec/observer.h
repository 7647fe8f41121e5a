// What may watch a run: told of each stage and step as it begins and ends.
#pragma once

#include <span>

#include "exec/plan.h"

namespace rlx {

class Unit;

// A run without one pays a test of a null pointer for each step.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void begin_stage(const Unit& unit, const PlanPtr& plan) = 0;
  virtual void end_stage() = 0;
  virtual void begin_step() {}
  // `device_ns`: what a device that works on its own took; -1: the step was done here.
  virtual void end_step(size_t /*node*/, size_t /*step*/, int64_t /*device_ns*/) {}
  // All steps of a node are done; `operands` are its inputs, then its outputs.
  virtual void end_node(size_t /*node*/, void* const* /*operands*/) {}
};

}  // namespace rlx
