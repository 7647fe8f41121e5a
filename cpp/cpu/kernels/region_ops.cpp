// Turns RegionOps into Ops, one by one in order, reusing what is there already.
#include "cpu/kernels/region_ops.h"

#include <cstring>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "core/hash.h"

namespace rlx::cpu {
namespace {

template <class T>
Cell cell_of(T x) {
  Cell cell;
  std::memcpy(cell.bytes, &x, sizeof x);
  return cell;
}

// A number as one element of a compute type.
Cell constant_cell(DType type, int64_t i, double f) {
  switch (type) {
    case DType::float32: return cell_of(float(f));
    case DType::float64: return cell_of(f);
    case DType::complex64: return cell_of(scalar::Complex<float>{float(f), 0.0f});
    case DType::complex128: return cell_of(scalar::Complex<double>{f, 0.0});
    case DType::boolean: return cell_of(uint8_t(i != 0));
    default: return cell_of(i);  // little-endian: the low bytes are the narrower integer
  }
}

bool below_a_byte(DType t) {
  return t == DType::int4 || t == DType::uint4 || t == DType::int2 || t == DType::uint2;
}

bool gives_bool(ScalarOp op) {
  switch (op) {
    case ScalarOp::is_nan: case ScalarOp::is_pos_inf: case ScalarOp::is_neg_inf:
    case ScalarOp::lnot: case ScalarOp::eq: case ScalarOp::ne: case ScalarOp::lt:
    case ScalarOp::le: case ScalarOp::gt: case ScalarOp::ge: case ScalarOp::land:
    case ScalarOp::lor: case ScalarOp::lxor:
      return true;
    default: return false;
  }
}

class Simplifier {
 public:
  Simplifier(const Region& region, std::span<const Number> numbers, std::span<const DType> inputs)
      : region_(region), numbers_(numbers), inputs_(inputs) {}

  OpList run(std::span<const DType> outputs) {
    for (const RegionOp& op : region_.ops) values_.push_back(translate(op));
    for (size_t k = 0; k < region_.results.size(); ++k) {
      list_.results.push_back(stored(values_[size_t(region_.results[k])], outputs[k]));
    }
    drop_dead();
    return std::move(list_);
  }

 private:
  int translate(const RegionOp& op) {
    switch (op.kind) {
      case RegionOp::Kind::load: return load(op.args[0]);
      case RegionOp::Kind::constant:
        return constant(compute_type(op.dtype), op.i, op.f);
      case RegionOp::Kind::dim: {
        const Number& n = numbers_[size_t(op.dim)];
        return constant(compute_type(op.dtype), n.i, n.f);
      }
      case RegionOp::Kind::index: {
        Op made(Op::Kind::index);
        made.type = DType::int64;
        made.from = op.args[0];
        return add(made);
      }
      case RegionOp::Kind::cast:
        return cast(values_[size_t(op.args[0])], op.dtype, CastMode::of(op.i));
      case RegionOp::Kind::scalar: return apply(op);
    }
    return -1;
  }

  int load(int input) {
    Op made(Op::Kind::source);
    const DType storage = inputs_[size_t(input)];
    made.type = storage == DType::string ? DType::int64 : storage;
    made.from = input;
    return loaded(add(made), storage);
  }

  int constant(DType type, int64_t i, double f) {
    Op made(Op::Kind::constant);
    made.type = type;
    made.value = constant_cell(type, i, f);
    return add(made);
  }

  // A storage value as its compute type.
  int loaded(int value, DType storage) {
    return convert(value, compute_type(storage), load_loop(storage));
  }

  // A compute value as `storage`, which it is known to fit unless `mode` says what to do.
  int stored(int value, DType storage, CastMode mode = {false, CastMode::Round::down}) {
    const Op& made = list_.ops[size_t(value)];
    Loop loop = store_loop(storage, mode);
    if (!loop) return value;
    // A value just rounded to that type has its code already.
    if (made.kind == Op::Kind::convert && made.loop == load_loop(storage) &&
        list_.ops[size_t(made.args[0])].type == storage) {
      return made.args[0];
    }
    return convert(value, storage, loop);
  }

  int convert(int value, DType type, Loop loop) {
    if (!loop) return value;
    Op made(Op::Kind::convert);
    made.type = type;
    made.loop = loop;
    made.args[0] = value;
    made.count = 1;
    return add(made);
  }

