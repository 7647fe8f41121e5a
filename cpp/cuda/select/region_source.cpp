// Writes Regions as CUDA C++: coordinates, loads, one line of text for each op, stores.
#include <cstring>

#include "core/text.h"
#include "cuda/select/region_axes.h"
#include "cuda/select/types.h"
#include "program/scalar_op.h"

namespace rlx::cuda {
namespace {

std::string text_of(uint64_t bits, const char* type) {
  return "__builtin_bit_cast(" + std::string(type) + ", " + std::to_string(bits) +
         (std::strcmp(type, "float") == 0 ? "u)" : "ull)");
}

class Writer : private RegionAxes {
 public:
  explicit Writer(const RegionSpec& spec) : RegionAxes(spec) {}

  RegionSource write() {
    write_text();
    return std::move(made_);
  }

 private:
  int first_map(size_t access) const {
    int maps = 0;
    for (size_t a = 0; a < access; ++a) maps += int(accesses_[a].maps.size());
    return maps;
  }

  std::string mapped(size_t access, size_t use, const std::string& coordinate) const {
    const MapUse& m = accesses_[access].maps[use];
    const std::string n = std::to_string(first_map(access) + int(use));
    std::string index = coordinate;
    if (m.div != 1) index = "rlx::divide(Index(" + index + "), p.map_div[" + n + "])";
    if (m.mod != 0) index = "rlx::remainder(Index(" + index + "), p.map_mod[" + n + "])";
    return index + " * Index(p.map_stride[" + n + "])";
  }

  // Offset of neighbour 0, without maps of the innermost axis, which neighbours need one by one.
  std::string offset(size_t access) const {
    const RegionAccess& a = accesses_[access];
    const std::string slot = std::to_string(is_index(access) ? 0 : slot_of(access));
    std::string sum = "0";
    for (size_t k = 0; k < extents_.size(); ++k) {
      if (a.strides[k] == 0) continue;
      const std::string c = "c" + std::to_string(k), at = std::to_string(k);
      sum += " + " + c;
      if (!is_index(access) && (k != last() || a.strides[k] != 1)) {
        sum += " * Index(p.strides[" + slot + "][" + at + "])";
      }
    }
    for (size_t u = 0; u < a.maps.size(); ++u) {
      if (a.maps[u].axis == int(last())) continue;
      sum += " + " + mapped(access, u, "c" + std::to_string(a.maps[u].axis));
    }
    return sum;
  }

  // What neighbour i adds to the offset.
  std::string neighbour(size_t access) const {
    const RegionAccess& a = accesses_[access];
    std::string sum;
    const int64_t stride = a.strides[last()];
    if (stride == 1) sum = " + Index(i)";
    else if (stride != 0) {
      sum = " + Index(i) * Index(p.strides[" + std::to_string(slot_of(access)) + "][" +
            std::to_string(last()) + "])";
    }
    for (size_t u = 0; u < a.maps.size(); ++u) {
      if (a.maps[u].axis != int(last())) continue;
      sum += " + " + mapped(access, u, "(c" + std::to_string(last()) + " + Index(i))");
    }
    return sum;
  }

  bool plain_run(size_t access) const {
    if (accesses_[access].strides[last()] != 1) return false;
    for (const MapUse& m : accesses_[access].maps) {
      if (m.axis == int(last())) return false;
    }
    return true;
  }

  void write_text() {
    const std::string tab = "  ";
    Text s;
    s << "#pragma once\n#include \"kernels/include/index.h\"\n"
      << "#include \"kernels/include/vector.h\"\n#include \"kernels/include/scalar_ops.h\"\n"
      << "#include \"kernels/params/region.h\"\n"
      << "namespace rlx::" << spec_.name << " {\n"
      << "using Index = " << (made_.wide ? "unsigned long long" : "unsigned") << ";\n"
      << "using Given = " << (spec_.given == DType::none ? "int" : compute_name(spec_.given))
      << ";\n";
    for (size_t k = 0; k < region_.results.size(); ++k) {
      s << "using T" << k << " = " << compute_name(region_.ops[size_t(region_.results[k])].dtype)
        << ";\n";
    }
    s << "template <int N> RLX_FN void values(const params::Region& p, Index at, "
      << "const Given* given";
    for (size_t k = 0; k < region_.results.size(); ++k) s << ", T" << k << " (&r" << k << ")[N]";
    s << ") {\n";
    write_coordinates(s);
    write_loads(s);
    s << "#pragma unroll\n  for (int i = 0; i < N; ++i) {\n";
    types_.clear();
    for (size_t k = 0; k < region_.ops.size(); ++k) write_op(s, k);
    for (size_t k = 0; k < region_.results.size(); ++k) {
      s << "    r" << k << "[i] = v" << region_.results[k] << ";\n";
    }
    s << "  }\n}\n";
    write_run(s);
    s << "}  // namespace rlx::" << spec_.name << "\n";
    made_.text = s.str();
  }

