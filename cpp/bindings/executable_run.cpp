// One run from Python: feeds in, arrays out, the GIL released while long work is done.

#include <algorithm>

#include "bindings/array_sink.h"
#include "bindings/device_array.h"
#include "bindings/observe.h"
#include "bindings/run_call.h"
#include "core/error.h"
#include "cuda/device.h"

namespace rlx::bindings {
namespace {

void check_names(PyObject* out, const std::vector<Endpoint>& outputs) {
  Py_ssize_t known = 0;
  for (const Endpoint& e : outputs) known += PyDict_GetItemWithError(out, e.name) != nullptr;
  if (known != PyDict_GET_SIZE(out)) reject_unknown(out, outputs, "output");
}

// A step may write an output before it has read all of an input.
void check_overlap(PyObject* out, const std::vector<Endpoint>& outputs,
                   std::span<const Input> inputs) {
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
  for (const Input& in : inputs) {
    const auto* begin = static_cast<const std::byte*>(in.on_device ? nullptr : in.data);
    const auto bytes = size_t(element_count(in.shape)) * size_of(in.dtype);
    if (begin && bytes) ranges.push_back({begin, begin + bytes});
  }
  for (const Endpoint& e : outputs) {
    PyObject* array = PyDict_GetItemWithError(out, e.name);
    if (!array || !numpy().PyArray_Check_(array)) continue;  // the sink says so
    const auto* begin = reinterpret_cast<const std::byte*>(proxy(array)->data);
    const auto* end = begin + size_t(element_count(shape_of(array))) * size_of(e.dtype);
    for (const auto& [from, to] : ranges) {
      if (begin >= to || from >= end) continue;
      throw Error(ErrorKind::input, std::string("out['") + e.text() +
                                        "'] shares memory with an input or another output");
    }
    ranges.push_back({begin, end});
  }
}

bool wants_device(const PyExecutable& self, const RunCall& call) {
  if (!call.outputs || PyUnicode_CompareWithASCIIString(call.outputs, "host") == 0) return false;
  Error error(ErrorKind::input, "outputs must be \"host\" or, on a GPU, \"device\"");
  if (PyUnicode_CompareWithASCIIString(call.outputs, "device") != 0) throw error;
  if (self.ordinal < 0 || self.executable.main().facts.uses_strings || call.out) throw error;
  return true;
}

// A run that touches device arrays is done on the caller's stream, CUDA's default one unless told.
void* stream_of(const PyExecutable& self, const RunCall& call) {
  if (self.ordinal < 0 || !call.stream) return self.default_stream();
  const auto given = py::handle(call.stream).cast<uintptr_t>();
  return given ? reinterpret_cast<void*>(given) : self.default_stream();
}

// A run allocates, and replays graphs of its own: neither can be part of another graph.
void check_not_captured(const PyExecutable& self, void* stream) {
  const cuda::Gpu* gpu = cuda::gpu_of(*self.device);
  if (!gpu || !gpu->driver->is_captured(static_cast<cuda::Stream>(stream))) return;
  Error error(ErrorKind::input, "the stream is being captured into a graph");
  error.remedy = "run before or after the capture: mode='graph' records the Session's own graph";
  throw error;
}

PyObject* run_checked(PyObject* raw_self, const RunCall& call) {
  auto& self = *py::handle(raw_self).cast<PyExecutable*>();
  const bool to_device = wants_device(self, call);
  const cuda::Current current = self.make_current();
  void* stream = stream_of(self, call);
  if (stream && call.stream) check_not_captured(self, stream);
  State* state = nullptr;
  if (call.state) {
    auto& given = *py::handle(call.state).cast<PyState*>();
    if (given.executable.get() != &self) {
      throw Error(ErrorKind::input, "the state belongs to another session");
    }
    state = &given.state;
  }
  std::optional<StringTable> table;
  if (self.executable.main().facts.uses_strings) table.emplace(&self.executable.constant_strings());
  StringTable* strings = table ? &*table : nullptr;
  if (call.out) check_names(call.out, self.outputs);
  const auto borrowed = borrow_inputs(self, call.feeds, state != nullptr, strings, stream);
  std::vector<Input> inputs(borrowed.size());
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = borrowed[i].input;
  if (call.out) check_overlap(call.out, self.outputs, inputs);
  const bool from_device = std::ranges::any_of(inputs, &Input::on_device);
  if (!call.stream && !to_device && !from_device) stream = nullptr;
  const Measured measured(call.profiler);
  if (to_device) {
    DeviceSink sink(self, stream);
    self.executable.run(inputs, sink, strings, state, measured.observer(), stream);
    sink.take_gil();
    measured.end();
    return sink.finish();
  }
  ArraySink sink(self, call.out);
  self.executable.run(inputs, sink, strings, state, measured.observer(), stream);
  sink.take_gil();
  measured.end();
  return sink.finish(strings);
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  try {
    return run_checked(self, parse_run(args, count, names));
  } catch (...) {
    py::detail::try_translate_exceptions();
    return nullptr;
  }
}

}  // namespace

PyMethodDef run_method = {
    "run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run)),
    METH_FASTCALL | METH_KEYWORDS,
    "run(feeds, out=None, state=None, outputs=None, stream=None, profiler=None) -> dict\n\n"
    "Runs the program on a dict of arrays by name, a sequence of them, or one array. Outputs go\n"
    "into the arrays of `out` where it has them, else into new ones, which lie on the GPU with\n"
    "outputs=\"device\". Device arrays are used behind the work of `stream`. A profiler\n"
    "measures this one run."};

}  // namespace rlx::bindings