  int cast(int value, DType to, CastMode mode) {
    DType type = list_.ops[size_t(value)].type;
    const DType target = compute_type(to);
    const bool rounds = store_loop(to, mode) != nullptr;
    if (below_a_byte(to)) {
      if (is_float(type) || is_complex(type)) {  // the low bits of the truncated value
        value = convert(value, DType::int32, cast_loop(type, DType::int32, false));
        type = DType::int32;
      }
      value = convert(value, target, cast_loop(type, target, false));
      return loaded(stored(value, to), to);
    }
    if (!rounds && type == DType::float32) {
      if (const int quantised = quantise(value, target); quantised >= 0) return quantised;
    }
    const bool odd = rounds && type != DType::float32 && size_of(type) >= 4;
    value = convert(value, target, cast_loop(type, target, odd));
    return rounds ? loaded(stored(value, to, mode), to) : value;
  }

  // The op that made a value, if it is this function.
  const Op* made_by(int value, ScalarOp op) const {
    const Op& made = list_.ops[size_t(value)];
    return made.kind == Op::Kind::scalar && made.op == op ? &made : nullptr;
  }

  bool is_constant(int value, double number) const {
    const Op& op = list_.ops[size_t(value)];
    const Cell cell = cell_of(float(number));
    return op.kind == Op::Kind::constant && op.type == DType::float32 &&
           std::memcmp(cell.bytes, op.value.bytes, sizeof(float)) == 0;
  }

  // What QuantizeLinear is written out as: min(max(round(x / s) + z, lowest), highest), then a
  // cast, which cuts to those limits by itself. One loop does it; -1: another cast.
  int quantise(int value, DType to) {
    if (!quantise_loop(to, 0)) return -1;
    const bool is_signed = to == DType::int8 || to == DType::int16;
    const int bits = int(size_of(to)) * 8;
    const double lowest = is_signed ? -double(1 << (bits - 1)) : 0;
    const double highest = lowest + double(1 << bits) - 1;
    const Op* least = made_by(value, ScalarOp::min);
    if (!least || !is_constant(least->args[1], highest)) return -1;
    const Op* most = made_by(least->args[0], ScalarOp::max);
    if (!most || !is_constant(most->args[1], lowest)) return -1;
    const Op* sum = made_by(most->args[0], ScalarOp::add);
    const Op* round = made_by(sum ? sum->args[0] : most->args[0], ScalarOp::round);
    const Op* ratio = round ? made_by(round->args[0], ScalarOp::div) : nullptr;
    if (!ratio) return -1;
    Op made(Op::Kind::quantise);
    made.type = to;
    made.loop_type = DType::float32;
    made.count = 3;
    made.args[0] = ratio->args[0];
    made.args[1] = ratio->args[1];
    made.args[2] = sum ? sum->args[1] : constant(DType::float32, 0, 0.0);
    return add(made);
  }

  int apply(const RegionOp& op) {
    const int count = info_of(op.op).arity;
    Op made(Op::Kind::scalar);
    made.op = op.op;
    made.count = count;
    for (int k = 0; k < count; ++k) made.args[k] = values_[size_t(op.args[k])];
    made.loop_type = list_.ops[size_t(made.args[count - 1])].type;
    made.type = gives_bool(op.op) ? DType::boolean : made.loop_type;
    check(made);
    if (const int simpler = simplify_pow(made); simpler >= 0) return simpler;
    return add(made);
  }

  void check(const Op& op) const {
    for (int k = op.op == ScalarOp::select ? 1 : 0; k < op.count; ++k) {
      const DType type = list_.ops[size_t(op.args[k])].type;
      if (type == op.loop_type) continue;
      throw Error(ErrorKind::internal,
                  "arguments of " + std::string(info_of(op.op).name) + " differ in type: " +
                      name_of(type) + " and " + name_of(op.loop_type));
    }
    if (scalar_loop(op.op, op.loop_type, 0)) return;
    throw Error(ErrorKind::unsupported, std::string(info_of(op.op).name) +
                                            " is not defined for " + name_of(op.loop_type));
  }

