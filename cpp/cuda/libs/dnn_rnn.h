// Recurrent layers by cuDNN: descriptors of a layer, its packed weights, its run.
#pragma once

#include <memory>
#include <mutex>

#include "backend.h"
#include "cuda/api/library.h"
#include "cuda/driver.h"

namespace rlx::cuda {

struct DnnRnnFunctions {
  explicit DnnRnnFunctions(const api::Found& library);
  int (*create)(void**);
  int (*destroy)(void*);
  int (*set_stream)(void*, Stream);
  int (*create_rnn)(void**);
  int (*destroy_rnn)(void*);
  int (*set_rnn)(void* rnn, int algorithm, int cell, int bias, int direction, int input_mode,
                 int type, int precision, int math, int input, int hidden, int projection,
                 int layers, void* dropout, unsigned flags);
  int (*create_data)(void**);
  int (*destroy_data)(void*);
  int (*set_data)(void* data, int type, int layout, int steps, int batch, int vector,
                  const int* lengths, void* fill);
  int (*create_tensor)(void**);
  int (*destroy_tensor)(void*);
  int (*set_tensor)(void* tensor, int type, int rank, const int* dims, const int* strides);
  int (*create_dropout)(void**);
  int (*destroy_dropout)(void*);
  int (*set_dropout)(void* dropout, void* handle, float rate, void* states, size_t bytes,
                     unsigned long long seed);
  int (*weight_bytes)(void* handle, void* rnn, size_t* bytes);
  int (*temporary_bytes)(void* handle, void* rnn, int mode, void* x, size_t* workspace,
                         size_t* reserve);
  int (*weight_place)(void* handle, void* rnn, int layer, size_t bytes, const void* weights,
                      int matrix, void* matrix_tensor, void** matrix_at, void* bias_tensor,
                      void** bias_at);
  int (*forward)(void* handle, void* rnn, int mode, const int* device_lengths, void* x_data,
                 const void* x, void* y_data, void* y, void* h_tensor, const void* h, void* y_h,
                 void* c_tensor, const void* c, void* y_c, size_t weight_bytes,
                 const void* weights, size_t workspace_bytes, void* workspace,
                 size_t reserve_bytes, void* reserve);
};

struct DnnRnnShape {
  RecurrentKind kind{};
  DType dtype = DType::float32;
  bool relu = false;           // rnn: instead of tanh
  bool tf32 = false, bias = false, bidirectional = false;
  bool batch_major = false;    // x and y begin with the batch
  int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  std::vector<int32_t> lengths;  // of each row; y is zero behind them

  int directions() const { return bidirectional ? 2 : 1; }
  int gates() const {
    return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1;
  }
};

class DnnRnn;

// A layer's descriptors; immutable.
class DnnRnnLayer {
 public:
  DnnRnnLayer(const DnnRnnFunctions& functions, void* handle, const DnnRnnShape& shape);
  ~DnnRnnLayer();
  DnnRnnLayer(const DnnRnnLayer&) = delete;

  const DnnRnnShape shape;
  size_t weight_bytes = 0, workspace = 0;

 private:
  friend class DnnRnn;
  void describe(void* handle);
  void release() noexcept;

  const DnnRnnFunctions& f_;
  void *rnn_ = nullptr, *dropout_ = nullptr, *x_ = nullptr, *y_ = nullptr, *state_ = nullptr,
       *matrix_ = nullptr, *vector_ = nullptr;
};

class DnnRnn {
 public:
  explicit DnnRnn(std::shared_ptr<Driver> driver);  // throws Error(device)
  ~DnnRnn();

  // Null, with the reason, when cuDNN refuses it.
  std::shared_ptr<const DnnRnnLayer> layer(const DnnRnnShape& shape, std::string& reason);
  // Writes ONNX's W, R and B (may be null), as the host has them, as the library wants them.
  void pack(const DnnRnnLayer& layer, const void* w, const void* r, const void* b, void* to);

  struct Operands {  // y is [steps, batch, directions, hidden], or the batch first; c: of an lstm
    const void *x, *h, *c, *weights;
    void *y, *y_h, *y_c, *workspace;
  };
  void run(const DnnRnnLayer& layer, const Operands& operands, Stream stream);

 private:
  const std::shared_ptr<Driver> driver_;
  const DnnRnnFunctions functions_;
  std::mutex mutex_;  // one handle, whose stream changes
  void* handle_ = nullptr;
};

}  // namespace rlx::cuda
