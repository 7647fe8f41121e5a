// _core.program: expressions, constants, values, symbols, origins and guards.
#include <pybind11/numpy.h>

#include "bindings/casters.h"
#include "bindings/register.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

template <class S>
using Bound = py::class_<S, std::shared_ptr<S>>;

Constant constant_of(const py::array& array, std::string source, bool droppable) {
  if (!(array.flags() & py::array::c_style))
    throw py::value_error("a constant's array must be C-contiguous");
  Constant constant;
  constant.data = array.data();
  constant.bytes = size_t(array.nbytes());
  constant.source = std::move(source);
  constant.owner = keep_alive(array);
  constant.droppable = droppable;
  return constant;
}

ExprRow row_of(const std::string& op, bool is_float, const std::vector<ExprId>& args, int64_t i,
               double f) {
  const auto found = expr_op(op);
  if (!found) throw py::value_error("no such expression: '" + op + "'");
  if (int(args.size()) != info_of(*found).arity)
    throw py::value_error("wrong number of arguments of '" + op + "'");
  ExprRow row{.op = *found, .is_float = is_float, .i = i, .f = f};
  std::copy(args.begin(), args.end(), row.args);
  return row;
}

}  // namespace

void register_program_tables(py::module_& m) {
  m.def("dtype_name", [](DType t) { return name_of(t); });
  m.def("dtype_size", [](DType t) { return size_of(t); });
  Bound<ExprRow>(m, "ExprRow")
      .def(py::init(&row_of), py::arg("op"), py::arg("is_float"), py::arg("args"),
           py::arg("i") = 0, py::arg("f") = 0.0)
      .def_property_readonly("op", [](const ExprRow& row) { return info_of(row.op).name; })
      .def_readonly("is_float", &ExprRow::is_float)
      .def_property_readonly("args", [](const ExprRow& row) {
        return std::vector<ExprId>(row.args, row.args + info_of(row.op).arity);
      })
      .def_readonly("i", &ExprRow::i)
      .def_readonly("f", &ExprRow::f);
  Bound<Constant>(m, "Constant")
      .def(py::init(&constant_of), py::arg("array"), py::arg("source"),
           py::arg("droppable") = false)
      .def_readonly("bytes", &Constant::bytes)
      .def_readonly("source", &Constant::source)
      .def_readonly("droppable", &Constant::droppable)
      .def_property_readonly("array", [](const Constant& constant) {
        auto* array = static_cast<PyObject*>(const_cast<void*>(constant.owner.get()));
        return py::reinterpret_borrow<py::object>(array);
      });
  Bound<Value>(m, "Value")
      .def(py::init<>())
      .def_readwrite("kind", &Value::kind)
      .def_readwrite("dtype", &Value::dtype)
      .def_readwrite("shape", &Value::shape)
      .def_readwrite("constant", &Value::constant)
      .def_readwrite("alias_of", &Value::alias_of)
      .def_readwrite("name", &Value::name);
  Bound<Symbol>(m, "Symbol")
      .def(py::init<>())
      .def_readwrite("kind", &Symbol::kind)
      .def_readwrite("value", &Symbol::value)
      .def_readwrite("index", &Symbol::index)
      .def_readwrite("is_float", &Symbol::is_float)
      .def_readwrite("upper", &Symbol::upper)
      .def_readwrite("capacity", &Symbol::capacity)
      .def_readwrite("name", &Symbol::name);
  Bound<Origin>(m, "Origin")
      .def(py::init<>())
      .def_readwrite("name", &Origin::name)
      .def_readwrite("op", &Origin::op)
      .def_readwrite("domain", &Origin::domain)
      .def_readwrite("opset", &Origin::opset)
      .def_readwrite("also", &Origin::also);
  Bound<Guard>(m, "Guard")
      .def(py::init<>())
      .def_readwrite("condition", &Guard::condition)
      .def_readwrite("message", &Guard::message)
      .def_readwrite("origin", &Guard::origin)
      .def_readwrite("assumption", &Guard::assumption);
  Bound<StatePair>(m, "StatePair")
      .def(py::init<>())
      .def_readwrite("input", &StatePair::input)
      .def_readwrite("output", &StatePair::output)
      .def_readwrite("axis", &StatePair::axis);
}

}  // namespace rlx::bindings
