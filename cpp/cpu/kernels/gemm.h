// Matrix products on the CPU: packing of constant B, workspace sizes, and the product itself.
//
//   GemmCall call;                          // once: sizes, types, threads
//   call.shape.m = ...;
//   size_t bytes = gemm_workspace(call);    // planned like a tensor
//   call.a = ...; call.workspace = ...;     // each run: pointers
//   gemm(call);                             // no allocation; results do not depend on threads
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "kernels/params/gemm.h"

namespace rlx::cpu {

enum class Activation : uint8_t {
  none, relu, gelu_erf, gelu_tanh, silu, sigmoid, tanh, clip,  // clip: to [low, high]
};

// What happens to alpha * A * B before it is rounded to the type of C; for float types only,
// but `bias`, which every type has.
//   v = alpha * A * B + bias;  v += residual (first);  v = activation(v);
//   v += residual (not first);  tile(v)
struct GemmEpilogue {
  const void* bias = nullptr;  // n values: float32 for float types of C, else of C's type
  long long bias_batch[3] = {0, 0, 0};
  bool add_residual = false;
  const float* residual = nullptr;  // [batch, m, n]
  long long residual_ld = 0, residual_batch[3] = {0, 0, 0};
  bool residual_first = false;
  Activation activation = Activation::none;
  float low = 0, high = 0;
  // Called on each finished block while it is in the cache: rows x cols of float32 at c whose
  // first element is (row, col) of C seen as [batch * m, n]. It may change them. Blocks come in
  // any order and from all threads of the team at once.
  void (*tile)(void* context, float* c, int64_t row, int64_t col, int64_t rows, int64_t cols,
               int64_t ldc) = nullptr;
  void* context = nullptr;
};

// Types: A, B and C each float32, float16 or bfloat16 (sums are float32), or all three one of
// float64, int32, uint32, int64, uint64 (integers wrap around).
struct GemmCall {
  params::Gemm shape;
  DType a_type = DType::float32, b_type = DType::float32, c_type = DType::float32;
  bool b_packed = false;  // B comes from gemm_pack_b; shape.b_batch then counts packed elements
  // With taps > 0, `a` is a table of m * taps pointers: row i of A is the runs of k / taps values
  // at a[i * taps], a[i * taps + 1], ... (a convolution without im2col; padding points to zeros).
  // a_batch is added to every pointer.
  long long taps = 0;
  bool store = true;   // false: C is not written, only `tile` sees the result
  GemmEpilogue epilogue;
  int threads = 1;

  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  void* workspace = nullptr;  // gemm_workspace(call) bytes, 64-byte aligned
};

// The bytes that gemm(call) needs, whatever its pointers.
size_t gemm_workspace(const GemmCall& call);

void gemm(const GemmCall& call);

// Elements of packed B. Packed 16-bit B is float32; other types stay as they are.
int64_t gemm_packed_count(DType type, int64_t k, int64_t n);
DType gemm_packed_type(DType type);

// Packs B, stored [k, n] or with trans [n, k], rows ldb apart, for the instruction set in force.
void gemm_pack_b(DType type, const void* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                 void* packed, int threads);

}  // namespace rlx::cpu
