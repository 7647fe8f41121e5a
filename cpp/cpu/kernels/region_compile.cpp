// Compiles a Region: picks the box, the way each operand is read, registers and loops.
#include <algorithm>
#include <array>
#include <string>

#include "core/cpuid.h"
#include "cpu/kernels/region.h"
#include "cpu/kernels/region_frame.h"

namespace rlx::cpu {
namespace {

constexpr int64_t least_tile = 256, largest_tile = 2048;
constexpr int64_t transposed_width = 64;  // of a block that is read across its rows

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

int item_of(DType type) { return int(size_of(type)); }

// Guesses in nanoseconds for an element, of the right order only.
double cost_of(const Op& op) {
  if (op.kind == Op::Kind::quantise) return 0.5;
  if (op.kind != Op::Kind::scalar) return 0.2;
  const double wide = double(size_of(op.loop_type)) / 4.0;
  switch (op.op) {
    case ScalarOp::exp: case ScalarOp::log: case ScalarOp::tanh: case ScalarOp::erf:
    case ScalarOp::sigmoid: case ScalarOp::silu: case ScalarOp::gelu: case ScalarOp::gelu_tanh:
    case ScalarOp::softplus:
      return op.loop_type == DType::float32 ? 1.0 : 20.0;
    case ScalarOp::sin: case ScalarOp::cos: case ScalarOp::tan: case ScalarOp::asin:
    case ScalarOp::acos: case ScalarOp::atan: case ScalarOp::sinh: case ScalarOp::cosh:
    case ScalarOp::asinh: case ScalarOp::acosh: case ScalarOp::atanh: case ScalarOp::pow:
    case ScalarOp::fmod: case ScalarOp::mod:
      return 10.0;
    case ScalarOp::div: case ScalarOp::sqrt: case ScalarOp::rsqrt: case ScalarOp::reciprocal:
      return op.loop_type == DType::float32 ? 0.5 : 3.0;
    default: return 0.15 * wide;
  }
}

}  // namespace

class RegionCompiler {
 public:
  RegionCompiler(RegionProgram& program, const RegionProgram::Spec& spec)
      : p_(program), spec_(spec) {}

  void run() {
    const Region& region = *spec_.region;
    std::vector<DType> inputs, outputs;
    for (const TensorDesc& d : spec_.inputs) inputs.push_back(d.dtype);
    for (const TensorDesc& d : spec_.outputs) outputs.push_back(d.dtype);
    list_ = simplify(region, spec_.numbers, inputs, outputs);
    p_.rows_ = spec_.row_rank >= 0;
    p_.given_first_ = spec_.given_first;
    find_space();
    find_last_uses();
    choose_box();
    values_.resize(list_.ops.size());
    sunk_.resize(list_.results.size());
    for (size_t k = 0; k < list_.ops.size(); ++k) place_value(int(k));
    for (size_t k = 0; k < list_.ops.size(); ++k) emit(int(k));
    for (size_t k = 0; k < list_.results.size(); ++k) finish(int(k));
    lay_out();
  }

 private:
  using Operand = RegionProgram::Operand;

  struct Value {
    int slot = -1;
    bool many = false;     // an element for each of the box, not one for all
    bool reg = false;      // in a register that can be used again
  };

  int64_t number(ExprId id, int64_t otherwise) const {
    return id < 0 ? otherwise : spec_.numbers[size_t(id)].i;
  }

  // Sources are accesses in the order of their ops, then come the outputs when they have strides.
  void find_space() {
    const Region& region = *spec_.region;
    Dims shape;
    for (ExprId dim : region.shape) shape.push_back(number(dim, 1));
    p_.count_ = element_count(shape);
    std::vector<AxisUse> uses;
    int accesses = 0;
    for (const Op& op : list_.ops) {
      if (op.kind == Op::Kind::source) add_source(uses, accesses++, op.from);
      if (op.kind == Op::Kind::index) {
        uses.push_back({accesses++, op.from, shape[size_t(op.from)], 1});
      }
    }
    for (size_t k = 0; k < spec_.outputs.size() && !p_.rows_; ++k, ++accesses) {
      const TensorDesc& out = spec_.outputs[k];
      for (int axis = 0; axis < int(shape.size()); ++axis) {
        uses.push_back({accesses, axis, out.shape[size_t(axis)], out.strides[size_t(axis)]});
      }
    }
    p_.space_ = make_space(shape, std::max(spec_.row_rank, 0), accesses, uses);
    if (p_.space_.extents.size() > max_region_axes) {
      throw Error(ErrorKind::unsupported, "an elementwise computation over more than " +
                                              std::to_string(max_region_axes) + " axes");
    }
  }

