// Builds cuDNN's graphs and takes the heuristic's engines in order until one makes a plan.
#include "cuda/libs/dnn_graph.h"

#include <algorithm>

namespace rlx::cuda {
namespace {

// Attributes by number; the names are cudnn_backend.h's CUDNN_ATTR_*.
constexpr int pointwise_mode = 0, pointwise_precision = 1;
constexpr int heuristic_mode = 200, heuristic_graph = 201, heuristic_results = 202;
constexpr int config_engine = 300;
constexpr int plan_handle = 400, plan_config = 401, plan_workspace = 402,
              plan_text = 405;
constexpr int operation_pointwise = 750, operation_x = 751, operation_b = 752, operation_y = 753;
constexpr int graph_handle = 800, graph_operations = 801;
constexpr int tensor_alignment = 900, tensor_type = 901, tensor_dims = 902, tensor_strides = 903,
              tensor_id = 906, tensor_virtual = 907, tensor_by_value = 908;
constexpr int engine_index = 1301, engine_numerical = 1303, engine_behaviour = 1305;
constexpr int mode_a = 3, mode_fallback = 2;
constexpr int note_tensor_core = 0, note_run_time_compilation = 0;
// More than the heuristics have proposed for any graph (37).
constexpr int64_t most_configs = 48;

std::string last_error(const DnnFunctions& f) {
  char text[512] = "";
  f.last_error(text, sizeof text);
  return text;
}

}  // namespace

DnnFunctions::DnnFunctions(const api::Found& library) {
  const auto load = [&](auto*& function, const char* name) { api::load(library, function, name); };
  load(create, "cudnnCreate");
  load(destroy, "cudnnDestroy");
  load(set_stream, "cudnnSetStream");
  load(descriptor_create, "cudnnBackendCreateDescriptor");
  load(descriptor_destroy, "cudnnBackendDestroyDescriptor");
  load(set, "cudnnBackendSetAttribute");
  load(get, "cudnnBackendGetAttribute");
  load(finalize, "cudnnBackendFinalize");
  load(execute, "cudnnBackendExecute");
  load(last_error, "cudnnGetLastErrorString");
}

Descriptor::Descriptor(const DnnFunctions& functions, int kind) : f_(&functions) {
  const int status = f_->descriptor_create(kind, &raw_);
  if (status != 0) {
    throw DnnRefusal{"cuDNN has no descriptor of kind " + std::to_string(kind) + " (status " +
                     std::to_string(status) + ")"};
  }
}

Descriptor::~Descriptor() {
  if (raw_) f_->descriptor_destroy(raw_);
}

void Descriptor::set(int attribute, int type, int64_t count, const void* values) {
  const int status = f_->set(raw_, attribute, type, count, values);
  if (status == 0) return;
  throw DnnRefusal{"cuDNN refused attribute " + std::to_string(attribute) + " (status " +
                   std::to_string(status) + "): " + last_error(*f_)};
}

void Descriptor::finalize() {
  const int status = f_->finalize(raw_);
  if (status == 0) return;
  throw DnnRefusal{"cuDNN: status " + std::to_string(status) + ": " + last_error(*f_)};
}

Descriptor& DnnGraph::tensor(int64_t id, int data_type, std::span<const int64_t> dims,
                             std::span<const int64_t> strides, bool is_virtual, bool by_value) {
  Descriptor& made = part(dnn::tensor);
  made.set(tensor_type, dnn::data_type, data_type);
  made.set(tensor_dims, dims);
  made.set(tensor_strides, strides);
  made.set(tensor_id, dnn::int64, id);
  made.set(tensor_alignment, dnn::int64, int64_t{16});
  if (is_virtual) made.set(tensor_virtual, dnn::boolean, char{1});
  if (by_value) made.set(tensor_by_value, dnn::boolean, char{1});
  made.finalize();
  return made;
}

void DnnGraph::pointwise(int mode, const Descriptor& x, const Descriptor* b, const Descriptor& y) {
  Descriptor& function = part(dnn::pointwise);
  function.set(pointwise_mode, dnn::pointwise_mode, mode);
  function.set(pointwise_precision, dnn::data_type, int{dnn::data_float});
  function.finalize();
  Descriptor& operation = part(dnn::pointwise_operation);
  operation.set(operation_pointwise, function);
  operation.set(operation_x, x);
  if (b) operation.set(operation_b, *b);
  operation.set(operation_y, y);
  operation.finalize();
  add_operation(operation);
}

std::vector<Descriptor> DnnGraph::configs(const Descriptor& graph, int mode) {
  Descriptor heuristic(f_, dnn::heuristics);
  heuristic.set(heuristic_graph, graph);
  heuristic.set(heuristic_mode, dnn::heuristic_mode, mode);
  heuristic.finalize();
  std::vector<Descriptor> found;
  const auto ask = [&](int64_t most) {
    std::vector<void*> raw;
    found.clear();
    for (int64_t i = 0; i < most; ++i) {
      raw.push_back(found.emplace_back(f_, dnn::engine_config).raw());
    }
    int64_t count = 0;
    const int status = f_.get(heuristic.raw(), heuristic_results, dnn::descriptor, most, &count,
                              most ? raw.data() : nullptr);
    return status == 0 ? count : int64_t{0};
  };
  // Each question takes the library 20 ms: how many there are is asked only where it must be.
  int64_t count = ask(most_configs);
  if (count == 0 && (count = ask(0)) > 0) count = ask(count);
  plan_->parts.push_back(std::move(heuristic));
  while (int64_t(found.size()) > count) found.pop_back();
  return found;
}

DnnGraph::Tried DnnGraph::try_config(Descriptor& config, const Wish& wish) {
  Descriptor engine(f_, dnn::engine);
  void* raw = engine.raw();
  int64_t count = 0, index = -1;
  if (f_.get(config.raw(), config_engine, dnn::descriptor, 1, &count, &raw) != 0) {
    return Tried::failed;
  }
  f_.get(raw, engine_index, dnn::int64, 1, &count, &index);
  const auto has_note = [&](int attribute, int type, int note) {
    int notes[32] = {};
    int64_t found = 0;
    if (f_.get(raw, attribute, type, 32, &found, notes) != 0) return false;
    return std::count(notes, notes + std::min<int64_t>(found, 32), note) > 0;
  };
  const bool compiles = has_note(engine_behaviour, dnn::behaviour_note, note_run_time_compilation);
  if (compiles && !wish.compile) return Tried::unwished;
  if (wish.strict && has_note(engine_numerical, dnn::numerical_note, note_tensor_core)) {
    return Tried::unwished;
  }
  Descriptor plan(f_, dnn::execution_plan);
  try {
    plan.set(plan_config, config);
    plan.set(plan_handle, dnn::handle, handle_);
    plan.finalize();
  } catch (const DnnRefusal&) {
    return Tried::failed;  // the next one may do
  }
  int64_t workspace = 0;
  f_.get(plan.raw(), plan_workspace, dnn::int64, 1, &count, &workspace);
  if (size_t(workspace) > wish.most_workspace) return Tried::failed;
  plan_->workspace = size_t(workspace);
  plan_->engine = index;
  plan_->compiled = compiles;
  plan_->plan = plan.raw();
  plan_->parts.push_back(std::move(engine));
  plan_->parts.push_back(std::move(plan));
  return Tried::taken;
}

std::unique_ptr<DnnPlan> DnnGraph::finish(const Wish& wish) {
  Descriptor& graph = part(dnn::operation_graph);
  graph.set(graph_operations, dnn::descriptor, int64_t(operations_.size()), operations_.data());
  // Without the handle another device's engines are proposed, with needless workspace.
  graph.set(graph_handle, dnn::handle, handle_);
  graph.finalize();
  bool any_unwished = false, any_failed = false;
  for (int mode : {mode_a, mode_fallback}) {
    std::vector<Descriptor> found = configs(graph, mode);
    for (Descriptor& config : found) {
      const Tried tried = try_config(config, wish);
      any_unwished |= tried == Tried::unwished;
      any_failed |= tried == Tried::failed;
      // The last resort among the fallbacks is up to 1000 times slower than kernels of our own.
      if (tried != Tried::taken || (mode == mode_fallback && plan_->engine == 0)) continue;
      plan_->parts.push_back(std::move(config));
      return std::move(plan_);
    }
  }
  throw DnnRefusal{"cuDNN has no engine for it", any_unwished && !any_failed};
}

std::string text_of_plan(const DnnFunctions& f, const DnnPlan& plan) {
  int64_t size = 0;
  if (f.get(plan.plan, plan_text, dnn::text, 0, &size, nullptr) != 0 || size <= 0) return "";
  std::string text(size_t(size), '\0');
  if (f.get(plan.plan, plan_text, dnn::text, size, &size, text.data()) != 0) return "";
  return text;
}

std::unique_ptr<DnnPlan> plan_of_text(const DnnFunctions& f, void* handle,
                                      const std::string& text) {
  auto made = std::make_unique<DnnPlan>();
  Descriptor& plan = made->parts.emplace_back(f, dnn::execution_plan);
  plan.set(plan_handle, dnn::handle, handle);
  plan.set(plan_text, dnn::text, int64_t(text.size()), text.data());
  plan.finalize();
  int64_t workspace = 0, count = 0;
  f.get(plan.raw(), plan_workspace, dnn::int64, 1, &count, &workspace);
  made->workspace = size_t(workspace);
  made->plan = plan.raw();
  made->compiled = true;
  return made;
}

}  // namespace rlx::cuda
