// NumPy arrays as tensors of a run, and new arrays for its outputs.
#include "bindings/arrays.h"

#include "core/error.h"

namespace rlx::bindings {
namespace {

using py::detail::npy_api;

bool is_dense(PyObject* array) {
  constexpr int wanted = npy_api::NPY_ARRAY_C_CONTIGUOUS_ | npy_api::NPY_ARRAY_ALIGNED_;
  return (proxy(array)->flags & wanted) == wanted;
}

py::object dense_copy(PyObject* array, PyObject* descr) {
  Py_INCREF(descr);  // which NumPy takes over
  constexpr int flags = npy_api::NPY_ARRAY_C_CONTIGUOUS_ | npy_api::NPY_ARRAY_ALIGNED_ |
                        npy_api::NPY_ARRAY_FORCECAST_;
  PyObject* copy = numpy().PyArray_FromAny_(array, descr, 0, 0, flags, nullptr);
  if (!copy) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(copy);
}

int64_t id_of(PyObject* text, StringTable& strings, const char* name) {
  Py_ssize_t size = 0;
  if (PyBytes_Check(text)) {
    return strings.id({PyBytes_AS_STRING(text), size_t(PyBytes_GET_SIZE(text))});
  }
  if (PyUnicode_Check(text)) {
    const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    if (utf8) return strings.id({utf8, size_t(size)});
    PyErr_Clear();  // lone surrogates stand for bytes that were no UTF-8
    PyObject* bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (!bytes) throw py::error_already_set();
    const auto owner = py::reinterpret_steal<py::bytes>(bytes);
    return strings.id(std::string_view(owner));
  }
  throw Error(ErrorKind::input, std::string("'") + name + "': a string tensor holds something else")
      .expected_got("str or bytes", Py_TYPE(text)->tp_name);
}

void borrow_strings(PyObject* array, const char* name, StringTable* strings, Borrowed& into) {
  if (!strings) throw Error(ErrorKind::internal, "a string array for a program without strings");
  const py::object objects = dense_copy(array, descr_of(DType::string));
  const auto count = size_t(element_count(shape_of(objects.ptr())));
  auto** items = reinterpret_cast<PyObject**>(proxy(objects.ptr())->data);
  into.ids.clear();
  for (size_t i = 0; i < count; ++i) into.ids.push_back(id_of(items[i], *strings, name));
  into.keeper = objects;
  into.input = {DType::string, shape_of(objects.ptr()), into.ids.data()};
}

PyObject* not_array = nullptr;  // the exception's type; alive as long as the process

}  // namespace

void register_not_array(py::module_& module) {
  const py::object base = py::module_::import("rlx.errors").attr("InputError");
  not_array = PyErr_NewExceptionWithDoc("rlx._core.NotArray", "A value is no NumPy array.",
                                        base.ptr(), nullptr);
  if (!not_array) throw py::error_already_set();
  module.attr("NotArray") = py::handle(not_array);
}

void borrow_tensor(PyObject* object, DType expected, const char* name, StringTable* strings,
                   Borrowed& into) {
  if (!numpy().PyArray_Check_(object)) {
    PyErr_Format(not_array, "'%s' must be an array of %s, not %s", name, name_of(expected),
                 Py_TYPE(object)->tp_name);
    throw py::error_already_set();
  }
  PyObject* descr = proxy(object)->descr;
  DType dtype = expected;
  if (descr != descr_of(expected) || expected == DType::string) {
    dtype = dtype_of(descr);
    if (dtype == DType::none) {
      throw Error(ErrorKind::input, std::string("'") + name + "': ONNX has no such element type")
          .expected_got(name_of(expected), std::string(py::str(py::handle(descr))));
    }
    if (dtype == DType::string && expected == DType::string) {
      return borrow_strings(object, name, strings, into);
    }
  }
  const bool native = descr == descr_of(dtype) || dtype != expected;
  into.keeper = native && is_dense(object) ? py::reinterpret_borrow<py::object>(object)
                                           : dense_copy(object, descr_of(dtype));
  PyObject* array = into.keeper.ptr();
  into.input = {dtype, shape_of(array), proxy(array)->data};
}

void borrow_container(PyObject* object, ValueKind kind, DType element, const char* name,
                      StringTable* strings, Borrowed& into) {
  into.value = std::make_unique<RunValue>(from_python(object, kind, element, name, strings));
  into.input = {};
  into.input.value = into.value.get();
}

PyObject* new_array(DType dtype, std::span<const int64_t> shape) {
  PyObject* descr = descr_of(dtype);
  Py_INCREF(descr);  // which NumPy takes over
  const auto* dims = reinterpret_cast<const Py_intptr_t*>(shape.data());
  PyObject* array = numpy().PyArray_NewFromDescr_(numpy().PyArray_Type_, descr, int(shape.size()),
                                                  dims, nullptr, nullptr, 0, nullptr);
  if (!array && PyErr_ExceptionMatches(PyExc_MemoryError)) {
    PyErr_Clear();
    throw Error(ErrorKind::memory_limit, "an array that is returned does not fit in memory");
  }
  if (!array) throw py::error_already_set();
  return array;
}

void fill_strings(PyObject* array, std::span<const int64_t> ids, const StringTable& strings) {
  auto** items = reinterpret_cast<PyObject**>(proxy(array)->data);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& text = strings.text(ids[i]);
    PyObject* made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "surrogateescape");
    if (!made) throw py::error_already_set();
    Py_XSETREF(items[i], made);
  }
}

}  // namespace rlx::bindings