  // Powers that are products, exactly or to the last bit but one.
  int simplify_pow(const Op& pow) {
    if (pow.op != ScalarOp::pow) return -1;
    const Op& exponent = list_.ops[size_t(pow.args[1])];
    if (exponent.kind != Op::Kind::constant) return -1;
    const auto is = [&](int64_t n) {
      const Cell cell = constant_cell(exponent.type, n, double(n));
      return std::memcmp(cell.bytes, exponent.value.bytes, size_of(exponent.type)) == 0;
    };
    const int x = pow.args[0];
    if (is(1)) return x;
    if (is(2)) return product(x, x);
    if (is(3)) return product(product(x, x), x);
    return -1;
  }

  int product(int a, int b) {
    Op made(Op::Kind::scalar);
    made.op = ScalarOp::mul;
    made.count = 2;
    made.args[0] = a;
    made.args[1] = b;
    made.loop_type = made.type = list_.ops[size_t(a)].type;
    return add(made);
  }

  static uint64_t hash(const Op& op) {
    uint64_t h = uint64_t(op.kind) | uint64_t(op.op) << 8 | uint64_t(op.type) << 24 |
                 uint64_t(op.loop_type) << 32;
    for (int arg : op.args) h = hash_combine(h, uint64_t(arg));
    h = hash_combine(h, uint64_t(op.from));
    h = hash_combine(h, reinterpret_cast<uint64_t>(op.loop));
    uint64_t words[2];
    std::memcpy(words, op.value.bytes, sizeof words);
    return hash_combine(hash_combine(h, words[0]), words[1]);
  }

  static bool same(const Op& a, const Op& b) {
    return a.kind == b.kind && a.op == b.op && a.type == b.type && a.loop_type == b.loop_type &&
           std::memcmp(a.args, b.args, sizeof a.args) == 0 && a.from == b.from &&
           a.loop == b.loop && std::memcmp(a.value.bytes, b.value.bytes, sizeof(Cell)) == 0;
  }

  int add(Op op) {
    fold(op);
    const auto [begin, end] = known_.equal_range(hash(op));
    for (auto at = begin; at != end; ++at) {
      if (same(list_.ops[size_t(at->second)], op)) return at->second;
    }
    const int id = int(list_.ops.size());
    known_.emplace(hash(op), id);
    list_.ops.push_back(op);
    return id;
  }

  // Computes an op whose arguments are all constants.
  void fold(Op& op) const {
    if (op.count == 0) return;
    const void* args[3] = {};
    for (int k = 0; k < op.count; ++k) {
      const Op& arg = list_.ops[size_t(op.args[k])];
      if (arg.kind != Op::Kind::constant) return;
      args[k] = arg.value.bytes;
    }
    const Loop loop = loop_of(op, 0);
    Op made(Op::Kind::constant);
    made.type = op.type;
    loop(made.value.bytes, args[0], args[1], args[2], 1);
    op = made;
  }

  void drop_dead() {
    std::vector<int> place(list_.ops.size(), -1);
    for (int r : list_.results) place[size_t(r)] = 0;
    for (size_t k = list_.ops.size(); k-- > 0;) {
      if (place[k] < 0) continue;
      const Op& op = list_.ops[k];
      for (int a = 0; a < op.count; ++a) place[size_t(op.args[a])] = 0;
    }
    int kept = 0;
    for (size_t k = 0; k < list_.ops.size(); ++k) {
      if (place[k] < 0) continue;
      Op op = list_.ops[k];
      for (int a = 0; a < op.count; ++a) op.args[a] = place[size_t(op.args[a])];
      place[k] = kept;
      list_.ops[size_t(kept++)] = op;
    }
    list_.ops.erase(list_.ops.begin() + kept, list_.ops.end());
    for (int& r : list_.results) r = place[size_t(r)];
  }

  const Region& region_;
  std::span<const Number> numbers_;
  std::span<const DType> inputs_;
  std::vector<int> values_;  // RegionOp -> Op
  std::unordered_multimap<uint64_t, int> known_;
  OpList list_;
};

}  // namespace

Loop loop_of(const Op& op, unsigned scalars) {
  switch (op.kind) {
    case Op::Kind::scalar: return scalar_loop(op.op, op.loop_type, scalars);
    case Op::Kind::quantise: return quantise_loop(op.type, scalars);
    default: return op.loop;
  }
}

OpList simplify(const Region& region, std::span<const Number> numbers,
                std::span<const DType> inputs, std::span<const DType> outputs) {
  return Simplifier(region, numbers, inputs).run(outputs);
}

}  // namespace rlx::cpu
