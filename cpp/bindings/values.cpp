// Tensors, sequences and optionals as Python objects, and back.
#include <cstring>

#include "bindings/arrays.h"
#include "core/error.h"

namespace rlx::bindings {

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
