// Conversions of the program's small types: enums as their Python strings, element types as ints.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "program/names.h"

namespace rlx::bindings {

// Keeps a Python object alive from C++, whatever thread lets go of it last.
inline std::shared_ptr<void> keep_alive(pybind11::object object) {
  PyObject* raw = object.release().ptr();
  return {raw, [](void* kept) {
            if (!Py_IsInitialized()) return;
            pybind11::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(kept));
          }};
}

}  // namespace rlx::bindings

namespace pybind11::detail {

template <rlx::NamedEnum E>
struct type_caster_enum_type_enabled<E> : std::false_type {};
template <>
struct type_caster_enum_type_enabled<rlx::DType> : std::false_type {};

template <rlx::NamedEnum E>
struct type_caster<E> {
  PYBIND11_TYPE_CASTER(E, const_name("str"));

  bool load(handle source, bool) {
    if (!isinstance<str>(source)) return false;
    const auto name = source.cast<std::string>();
    const auto found = rlx::enum_from<E>(name);
    if (!found) throw value_error("no such kind: '" + name + "'");
    value = *found;
    return true;
  }

  static handle cast(E e, return_value_policy, handle) {
    const std::string_view name = rlx::name_of(e);
    return str(name.data(), name.size()).release();
  }
};

template <>
struct type_caster<rlx::DType> {
  PYBIND11_TYPE_CASTER(rlx::DType, const_name("int"));

  bool load(handle source, bool) {
    if (source.is_none()) {
      value = rlx::DType::none;
      return true;
    }
    if (!PyLong_Check(source.ptr())) return false;
    const auto number = source.cast<long>();
    if (number < 0 || number >= rlx::dtype_count) throw value_error("no such element type");
    value = rlx::DType(number);
    return true;
  }

  static handle cast(rlx::DType t, return_value_policy, handle) { return int_(int(t)).release(); }
};

}  // namespace pybind11::detail
