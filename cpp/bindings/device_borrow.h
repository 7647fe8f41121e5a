// What the protocols by which other libraries lend GPU tensors have in common.
#pragma once

#include <span>
#include <string>

#include "bindings/device_array.h"
#include "core/error.h"

namespace rlx::bindings {

// An attribute of an object, or null.
py::object attribute(PyObject* object, const char* name);
// Error(input) of the input or argument `name`.
Error refusal(const char* name, const std::string& what);
void check_ordinal(const char* name, int got, int expected);
// `strides` in units, of which an element has `unit`; none when it is dense.
void check_dense(const char* name, std::span<const int64_t> shape,
                 std::span<const int64_t> strides, int64_t unit);

// Runs what reads an attribute that others define: of a wrong form it is an error of the input.
template <class Read>
auto reading(const char* name, const char* what, const Read& read) {
  std::string why;
  try {
    return read();
  } catch (const py::cast_error&) {
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;
    why = std::string(": ") + error.what();
  }
  throw refusal(name, std::string("its ") + what + " is malformed" + why);
}

// Both: false when the object has nothing of the kind, or does not lie on a GPU. `stream` waits for
// the contents.
bool borrow_by_dlpack(PyObject* object, const char* name, int ordinal, void* stream,
                      Borrowed& into);
bool borrow_by_interface(PyObject* object, const char* name, int ordinal, void* stream,
                         Borrowed& into);

}  // namespace rlx::bindings
