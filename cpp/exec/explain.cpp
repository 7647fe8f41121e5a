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

// Calls f(child, its path) for the subgraphs of one stage of a program at `path`.
template <class F>
void for_each_child(const Unit& unit, size_t stage, const std::string& path, const F& f) {
  const auto first = size_t(unit.facts.first_child[stage]);
  const size_t end = stage + 1 < unit.facts.first_child.size()
                         ? size_t(unit.facts.first_child[stage + 1])
                         : unit.children.size();
  for (size_t c = first; c < end; ++c) {
    const Stage& parent = unit.facts.program->stages[stage];
    std::string inner = path + stage_names[parent.index()] + " " + std::to_string(stage);
    if (std::holds_alternative<If>(parent)) inner += c == first ? " then" : " else";
    f(*unit.children[c], inner + " / ");
  }
}

// Calls f(plan, path) for the last plan of each stage, and those of subgraphs after their stage.
template <class F>
void for_each_plan(const Unit& unit, const std::string& path, const F& f) {
  for (const PlanPtr& plan : unit.plans->last_chain()) {
    if (plan->stage >= unit.facts.program->stages.size()) continue;
    f(unit, *plan, path);
    for_each_child(unit, plan->stage, path, [&](const Unit& child, const std::string& inner) {
      for_each_plan(child, inner, f);
    });
  }
}

// Whether `unit` is `from` or below it; then `path` becomes its path.
bool find_path(const Unit& from, const Unit& unit, std::string& path) {
  if (&from == &unit) return true;
  const std::string here = path;
  for (size_t s = 0; s < from.facts.program->stages.size(); ++s) {
    bool found = false;
    for_each_child(from, s, here, [&](const Unit& child, const std::string& inner) {
      std::string below = inner;
      if (found || !find_path(child, unit, below)) return;
      found = true, path = below;
    });
    if (found) return true;
  }
  return false;
}

}  // namespace

std::string path_of(const Unit& main, const Unit& unit) {
  std::string path;
  find_path(main, unit, path);
  return path;
}

NodeReport report_of(const Unit& unit, const Plan& plan, size_t node, const std::string& path) {
  return report_of(unit.facts, plan.nodes[node], path);
}

NodeReport report_of_stage(const Unit& unit, const Plan& plan, const std::string& path) {
  return report_of(unit.facts, unit.facts.program->stages[plan.stage], path);
}

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
