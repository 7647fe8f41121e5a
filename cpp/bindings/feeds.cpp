// What the caller feeds, as the inputs of a run.
#include "bindings/executable.h"
#include "core/error.h"

namespace rlx::bindings {
namespace {

std::string list_of(const std::vector<Endpoint>& endpoints) {
  std::string names;
  for (const Endpoint& e : endpoints) names += (names.empty() ? "" : ", ") + std::string(e.text());
  return names;
}

void borrow(const Endpoint& endpoint, PyObject* object, StringTable* strings, Borrowed& into) {
  if (endpoint.kind == ValueKind::tensor) {
    borrow_tensor(object, endpoint.dtype, endpoint.text(), strings, into);
  } else {
    borrow_container(object, endpoint.kind, endpoint.dtype, endpoint.text(), strings, into);
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
      throw Error(ErrorKind::input, std::string("input '") + endpoint.text() + "' is missing")
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

}  // namespace rlx::bindings
