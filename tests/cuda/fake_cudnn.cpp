// A libcudnn.so.9 for tests: it has the functions for recurrent layers, on float32 in host memory,
// and computes by the equations of cuDNN's documentation, gates in its order (ifco, rzh).
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "taken_down.h"

namespace {

struct Rnn {
  int cell = 0, bias = 0, directions = 1, input = 0, hidden = 0;
  int gates() const { return cell == 2 ? 4 : cell == 3 ? 3 : 1; }
};
struct Data {
  int layout = 0, steps = 0, batch = 0, width = 0;
  std::vector<int> lengths;
};

// Weights: for each direction its matrices, first those of x; then all biases alike.
size_t matrix_at(const Rnn& r, int layer, int matrix) {
  const int g = r.gates(), h = r.hidden;
  size_t at = size_t(layer) * g * h * (r.input + h);
  for (int k = 0; k < matrix; ++k) at += size_t(h) * (k < g ? r.input : h);
  return at;
}
size_t bias_at(const Rnn& r, int layer, int matrix) {
  return matrix_at(r, r.directions, 0) + size_t(layer * 2 * r.gates() + matrix) * r.hidden;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

void say(const char* name) {
  const char* path = std::getenv("FAKE_CUDA_LOG");
  if (FILE* file = path ? std::fopen(path, "a") : nullptr) {
    std::fprintf(file, "%s\n", name);
    std::fclose(file);
  }
}

// One row of the batch in one direction.
struct Walk {
  const Rnn& r;
  const float* w;
  int layer;

  float from(int matrix, int unit, const float* v, int n) const {
    const float* row = w + matrix_at(r, layer, matrix) + size_t(unit) * n;
    float sum = r.bias ? w[bias_at(r, layer, matrix) + unit] : 0;
    for (int i = 0; i < n; ++i) sum += row[i] * v[i];
    return sum;
  }
  void step(const float* x, std::vector<float>& h, std::vector<float>& c) const {
    const int n = r.hidden, g = r.gates();
    std::vector<float> next(n);
    for (int j = 0; j < n; ++j) {
      const auto of_x = [&](int k) { return from(k, j, x, r.input); };
      const auto of_h = [&](int k) { return from(g + k, j, h.data(), n); };
      if (r.cell == 2) {
        const float i = sigmoid(of_x(0) + of_h(0)), f = sigmoid(of_x(1) + of_h(1));
        c[j] = f * c[j] + i * std::tanh(of_x(2) + of_h(2));
        next[j] = sigmoid(of_x(3) + of_h(3)) * std::tanh(c[j]);
      } else if (r.cell == 3) {
        const float reset = sigmoid(of_x(0) + of_h(0)), z = sigmoid(of_x(1) + of_h(1));
        next[j] = (1 - z) * std::tanh(of_x(2) + reset * of_h(2)) + z * h[j];
      } else {
        const float sum = of_x(0) + of_h(0);
        next[j] = r.cell == 1 ? std::tanh(sum) : sum > 0 ? sum : 0;
      }
    }
    h = next;
  }
};

}  // namespace

#define MAKE(name, type) int name(void** p) { *p = new type; return 0; }
#define FREE(name, type) int name(void* p) { delete static_cast<type*>(p); return 0; }

extern "C" {

size_t cudnnGetVersion() { return 91900; }
size_t cudnnGetCudartVersion() { return 13000; }
MAKE(cudnnCreate, int) FREE(cudnnDestroy, int)
int cudnnSetStream(void*, void*) { return 0; }
MAKE(cudnnCreateRNNDescriptor, Rnn) FREE(cudnnDestroyRNNDescriptor, Rnn)
MAKE(cudnnCreateRNNDataDescriptor, Data) FREE(cudnnDestroyRNNDataDescriptor, Data)
MAKE(cudnnCreateTensorDescriptor, int) FREE(cudnnDestroyTensorDescriptor, int)
MAKE(cudnnCreateDropoutDescriptor, int) FREE(cudnnDestroyDropoutDescriptor, int)
int cudnnSetTensorNdDescriptor(void*, int, int, const int*, const int*) { return 0; }
int cudnnSetDropoutDescriptor(void*, void*, float rate, void*, size_t, unsigned long long) {
  return rate == 0 ? 0 : 3000;
}
int cudnnSetRNNDescriptor_v8(void* rnn, int algorithm, int cell, int bias, int direction, int mode,
                             int type, int precision, int, int input, int hidden, int projection,
                             int layers, void* dropout, unsigned flags) {
  if (algorithm || mode || type || precision || projection != hidden || layers != 1 || !dropout ||
      flags != 1) {
    return 3000;
  }
  *static_cast<Rnn*>(rnn) = {cell, bias, direction + 1, input, hidden};
  return 0;
}
int cudnnSetRNNDataDescriptor(void* data, int, int layout, int steps, int batch, int width,
                              const int* lengths, void*) {
  *static_cast<Data*>(data) = {layout, steps, batch, width, {lengths, lengths + batch}};
  return 0;
}
int cudnnGetRNNWeightSpaceSize(void*, void* rnn, size_t* bytes) {
  const Rnn& r = *static_cast<Rnn*>(rnn);
  *bytes = 4 * (r.bias ? bias_at(r, r.directions, 0) : matrix_at(r, r.directions, 0));
  return 0;
}
int cudnnGetRNNTempSpaceSizes(void*, void*, int, void*, size_t* workspace, size_t* reserve) {
  *workspace = 64, *reserve = 0;
  return 0;
}
int cudnnGetRNNWeightParams(void*, void* rnn, int layer, size_t, const void* weights, int matrix,
                            void*, void** at, void*, void** bias) {
  const Rnn& r = *static_cast<Rnn*>(rnn);
  auto* w = static_cast<float*>(const_cast<void*>(weights));
  *at = w + matrix_at(r, layer, matrix);
  *bias = r.bias ? w + bias_at(r, layer, matrix) : nullptr;
  return 0;
}
int cudnnRNNForward(void*, void* rnn, int mode, const int* device_lengths, void* x_data,
                    const void* x, void*, void* y, void*, const void* hx, void* hy, void*,
                    const void* cx, void* cy, size_t, const void* weights, size_t, void* workspace,
                    size_t, void*) {
  say("cudnnRNNForward");
  if (!has_context()) return 5000;
  if (mode != 0 || device_lengths || !y || reinterpret_cast<size_t>(workspace) % 256) return 3000;
  const Rnn& r = *static_cast<Rnn*>(rnn);
  const Data& d = *static_cast<Data*>(x_data);
  const int n = r.hidden;
  for (int k = 0; k < r.directions; ++k) {
    for (int b = 0; b < d.batch; ++b) {
      const size_t state = size_t(k * d.batch + b) * n;
      std::vector<float> h(n), c(n);
      for (int j = 0; j < n; ++j) {
        if (hx) h[j] = static_cast<const float*>(hx)[state + j];
        if (cx) c[j] = static_cast<const float*>(cx)[state + j];
      }
      const auto row = [&](int t) { return d.layout == 2 ? b * d.steps + t : t * d.batch + b; };
      for (int i = 0; i < d.steps; ++i) {
        const bool live = i < d.lengths[b];
        const int t = !live ? i : k ? d.lengths[b] - 1 - i : i;
        if (live) {
          Walk{r, static_cast<const float*>(weights), k}.step(
              static_cast<const float*>(x) + size_t(row(t)) * r.input, h, c);
        }
        float* to = static_cast<float*>(y) + (size_t(row(t)) * r.directions + k) * n;
        for (int j = 0; j < n; ++j) to[j] = live ? h[j] : 0;
      }
      for (int j = 0; j < n; ++j) {
        if (hy) static_cast<float*>(hy)[state + j] = h[j];
        if (cy) static_cast<float*>(cy)[state + j] = c[j];
      }
    }
  }
  return 0;
}

}  // extern "C"
