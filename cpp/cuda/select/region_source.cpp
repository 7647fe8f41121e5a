// Writes Regions as CUDA C++: axes that all operands allow to merge are merged, then one line of
// text for each op.
#include "cuda/select/region_source.h"

#include <cstring>
#include <sstream>

#include "cuda/select/types.h"
#include "program/scalar_op.h"

namespace rlx::cuda {
namespace {

struct MapUse {
  int axis;
  int64_t div, mod, stride;
};

using Extents = std::vector<int64_t>;

struct Access {
  Extents strides;  // one for each axis
  std::vector<MapUse> maps;
};

std::string text_of(uint64_t bits, const char* type) {
  return "__builtin_bit_cast(" + std::string(type) + ", " + std::to_string(bits) +
         (std::strcmp(type, "float") == 0 ? "u)" : "ull)");
}

class Writer {
 public:
  explicit Writer(const RegionSpec& spec) : spec_(spec), region_(*spec.region) {}

  RegionSource write() {
    find_accesses();
    merge_axes();
    choose_vector();
    fill_params();
    write_text();
    return std::move(made_);
  }

 private:
  int64_t number(ExprId id, int64_t otherwise) const {
    return id < 0 ? otherwise : spec_.numbers[size_t(id)].i;
  }
  bool is_given(size_t input) const { return spec_.given != DType::none && input == 0; }

  // Accesses: the inputs that are loaded, then "index" ops by axis, then the outputs.
  void find_accesses() {
    for (ExprId dim : region_.shape) extents_.push_back(number(dim, 1));
    made_.params.count = element_count(extents_);
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const bool loads = !is_given(i) && spec_.inputs[i].dtype != DType::none && is_loaded(i);
      input_access_.push_back(loads ? int(accesses_.size()) : -1);
      if (loads) add_input(i);
    }
    index_access_.assign(extents_.size(), -1);
    for (const RegionOp& op : region_.ops) {
      if (op.kind != RegionOp::Kind::index || index_access_[size_t(op.args[0])] >= 0) continue;
      index_access_[size_t(op.args[0])] = int(accesses_.size());
      accesses_.push_back({Extents(extents_.size(), 0), {}});
      accesses_.back().strides[size_t(op.args[0])] = 1;
    }
    first_output_ = accesses_.size();
    for (size_t k = 0; k < spec_.outputs.size(); ++k) {
      accesses_.push_back({Extents(extents_.size(), 0), {}});
      const Dims& strides = spec_.outputs[k].strides;
      if (strides.size() == extents_.size()) {
        accesses_.back().strides.assign(strides.begin(), strides.end());
      }
      made_.operands.push_back(-1 - int(k));
    }
    if (made_.operands.size() > size_t(params::region_operands)) {
      throw Error(ErrorKind::unsupported,
                  "an elementwise computation with more than " +
                      std::to_string(params::region_operands) + " operands");
    }
  }

  bool is_loaded(size_t input) const {
    for (const RegionOp& op : region_.ops) {
      if (op.kind == RegionOp::Kind::load && size_t(op.args[0]) == input) return true;
    }
    return false;
  }

  void add_input(size_t i) {
    Access access{Extents(extents_.size(), 0), {}};
    const TensorDesc& x = spec_.inputs[i];
    const auto& maps = region_.accesses[i];
    for (size_t k = 0; k < maps.size(); ++k) {
      const int axis = maps[k].axis;
      if (axis < 0 || x.shape[k] == 1) continue;
      const int64_t extent = extents_[size_t(axis)], div = number(maps[k].div, 1);
      int64_t mod = number(maps[k].mod, 0);
      if (div < 1 || mod < 0) throw Error(ErrorKind::internal, "an access map divides by zero");
      const int64_t last = extent > 0 ? (extent - 1) / div : 0;
      if (mod > last) mod = 0;
      if ((mod ? mod - 1 : last) >= x.shape[k] && made_.params.count > 0) {
        throw Error(ErrorKind::internal, "an access leaves its operand");
      }
      if (div == 1 && mod == 0) access.strides[size_t(axis)] += x.strides[k];
      else if (last > 0) access.maps.push_back({axis, div, mod, x.strides[k]});
    }
    made_.operands.push_back(int(i));
    accesses_.push_back(std::move(access));
  }

  bool pinned(size_t axis) const {
    for (const Access& a : accesses_) {
      for (const MapUse& m : a.maps) {
        if (m.axis == int(axis)) return true;
      }
    }
    return false;
  }

  void drop_axis(size_t axis) {
    const auto erase = [axis](Extents& dims) { dims.erase(dims.begin() + int64_t(axis)); };
    erase(extents_);
    for (Access& a : accesses_) {
      erase(a.strides);
      for (MapUse& m : a.maps) m.axis -= m.axis > int(axis);
    }
  }

