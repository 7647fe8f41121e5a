// An Observer that keeps a copy of what every node gives, for comparing it with a reference.
#pragma once

#include <vector>

#include "exec/observer.h"
#include "exec/value.h"

namespace rlx {

struct CapturedNode {
  const Unit* unit;
  size_t stage, node;
  // Dims that the node itself finds are upper bounds; dtype none: absent.
  std::vector<Tensor> outputs;
};

class Capture final : public Observer {
 public:
  void begin_stage(const Unit& unit, const PlanPtr& plan) override;
  void end_stage() override { open_.pop_back(); }
  void end_node(size_t node, void* const* operands) override;

  std::vector<CapturedNode> nodes;  // in the order they ran

 private:
  struct Open {
    const Unit* unit;
    PlanPtr plan;
    std::vector<Number> bounds;
  };
  std::vector<Open> open_;
};

}  // namespace rlx
