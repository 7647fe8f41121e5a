// The inner loops of Regions: one scalar function, cast or conversion over contiguous elements.
// Every loop allows its result to be exactly one of its arguments of the same element size.
#pragma once

#include <cstdint>

#include "core/cpuid.h"
#include "core/dtype.h"
#include "program/scalar_op.h"

namespace rlx::cpu {

// dst[i] = f(a[i], b[i], c[i]) for i < n; unused arguments are ignored.
using Loop = void (*)(void* dst, const void* a, const void* b, const void* c, int64_t n);

// How a cast treats what its float type cannot hold, from RegionOp::i: bit 0 saturates, bit 1
// rounds float8e8m0 down, bit 2 to nearest.
struct CastMode {
  bool saturate = true;
  enum class Round : uint8_t { up, down, nearest } round = Round::up;  // float8e8m0 only
  static CastMode of(int64_t bits);
};

// The type that a Region computes `storage` in (twin of DType.compute in ir/types.py; strings
// compute as their int64 ids).
DType compute_type(DType storage);

// The loop of `op` on arguments of compute type `type`; bit k of `scalars` says that argument k
// is one element. Null if there is none (for scalars == 0: op does not exist for the type).
Loop scalar_loop(ScalarOp op, DType type, unsigned scalars);

// From one compute type to another by ONNX Cast; `odd` rounds to odd instead of nearest, for a
// result that is rounded once more. Null between equal types.
Loop cast_loop(DType from, DType to, bool odd);

// float32 x (a), scales (b) and zero points (c) to an integer type of at most 16 bits, as
// QuantizeLinear does: round(x / scale) + zero, cut to its range. Null for other types, and for
// scalars other than none or the last two.
Loop quantise_loop(DType to, unsigned scalars);

// Storage to compute type and back; null where they are the same bits. One after the other
// rounds a value to its storage type.
Loop load_loop(DType storage);
Loop store_loop(DType storage, CastMode mode);

// dst[i] = src[i * stride] by element size, and dst[i * stride] = src[i].
using Strided = void (*)(void* dst, const void* src, int64_t stride, int64_t n);
Strided gather_loop(size_t item);
// `outer` rows of `inner` elements to contiguous dst.
using StridedRows = void (*)(void* dst, const void* src, int64_t outer_stride, int64_t stride,
                             int64_t outer, int64_t inner);
StridedRows gather_rows_loop(size_t item);
Strided scatter_loop(size_t item);
// dst[i] = src[0] and dst[i] = src[i], as Loops.
Loop fill_loop(size_t item);
Loop copy_loop(size_t item);

// What one instruction set offers of the above, by the files named for it. The first two share
// the types: float, double and complex here, integers, bool and strings there.
template <Isa> Loop real_loop(ScalarOp op, DType type, unsigned scalars);
template <Isa> Loop integer_loop(ScalarOp op, DType type, unsigned scalars);
template <Isa> Loop cast_loop_for(DType from, DType to, bool odd);
template <Isa> Loop quantise_loop_for(DType to, bool one_scale);
template <Isa> Loop load_loop_for(DType storage);
template <Isa> Loop store_loop_for(DType storage, CastMode mode);

}  // namespace rlx::cpu
