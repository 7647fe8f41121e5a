// Walks a small Region's steps for each element, bit for bit as the generated kernel computes it.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/params/region_program.h"

namespace rlx {

using params::RegionProgram;
using params::RegionStep;
using params::Stored;

RLX_FN unsigned bits_of(float x) { return __builtin_bit_cast(unsigned, x); }
RLX_FN unsigned bits_of(bool x) { return x; }
RLX_FN float float_of(unsigned bits) { return __builtin_bit_cast(float, bits); }

template <class S> RLX_FN unsigned load_as(const void* base, long long at) {
  return bits_of(Element<S>::load(static_cast<const S*>(base)[at]));
}
template <class S, class T> RLX_FN void store_as(void* base, long long at, T x) {
  static_cast<S*>(base)[at] = Element<S>::store(x);
}

RLX_FN unsigned load(Stored type, const void* base, long long at) {
  switch (type) {
    case params::stored_half: return load_as<F16>(base, at);
    case params::stored_bfloat: return load_as<BF16>(base, at);
    case params::stored_bool: return load_as<Bool>(base, at);
    default: return load_as<float>(base, at);
  }
}

RLX_FN void store(Stored type, void* base, long long at, unsigned bits) {
  switch (type) {
    case params::stored_half: return store_as<F16>(base, at, float_of(bits));
    case params::stored_bfloat: return store_as<BF16>(base, at, float_of(bits));
    case params::stored_bool: return store_as<Bool>(base, at, bits != 0);
    default: return store_as<float>(base, at, float_of(bits));
  }
}

template <class From> RLX_FN unsigned cast_to(Stored type, From x) {
  switch (type) {
    case params::stored_half: return bits_of(cast<F16, false, Round::up>(x));
    case params::stored_bfloat: return bits_of(cast<BF16, false, Round::up>(x));
    case params::stored_bool: return bits_of(cast<Bool, false, Round::up>(x));
    default: return bits_of(cast<float, false, Round::up>(x));
  }
}

// The function where it takes such arguments; the host asks for nothing else. No lambdas: NVRTC
// takes a generic one for a function of the host.
template <class T> RLX_FN unsigned scalar_of(int op, T a, T b) {
  int row = 0;
#define RLX_ROW(identifier, name, arity)                                                        \
  if (op == row++) {                                                                            \
    if constexpr (arity == 1) {                                                                 \
      if constexpr (requires { scalar::identifier(a); }) return bits_of(scalar::identifier(a)); \
    } else if constexpr (arity == 2) {                                                          \
      if constexpr (requires { scalar::identifier(a, b); }) {                                   \
        return bits_of(scalar::identifier(a, b));                                               \
      }                                                                                         \
    }                                                                                           \
    return 0;                                                                                   \
  }
  RLX_SCALAR_OPS(RLX_ROW)
#undef RLX_ROW
  return 0;
}

RLX_FN long long offset_of(const RegionProgram& p, int slot, const unsigned* c) {
  long long at = 0;
  for (int k = 0; k < p.axes; ++k) at += c[k] * p.region.strides[slot][k];
  for (int m = 0; m < p.maps; ++m) {
    if (p.map_slot[m] != slot) continue;
    unsigned i = c[p.map_axis[m]];
    if (p.map_divides[m]) i = divide(i, p.region.map_div[m]);
    if (p.map_wraps[m]) i = remainder(i, p.region.map_mod[m]);
    at += i * p.region.map_stride[m];
  }
  return at;
}

RLX_FN unsigned value_of(const RegionProgram& p, const RegionStep& step, const unsigned* v,
                         const unsigned* c) {
  const unsigned a = v[step.args[0]], b = v[step.args[1]];
  switch (step.kind) {
    case params::step_load:
      return load(step.stored, p.region.operands[step.args[0]], offset_of(p, step.args[0], c));
    case params::step_number:
      return bits_of(float(__builtin_bit_cast(double, p.region.numbers[step.args[0]])));
    case params::step_cast:
      return step.boolean ? cast_to(step.stored, a != 0) : cast_to(step.stored, float_of(a));
    case params::step_scalar:
      // A choice between two values is the same for all types; it has three arguments.
      if (step.args[3]) return a ? b : v[step.args[2]];
      return step.boolean ? scalar_of(step.op, a != 0, b != 0)
                          : scalar_of(step.op, float_of(a), float_of(b));
    default: return step.bits;
  }
}

}  // namespace rlx

extern "C" __global__ void region_interpreted(const rlx::params::RegionProgram p) {
  const unsigned count = unsigned(p.region.count), threads = unsigned(rlx::thread_count());
  for (unsigned i = unsigned(rlx::thread_rank()); i < count; i += threads) {
    unsigned c[rlx::params::region_axes], v[rlx::params::program_steps] = {}, rest = i;
    for (int k = p.axes - 1; k > 0; --k) c[k] = rlx::split(rest, p.region.extents[k]);
    c[0] = rest;
    for (int s = 0; s < p.step_count; ++s) v[s] = rlx::value_of(p, p.steps[s], v, c);
    for (int s = 0; s < p.store_count; ++s) {
      const rlx::params::RegionStore& to = p.stores[s];
      rlx::store(to.stored, p.region.operands[to.slot], rlx::offset_of(p, to.slot, c), v[to.step]);
    }
  }
}
