// The parts of verify: what a single primitive or stage must satisfy, and how faults are told.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "program/program.h"

namespace rlx {

inline void require(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorKind::internal, "broken program: " + message);
}

// Runs `body`; an error from it names the ONNX node, or `fallback` where there is none.
template <class Body>
void in_node(const Program& program, int32_t origin, const char* fallback, Body&& body) {
  require(origin < int32_t(program.origins.size()), "there is no such origin");
  try {
    body();
  } catch (Error& error) {
    if (origin < 0) {
      error.at("", fallback);
    } else {
      error.at(program.origins[size_t(origin)].name, program.origins[size_t(origin)].op);
    }
    throw;
  }
}

std::string value_text(const Program& program, ValueId id);  // "%3 'name'"

// Operand counts, ranks, types and fields of one node; its values exist.
void verify_node(const Program& program, const Node& node);

void verify_stage(const Program& program, const If& stage);
void verify_stage(const Program& program, const Loop& stage);
void verify_stage(const Program& program, const Scan& stage);
void verify_stage(const Program& program, const SequenceOp& stage);
void verify_stage(const Program& program, const Host& stage);

// Every value that a stage reads, -1 for absent ones.
std::vector<ValueId> stage_inputs(const If& stage);
std::vector<ValueId> stage_inputs(const Loop& stage);
std::vector<ValueId> stage_inputs(const Scan& stage);
inline const std::vector<ValueId>& stage_inputs(const SequenceOp& stage) { return stage.inputs; }
inline const std::vector<ValueId>& stage_inputs(const Host& stage) { return stage.inputs; }

}  // namespace rlx
