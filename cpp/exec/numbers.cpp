// Reads numbers out of tensors and dims out of numbers.
#include "exec/numbers.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace rlx {
namespace {

template <class T>
T element(const void* data, int64_t index) {
  T x;
  std::memcpy(&x, static_cast<const char*>(data) + size_t(index) * sizeof(T), sizeof(T));
  return x;
}

template <class T>
Number whole(const void* data, int64_t index) {
  return integer(int64_t(element<T>(data, index)));
}

Number real(double f) {
  const bool fits = f >= -0x1p63 && f < 0x1p63;  // false for NaN
  return {fits ? int64_t(f) : 0, f, true};
}

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double x = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) x = fraction ? std::nan("") : INFINITY;
  return bits & 0x8000 ? -x : x;
}

}  // namespace

Number read_number(DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DType::int64: return whole<int64_t>(data, index);
    case DType::int32: return whole<int32_t>(data, index);
    case DType::int16: return whole<int16_t>(data, index);
    case DType::int8: case DType::int4: case DType::int2: return whole<int8_t>(data, index);
    case DType::uint64: return whole<uint64_t>(data, index);
    case DType::uint32: return whole<uint32_t>(data, index);
    case DType::uint16: return whole<uint16_t>(data, index);
    case DType::uint8: case DType::uint4: case DType::uint2: case DType::boolean:
      return whole<uint8_t>(data, index);
    case DType::float32: return real(double(element<float>(data, index)));
    case DType::float64: return real(element<double>(data, index));
    case DType::float16: return real(half_to_double(element<uint16_t>(data, index)));
    case DType::bfloat16:
      return real(double(std::bit_cast<float>(uint32_t{element<uint16_t>(data, index)} << 16)));
    default:
      throw Error(ErrorKind::unsupported,
                  std::string("a dim cannot be read from a tensor of type ") + name_of(dtype));
  }
}

Dims dims_of(const Value& value, Numbers numbers) {
  Dims dims;
  // Dims of sub-byte and 16-byte types alike stay far from overflow below this many elements.
  constexpr int64_t most = int64_t{1} << 56;
  int64_t count = 1;
  for (ExprId id : value.shape) {
    const Number& n = numbers[id];
    const auto complain = [&](ErrorKind kind, const std::string& what) {
      return Error(kind, "value '" + value.name + "': dim " + std::to_string(dims.size()) + what);
    };
    if (!n.known) throw complain(ErrorKind::internal, " is not known when it is needed");
    if (n.i < 0) throw complain(ErrorKind::input, " would be " + std::to_string(n.i));
    if (n.i > most || (n.i > 0 && count > most / n.i)) {
      throw complain(ErrorKind::memory_limit, " makes it too large: " + std::to_string(n.i));
    }
    if (n.i > 0) count *= n.i;
    dims.push_back(n.i);
  }
  return dims;
}

Dims row_major(std::span<const int64_t> shape) {
  Dims strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) {
    strides[k - 1] = strides[k] * std::max<int64_t>(shape[k], 1);
  }
  return strides;
}

std::string text_of(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t k = 0; k < shape.size(); ++k) text += (k ? ", " : "") + std::to_string(shape[k]);
  return text + "]";
}

std::string symbols_under(const Program& program, ExprId id, std::span<const Number> symbols) {
  std::vector<bool> wanted(program.exprs.size(), false), listed(symbols.size(), false);
  wanted[size_t(id)] = true;
  std::string text;
  for (size_t r = size_t(id) + 1; r-- > 0;) {  // arguments come before their users
    if (!wanted[r]) continue;
    const ExprRow& row = program.exprs[r];
    for (int k = 0; k < info_of(row.op).arity; ++k) wanted[size_t(row.args[k])] = true;
    if (row.op != ExprOp::symbol || listed[size_t(row.i)]) continue;
    listed[size_t(row.i)] = true;
    const Symbol& symbol = program.symbols[size_t(row.i)];
    const Number& n = symbols[size_t(row.i)];
    const bool dim = symbol.kind == Symbol::Kind::dim;
    const std::string& value = program.values[size_t(symbol.value)].name;
    text += text.empty() ? "" : ", ";
    const std::string place = (dim ? ".shape[" : "[") + std::to_string(symbol.index) + "]";
    text += symbol.name.empty() ? value + place : symbol.name;
    text += "=" + (!n.known ? "?" : symbol.is_float ? std::to_string(n.f) : std::to_string(n.i));
  }
  return text;
}

}  // namespace rlx
