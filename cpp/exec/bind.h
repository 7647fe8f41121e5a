// Binding: a stage of a program at known numbers becomes a Plan.
#pragma once

#include <string_view>

#include "exec/facts.h"
#include "exec/numbers.h"
#include "exec/plan.h"
#include "exec/value.h"

namespace rlx {

struct BindRequest {
  const Facts& facts;
  const Device& device;
  PackCache& packs;
  std::string_view force;
  int threads = 1;
  bool check_memory = false;  // room for canaries between blocks
  bool with_state = false;    // state pairs live in buffers of a State
};

// Space after each block when memory is checked.
constexpr size_t canary_bytes = 64;

void name_origin(Error& error, const Program& program, int32_t origin);

// The symbols known before the first stage, from the program's inputs.
std::vector<Number> symbols_of_inputs(const Facts& facts, std::span<const Input> inputs);
Number input_symbol(const Facts& facts, const Symbol& symbol, std::span<const Input> inputs);

// Fills the numbers that the symbols make known.
void settle_numbers(const Facts& facts, std::span<const Number> symbols,
                    std::vector<Number>& numbers);

// Throws for a guard that fails, among those that were not known `before` (empty: among all).
// At planned numbers, guards under a capacity symbol mean nothing.
enum class Guards { all, not_varying };
void check_guards(Guards which, const Facts& facts, std::span<const Number> symbols,
                  std::span<const Number> numbers, std::span<const Number> before);

// The numbers with unknown symbols at their upper bounds.
std::vector<Number> bounds_of(const Facts& facts, std::span<const Number> symbols,
                              std::span<const Number> numbers);

// Binds `stage` with symbols as known now; `previous` is the Plan of the stage before it.
PlanPtr bind_stage(const BindRequest& request, size_t stage, const Plan* previous,
                   std::vector<Number> symbols);

// A node's operands at given numbers, inputs then outputs. State values have the strides of
// buffers with `state_extents` (of each pair) along their axis.
void describe_node(const Facts& facts, const Node& node, Numbers numbers,
                   std::span<const int64_t> state_extents, std::vector<TensorDesc>& descs);

// Selects steps for a node; the same at bind and for a node that varies from run to run.
Selection select_node(const BindRequest& request, const Node& node,
                      std::span<const TensorDesc> descs, std::span<const Number> numbers);

}  // namespace rlx
