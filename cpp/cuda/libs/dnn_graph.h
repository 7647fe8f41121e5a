// cuDNN's graph API through declarations of our own: descriptors, and plans made from graphs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/api/library.h"
#include "cuda/driver.h"

namespace rlx::cuda {

struct DnnFunctions {
  DnnFunctions() = default;
  explicit DnnFunctions(const api::Found& library);
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*set_stream)(void*, Stream) = nullptr;
  int (*descriptor_create)(int, void**) = nullptr;
  int (*descriptor_destroy)(void*) = nullptr;
  int (*set)(void*, int, int, int64_t, const void*) = nullptr;
  int (*get)(void*, int, int, int64_t, int64_t*, void*) = nullptr;
  int (*finalize)(void*) = nullptr;
  int (*execute)(void*, void*, void*) = nullptr;
  void (*last_error)(char*, size_t) = nullptr;
};

// What cuDNN would not do; not an error of the user's.
struct DnnRefusal {
  std::string reason;
  bool lasts = false;  // whatever the sizes and the state of the GPU
};

// The library's enumerations that are used (cudnn_backend.h of version 9).
namespace dnn {
enum Kind { pointwise = 0, convolution = 1, engine = 2, engine_config = 3, heuristics = 4,
            execution_plan = 5, convolution_operation = 10, pointwise_operation = 13,
            operation_graph = 15, variant_pack = 16, tensor = 17, matmul = 18,
            matmul_operation = 19, reduction = 21, reduction_operation = 22, sdpa_operation = 41 };
enum Type { handle = 0, data_type = 1, boolean = 2, int64 = 3, float32 = 4, float64 = 5,
            pointer = 6, convolution_mode = 7, heuristic_mode = 8, numerical_note = 11,
            pointwise_mode = 14, descriptor = 15, reduction_operator = 18, behaviour_note = 19,
            text = 24 };
enum DataType { data_float = 0, data_double = 1, data_half = 2, data_int8 = 3, data_int32 = 4,
                data_bfloat16 = 9, data_int64 = 10, data_boolean = 11 };
enum Pointwise { add = 0, mul = 1, relu = 100 };
}  // namespace dnn

class Descriptor {
 public:
  Descriptor(const DnnFunctions& functions, int kind);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : f_(other.f_), raw_(other.raw_) { other.raw_ = nullptr; }
  Descriptor(const Descriptor&) = delete;

  void set(int attribute, int type, int64_t count, const void* values);
  template <class T>
  void set(int attribute, int type, T value) {
    set(attribute, type, 1, &value);
  }
  void set(int attribute, const Descriptor& other) {
    set(attribute, dnn::descriptor, 1, &other.raw_);
  }
  void set(int attribute, std::span<const int64_t> values) {
    set(attribute, dnn::int64, int64_t(values.size()), values.data());
  }
  void finalize();
  void* raw() const { return raw_; }

 private:
  const DnnFunctions* f_;
  void* raw_ = nullptr;
};

// An execution plan and all that it was made from; immutable.
struct DnnPlan {
  std::deque<Descriptor> parts;  // in order of creation; destroyed before the handle
  void* plan = nullptr;
  size_t workspace = 0;
  int64_t engine = -1;
  bool compiled = false;         // at run time
};

// Tensors and operations of one graph, then its plan.
class DnnGraph {
 public:
  DnnGraph(const DnnFunctions& functions, void* handle)
      : f_(functions), handle_(handle), plan_(std::make_unique<DnnPlan>()) {}

  Descriptor& tensor(int64_t id, int data_type, std::span<const int64_t> dims,
                     std::span<const int64_t> strides, bool is_virtual = false,
                     bool by_value = false);
  // y = mode(x, b); b absent for functions of one argument.
  void pointwise(int mode, const Descriptor& x, const Descriptor* b, const Descriptor& y);
  Descriptor& part(int kind) { return plan_->parts.emplace_back(f_, kind); }
  void add_operation(const Descriptor& operation) { operations_.push_back(operation.raw()); }

  struct Wish {
    bool strict = false;           // no tensor cores: float32 as it is
    bool compile = false;          // engines that compile at run time may be taken
    size_t most_workspace = size_t{256} << 20;
  };
  // The first engine of the heuristic that grants the wish; throws DnnRefusal, which lasts where
  // there are engines and each is of a kind that is not wished for.
  std::unique_ptr<DnnPlan> finish(const Wish& wish);

 private:
  enum class Tried { taken, unwished, failed };
  Tried try_config(Descriptor& config, const Wish& wish);
  std::vector<Descriptor> configs(const Descriptor& graph, int mode);

  const DnnFunctions& f_;
  void* const handle_;
  std::unique_ptr<DnnPlan> plan_;
  std::vector<void*> operations_;
};

// A plan as text, compiled code and all; empty when cuDNN has none for it.
std::string text_of_plan(const DnnFunctions& functions, const DnnPlan& plan);
// The plan of such a text, without compiling; throws DnnRefusal.
std::unique_ptr<DnnPlan> plan_of_text(const DnnFunctions& functions, void* handle,
                                      const std::string& text);

}  // namespace rlx::cuda
