// _core.prims: the structs of program/prims.h with the fields of their Python dataclasses.
#include "bindings/casters.h"
#include "bindings/register.h"
#include "program/fields.h"
#include "program/scalar_op.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

template <class S>
void bind_fields(py::class_<S, std::shared_ptr<S>>& bound) {
  for_each_field<S>([&]<class T>(const Field<S, T>& field) {
    const auto member = field.member;
    if constexpr (std::is_same_v<T, RegionPtr>) {
      bound.def_property(
          field.name.data(),
          [member](const S& s) { return std::const_pointer_cast<Region>(s.*member); },
          [member](S& s, std::shared_ptr<Region> region) { s.*member = std::move(region); });
    } else {
      bound.def_readwrite(field.name.data(), member);
    }
  });
}

// The strings that each field of a closed set takes, for whoever compares them with Python's.
template <class S>
void list_kinds(py::dict& kinds) {
  for_each_field<S>([&]<class T>(const Field<S, T>& field) {
    if constexpr (NamedEnum<T>) {
      py::list names;
      for (std::string_view name : EnumNames<T>::values) names.append(name);
      kinds[py::make_tuple(Fields<S>::name, field.name)] = py::tuple(names);
    }
  });
}

template <class S>
void bind(py::module_& module) {
  py::class_<S, std::shared_ptr<S>> bound(module, Fields<S>::name.data());
  bound.def(py::init<>());
  bind_fields(bound);
}

template <class... S>
void bind_each(py::module_& module, std::variant<S...>*) {
  (bind<S>(module), ...);
  py::dict kinds;
  (list_kinds<S>(kinds), ...);
  module.attr("KINDS") = kinds;
}

std::string_view op_of(const RegionOp& op) {
  return op.kind == RegionOp::Kind::scalar ? info_of(op.op).name : name_of(op.kind);
}

void set_op(RegionOp& op, const std::string& name) {
  if (const auto scalar = scalar_op(name)) {
    op.kind = RegionOp::Kind::scalar, op.op = *scalar;
    return;
  }
  const auto kind = enum_from<RegionOp::Kind>(name);
  if (!kind || *kind == RegionOp::Kind::scalar)
    throw py::value_error("no such region op: '" + name + "'");
  op.kind = *kind;
}

std::vector<int> args_of(const RegionOp& op) {
  std::vector<int> args;
  for (int arg : op.args)
    if (arg >= 0) args.push_back(arg);
  return args;
}

void set_args(RegionOp& op, const std::vector<int>& args) {
  if (args.size() > std::size(op.args)) throw py::value_error("a region op takes 4 arguments");
  std::fill(std::begin(op.args), std::end(op.args), -1);
  std::copy(args.begin(), args.end(), op.args);
}

bool holds_float(const RegionOp& op) {
  return op.kind == RegionOp::Kind::constant && (is_float(op.dtype) || is_complex(op.dtype));
}

py::object imm_of(const RegionOp& op) {
  if (op.kind == RegionOp::Kind::dim) return py::int_(op.dim);
  if (holds_float(op)) return py::float_(op.f);
  if (op.dtype == DType::uint64) return py::int_(uint64_t(op.i));
  return py::int_(op.i);
}

// Reads the op and the element type, which are set before.
void set_imm(RegionOp& op, const py::object& imm) {
  if (op.kind == RegionOp::Kind::dim) {
    op.dim = imm.cast<ExprId>();
  } else if (holds_float(op)) {
    op.f = py::float_(imm);
  } else {
    op.i = int64_t(PyLong_AsUnsignedLongLongMask(py::int_(imm).ptr()));  // uint64 keeps its bits
  }
}

}  // namespace

void register_prims(py::module_& module) {
  py::module_ prims = module.def_submodule("prims", "Twins of rlx.ir.prims; Dims are ExprIds.");
  bind<AxisMap>(prims);
  bind<MovePart>(prims);
  py::class_<RegionOp, std::shared_ptr<RegionOp>>(prims, "RegionOp")
      .def(py::init<>())
      .def_property("op", &op_of, &set_op)
      .def_readwrite("dtype", &RegionOp::dtype)
      .def_property("args", &args_of, &set_args)
      .def_property("imm", &imm_of, &set_imm);
  bind_each(prims, static_cast<Prim*>(nullptr));

  py::dict scalars;
  for (size_t k = 0; k < scalar_op_count; ++k) {
    const ScalarOpInfo& info = info_of(ScalarOp(k));
    scalars[py::str(info.name.data(), info.name.size())] = info.arity;
  }
  prims.attr("SCALAR_OPS") = scalars;
}

}  // namespace rlx::bindings
