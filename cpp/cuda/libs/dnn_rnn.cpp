// Describes one layer to cuDNN (cudnn_adv.h, the interface of version 8 on) and runs it.
#include "cuda/libs/dnn_rnn.h"

#include <array>
#include <cstring>

#include "cuda/api/loader.h"

namespace rlx::cuda {
namespace {

// The library's enumerations, by number.
constexpr int algorithm_standard = 0, inference = 0, linear_input = 0;
constexpr int cell_relu = 0, cell_tanh = 1, cell_lstm = 2, cell_gru = 3;
constexpr int no_bias = 0, double_bias = 2;
constexpr int data_float = 0, data_half = 2;
constexpr int default_math = 0, tensor_op_math = 1, fma_math = 3;
constexpr int step_major = 0, batch_major = 2;
constexpr unsigned padded_io = 1;

struct Refusal {
  std::string reason;
};

void check(int status, const char* call) {
  if (status != 0) throw Refusal{std::string(call) + " gave status " + std::to_string(status)};
}

int cell_of(const DnnRnnShape& s) {
  switch (s.kind) {
    case RecurrentKind::lstm: return cell_lstm;
    case RecurrentKind::gru: return cell_gru;
    case RecurrentKind::rnn: break;
  }
  return s.relu ? cell_relu : cell_tanh;
}

// ONNX's place (iofc, zrh) of the library's gate (ifco, rzh).
int onnx_gate(RecurrentKind kind, int gate) {
  constexpr std::array<int, 4> lstm = {0, 2, 3, 1};
  constexpr std::array<int, 3> gru = {1, 0, 2};
  return kind == RecurrentKind::lstm ? lstm[size_t(gate)]
         : kind == RecurrentKind::gru ? gru[size_t(gate)] : gate;
}

}  // namespace

DnnRnnFunctions::DnnRnnFunctions(const api::Found& library) {
  const auto load = [&](auto*& function, const char* name) { api::load(library, function, name); };
  load(create, "cudnnCreate");
  load(destroy, "cudnnDestroy");
  load(set_stream, "cudnnSetStream");
  load(create_rnn, "cudnnCreateRNNDescriptor");
  load(destroy_rnn, "cudnnDestroyRNNDescriptor");
  load(set_rnn, "cudnnSetRNNDescriptor_v8");
  load(create_data, "cudnnCreateRNNDataDescriptor");
  load(destroy_data, "cudnnDestroyRNNDataDescriptor");
  load(set_data, "cudnnSetRNNDataDescriptor");
  load(create_tensor, "cudnnCreateTensorDescriptor");
  load(destroy_tensor, "cudnnDestroyTensorDescriptor");
  load(set_tensor, "cudnnSetTensorNdDescriptor");
  load(create_dropout, "cudnnCreateDropoutDescriptor");
  load(destroy_dropout, "cudnnDestroyDropoutDescriptor");
  load(set_dropout, "cudnnSetDropoutDescriptor");
  load(weight_bytes, "cudnnGetRNNWeightSpaceSize");
  load(temporary_bytes, "cudnnGetRNNTempSpaceSizes");
  load(weight_place, "cudnnGetRNNWeightParams");
  load(forward, "cudnnRNNForward");
}

DnnRnnLayer::DnnRnnLayer(const DnnRnnFunctions& functions, void* handle, const DnnRnnShape& s)
    : shape(s), f_(functions) {
  try {
    describe(handle);
  } catch (...) {
    release();
    throw;
  }
}

DnnRnnLayer::~DnnRnnLayer() { release(); }

void DnnRnnLayer::release() noexcept {
  if (rnn_) f_.destroy_rnn(rnn_);
  if (dropout_) f_.destroy_dropout(dropout_);
  for (void* data : {x_, y_}) {
    if (data) f_.destroy_data(data);
  }
  for (void* tensor : {state_, matrix_, vector_}) {
    if (tensor) f_.destroy_tensor(tensor);
  }
}

void DnnRnnLayer::describe(void* handle) {
  const DnnRnnShape& s = shape;
  const bool half = s.dtype == DType::float16;
  const int type = half ? data_half : data_float;
  const int math = half ? tensor_op_math : s.tf32 ? default_math : fma_math;
  const int hidden = int(s.hidden), batch = int(s.batch);
  check(f_.create_dropout(&dropout_), "cudnnCreateDropoutDescriptor");
  check(f_.set_dropout(dropout_, handle, 0, nullptr, 0, 0), "cudnnSetDropoutDescriptor");
  check(f_.create_rnn(&rnn_), "cudnnCreateRNNDescriptor");
  check(f_.set_rnn(rnn_, algorithm_standard, cell_of(s), s.bias ? double_bias : no_bias,
                   s.bidirectional, linear_input, type, data_float, math, int(s.input), hidden,
                   hidden, 1, dropout_, padded_io),
        "cudnnSetRNNDescriptor_v8");
  std::vector<int> lengths(s.lengths.begin(), s.lengths.end());
  if (lengths.empty()) lengths.assign(size_t(batch), int(s.steps));
  float zero = 0;  // of either type
  const int layout = s.batch_major ? batch_major : step_major;
  const auto data = [&](void*& made, int width) {
    check(f_.create_data(&made), "cudnnCreateRNNDataDescriptor");
    check(f_.set_data(made, type, layout, int(s.steps), batch, width, lengths.data(), &zero),
          "cudnnSetRNNDataDescriptor");
  };
  data(x_, int(s.input));
  data(y_, hidden * s.directions());
  for (void** tensor : {&state_, &matrix_, &vector_}) {
    check(f_.create_tensor(tensor), "cudnnCreateTensorDescriptor");
  }
  const int dims[] = {s.directions(), batch, hidden}, strides[] = {batch * hidden, hidden, 1};
  check(f_.set_tensor(state_, type, 3, dims, strides), "cudnnSetTensorNdDescriptor");
  check(f_.weight_bytes(handle, rnn_, &weight_bytes), "cudnnGetRNNWeightSpaceSize");
  size_t reserve = 0;
  check(f_.temporary_bytes(handle, rnn_, inference, x_, &workspace, &reserve),
        "cudnnGetRNNTempSpaceSizes");
}

DnnRnn::DnnRnn(std::shared_ptr<Driver> driver)
    : driver_(std::move(driver)), functions_(api::loader().get(api::Lib::cudnn)) {
  const Current current = driver_->make_current();
  if (const int status = functions_.create(&handle_)) {
    throw Error(ErrorKind::device, "cudnnCreate failed: status " + std::to_string(status));
  }
}

DnnRnn::~DnnRnn() {
  if (const Current current = driver_->make_current_quietly()) functions_.destroy(handle_);
}

std::shared_ptr<const DnnRnnLayer> DnnRnn::layer(const DnnRnnShape& shape, std::string& reason) {
  const std::lock_guard lock(mutex_);
  const Current current = driver_->make_current();
  try {
    return std::make_shared<const DnnRnnLayer>(functions_, handle_, shape);
  } catch (const Refusal& refusal) {
    reason = refusal.reason;
    return nullptr;
  }
}

void DnnRnn::pack(const DnnRnnLayer& layer, const void* w, const void* r, const void* b,
                  void* to) {
  const std::lock_guard lock(mutex_);
  const Current current = driver_->make_current();
  const DnnRnnShape& s = layer.shape;
  const size_t size = size_of(s.dtype), hidden = size_t(s.hidden);
  const auto gates = size_t(s.gates());
  std::memset(to, 0, layer.weight_bytes);
  for (size_t d = 0; d < size_t(s.directions()); ++d) {
    for (size_t k = 0; k < 2 * gates; ++k) {  // of x, then of the state
      const bool of_state = k >= gates;
      const auto gate = size_t(onnx_gate(s.kind, int(k % gates)));
      const size_t columns = size_t(of_state ? s.hidden : s.input);
      void *matrix = nullptr, *bias = nullptr;
      const int status =
          functions_.weight_place(handle_, layer.rnn_, int(d), layer.weight_bytes, to, int(k),
                                  layer.matrix_, &matrix, layer.vector_, &bias);
      if (status != 0 || !matrix || bool(b) != bool(bias)) {
        throw Error(ErrorKind::device, "cudnnGetRNNWeightParams failed: status " +
                                           std::to_string(status));
      }
      const auto* from = static_cast<const std::byte*>(of_state ? r : w);
      const size_t bytes = hidden * columns * size;
      std::memcpy(matrix, from + (d * gates + gate) * bytes, bytes);
      if (!b) continue;
      const size_t row = (d * 2 * gates + (of_state ? gates : 0) + gate) * hidden * size;
      std::memcpy(bias, static_cast<const std::byte*>(b) + row, hidden * size);
    }
  }
}

void DnnRnn::run(const DnnRnnLayer& layer, const Operands& o, Stream stream) {
  const std::lock_guard lock(mutex_);
  const Current current = driver_->make_current();
  int status = functions_.set_stream(handle_, stream);
  if (status == 0) {
    status = functions_.forward(handle_, layer.rnn_, inference, nullptr, layer.x_, o.x, layer.y_,
                                o.y, layer.state_, o.h, o.y_h, layer.state_, o.c, o.y_c,
                                layer.weight_bytes, o.weights, layer.workspace, o.workspace, 0,
                                nullptr);
  }
  if (status != 0) {
    throw Error(ErrorKind::device, "cudnnRNNForward failed: status " + std::to_string(status));
  }
}

}  // namespace rlx::cuda
