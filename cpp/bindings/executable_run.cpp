// One run from Python: feeds in, arrays out, the GIL released while long work is done.
#include <pybind11/stl.h>

#include <cstring>

#include "bindings/executable.h"
#include "core/error.h"

namespace rlx::bindings {
namespace {

const char* text(const Endpoint& endpoint) { return PyUnicode_AsUTF8(endpoint.name); }

std::string list_of(const std::vector<Endpoint>& endpoints) {
  std::string names;
  for (const Endpoint& e : endpoints) names += (names.empty() ? "" : ", ") + std::string(text(e));
  return names;
}

// Throws for the first key of `dict` that is no endpoint.
void reject_unknown(PyObject* dict, const std::vector<Endpoint>& endpoints, const char* what) {
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(dict)) {
    bool known = false;
    for (const Endpoint& e : endpoints) known = known || key.equal(py::handle(e.name));
    if (known) continue;
    throw Error(ErrorKind::input, std::string("there is no ") + what + " named " +
                                      std::string(py::repr(key)))
        .expected_got(list_of(endpoints), py::repr(key));
  }
}

// Writes outputs into fresh arrays, or those of `out`. Holds the GIL unless long work was begun.
class ArraySink final : public OutputSink {
 public:
  ArraySink(const PyExecutable& self, PyObject* out)
      : self_(self), out_(out), results_(self.outputs.size()) {}
  ~ArraySink() override {
    take_gil();
    for (Result& r : results_) Py_XDECREF(r.object);
  }
  ArraySink(const ArraySink&) = delete;
  ArraySink& operator=(const ArraySink&) = delete;

  void* tensor(size_t output, DType dtype, std::span<const int64_t> shape) override {
    const bool released = thread_ != nullptr;
    take_gil();
    Result& result = results_[output];
    PyObject* given = out_ ? PyDict_GetItemWithError(out_, self_.outputs[output].name) : nullptr;
    if (given) {
      check_given(given, output, dtype, shape);
      Py_INCREF(given);
    }
    Py_XSETREF(result.object, given ? given : new_array(dtype, shape));
    void* memory = proxy(result.object)->data;
    if (dtype == DType::string) {
      result.ids.resize(size_t(element_count(shape)));
      memory = result.ids.data();
    }
    if (released) long_work();
    return memory;
  }

  void value(size_t output, RunValue value) override {
    results_[output].value = std::make_unique<RunValue>(std::move(value));
  }

  void long_work() override {
    if (!thread_) thread_ = PyEval_SaveThread();
  }

  void take_gil() {
    if (!thread_) return;
    PyEval_RestoreThread(thread_);
    thread_ = nullptr;
  }

  // The dict of results: `out` itself when it has them all.
  PyObject* finish(const StringTable* strings) {
    bool complete = out_ != nullptr;
    for (size_t j = 0; j < results_.size(); ++j) {
      Result& r = results_[j];
      if (r.value) r.object = to_python(*r.value, strings).release().ptr();
      if (!r.ids.empty()) fill_strings(r.object, r.ids, *strings);
      const bool given = complete && r.object &&
                         PyDict_GetItemWithError(out_, self_.outputs[j].name) == r.object;
      complete = complete && (given || !r.object);
    }
    if (complete) return Py_NewRef(out_);
    auto dict = py::dict();
    for (size_t j = 0; j < results_.size(); ++j) {
      PyObject* object = results_[j].object;
      if (object && PyDict_SetItem(dict.ptr(), self_.outputs[j].name, object) != 0) {
        throw py::error_already_set();
      }
    }
    return dict.release().ptr();
  }

 private:
  struct Result {
    PyObject* object = nullptr;
    std::vector<int64_t> ids;         // of a string tensor
    std::unique_ptr<RunValue> value;  // of a sequence or an optional
  };

  void check_given(PyObject* given, size_t output, DType dtype, std::span<const int64_t> shape) {
    constexpr int wanted = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ |
                           py::detail::npy_api::NPY_ARRAY_ALIGNED_ |
                           py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    const std::string name = text(self_.outputs[output]);
    if (!numpy().PyArray_Check_(given)) {
      throw Error(ErrorKind::input, "out['" + name + "'] must be a NumPy array");
    }
    const auto* array = proxy(given);
    const auto* dims = reinterpret_cast<const int64_t*>(array->dimensions);
    const bool same_shape = std::equal(shape.begin(), shape.end(), dims, dims + array->nd);
    if (array->descr == descr_of(dtype) && same_shape && (array->flags & wanted) == wanted) return;
    Error error(ErrorKind::input, "out['" + name + "'] does not fit");
    error.expected_got(std::string("a writable C-contiguous array of ") + name_of(dtype) +
                           std::string(py::str(py::tuple(py::cast(std::vector<int64_t>(
                               shape.begin(), shape.end()))))),
                       std::string(py::str(py::handle(array->descr))) +
                           std::string(py::str(py::handle(given).attr("shape"))));
    throw error;
  }

