// Conversions between NumPy arrays and tensors.
#include "bindings/arrays.h"

#include <array>
#include <cstring>

#include "core/error.h"
#include "exec/numbers.h"

namespace rlx::bindings {
namespace {

using py::detail::npy_api;

// Indexed by DType. Taken from rlx.ir.types, the one table; kept for the life of the process.
const std::array<PyObject*, dtype_count>& descriptors() {
  static const auto table = [] {
    std::array<PyObject*, dtype_count> found{};
    const py::object dtypes = py::module_::import("rlx.ir.types").attr("DType");
    for (int t = 1; t < dtype_count; ++t) {
      const bool text = DType(t) == DType::string;
      py::object descr = text ? py::object(py::dtype("O")) : dtypes(t).attr("numpy");
      found[size_t(t)] = descr.release().ptr();
    }
    return found;
  }();
  return table;
}

bool is_text(PyObject* descr) {
  const char kind = py::reinterpret_borrow<py::dtype>(descr).kind();
  return kind == 'O' || kind == 'U' || kind == 'S' || kind == 'T';
}

std::string text_of_descr(PyObject* descr) { return py::str(py::handle(descr)); }

std::span<const int64_t> shape_of(PyObject* array) {
  static_assert(sizeof(ssize_t) == sizeof(int64_t));
  return {reinterpret_cast<const int64_t*>(proxy(array)->dimensions), size_t(proxy(array)->nd)};
}

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
  if (PyBytes_Check(text)) return strings.id({PyBytes_AS_STRING(text), size_t(PyBytes_GET_SIZE(text))});
  if (PyUnicode_Check(text)) {
    if (const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size)) return strings.id({utf8, size_t(size)});
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
          .expected_got(name_of(expected), text_of_descr(descr));
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

void borrow_sequence(PyObject* object, DType element, const char* name, StringTable* strings,
                     Borrowed& into) {
  into.value = std::make_unique<RunValue>(
      from_python(object, ValueKind::sequence, element, name, strings));
  into.input = {};
  into.input.value = into.value.get();
}

void borrow_optional(PyObject* object, DType element, const char* name, StringTable* strings,
                     Borrowed& into) {
  into.value = std::make_unique<RunValue>(
      from_python(object, ValueKind::optional, element, name, strings));
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

py::object to_python(const RunValue& value, const StringTable* strings) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    if (tensor->dtype == DType::none) return py::none();
    auto array = py::reinterpret_steal<py::object>(new_array(tensor->dtype, tensor->shape));
    if (tensor->dtype == DType::string) {
      const auto* ids = static_cast<const int64_t*>(tensor->data);
      fill_strings(array.ptr(), {ids, size_t(element_count(tensor->shape))}, *strings);
    } else if (const size_t bytes = tensor->bytes()) {
      std::memcpy(proxy(array.ptr())->data, tensor->data, bytes);
    }
    return array;
  }
  if (const auto* sequence = std::get_if<Sequence>(&value)) {
    py::list list;
    if (sequence->items)
      for (const RunValue& item : *sequence->items) list.append(to_python(item, strings));
    return list;
  }
  const auto& held = std::get<Optional>(value).value;
  return held ? to_python(*held, strings) : py::none();
}

RunValue from_python(PyObject* object, ValueKind kind, DType element, const char* name,
                     StringTable* strings) {
  const bool listed = PyList_Check(object) || PyTuple_Check(object);
  if (kind == ValueKind::optional) {
    if (object == Py_None) return Optional{};
    const ValueKind inner = listed ? ValueKind::sequence : ValueKind::tensor;
    return Optional{std::make_shared<const RunValue>(
        from_python(object, inner, element, name, strings))};
  }
  if (kind == ValueKind::sequence) {
    if (!listed) {
      throw Error(ErrorKind::input, std::string("'") + name + "' is a sequence")
          .expected_got("a list of arrays", Py_TYPE(object)->tp_name);
    }
    std::vector<RunValue> items;
    for (py::handle item : py::reinterpret_borrow<py::sequence>(object)) {
      items.push_back(from_python(item.ptr(), ValueKind::tensor, element, name, strings));
    }
    return Sequence{std::make_shared<const std::vector<RunValue>>(std::move(items))};
  }
  Borrowed borrowed;
  borrow_tensor(object, element, name, strings, borrowed);
  const Input& in = borrowed.input;
  if (in.dtype != element) {
    throw Error(ErrorKind::input, std::string("'") + name + "': wrong element type")
        .expected_got(name_of(element), name_of(in.dtype));
  }
  return copy_of({in.dtype, Dims(in.shape), const_cast<void*>(in.data), nullptr});
}

}  // namespace rlx::bindings