  void merge_axes() {
    for (size_t k = extents_.size(); k-- > 0;) {
      if (extents_[k] == 1) drop_axis(k);
    }
    for (size_t k = extents_.size(); k-- > 1;) {
      bool joins = !pinned(k) && !pinned(k - 1);
      for (const Access& a : accesses_) {
        joins = joins && a.strides[k - 1] == a.strides[k] * extents_[k];
      }
      if (!joins) continue;
      const int64_t extent = extents_[k];
      Extents inner;
      for (const Access& a : accesses_) inner.push_back(a.strides[k]);
      extents_[k - 1] *= extent;
      for (size_t a = 0; a < accesses_.size(); ++a) accesses_[a].strides[k - 1] = inner[a];
      drop_axis(k);
    }
    if (extents_.empty()) {
      extents_.push_back(1);
      for (Access& a : accesses_) a.strides.push_back(0);
    }
    if (extents_.size() > size_t(params::region_axes)) {
      throw Error(ErrorKind::unsupported, "an elementwise computation over more than " +
                                              std::to_string(params::region_axes) + " axes");
    }
  }

  size_t last() const { return extents_.size() - 1; }

  size_t item_of(size_t access) const {
    if (access >= first_output_) return size_of(spec_.outputs[access - first_output_].dtype);
    for (size_t i = 0; i < input_access_.size(); ++i) {
      if (input_access_[i] == int(access)) return size_of(spec_.inputs[i].dtype);
    }
    return 8;
  }

  bool is_index(size_t access) const {
    for (int a : index_access_) {
      if (a == int(access)) return true;
    }
    return false;
  }

  void choose_vector() {
    size_t widest = 1;
    for (size_t a = 0; a < accesses_.size(); ++a) {
      if (!is_index(a)) widest = std::max(widest, item_of(a));
    }
    int vector = std::min<int>(spec_.vector_limit, int(16 / widest));
    const auto fits = [&] {
      if (extents_[last()] % vector != 0) return false;
      for (size_t a = 0; a < accesses_.size(); ++a) {
        const Access& access = accesses_[a];
        if (is_index(a) || access.strides[last()] != 1) continue;
        for (size_t k = 0; k < last(); ++k) {
          if (access.strides[k] % vector != 0) return false;
        }
        for (const MapUse& m : access.maps) {
          if (m.stride % vector != 0) return false;
        }
      }
      return true;
    };
    while (vector > 1 && !fits()) vector /= 2;
    made_.vector = std::max(vector, 1);
    made_.wide = reaches_far();
  }

  bool reaches_far() const {
    constexpr int64_t limit = (int64_t{1} << 31) - 1;
    if (made_.params.count >= limit) return true;
    for (const Access& a : accesses_) {
      int64_t reach = 0;
      for (size_t k = 0; k < extents_.size(); ++k) {
        if (a.strides[k] < 0) return true;
        reach += a.strides[k] * (extents_[k] - 1);
      }
      for (const MapUse& m : a.maps) reach += m.stride * (extents_[size_t(m.axis)] - 1);
      if (reach >= limit) return true;
    }
    return false;
  }

  // Operand slots: accesses without the index ones, in order.
  int slot_of(size_t access) const {
    int slot = 0;
    for (size_t a = 0; a < access; ++a) slot += !is_index(a);
    return slot;
  }

  void fill_params() {
    params::Region& p = made_.params;
    for (size_t k = 0; k < extents_.size(); ++k) p.extents[k] = params::Divisor(extents_[k]);
    int maps = 0;
    for (size_t a = 0; a < accesses_.size(); ++a) {
      if (!is_index(a)) {
        for (size_t k = 0; k < extents_.size(); ++k) {
          p.strides[slot_of(a)][k] = accesses_[a].strides[k];
        }
      }
      for (const MapUse& m : accesses_[a].maps) {
        if (maps == params::region_maps) {
          throw Error(ErrorKind::unsupported, "an elementwise computation with more than " +
                                                  std::to_string(params::region_maps) +
                                                  " repeated axes");
        }
        p.map_div[maps] = params::Divisor(m.div);
        p.map_mod[maps] = params::Divisor(std::max<int64_t>(m.mod, 1));
        p.map_stride[maps++] = m.stride;
      }
    }
  }

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
    const Access& a = accesses_[access];
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
    const Access& a = accesses_[access];
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
    std::ostringstream s;
    s << "#pragma once\n#include \"kernels/include/index.h\"\n"
      << "#include \"kernels/include/vector.h\"\n#include \"kernels/include/scalar_ops.h\"\n#include \"kernels/params/region.h\"\n"
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

  void write_coordinates(std::ostringstream& s) const {
    s << "  Index rest = at;\n";
    for (size_t k = last(); k > 0; --k) {
      s << "  const Index c" << k << " = split(rest, p.extents[" << k << "]);\n";
    }
    s << "  const Index c0 = rest;\n  (void)c0;\n";
    for (size_t k = 1; k <= last(); ++k) s << "  (void)c" << k << ";\n";
  }

  void write_loads(std::ostringstream& s) const {
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

  void write_op(std::ostringstream& s, size_t k) {
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

  void write_run(std::ostringstream& s) const {
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

  const RegionSpec& spec_;
  const Region& region_;
  Extents extents_;
  std::vector<Access> accesses_;
  std::vector<int> input_access_, index_access_;
  size_t first_output_ = 0;
  std::vector<DType> types_;
  int numbers_ = 0;
  RegionSource made_;
};

}  // namespace

RegionSource region_source(const RegionSpec& spec) { return Writer(spec).write(); }

}  // namespace rlx::cuda
