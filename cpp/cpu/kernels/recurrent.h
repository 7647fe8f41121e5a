// LSTM, GRU and RNN layers as ONNX defines them, for float32 and float64.
//
// The products with x of all steps are one matrix product; each step adds that of its state with
// packed weights, and one pass over each row computes the gates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "cpu/kernels/recurrent_s8.h"
#include "program/prims.h"

namespace rlx::cpu {

enum class GateFunction : uint8_t {
  sigmoid, tanh, relu, affine, leaky_relu, thresholded_relu, scaled_tanh, hard_sigmoid, elu,
  softsign, softplus
};

struct Gate {
  GateFunction function{};
  double alpha = 0.0, beta = 0.0;
};

struct RecurrentShape {
  RecurrentKind kind{};
  DType dtype = DType::float32;
  // Of w and r before packing: the same, 16-bit to float32, or 8-bit. With 8-bit weights x and
  // the state of each step are rounded to uint8 by their range (kernels/recurrent_s8.h).
  DType weights = DType::float32;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  int directions = 1;
  bool reverse = false;     // of the first direction; a second one runs in reverse
  Gate gates[2][3];         // f, g, h of each direction
  double clip = 0.0;        // 0: none
  bool input_forget = false, linear_before_reset = false, batchwise = false;

  int64_t gate_count() const {
    return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1;
  }
  bool rounded() const { return size_of(weights) == 1; }
  // GRU multiplies by the reset gate before the last gate's product: that one is apart.
  bool split() const { return kind == RecurrentKind::gru && !linear_before_reset; }
};

struct RecurrentArgs {
  const void *x = nullptr, *w = nullptr, *r = nullptr, *bias = nullptr;
  const int32_t* sequence_lens = nullptr;
  const void *initial_h = nullptr, *initial_c = nullptr, *peephole = nullptr;
  WeightScales w_scales, r_scales;  // of the first direction, for 8-bit weights
  void *y = nullptr, *y_h = nullptr, *y_c = nullptr;  // any of them may be null
  const void* packed = nullptr;  // recurrent_pack's bytes
  void* workspace = nullptr;     // recurrent_workspace(shape, threads) bytes
  int threads = 1;
};

size_t recurrent_packed_bytes(const RecurrentShape& shape);
void recurrent_pack(const RecurrentShape& shape, const void* w, const void* r, void* packed,
                    int threads);

size_t recurrent_workspace(const RecurrentShape& shape, int threads);
void recurrent(const RecurrentShape& shape, const RecurrentArgs& args);

}  // namespace rlx::cpu
