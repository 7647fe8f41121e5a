// An LSTM, GRU or RNN layer as ONNX defines it.
#pragma once

namespace rlx::params {

enum class GateFunction {
  sigmoid, tanh, relu, affine, leaky_relu, thresholded_relu, scaled_tanh, hard_sigmoid, elu,
  softsign, softplus
};

struct Gate {
  GateFunction function = GateFunction::sigmoid;
  double alpha = 0, beta = 0;
};

struct Recurrent {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* r = nullptr;
  const void* bias = nullptr;
  const int* lengths = nullptr;
  const void* initial_h = nullptr;
  const void* initial_c = nullptr;
  const void* peephole = nullptr;
  // Of 8-bit weights, w's and r's: for each direction one, or with `each` one for every gate.
  const float* scale[2] = {nullptr, nullptr};
  const void* zero[2] = {nullptr, nullptr};
  bool scale_each[2] = {false, false}, zero_each[2] = {false, false};
  void* y = nullptr;
  void* y_h = nullptr;
  void* y_c = nullptr;
  // For each direction and row of the batch: h, c, gates, and spare; behind them levels.
  void* state = nullptr;
  unsigned long long* fault = nullptr;
  long long steps = 0, batch = 0, input = 0, hidden = 0;
  long long step = 0;     // how many came before, where each is a launch of its own
  int directions = 1;
  bool reverse = false;  // of the first direction; a second one runs in reverse
  bool input_forget = false, batchwise = false;
  Gate gates[2][3];      // f, g, h of each direction
  double clip = 0;       // 0: none
};

}  // namespace rlx::params