  void add_source(std::vector<AxisUse>& uses, int access, int input) const {
    if (spec_.given_first && input == 0) return;
    const TensorDesc& desc = spec_.inputs[size_t(input)];
    const std::vector<AxisMap>& maps = spec_.region->accesses[size_t(input)];
    for (size_t k = 0; k < maps.size(); ++k) {
      uses.push_back({access, maps[k].axis, desc.shape[k], desc.strides[k],
                      number(maps[k].div, 1), number(maps[k].mod, 0)});
    }
  }

  void find_last_uses() {
    last_use_.assign(list_.ops.size(), -1);
    for (size_t k = 0; k < list_.ops.size(); ++k) {
      for (int a = 0; a < list_.ops[k].count; ++a) last_use_[size_t(list_.ops[k].args[a])] = int(k);
    }
    for (int r : list_.results) last_use_[size_t(r)] = int(list_.ops.size());
  }

  // Bytes that one element of a box takes in registers, at most.
  int64_t pressure() const {
    int64_t live = 0, most = 0;
    std::vector<int64_t> freed(list_.ops.size() + 1, 0);
    for (size_t k = 0; k < list_.ops.size(); ++k) {
      const Op& op = list_.ops[k];
      if (op.kind != Op::Kind::constant) {
        live += item_of(op.type);
        freed[size_t(std::max(last_use_[k], int(k)))] += item_of(op.type);
      }
      most = std::max(most, live);
      live -= freed[k];
    }
    return most;
  }

  void choose_box() {
    const Dims& extents = p_.space_.extents;
    if (!p_.rows_) {
      const size_t sources = p_.space_.accesses.size() - spec_.outputs.size();
      block_transposed(p_.space_, int(sources), transposed_width);
    }
    const int64_t budget = cpu_info().l1d_bytes * 3 / 4;
    int64_t tile = std::clamp(budget / std::max<int64_t>(pressure(), 4), least_tile, largest_tile);
    tile = std::min(tile, std::max(least_tile, p_.count_ / 32)) / 16 * 16;
    tile_ = tile;
    p_.box_axis_ = int(extents.size());
    if (extents.empty() || (p_.rows_ && p_.space_.row_axes == int(extents.size()))) {
      tile_ = 1;
      return;
    }
    int axis = int(extents.size()) - 1;
    int64_t inner = 1;
    while (!p_.rows_ && axis > 0 && inner * extents[size_t(axis)] <= tile) {
      inner *= extents[size_t(axis--)];
    }
    const int64_t extent = extents[size_t(axis)];
    int64_t part = std::clamp<int64_t>(tile / inner, 1, std::max<int64_t>(extent, 1));
    const int64_t parts = extent > 0 ? (extent + part - 1) / part : 1;
    if (!p_.rows_ && parts > 1) {  // parts of nearly equal size, whole vectors where possible
      part = (extent + parts - 1) / parts;
      if (inner == 1) part = (part + 15) / 16 * 16;
    }
    p_.box_axis_ = axis;
    p_.box_extent_ = part;
    p_.box_inner_ = inner;
    tile_ = part * inner;
    p_.tiles_ = extent > 0 ? (extent + part - 1) / part : 0;
    for (int outer = 0; outer < axis; ++outer) p_.tiles_ *= extents[size_t(outer)];
  }

  // How an operand's elements lie in a box.
  void find_box(Operand& operand) const {
    const int axes = int(p_.space_.extents.size());
    const Access& access = operand.access;
    bool all_zero = true;
    for (int axis = p_.box_axis_; axis < axes; ++axis) {
      const int64_t stride = access.strides[size_t(axis)], extent = p_.space_.extents[size_t(axis)];
      all_zero = all_zero && stride == 0 && !access.tabled(axis);
      const bool joins = !operand.box.empty() && !access.tabled(axis) &&
                         !access.tabled(operand.box.back().axis) &&
                         operand.box.back().stride == stride * extent;
      if (!joins) {
        operand.box.push_back({extent, stride, axis});
        continue;
      }
      operand.box.back().stride = stride;
      operand.box.back().extent *= extent;
    }
    for (size_t k = 1; k < operand.box.size(); ++k) operand.inner *= operand.box[k].extent;
    operand.single = all_zero && p_.box_axis_ < axes;
    const bool run = operand.box.empty() || (operand.box.size() == 1 &&
                     operand.box[0].stride == 1 && !access.tabled(operand.box[0].axis));
    operand.kind = run || operand.single ? Operand::Kind::direct : Operand::Kind::copied;
  }

