// Reads reports off the last chain of Plans of a program and its subgraphs.
#include "exec/explain.h"

#include <array>

namespace rlx {
namespace {

constexpr std::array stage_names{"Segment", "If", "Loop", "Scan", "SequenceOp", "Host"};
constexpr std::array step_names{"launch", "gemm", "dnn", "host", "copy", "fill", "record", "wait"};
static_assert(std::variant_size_v<Stage> == stage_names.size());
static_assert(size_t(StepKind::wait) + 1 == step_names.size());

NodeReport begin_report(const Program& program, int32_t origin, const std::string& path) {
  NodeReport report;
  report.path = path;
  if (origin < 0) return report;
  const Origin& o = program.origins[size_t(origin)];
  report.name = o.name, report.op = o.op, report.also = o.also;
  return report;
}

NodeReport report_of(const Facts& facts, const PlannedNode& planned, const std::string& path) {
  const Node& node = *planned.node;
  NodeReport report = begin_report(*facts.program, node.origin, path);
  report.prim = name_of(node.prim);
  report.rung = planned.selection.rung;
  report.reason = planned.selection.reason;
  for (const SelectedStep& step : planned.selection.steps) {
    report.steps.push_back(step_names[size_t(step.kind)]);
  }
  for (ValueId v : node.outputs) report.outputs.push_back(v < 0 ? "" : facts.value(v).name);
  report.workspace = planned.selection.workspace;
  report.in_place = planned.in_place;
  report.varying = planned.varying;
  report.creation_seconds = planned.selection.creation_seconds;
  return report;
}

NodeReport report_of(const Facts& facts, const Stage& stage, const std::string& path) {
  const int32_t origin = std::visit([](const auto& s) {
    if constexpr (requires { s.origin; }) return s.origin;
    else return int32_t{-1};
  }, stage);
  NodeReport report = begin_report(*facts.program, origin, path);
  report.prim = report.rung = stage_names[stage.index()];
  for_each_written(stage, [&](ValueId v) { report.outputs.push_back(facts.value(v).name); });
  return report;
}

// Calls f(plan, path) for the last plan of each stage, and those of subgraphs after their stage.
template <class F>
void for_each_plan(const Unit& unit, const std::string& path, const F& f) {
  for (const PlanPtr& plan : unit.plans->last_chain()) {
    if (plan->stage >= unit.facts.program->stages.size()) continue;
    f(unit, *plan, path);
    const auto child = size_t(unit.facts.first_child[plan->stage]);
    const size_t end = plan->stage + 1 < unit.facts.first_child.size()
                           ? size_t(unit.facts.first_child[plan->stage + 1])
                           : unit.children.size();
    for (size_t c = child; c < end; ++c) {
      const Stage& stage = unit.facts.program->stages[plan->stage];
      std::string inner = path + stage_names[stage.index()] + " " + std::to_string(plan->stage);
      if (std::holds_alternative<If>(stage)) inner += c == child ? " then" : " else";
      for_each_plan(*unit.children[c], inner + " / ", f);
    }
  }
}

}  // namespace

std::vector<NodeReport> explain(const Unit& main) {
  std::vector<NodeReport> reports;
  for_each_plan(main, "", [&](const Unit& unit, const Plan& plan, const std::string& path) {
    if (!unit.facts.segment(plan.stage)) {
      reports.push_back(report_of(unit.facts, unit.facts.program->stages[plan.stage], path));
    }
    for (const PlannedNode& node : plan.nodes) {
      reports.push_back(report_of(unit.facts, node, path));
    }
  });
  return reports;
}

std::vector<MemoryReport> memory_plan(const Unit& main) {
  std::vector<MemoryReport> reports;
  for_each_plan(main, "", [&](const Unit& unit, const Plan& plan, const std::string& path) {
    const size_t first = reports.size();
    const plan::Storage& storage = plan.storage;
    for (size_t b = 0; b < storage.blocks.size(); ++b) {
      const plan::Block& block = storage.blocks[b];
      reports.push_back({path, {}, "", plan.stage, storage.offsets[b], block.bytes, block.first,
                         block.last});
    }
    for (size_t v = 0; v < storage.block_of.size(); ++v) {
      if (storage.block_of[v] < 0) continue;
      reports[first + size_t(storage.block_of[v])].values.push_back(
          unit.facts.value(ValueId(v)).name);
    }
    for (size_t t = 0; t < plan.nodes.size(); ++t) {
      const int32_t origin = plan.nodes[t].node->origin;
      if (storage.workspace_block[t] < 0 || origin < 0) continue;
      reports[first + size_t(storage.workspace_block[t])].node =
          unit.facts.program->origins[size_t(origin)].name;
    }
  });
  return reports;
}

}  // namespace rlx