  const PyExecutable& self_;
  PyObject* out_;
  std::vector<Result> results_;
  PyThreadState* thread_ = nullptr;  // of this thread, while it does not hold the GIL
};

void borrow(const Endpoint& endpoint, PyObject* object, StringTable* strings, Borrowed& into) {
  switch (endpoint.kind) {
    case ValueKind::tensor:
      return borrow_tensor(object, endpoint.dtype, text(endpoint), strings, into);
    case ValueKind::sequence:
      return borrow_sequence(object, endpoint.dtype, text(endpoint), strings, into);
    case ValueKind::optional:
      return borrow_optional(object, endpoint.dtype, text(endpoint), strings, into);
  }
}

void borrow_from_dict(const PyExecutable& self, PyObject* feeds, bool with_state,
                      StringTable* strings, std::vector<Borrowed>& inputs) {
  Py_ssize_t found = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Endpoint& endpoint = self.inputs[i];
    PyObject* object = PyDict_GetItemWithError(feeds, endpoint.name);
    if (object) {
      ++found;
      borrow(endpoint, object, strings, inputs[i]);
    } else if (endpoint.kind == ValueKind::optional) {
      borrow(endpoint, Py_None, strings, inputs[i]);
    } else if (with_state && self.from_state[i]) {
      inputs[i].input.given = false;
    } else {
      reject_unknown(feeds, self.inputs, "input");
      throw Error(ErrorKind::input, std::string("input '") + text(endpoint) + "' is missing")
          .expected_got(list_of(self.inputs),
                        std::to_string(PyDict_GET_SIZE(feeds)) + " inputs without it");
    }
  }
  if (found != PyDict_GET_SIZE(feeds)) reject_unknown(feeds, self.inputs, "input");
}

void borrow_in_order(const PyExecutable& self, PyObject* const* objects, Py_ssize_t count,
                     StringTable* strings, std::vector<Borrowed>& inputs) {
  if (size_t(count) != inputs.size()) {
    throw Error(ErrorKind::input, "wrong number of inputs")
        .expected_got(std::to_string(inputs.size()) + ": " + list_of(self.inputs),
                      std::to_string(count));
  }
  for (size_t i = 0; i < inputs.size(); ++i) borrow(self.inputs[i], objects[i], strings, inputs[i]);
}

struct RunCall {  // the arguments of one call
  PyObject *feeds = nullptr, *out = nullptr, *state = nullptr;
};

RunCall parse(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  RunCall call;
  PyObject** const slots[] = {&call.feeds, &call.out, &call.state};
  constexpr const char* slot_names[] = {"feeds", "out", "state"};
  if (count > 3) throw py::type_error("run() takes at most 3 arguments");
  for (Py_ssize_t i = 0; i < count; ++i) *slots[i] = args[i];
  for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    size_t s = 0;
    while (s < 3 && PyUnicode_CompareWithASCIIString(name, slot_names[s]) != 0) ++s;
    if (s == 3 || *slots[s]) throw py::type_error("run(feeds, out=None, state=None)");
    *slots[s] = args[count + k];
  }
  if (!call.feeds) throw py::type_error("run() needs feeds");
  if (call.out == Py_None) call.out = nullptr;
  if (call.state == Py_None) call.state = nullptr;
  if (call.out && !PyDict_Check(call.out)) {
    throw Error(ErrorKind::input, "out must be a dict of arrays");
  }
  return call;
}

PyObject* run_checked(PyObject* raw_self, const RunCall& call) {
  auto& self = *py::handle(raw_self).cast<PyExecutable*>();
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
  if (call.out) reject_unknown(call.out, self.outputs, "output");
  const auto borrowed = borrow_inputs(self, call.feeds, state != nullptr, strings);
  std::vector<Input> inputs(borrowed.size());
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = borrowed[i].input;
  ArraySink sink(self, call.out);
  self.executable.run(inputs, sink, strings, state);
  sink.take_gil();
  return sink.finish(strings);
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  try {
    return run_checked(self, parse(args, count, names));
  } catch (...) {
    py::detail::try_translate_exceptions();
    return nullptr;
  }
}

}  // namespace

std::vector<Borrowed> borrow_inputs(const PyExecutable& self, PyObject* feeds, bool with_state,
                                    StringTable* strings) {
  std::vector<Borrowed> inputs(self.inputs.size());
  if (PyDict_Check(feeds)) {
    borrow_from_dict(self, feeds, with_state, strings, inputs);
  } else if (PyList_Check(feeds) || PyTuple_Check(feeds)) {
    borrow_in_order(self, PySequence_Fast_ITEMS(feeds), PySequence_Fast_GET_SIZE(feeds), strings,
                    inputs);
  } else {
    borrow_in_order(self, &feeds, 1, strings, inputs);
  }
  return inputs;
}

PyMethodDef run_method = {
    "run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run)),
    METH_FASTCALL | METH_KEYWORDS,
    "run(feeds, out=None, state=None) -> dict\n\n"
    "Runs the program on a dict of arrays by name, a sequence of them, or one array. Outputs go\n"
    "into the arrays of `out` where it has them, else into new ones."};

}  // namespace rlx::bindings
