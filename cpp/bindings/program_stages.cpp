// _core.program: nodes and stages.
#include "bindings/casters.h"
#include "bindings/register.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

template <class S>
using Bound = py::class_<S, std::shared_ptr<S>>;

template <class P>
auto& def_program(Bound<P>& bound, const char* name, ProgramPtr P::*member) {
  return bound.def_property(
      name, [member](const P& p) { return std::const_pointer_cast<Program>(p.*member); },
      [member](P& p, std::shared_ptr<Program> program) { p.*member = std::move(program); });
}

void bind_control_flow(py::module_& m) {
  Bound<If> branch(m, "If");
  branch.def(py::init<>())
      .def_readwrite("condition", &If::condition)
      .def_readwrite("captures", &If::captures)
      .def_readwrite("outputs", &If::outputs)
      .def_readwrite("origin", &If::origin);
  def_program(branch, "then_program", &If::then_program);
  def_program(branch, "else_program", &If::else_program);
  Bound<Loop> loop(m, "Loop");
  loop.def(py::init<>())
      .def_readwrite("trip_count", &Loop::trip_count)
      .def_readwrite("condition", &Loop::condition)
      .def_readwrite("carried", &Loop::carried)
      .def_readwrite("captures", &Loop::captures)
      .def_readwrite("outputs", &Loop::outputs)
      .def_readwrite("scans", &Loop::scans)
      .def_readwrite("origin", &Loop::origin);
  def_program(loop, "body", &Loop::body);
  Bound<Scan> scan(m, "Scan");
  scan.def(py::init<>())
      .def_readwrite("states", &Scan::states)
      .def_readwrite("scan_inputs", &Scan::scan_inputs)
      .def_readwrite("captures", &Scan::captures)
      .def_readwrite("outputs", &Scan::outputs)
      .def_readwrite("input_axes", &Scan::input_axes)
      .def_readwrite("output_axes", &Scan::output_axes)
      .def_readwrite("input_reverse", &Scan::input_reverse)
      .def_readwrite("output_reverse", &Scan::output_reverse)
      .def_readwrite("origin", &Scan::origin);
  def_program(scan, "body", &Scan::body);
}

}  // namespace

void register_program_stages(py::module_& m) {
  Bound<Node>(m, "Node")
      .def(py::init<>())
      .def_readwrite("prim", &Node::prim)
      .def_readwrite("inputs", &Node::inputs)
      .def_readwrite("outputs", &Node::outputs)
      .def_readwrite("origin", &Node::origin);
  Bound<Segment>(m, "Segment").def(py::init<>()).def_readwrite("nodes", &Segment::nodes);
  bind_control_flow(m);
  Bound<SequenceOp>(m, "SequenceOp")
      .def(py::init<>())
      .def_readwrite("kind", &SequenceOp::kind)
      .def_readwrite("axis", &SequenceOp::axis)
      .def_readwrite("new_axis", &SequenceOp::new_axis)
      .def_readwrite("keepdims", &SequenceOp::keepdims)
      .def_readwrite("dtype", &SequenceOp::dtype)
      .def_readwrite("inputs", &SequenceOp::inputs)
      .def_readwrite("outputs", &SequenceOp::outputs)
      .def_readwrite("origin", &SequenceOp::origin);
  Bound<Host>(m, "Host")
      .def(py::init<>())
      .def_readwrite("function", &Host::function)
      .def_property(
          "callable",
          [](const Host& host) {
            return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(host.callable.get()));
          },
          [](Host& host, py::object callable) { host.callable = keep_alive(std::move(callable)); })
      .def_readwrite("inputs", &Host::inputs)
      .def_readwrite("outputs", &Host::outputs)
      .def_readwrite("origin", &Host::origin);
}

}  // namespace rlx::bindings
