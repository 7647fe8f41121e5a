// Runs one oneDNN primitive as a step, and packs weights for it.
#include "cpu/onednn/body.h"

#include <cstring>

#include "cpu/kernels/widen.h"
#include "cpu/team.h"

namespace rlx::cpu::onednn {
namespace {

// oneDNN's view of the arguments; made once, so that a run only sets pointers.
struct State : StepState {
  Stream stream;
  std::vector<Memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

struct PartStates : StepState {
  std::vector<std::unique_ptr<StepState>> states;
};

void execute(const PrimitiveDesc& desc, std::vector<Argument> arguments, const RunArgs& args) {
  const PrimitiveBody body(make_primitive(desc), std::move(arguments));
  const auto state = body.make_state();
  RunArgs with_state = args;
  with_state.state = state.get();
  body.run(with_state);
}

// Tells packed forms apart: the logical dims and everything oneDNN says about a plain or blocked
// format.
std::string format_name(const MemoryDesc& desc) {
  std::string name = "onednn";
  const auto append = [&](auto what, int count) {
    name += ':';
    for (int i = 0; i < count; ++i) name += std::to_string(what[i]) + ' ';
  };
  int rank = 0, blocks = 0;
  const auto query = [&](dnnl_query_t what, void* result) {
    check(dnnl_memory_desc_query(desc.get(), what, result), "dnnl_memory_desc_query");
  };
  const dnnl_dim_t* values = nullptr;
  query(dnnl_query_ndims_s32, &rank);
  for (dnnl_query_t what : {dnnl_query_dims, dnnl_query_padded_dims, dnnl_query_strides}) {
    query(what, &values);
    append(values, rank);
  }
  query(dnnl_query_inner_nblks_s32, &blocks);
  for (dnnl_query_t what : {dnnl_query_inner_blks, dnnl_query_inner_idxs}) {
    query(what, &values);
    append(values, blocks);
  }
  return name;
}

}  // namespace

SharedPrimitive make_primitive(const PrimitiveDesc& desc) {
  const OneThread one;
  auto made = std::make_shared<Primitive>();
  check(dnnl_primitive_create(made->out(), desc.get()), "dnnl_primitive_create");
  return made;
}

std::unique_ptr<StepState> PrimitiveBody::make_state() const {
  auto state = std::make_unique<State>();
  check(dnnl_stream_create(state->stream.out(), engine(), dnnl_stream_default_flags),
        "dnnl_stream_create");
  for (const Argument& argument : arguments_) {
    Memory memory;
    check(dnnl_memory_create(memory.out(), argument.desc.get(), engine(), DNNL_MEMORY_NONE),
          "dnnl_memory_create");
    state->arguments.push_back({argument.name, memory.get()});
    state->memories.push_back(std::move(memory));
  }
  return state;
}

void PrimitiveBody::run(const RunArgs& args, size_t scratch_shift) const {
  auto& state = static_cast<State&>(*args.state);
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& a = arguments_[i];
    const size_t offset = a.offset + (a.name == DNNL_ARG_SCRATCHPAD ? scratch_shift : 0);
    check(dnnl_memory_set_data_handle(state.memories[i].get(),
                                      static_cast<std::byte*>(a.place.address(args)) + offset),
          "dnnl_memory_set_data_handle");
  }
  const OneThread one;
  check(dnnl_primitive_execute(primitive_->get(), state.stream.get(),
                               int(state.arguments.size()), state.arguments.data()),
        "dnnl_primitive_execute");
}

std::unique_ptr<StepState> PartsBody::make_state() const {
  auto made = std::make_unique<PartStates>();
  for (const PrimitiveBody& part : parts_) made->states.push_back(part.make_state());
  return made;
}

void PartsBody::run(const RunArgs& args) const {
  const auto& states = static_cast<PartStates&>(*args.state).states;
  parallel_tasks(args.threads, int64_t(parts_.size()), [&](int64_t part, int thread) {
    RunArgs own = args;
    own.state = states[size_t(part)].get();
    parts_[size_t(part)].run(own, size_t(thread) * scratch_);
  });
}

Attributes new_attributes() {
  Attributes made;
  check(dnnl_primitive_attr_create(made.out()), "dnnl_primitive_attr_create");
  check(dnnl_primitive_attr_set_scratchpad_mode(made.get(), dnnl_scratchpad_mode_user),
        "dnnl_primitive_attr_set_scratchpad_mode");
  return made;
}

size_t add_scratchpad(const PrimitiveDesc& desc, size_t at, std::vector<Argument>& arguments) {
  MemoryDesc scratchpad = query_desc(desc, dnnl_query_scratchpad_md);
  const size_t bytes = size_of(scratchpad);
  if (bytes == 0) return at;
  at = aligned(at);
  arguments.push_back({DNNL_ARG_SCRATCHPAD, std::move(scratchpad), Place::workspace(at)});
  return at + bytes;
}

PrimitiveDesc reorder_desc(const MemoryDesc& from, const MemoryDesc& to) {
  const OneThread one;
  PrimitiveDesc made;
  const Attributes attributes = new_attributes();
  check(dnnl_reorder_primitive_desc_create(made.out(), from.get(), engine(), to.get(), engine(),
                                           attributes.get()),
        "dnnl_reorder_primitive_desc_create");
  return made;
}

Place packed_weight(const SelectRequest& request, int operand, const MemoryDesc& given,
                    const MemoryDesc& wanted, Selection& selection) {
  const DType stored = request.inputs[size_t(operand)].dtype;
  const bool plain = dnnl_memory_desc_equal(given.get(), wanted.get());
  if (plain && stored == DType::float32) return Place::operand(operand);
  const PrimitiveDesc desc = reorder_desc(given, wanted);
  std::vector<Argument> arguments;
  arguments.push_back({DNNL_ARG_FROM, clone(given.get()), Place::operand(operand)});
  const Constant* constant = request.inputs[size_t(operand)].constant;
  if (!constant) {
    const size_t at = aligned(selection.workspace);
    arguments.push_back({DNNL_ARG_TO, clone(wanted.get()), Place::workspace(at)});
    selection.workspace = add_scratchpad(desc, at + size_of(wanted), arguments);
    selection.steps.push_back({StepKind::dnn, std::make_shared<PrimitiveBody>(
                                                  make_primitive(desc), std::move(arguments))});
    return Place::workspace(at);
  }
  auto packed = request.packs.get(*constant, format_name(wanted), size_of(wanted), [&](void* to) {
    std::memset(to, 0, size_of(wanted));  // the padding of a blocked format must be zero
    arguments.push_back({DNNL_ARG_TO, clone(wanted.get()), Place::workspace(0)});
    std::vector<std::byte> scratchpad(size_of(query_desc(desc, dnnl_query_scratchpad_md)));
    arguments.push_back({DNNL_ARG_SCRATCHPAD, query_desc(desc, dnnl_query_scratchpad_md),
                         Place::packed({scratchpad.data(), [](const void*) {}})});
    std::vector<float> widened;
    std::vector<void*> operands(size_t(operand) + 1);
    operands[size_t(operand)] = const_cast<void*>(constant->data);
    if (stored != DType::float32) {
      widened.resize(size_t(request.inputs[size_t(operand)].count()));
      widen(stored, constant->data, widened.data(), int64_t(widened.size()), request.threads);
      operands[size_t(operand)] = widened.data();
    }
    const RunArgs args{operands.data(), to, nullptr, request.threads, nullptr, nullptr};
    execute(desc, std::move(arguments), args);
  });
  return Place::packed(std::move(packed));
}

}  // namespace rlx::cpu::onednn
