// Writes Regions as steps: what region_source.cpp writes as text.
#include "cuda/select/region_program.h"

#include <cstring>

#include "cuda/select/region_axes.h"
#include "cuda/select/types.h"
#include "program/scalar_op.h"

namespace rlx::cuda {
namespace {

using params::RegionStep;

struct NotForIt {};

params::Stored stored(DType type) {
  switch (type) {
    case DType::float32: return params::stored_float;
    case DType::float16: return params::stored_half;
    case DType::bfloat16: return params::stored_bfloat;
    case DType::boolean: return params::stored_bool;
    default: throw NotForIt{};
  }
}

class ProgramWriter : private RegionAxes {
 public:
  explicit ProgramWriter(const RegionSpec& spec) : RegionAxes(spec) {}

  params::RegionProgram write() {
    if (made_.wide || spec_.given != DType::none) throw NotForIt{};
    program_.axes = int(extents_.size());
    write_maps();
    for (const RegionOp& op : region_.ops) places_.push_back(place_of(op));
    for (size_t k = 0; k < spec_.outputs.size(); ++k) {
      if (program_.store_count == params::program_stores) throw NotForIt{};
      const int slot = slot_of(first_output_ + k);
      program_.stores[program_.store_count++] = {
          (unsigned char)(places_[size_t(region_.results[k])]), (unsigned char)(slot),
          stored(spec_.outputs[k].dtype)};
    }
    params::Region region = made_.params;
    std::memcpy(region.numbers, program_.region.numbers, sizeof region.numbers);
    program_.region = region;
    return program_;
  }

 private:
  void write_maps() {
    for (size_t a = 0; a < accesses_.size(); ++a) {
      for (const MapUse& m : accesses_[a].maps) {
        program_.map_axis[program_.maps] = (unsigned char)(m.axis);
        program_.map_slot[program_.maps] = (unsigned char)(slot_of(a));
        program_.map_divides[program_.maps] = m.div != 1;
        program_.map_wraps[program_.maps++] = m.mod != 0;
      }
    }
  }

  int add(const RegionStep& step, DType type) {
    if (program_.step_count == params::program_steps) throw NotForIt{};
    stored(type);
    types_.push_back(type);
    program_.steps[program_.step_count] = step;
    return program_.step_count++;
  }

  int place_of(const RegionOp& op) {
    switch (op.kind) {
      case RegionOp::Kind::load: return load(op);
      case RegionOp::Kind::constant: return constant(op);
      case RegionOp::Kind::dim: return number(op);
      case RegionOp::Kind::cast: return cast(op);
      case RegionOp::Kind::scalar: return scalar(op);
      case RegionOp::Kind::index: break;
    }
    throw NotForIt{};
  }

  int load(const RegionOp& op) {
    const size_t input = size_t(op.args[0]);
    const DType type = spec_.inputs[input].dtype;
    RegionStep step{.kind = params::step_load, .stored = stored(type)};
    step.args[0] = (unsigned char)(slot_of(size_t(input_access_[input])));
    return add(step, compute_type(type));
  }

  int constant(const RegionOp& op) {
    const DType type = compute_type(op.dtype);
    RegionStep step{.kind = params::step_constant};
    const float value = float(op.f);
    if (type == DType::float32) std::memcpy(&step.bits, &value, 4);
    else step.bits = op.i != 0;
    return add(step, type);
  }

  int number(const RegionOp& op) {
    if (compute_type(op.dtype) != DType::float32 || numbers_ == params::region_numbers) {
      throw NotForIt{};
    }
    std::memcpy(&program_.region.numbers[numbers_], &spec_.numbers[size_t(op.dim)].f, 8);
    RegionStep step{.kind = params::step_number};
    step.args[0] = (unsigned char)(numbers_++);
    return add(step, DType::float32);
  }

  int cast(const RegionOp& op) {
    const int from = places_[size_t(op.args[0])];
    RegionStep step{.kind = params::step_cast, .stored = stored(op.dtype)};
    step.boolean = types_[size_t(from)] == DType::boolean;
    step.args[0] = (unsigned char)(from);
    return add(step, compute_type(op.dtype));
  }

  int scalar(const RegionOp& op) {
    const int arity = info_of(op.op).arity;
    int places[3] = {0, 0, 0};
    for (int k = 0; k < arity; ++k) places[k] = places_[size_t(op.args[k])];
    if (op.op == ScalarOp::pow) {
      // As the generated text has it.
      const RegionOp& power = region_.ops[size_t(op.args[1])];
      const bool known = power.kind == RegionOp::Kind::constant && is_float(power.dtype);
      if (known && power.f == 1) return places[0];
      if (known && (power.f == 2 || power.f == 3)) {
        const int squared = call(ScalarOp::mul, 2, places[0], places[0]);
        return power.f == 2 ? squared : call(ScalarOp::mul, 2, squared, places[0]);
      }
    }
    return call(op.op, arity, places[0], places[1], places[2]);
  }

  int call(ScalarOp op, int arity, int a, int b, int c = 0) {
    const bool choice = op == ScalarOp::select;
    const DType given = types_[size_t(choice ? b : a)];
    RegionStep step{.kind = params::step_scalar, .op = (unsigned char)(op),
                    .boolean = given == DType::boolean};
    const int args[3] = {a, b, c};
    for (int k = 0; k < arity; ++k) step.args[k] = (unsigned char)(args[k]);
    step.args[3] = choice;
    return add(step, choice ? given : result_of(op, given));
  }

  // What the function gives for the type; not for the kernel where it does not take it.
  static DType result_of(ScalarOp op, DType type) {
    static const auto takes = [](auto x, int arity, auto f) -> std::optional<DType> {
      using T = decltype(x);
      const auto named = [](auto r) {
        return std::is_same_v<decltype(r), bool> ? DType::boolean : DType::float32;
      };
      if constexpr (requires { f(T{}); }) {
        if (arity == 1) return named(f(T{}));
      }
      if constexpr (requires { f(T{}, T{}); }) {
        if (arity == 2) return named(f(T{}, T{}));
      }
      return std::nullopt;
    };
    std::optional<DType> result;
    int row = 0;
#define RLX_ROW(identifier, name, arity)                                                     \
  if (int(op) == row++) {                                                                    \
    const auto f = [](auto... x) -> decltype(scalar::identifier(x...)) {                     \
      return scalar::identifier(x...);                                                       \
    };                                                                                       \
    result = type == DType::boolean ? takes(bool{}, arity, f) : takes(float{}, arity, f);    \
  }
    RLX_SCALAR_OPS(RLX_ROW)
#undef RLX_ROW
    if (!result) throw NotForIt{};
    return *result;
  }

  params::RegionProgram program_;
  std::vector<int> places_;    // of each op, among the steps
  std::vector<DType> types_;   // of each step: float32 or boolean
  int numbers_ = 0;
};

}  // namespace

std::optional<params::RegionProgram> region_program(const RegionSpec& spec) {
  try {
    return ProgramWriter(spec).write();
  } catch (const NotForIt&) {
    return std::nullopt;
  }
}

KernelSpec interpreter() { return {"kernels/region_interpreted.cu", "region_interpreted", {}, {}}; }

}  // namespace rlx::cuda