  int new_slot(void* pointer = nullptr) {
    p_.slots_.push_back(pointer);
    return int(p_.slots_.size()) - 1;
  }

  // A slot with memory of its own in the frame.
  int new_memory(size_t bytes) {
    const int slot = new_slot();
    p_.pointers_.push_back({slot, data_bytes_});
    data_bytes_ += padded(bytes);
    return slot;
  }

  std::vector<int>& pool(int item) { return free_[size_t(__builtin_ctz(unsigned(item)))]; }

  int take_register(int item) {
    std::vector<int>& free = pool(item);
    if (free.empty()) return new_memory(size_t(tile_ * item));
    const int slot = free.back();
    free.pop_back();
    return slot;
  }

  void place_value(int k) {
    const Op& op = list_.ops[size_t(k)];
    Value& value = values_[size_t(k)];
    if (op.kind == Op::Kind::constant) {
      p_.constants_.push_back(op.value);
      value.slot = new_slot();
      constant_slots_.push_back(value.slot);
      return;
    }
    if (op.kind != Op::Kind::source && op.kind != Op::Kind::index) {
      for (int a = 0; a < op.count; ++a) value.many |= values_[size_t(op.args[a])].many;
      return;
    }
    Operand source;
    source.item = item_of(op.type);
    source.access = p_.space_.accesses[p_.sources_.size()];
    const bool given = spec_.given_first && op.kind == Op::Kind::source && op.from == 0;
    if (!given) find_box(source);
    if (op.kind == Op::Kind::index) source.kind = Operand::Kind::copied;
    source.number = op.kind == Op::Kind::index ? -1 : op.from;
    source.transposed = source.box.size() == 2 && source.access.tables.empty() &&
                        source.box[0].stride == 1 && source.box[1].stride > 1;
    source.move = source.transposed ? scatter_loop(size_t(source.item))
                                    : gather_loop(size_t(source.item));
    source.move_rows = gather_rows_loop(size_t(source.item));
    source.slot = source.kind == Operand::Kind::direct ? new_slot()
                  : source.single                      ? new_memory(sizeof(Cell))
                                    : new_memory(size_t(tile_ * source.item));
    value.slot = source.slot;
    value.many = !source.single;
    if (value.many) p_.cost_ += 0.1 * source.item;
    p_.sources_.push_back(std::move(source));
  }

  void emit(int k) {
    const Op& op = list_.ops[size_t(k)];
    if (op.count == 0) return;
    Value& value = values_[size_t(k)];
    std::array<int, 3> args = {0, 0, 0};
    SmallVector<int, 3> filled;
    unsigned singles = 0;
    for (int a = 0; a < op.count; ++a) {
      const Value& arg = values_[size_t(op.args[a])];
      args[size_t(a)] = arg.slot;
      if (value.many && !arg.many) singles |= 1u << a;
    }
    Loop loop = loop_of(op, singles);
    if (!loop) {  // no loop for that mix: make every argument a run
      for (int a = 0; a < op.count; ++a) {
        if (!(singles >> a & 1)) continue;
        const int item = item_of(list_.ops[size_t(op.args[a])].type);
        args[size_t(a)] = fill_register(args[size_t(a)], item);
        filled.push_back(a);
      }
      for (int a : filled) {
        pool(item_of(list_.ops[size_t(op.args[a])].type)).push_back(args[size_t(a)]);
      }
      loop = loop_of(op, 0);
    }
    for (int a = 0; a < op.count; ++a) release(op.args[a], k);
    const int item = item_of(op.type);
    if (!value.many) {
      value.slot = new_memory(sizeof(Cell));
    } else if (const int sink = direct_sink(k); sink >= 0) {
      value.slot = new_slot();
      make_sink(sink, value.slot, Operand::Kind::direct);
    } else {
      value.slot = take_register(item);
      value.reg = true;
    }
    p_.instructions_.push_back({loop, value.slot, args[0], args[1], args[2], !value.many});
    p_.cost_ += value.many ? cost_of(op) : 0.0;
  }

