// Executable.profile and Executable.capture: runs that are watched.
#include <pybind11/stl.h>

#include <algorithm>
#include <map>

#include "bindings/array_sink.h"
#include "bindings/observe.h"
#include "bindings/report.h"
#include "exec/capture.h"
#include "exec/profile.h"

namespace rlx::bindings {
namespace {

py::object run_once(PyExecutable& self, py::handle feeds, Observer& observer) {
  std::optional<StringTable> table;
  if (self.executable.main().facts.uses_strings) table.emplace(&self.executable.constant_strings());
  StringTable* strings = table ? &*table : nullptr;
  const cuda::Current current = self.make_current();
  const auto borrowed = borrow_inputs(self, feeds.ptr(), false, strings, self.default_stream());
  std::vector<Input> inputs(borrowed.size());
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = borrowed[i].input;
  ArraySink sink(self, nullptr);
  const bool from_device = std::ranges::any_of(inputs, &Input::on_device);
  void* const stream = from_device ? self.default_stream() : nullptr;
  self.executable.run(inputs, sink, strings, nullptr, &observer, stream);
  sink.take_gil();
  return py::reinterpret_steal<py::object>(sink.finish(strings));
}

template <class T>
py::array_t<int64_t> table_of(const std::vector<T>& rows, size_t columns) {
  py::array_t<int64_t> array({rows.size(), columns});
  static_assert(sizeof(T) % sizeof(int64_t) == 0);
  if (!rows.empty()) std::memcpy(array.mutable_data(), rows.data(), rows.size() * sizeof(T));
  return array;
}

// Paths of subgraphs, each found once.
class Paths {
 public:
  explicit Paths(const Unit& main) : main_(main) {}
  const std::string& operator[](const Unit& unit) {
    const auto found = paths_.find(&unit);
    return found != paths_.end() ? found->second : paths_[&unit] = path_of(main_, unit);
  }

 private:
  const Unit& main_;
  std::map<const Unit*, std::string> paths_;
};

py::dict measured(const Profiler& profiler, const PyExecutable& self) {
  Paths paths(self.executable.main());
  py::list plans;
  for (const auto& [unit, plan] : profiler.plans) {
    const std::string& path = paths[*unit];
    py::list nodes;
    for (size_t t = 0; t < plan->nodes.size(); ++t) {
      nodes.append(to_dict(report_of(*unit, *plan, t, path)));
    }
    py::dict d;
    d["path"] = path, d["stage"] = plan->stage, d["nodes"] = nodes;
    d["report"] = to_dict(report_of_stage(*unit, *plan, path));
    plans.append(d);
  }
  py::dict found;
  found["plans"] = plans;
  found["events"] = table_of(profiler.events, sizeof(TimedEvent) / sizeof(int64_t));
  found["begins"] = profiler.run_begins, found["ends"] = profiler.run_ends;
  return found;
}

py::dict profile(PyExecutable& self, py::handle feeds, size_t runs) {
  Profiler profiler;
  for (size_t r = 0; r < runs; ++r) {
    profiler.begin_run();
    run_once(self, feeds, profiler);
    profiler.end_run(runs);
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  return measured(profiler, self);
}

py::object array_of(const Tensor& tensor) {
  if (tensor.dtype == DType::none || tensor.dtype == DType::string) return py::none();
  const auto array =
      py::reinterpret_steal<py::object>(new_array(tensor.dtype, tensor.shape));
  if (const size_t bytes = tensor.bytes()) {
    std::memcpy(proxy(array.ptr())->data, tensor.data, bytes);
  }
  return array;
}

py::tuple capture(PyExecutable& self, py::handle feeds) {
  Capture captured;
  const py::object results = run_once(self, feeds, captured);
  Paths paths(self.executable.main());
  py::list rows;
  for (CapturedNode& node : captured.nodes) {
    py::list outputs;
    for (Tensor& tensor : node.outputs) {
      outputs.append(array_of(tensor));
      tensor = {};  // both copies of everything would be much
    }
    rows.append(py::make_tuple(paths[*node.unit], node.stage, node.node, outputs));
  }
  return py::make_tuple(rows, results);
}

}  // namespace

void define_observed_runs(py::module_& module,
                          py::class_<PyExecutable, std::shared_ptr<PyExecutable>>& executable) {
  using namespace py::literals;
  py::class_<Profiler>(module, "Profiler", "Measures the run that it is given to.")
      .def(py::init<>())
      .def("measured", &measured, "executable"_a, "What Executable.profile returns.");
  executable
      .def("profile", &profile, "feeds"_a, "runs"_a,
           "Times of every stage and step: events has rows of run, plan, node (-1: the stage), "
           "step, depth, begin, end in ns.")
      .def("capture", &capture, "feeds"_a,
           "One run: (path, stage, node, copies of its outputs) for each node in order; results.");
}

}  // namespace rlx::bindings
