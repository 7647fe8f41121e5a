// What the caller feeds, as the inputs of a run.
#include "bindings/device_array.h"
#include "core/error.h"

namespace rlx::bindings {
namespace {

std::string list_of(const std::vector<Endpoint>& endpoints) {
  std::string names;
  for (const Endpoint& e : endpoints) names += (names.empty() ? "" : ", ") + std::string(e.text());
  return names;
}

// How a run takes what it is fed.
struct Feeding {
  const PyExecutable& self;
  StringTable* strings;
  void* stream;
};

void borrow(const Feeding& feeding, const Endpoint& endpoint, PyObject* object, Borrowed& into) {
  StringTable* const strings = feeding.strings;
  const int ordinal = feeding.self.ordinal;
  if (endpoint.kind == ValueKind::tensor) {
    const bool host = ordinal < 0 || numpy().PyArray_Check_(object);
    if (!host && borrow_device_tensor(object, endpoint.text(), ordinal, feeding.stream, into)) {
      return;
    }
    borrow_tensor(object, endpoint.dtype, endpoint.text(), strings, into);
  } else {
    borrow_container(object, endpoint.kind, endpoint.dtype, endpoint.text(), strings, into);
  }
}

void borrow_from_dict(const Feeding& feeding, PyObject* feeds, bool with_state,
                      std::vector<Borrowed>& inputs) {
  const PyExecutable& self = feeding.self;
  Py_ssize_t found = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Endpoint& endpoint = self.inputs[i];
    PyObject* object = PyDict_GetItemWithError(feeds, endpoint.name);
    if (object) {
      ++found;
      borrow(feeding, endpoint, object, inputs[i]);
    } else if (endpoint.kind == ValueKind::optional) {
      borrow(feeding, endpoint, Py_None, inputs[i]);
    } else if (with_state && self.from_state[i]) {
      inputs[i].input.given = false;
    } else {
      reject_unknown(feeds, self.inputs, "input");
      throw Error(ErrorKind::input, std::string("input '") + endpoint.text() + "' is missing")
          .expected_got(list_of(self.inputs),
                        std::to_string(PyDict_GET_SIZE(feeds)) + " inputs without it");
    }
  }
  if (found != PyDict_GET_SIZE(feeds)) reject_unknown(feeds, self.inputs, "input");
}

void borrow_in_order(const Feeding& feeding, PyObject* const* objects, Py_ssize_t count,
                     std::vector<Borrowed>& inputs) {
  const PyExecutable& self = feeding.self;
  if (size_t(count) != inputs.size()) {
    throw Error(ErrorKind::input, "wrong number of inputs")
        .expected_got(std::to_string(inputs.size()) + ": " + list_of(self.inputs),
                      std::to_string(count));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    borrow(feeding, self.inputs[i], objects[i], inputs[i]);
  }
}

}  // namespace

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

std::vector<Borrowed> borrow_inputs(const PyExecutable& self, PyObject* feeds, bool with_state,
                                    StringTable* strings, void* stream) {
  const Feeding feeding{self, strings, stream};
  std::vector<Borrowed> inputs(self.inputs.size());
  if (PyDict_Check(feeds)) {
    borrow_from_dict(feeding, feeds, with_state, inputs);
  } else if (PyList_Check(feeds) || PyTuple_Check(feeds)) {
    borrow_in_order(feeding, PySequence_Fast_ITEMS(feeds), PySequence_Fast_GET_SIZE(feeds),
                    inputs);
  } else {
    borrow_in_order(feeding, &feeds, 1, inputs);
  }
  return inputs;
}

}  // namespace rlx::bindings