  void write_coordinates(Text& s) const {
    s << "  Index rest = at;\n";
    for (size_t k = last(); k > 0; --k) {
      s << "  const Index c" << k << " = split(rest, p.extents[" << k << "]);\n";
    }
    s << "  const Index c0 = rest;\n  (void)c0;\n";
    for (size_t k = 1; k <= last(); ++k) s << "  (void)c" << k << ";\n";
  }

  void write_loads(Text& s) const {
    for (size_t i = 0; i < input_access_.size(); ++i) {
      if (input_access_[i] < 0) continue;
      const size_t a = size_t(input_access_[i]);
      const std::string type = storage_name(spec_.inputs[i].dtype), x = "x" + std::to_string(i);
      s << "  " << type << " " << x << "[N];\n  {\n    const " << type << "* q = static_cast<const "
        << type << "*>(p.operands[" << slot_of(a) << "]) + (" << offset(a) << ");\n";
      if (plain_run(a)) {
        s << "    load_run<N>(" << x << ", q);\n  }\n";
      } else {
        s << "#pragma unroll\n    for (int i = 0; i < N; ++i) " << x << "[i] = q[Index(0)"
          << neighbour(a) << "];\n  }\n";
      }
    }
    for (size_t axis = 0; axis < index_access_.size(); ++axis) {
      if (index_access_[axis] < 0) continue;
      s << "  const Index n" << axis << " = " << offset(size_t(index_access_[axis])) << ";\n";
    }
  }

  void write_op(Text& s, size_t k) {
    const RegionOp& op = region_.ops[k];
    types_.push_back(op.kind == RegionOp::Kind::load && !is_given(size_t(op.args[0]))
                         ? compute_type(spec_.inputs[size_t(op.args[0])].dtype)
                         : compute_type(op.dtype));
    if (op.kind == RegionOp::Kind::load && is_given(size_t(op.args[0]))) {
      types_.back() = compute_type(spec_.given);
    }
    s << "    const " << compute_name(types_.back()) << " v" << k << " = " << expression(op)
      << ";\n    (void)v" << k << ";\n";
  }

  std::string expression(const RegionOp& op) {
    switch (op.kind) {
      case RegionOp::Kind::load: {
        const size_t input = size_t(op.args[0]);
        if (is_given(input)) return "given[i]";
        return "Element<" + storage_name(spec_.inputs[input].dtype) + ">::load(x" +
               std::to_string(input) + "[i])";
      }
      case RegionOp::Kind::constant: return constant(op);
      case RegionOp::Kind::index:
        return "(long long)(n" + std::to_string(op.args[0]) +
               neighbour(size_t(index_access_[size_t(op.args[0])])) + ")";
      case RegionOp::Kind::dim: return run_time_number(op);
      case RegionOp::Kind::cast: return cast(op);
      case RegionOp::Kind::scalar: return scalar(op);
    }
    return "";
  }

  std::string constant(const RegionOp& op) const {
    const DType type = compute_type(op.dtype);
    const auto literal = [](double f, bool wide) {
      const float narrow = float(f);
      uint64_t bits = 0;
      if (wide) std::memcpy(&bits, &f, 8);
      else std::memcpy(&bits, &narrow, 4);
      return text_of(bits, wide ? "double" : "float");
    };
    switch (type) {
      case DType::float32: return literal(op.f, false);
      case DType::float64: return literal(op.f, true);
      case DType::complex64: return "{" + literal(op.f, false) + ", 0.0f}";
      case DType::complex128: return "{" + literal(op.f, true) + ", 0.0}";
      case DType::boolean: return op.i != 0 ? "true" : "false";
      default:
        return "(" + compute_name(type) + ")(" + std::to_string(uint64_t(op.i)) + "ull)";
    }
  }