  int fill_register(int from, int item) {
    const int slot = take_register(item);
    p_.instructions_.push_back({fill_loop(size_t(item)), slot, from, from, from, false});
    return slot;
  }

  void release(int value, int user) {
    Value& v = values_[size_t(value)];
    if (!v.reg || last_use_[size_t(value)] != user) return;
    v.reg = false;  // given back once, even when it is used twice by one op
    pool(item_of(list_.ops[size_t(value)].type)).push_back(v.slot);
  }

  // The output that op k can write by itself: contiguous in a box, and not over what is read
  // later, for an output may have the address of an input.
  int direct_sink(int k) {
    for (size_t r = 0; r < list_.results.size(); ++r) {
      if (list_.results[r] != k || sunk_[r]) continue;
      if (list_.results.size() > 1 && k < last_direct_read()) continue;
      if (output_operand(int(r)).kind == Operand::Kind::direct) return int(r);
    }
    return -1;
  }

  int last_direct_read() const {
    for (int k = int(list_.ops.size()); k-- > 0;) {
      const Op& op = list_.ops[size_t(k)];
      for (int a = 0; a < op.count; ++a) {
        if (list_.ops[size_t(op.args[a])].kind == Op::Kind::source) return k;
      }
    }
    return -1;
  }

  Operand output_operand(int r) const {
    Operand out;
    out.number = r;
    out.item = item_of(spec_.outputs[size_t(r)].dtype);
    out.move = scatter_loop(size_t(out.item));
    if (p_.rows_) return out;
    out.access = p_.space_.accesses[p_.sources_.size() + size_t(r)];
    find_box(out);
    if (out.single) out.kind = Operand::Kind::copied;
    return out;
  }

  void make_sink(int r, int slot, Operand::Kind kind) {
    Operand out = output_operand(r);
    out.slot = slot;
    out.kind = kind;
    p_.cost_ += 0.1 * out.item;
    sunk_[size_t(r)] = true;
    p_.sinks_.push_back(std::move(out));
  }

  // Brings a result that its op did not write itself to its output, after all instructions.
  void finish(int r) {
    if (sunk_[size_t(r)]) return;
    const int k = list_.results[size_t(r)], item = item_of(list_.ops[size_t(k)].type);
    const Value& value = values_[size_t(k)];
    int slot = value.slot;
    if (!value.many && p_.box_axis_ < int(p_.space_.extents.size())) {
      slot = fill_register(slot, item);
    } else if (list_.results.size() > 1 && list_.ops[size_t(k)].kind == Op::Kind::source) {
      // Read before any output is written, which may be that input.
      slot = new_memory(size_t(tile_ * item));
      p_.instructions_.insert(p_.instructions_.begin(),
                              {copy_loop(size_t(item)), slot, value.slot, value.slot, value.slot,
                               false});
    }
    make_sink(r, slot, Operand::Kind::copied);
  }

  void lay_out() {
    for (size_t k = 0; k < constant_slots_.size(); ++k) {
      p_.slots_[size_t(constant_slots_[k])] = &p_.constants_[k];
    }
    if (p_.slots_.empty()) new_slot();
    if (p_.space_.extents.empty() && p_.count_ > 0) p_.tiles_ = 1;
    p_.frame_bytes_ = padded(sizeof(RegionProgram::Frame)) +
                      padded(p_.sources_.size() * sizeof(RegionProgram::Frame::Seen)) +
                      padded(p_.slots_.size() * sizeof(void*)) + data_bytes_;
  }

  RegionProgram& p_;
  const RegionProgram::Spec& spec_;
  OpList list_;
  std::vector<int> last_use_;
  std::vector<Value> values_;
  std::vector<int> constant_slots_;
  std::array<std::vector<int>, 5> free_;  // registers by the logarithm of their item
  std::vector<bool> sunk_;
  int64_t tile_ = 1;
  size_t data_bytes_ = 0;
};

RegionProgram::RegionProgram(const Spec& spec) { RegionCompiler(*this, spec).run(); }

}  // namespace rlx::cpu
