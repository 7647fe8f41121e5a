// What was decided, as plain data: the steps of each node and the place of each value.
#pragma once

#include <string>
#include <vector>

#include "exec/executable.h"

namespace rlx {

struct NodeReport {
  std::string path;                 // of subgraphs, e.g. "Loop 2 / "; empty in the main program
  std::string name, op;             // the ONNX node
  std::vector<std::string> also;    // nodes fused into it
  std::string prim, rung, reason;
  std::vector<std::string> steps, outputs;
  size_t workspace = 0;
  bool in_place = false, varying = false;
  double creation_seconds = 0;
};

struct MemoryReport {
  std::string path;
  std::vector<std::string> values;  // that share the block; empty for a workspace
  std::string node;                 // of a workspace
  size_t stage = 0, offset = 0, bytes = 0;
  int first = 0, last = 0;          // nodes of the stage
};

// Where a subgraph's program stands below the main one; empty for that one itself.
std::string path_of(const Unit& main, const Unit& unit);
NodeReport report_of(const Unit& unit, const Plan& plan, size_t node, const std::string& path);
NodeReport report_of_stage(const Unit& unit, const Plan& plan, const std::string& path);

// Of the plans that ran last; empty before the first run.
std::vector<NodeReport> explain(const Unit& unit);
std::vector<MemoryReport> memory_plan(const Unit& unit);

}  // namespace rlx
