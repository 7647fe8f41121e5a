// What each instruction set contributes to recurrent layers: the gates of one row of the batch.
// Known to recurrent.cpp and the recurrent_<isa>.cpp files only.
#pragma once

#include "cpu/kernels/recurrent.h"

namespace rlx::cpu {

template <class T>
struct CellRow {
  int64_t hidden = 0;
  const Gate* gates = nullptr;  // f, g, h
  T clip = 0;                   // 0: none
  bool input_forget = false;
  T* pre = nullptr;             // products with x, biases added; one block for each gate; changed
  const T* product = nullptr;   // products with the state, likewise
  T *h = nullptr, *c = nullptr;  // the state; changed
  const T* peephole = nullptr;       // i, o, f; or null
  const T* candidate_bias = nullptr;  // GRU, linear before reset: the state's; or null
  T* reset = nullptr;            // GRU: hidden values in between
};

template <class T>
struct CellKernels {
  void (*lstm)(const CellRow<T>& row);
  void (*gru)(const CellRow<T>& row);        // linear before reset
  void (*gru_reset)(const CellRow<T>& row);  // reset = r * h; the update gate stays in pre
  void (*gru_update)(const CellRow<T>& row);
  void (*rnn)(const CellRow<T>& row);
};

extern const CellKernels<float> cell_kernels_portable, cell_kernels_avx2, cell_kernels_avx512;
extern const CellKernels<double> cell_kernels_double;

}  // namespace rlx::cpu
