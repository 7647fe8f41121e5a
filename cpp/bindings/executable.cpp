// _core.Executable and _core.State: a Program ready to run, its counters and reports.
#include "bindings/executable.h"

#include <pybind11/stl.h>

#include "bindings/device_array.h"
#include "bindings/interpreter_lock.h"
#include "bindings/observe.h"
#include "bindings/register.h"
#include "bindings/report.h"
#include "cuda/device.h"

namespace rlx::bindings {
namespace {

std::vector<Endpoint> endpoints(const Program& program, const std::vector<ValueId>& values,
                                const std::vector<std::string>& names) {
  std::vector<Endpoint> found;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = program.values[size_t(values[i])];
    found.push_back({PyUnicode_InternFromString(names[i].c_str()), value.kind, value.dtype});
  }
  return found;
}

py::dict counters_of(const PyExecutable& self) {
  const Counters& c = self.executable.counters();
  py::dict d;
  const auto put = [&](const char* name, const std::atomic<int64_t>& x) { d[name] = x.load(); };
  put("runs", c.runs), put("child_runs", c.child_runs);
  put("plans", c.plans), put("stage_binds", c.stage_binds);
  put("reselections", c.reselections), put("host_calls", c.host_calls);
  put("dynamic_allocations", c.dynamic_allocations), put("state_growths", c.state_growths);
  d["packs"] = self.executable.packs().count(), d["pack_bytes"] = self.executable.packs().bytes();
  put("recordings", c.recordings);
  put("arena_bytes", c.arena_bytes), put("contexts", c.contexts);
  put("bind_ns", c.bind_ns), put("creation_ns", c.creation_ns);
  return d;
}

py::list explain_of(const PyExecutable& self) {
  py::list list;
  for (const NodeReport& r : explain(self.executable.main())) list.append(to_dict(r));
  return list;
}

py::list memory_plan_of(const PyExecutable& self) {
  py::list list;
  for (const MemoryReport& r : memory_plan(self.executable.main())) {
    py::dict d;
    d["path"] = r.path, d["values"] = r.values, d["node"] = r.node, d["stage"] = r.stage;
    d["offset"] = r.offset, d["bytes"] = r.bytes, d["first"] = r.first, d["last"] = r.last;
    list.append(d);
  }
  return list;
}

std::shared_ptr<PyExecutable> make(ProgramPtr program, std::shared_ptr<Device> device,
                                   std::shared_ptr<Packs> packs, int threads, std::string force,
                                   size_t plan_cache_bytes, size_t memory_limit, int max_contexts,
                                   bool check_memory, bool record, bool stepwise, int lanes) {
  ExecOptions options;
  options.threads = threads;
  options.force = std::move(force);
  options.plan_bytes = plan_cache_bytes;
  if (memory_limit > 0) options.memory_limit = memory_limit;
  options.max_contexts = max_contexts;
  options.check_memory = check_memory;
  options.record = record;
  options.stepwise = stepwise;
  options.lanes = lanes;
  return std::make_shared<PyExecutable>(std::move(program), std::move(device), std::move(packs),
                                        std::move(options));
}

void prepare(PyExecutable& self, py::handle feeds) {
  std::optional<StringTable> table;
  if (self.executable.main().facts.uses_strings) table.emplace(&self.executable.constant_strings());
  const cuda::Current current = self.make_current();
  const auto borrowed = borrow_inputs(self, feeds.ptr(), false, table ? &*table : nullptr,
                                      self.default_stream());
  std::vector<Input> inputs;
  for (const Borrowed& b : borrowed) inputs.push_back(b.input);
  const Unlocked unlocked;
  self.executable.prepare(inputs, self.default_stream());
}

}  // namespace

PyExecutable::PyExecutable(ProgramPtr program, std::shared_ptr<const Device> given,
                           std::shared_ptr<Packs> packs, ExecOptions options)
    : executable(program, given, std::move(packs), std::move(options)),
      inputs(endpoints(*program, program->inputs, program->input_names)),
      outputs(endpoints(*program, program->outputs, program->output_names)),
      from_state(inputs.size(), false), device(std::move(given)), ordinal(device->ordinal()) {
  for (const StatePair& pair : program->states) from_state[size_t(pair.input)] = true;
}

cuda::Current PyExecutable::make_current() const {
  return ordinal < 0 ? cuda::Current(true)
                     : cuda::gpu_of(*device)->driver->make_current_quietly();
}

void* PyExecutable::default_stream() const {
  return ordinal < 0 ? nullptr : reinterpret_cast<void*>(legacy_stream);
}

void register_executable(py::module_& module) {
  using namespace py::literals;
  install_hooks();
  register_not_array(module);
  py::class_<Packs, std::shared_ptr<Packs>>(module, "PackCache",
                                            "Packed weights, shared by Executables.")
      .def(py::init<>())
      .def_property_readonly("count", &Packs::count)
      .def_property_readonly("bytes", &Packs::bytes);
  const ExecOptions defaults;
  py::class_<PyExecutable, std::shared_ptr<PyExecutable>> executable(
      module, "Executable", "A Program ready to run on a Device; safe to use from many threads.");
  executable
      .def(py::init(&make), "program"_a, "device"_a, "packs"_a = std::shared_ptr<Packs>(),
           py::kw_only(), "threads"_a = 0, "force"_a = "",
           "plan_cache_bytes"_a = defaults.plan_bytes, "memory_limit"_a = 0,
           "max_contexts"_a = 0, "check_memory"_a = false, "record"_a = true,
           "stepwise"_a = false, "lanes"_a = 1)
      .def("prepare", &prepare, "feeds"_a, "Binds the first stage for such inputs.")
      .def("counters", &counters_of)
      .def("explain", &explain_of, "What was decided for each node, of the plans that ran last.")
      .def("memory_plan", &memory_plan_of, "The blocks of the arena, of the plans that ran last.");
  define_observed_runs(module, executable);
  py::class_<PyState>(module, "State", "The growing values that a program keeps between runs.")
      .def(py::init<std::shared_ptr<PyExecutable>>(), "executable"_a)
      .def("clear", [](PyState& self) { self.state.clear(); })
      .def("value", [](const PyState& self, size_t pair) {
        return to_python(self.state.copy(pair), nullptr);
      }, "pair"_a, "A copy of what the pair holds.");
  auto* type = reinterpret_cast<PyTypeObject*>(executable.ptr());
  PyObject* method = PyDescr_NewMethod(type, &run_method);
  if (!method) throw py::error_already_set();
  executable.attr("run") = py::reinterpret_steal<py::object>(method);
}

}  // namespace rlx::bindings
