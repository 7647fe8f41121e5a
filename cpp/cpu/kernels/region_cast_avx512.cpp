// Casts and conversions of storage types for AVX-512.
#include "cpu/kernels/region_cast_body.h"
#include "cpu/kernels/region_quantise_body.h"
#include "cpu/kernels/region_storage_body.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::avx512);

template <>
Loop cast_loop_for<Isa::avx512>(DType from, DType to, bool odd) {
  return pick_cast(from, to, odd);
}

template <>
Loop quantise_loop_for<Isa::avx512>(DType to, bool one_scale) {
  return pick_quantise(to, one_scale);
}

template <>
Loop load_loop_for<Isa::avx512>(DType storage) {
  return pick_load(storage);
}

template <>
Loop store_loop_for<Isa::avx512>(DType storage, CastMode mode) {
  return pick_store(storage, mode);
}

}  // namespace rlx::cpu
