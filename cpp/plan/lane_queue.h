// A Queue whose work may be spread over lanes that wait for each other.
#pragma once

#include "backend.h"

namespace rlx {

class LaneQueue : public Queue {
 public:
  // Between the two, work goes to lane(i)'s streams; all of it is behind what was put here before,
  // and what follows is behind all of it.
  virtual void begin_lanes(size_t count) = 0;
  virtual void end_lanes() = 0;
  virtual void* lane(size_t i) = 0;
  // The node just put on the lane is done: what waits for it may go on.
  virtual void signal(size_t lane, size_t node) = 0;
  virtual void wait(size_t lane, size_t node) = 0;
};

}  // namespace rlx
