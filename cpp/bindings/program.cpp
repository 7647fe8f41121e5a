// _core.Program: verified when made, then immutable.
#include "program/program.h"

#include "bindings/casters.h"
#include "bindings/register.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

py::object number_of(const ExprRow& row, const Number& number) {
  if (!number.known) return py::none();
  return row.is_float ? py::object(py::float_(number.f)) : py::object(py::int_(number.i));
}

// What the rows evaluate to when the symbols have these values (None: not known yet).
py::list evaluate_rows(const std::vector<ExprRow>& rows, const std::vector<py::object>& symbols) {
  std::vector<Number> known(symbols.size()), out(rows.size());
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (symbols[s].is_none()) continue;
    known[s].known = true;
    if (py::isinstance<py::float_>(symbols[s])) {
      known[s].f = symbols[s].cast<double>();
    } else {
      known[s].i = symbols[s].cast<int64_t>();
    }
  }
  evaluate(rows, known, out);
  py::list numbers;
  for (size_t r = 0; r < rows.size(); ++r) numbers.append(number_of(rows[r], out[r]));
  return numbers;
}

// Each keyword must be a field of Program; a field not given stays empty.
template <class T>
void take(const py::kwargs& given, const char* name, T& field, size_t& taken) {
  if (!given.contains(name)) return;
  field = given[name].cast<T>();
  ++taken;
}

std::shared_ptr<Program> make_program(const py::kwargs& given) {
  auto program = std::make_shared<Program>();
  size_t taken = 0;
  take(given, "exprs", program->exprs, taken);
  take(given, "symbols", program->symbols, taken);
  take(given, "guards", program->guards, taken);
  take(given, "values", program->values, taken);
  take(given, "constants", program->constants, taken);
  take(given, "strings", program->strings, taken);
  take(given, "states", program->states, taken);
  take(given, "inputs", program->inputs, taken);
  take(given, "outputs", program->outputs, taken);
  take(given, "input_names", program->input_names, taken);
  take(given, "output_names", program->output_names, taken);
  take(given, "stages", program->stages, taken);
  take(given, "origins", program->origins, taken);
  if (taken != given.size()) throw py::type_error("Program: unknown keyword");
  verify(*program);
  return program;
}

// A property that gives a copy: a reference would let Python change the program.
template <class T>
void def_copy(py::class_<Program, std::shared_ptr<Program>>& bound, const char* name,
              T Program::*member) {
  bound.def_property_readonly(name, [member](const Program& p) { return p.*member; });
}

}  // namespace

void register_program(py::module_& module) {
  py::module_ structs = module.def_submodule("program", "What a Program is made of.");
  py::class_<Program, std::shared_ptr<Program>> program(
      module, "Program", "An immutable program; the keywords are its fields.");
  register_program_tables(structs);
  register_program_stages(structs);
  structs.def("evaluate", &evaluate_rows, py::arg("rows"), py::arg("symbols"));
  program.def(py::init(&make_program))
      .def("__str__", &dump);
  def_copy(program, "exprs", &Program::exprs);
  def_copy(program, "symbols", &Program::symbols);
  def_copy(program, "guards", &Program::guards);
  def_copy(program, "values", &Program::values);
  def_copy(program, "constants", &Program::constants);
  def_copy(program, "strings", &Program::strings);
  def_copy(program, "states", &Program::states);
  def_copy(program, "inputs", &Program::inputs);
  def_copy(program, "outputs", &Program::outputs);
  def_copy(program, "input_names", &Program::input_names);
  def_copy(program, "output_names", &Program::output_names);
  def_copy(program, "stages", &Program::stages);
  def_copy(program, "origins", &Program::origins);
}

}  // namespace rlx::bindings