  std::string run_time_number(const RegionOp& op) {
    if (numbers_ == params::region_numbers) {
      throw Error(ErrorKind::unsupported, "an elementwise computation with more than " +
                                              std::to_string(params::region_numbers) +
                                              " computed dims");
    }
    const Number& n = spec_.numbers[size_t(op.dim)];
    const DType type = compute_type(op.dtype);
    std::memcpy(&made_.params.numbers[numbers_], is_float(type) ? (const void*)&n.f : &n.i, 8);
    const std::string word = "p.numbers[" + std::to_string(numbers_++) + "]";
    if (!is_float(type)) return "(" + compute_name(type) + ")(" + word + ")";
    return "(" + compute_name(type) + ")(__builtin_bit_cast(double, " + word + "))";
  }

  std::string cast(const RegionOp& op) const {
    const std::string x = "v" + std::to_string(op.args[0]);
    const bool narrow = op.dtype == DType::int4 || op.dtype == DType::uint4 ||
                        op.dtype == DType::int2 || op.dtype == DType::uint2;
    const char* round = op.i & 2 ? "down" : op.i & 4 ? "nearest" : "up";
    return std::string(narrow ? "cast_narrow<" : "cast<") + storage_name(op.dtype) + ", " +
           (op.i & 1 ? "true" : "false") + ", Round::" + round + ">(" + x + ")";
  }

  std::string scalar(const RegionOp& op) const {
    const ScalarOpInfo& info = info_of(op.op);
    const auto arg = [&](int k) { return "v" + std::to_string(op.args[k]); };
    if (op.op == ScalarOp::pow) {
      const RegionOp& power = region_.ops[size_t(op.args[1])];
      const double exponent = is_float(power.dtype) ? power.f : double(power.i);
      if (power.kind == RegionOp::Kind::constant) {
        const std::string x = arg(0);
        if (exponent == 1) return x;
        if (exponent == 2) return "scalar::mul(" + x + ", " + x + ")";
        if (exponent == 3) return "scalar::mul(scalar::mul(" + x + ", " + x + "), " + x + ")";
      }
    }
    const DType type = types_[size_t(op.args[info.arity - 1])];
    for (int k = op.op == ScalarOp::select ? 1 : 0; k < info.arity; ++k) {
      if (types_[size_t(op.args[k])] == type) continue;
      throw Error(ErrorKind::internal, "arguments of " + std::string(info.name) +
                                           " differ in type: " +
                                           name_of(types_[size_t(op.args[k])]) + " and " +
                                           name_of(type));
    }
    std::string call = "scalar::" + std::string(identifier_of(op.op)) + "(";
    for (int k = 0; k < info.arity; ++k) call += (k ? ", " : "") + arg(k);
    return call + ")";
  }

  static std::string_view identifier_of(ScalarOp op) {
    static constexpr std::string_view names[] = {
#define RLX_IDENTIFIER(identifier, name, arity) #identifier,
        RLX_SCALAR_OPS(RLX_IDENTIFIER)
#undef RLX_IDENTIFIER
    };
    return names[size_t(op)];
  }

  void write_run(Text& s) const {
    s << "template <int N> RLX_FN void run(const params::Region& p, Index at, "
      << "const Given* given) {\n";
    for (size_t k = 0; k < region_.results.size(); ++k) s << "  T" << k << " r" << k << "[N];\n";
    s << "  values<N>(p, at, given";
    for (size_t k = 0; k < region_.results.size(); ++k) s << ", r" << k;
    s << ");\n";
    write_coordinates(s);
    for (size_t k = 0; k < spec_.outputs.size(); ++k) {
      const size_t a = first_output_ + k;
      const std::string type = storage_name(spec_.outputs[k].dtype);
      s << "  {\n    " << type << "* q = static_cast<" << type << "*>(p.operands[" << slot_of(a)
        << "]) + (" << offset(a) << ");\n    " << type << " y[N];\n"
        << "#pragma unroll\n    for (int i = 0; i < N; ++i) y[i] = Element<" << type
        << ">::store(r" << k << "[i]);\n";
      if (plain_run(a)) {
        s << "    store_run<N>(q, y);\n  }\n";
      } else {
        s << "#pragma unroll\n    for (int i = 0; i < N; ++i) q[Index(0)" << neighbour(a)
          << "] = y[i];\n  }\n";
      }
    }
    s << "}\n";
  }

  std::vector<DType> types_;
  int numbers_ = 0;
};

}  // namespace

RegionSource region_source(const RegionSpec& spec) { return Writer(spec).write(); }

}  // namespace rlx::cuda
