// Element types and NumPy's dtypes.
#include <array>

#include <pybind11/gil_safe_call_once.h>

#include "bindings/arrays.h"

namespace rlx::bindings {
namespace {

// Indexed by DType. Taken from rlx.ir.types, the one table; kept for the life of the process.
// A plain static would hang threads that need it first at once: whoever makes it runs Python, which
// passes the lock of the interpreter on, to one that then waits with it.
using Table = std::array<PyObject*, dtype_count>;
const Table& descriptors() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<Table> table;
  return table.call_once_and_store_result([] {
    Table found{};
    const py::object dtypes = py::module_::import("rlx.ir.types").attr("DType");
    for (int t = 1; t < dtype_count; ++t) {
      const bool text = DType(t) == DType::string;
      py::object descr = text ? py::object(py::dtype("O")) : dtypes(t).attr("numpy");
      found[size_t(t)] = descr.release().ptr();
    }
    return found;
  }).get_stored();
}

bool is_text(PyObject* descr) {
  const char kind = py::reinterpret_borrow<py::dtype>(descr).kind();
  return kind == 'O' || kind == 'U' || kind == 'S' || kind == 'T';
}

}  // namespace

PyObject* descr_of(DType dtype) { return descriptors()[size_t(dtype)]; }

DType dtype_of(PyObject* descr) {
  const auto& table = descriptors();
  for (size_t t = 1; t < table.size(); ++t)
    if (table[t] == descr) return DType(t);
  if (is_text(descr)) return DType::string;
  const py::object native = py::handle(descr).attr("newbyteorder")("=");
  for (size_t t = 1; t < table.size(); ++t)
    if (native.equal(py::handle(table[t]))) return DType(t);
  return DType::none;
}

}  // namespace rlx::bindings
