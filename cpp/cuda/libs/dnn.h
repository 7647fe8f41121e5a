// Convolutions and attention by cuDNN, as plans that may run on any stream.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "backend.h"
#include "core/sha256.h"
#include "cuda/libs/dnn_graph.h"

namespace rlx::cuda {

// y = relu(conv(x, w) + residual + bias); dims and strides in the order N, C, spatial.
struct DnnConv {
  DType dtype = DType::float32;
  bool tf32 = false, bias = false, residual = false, relu = false;
  int groups = 1;
  std::vector<int64_t> x, w, y;                        // dims
  std::vector<int64_t> x_strides, w_strides, y_strides;
  std::vector<int64_t> pads_begin, pads_end, strides, dilations;
  bool is_fused() const { return bias || residual || relu; }
  std::vector<int64_t> key() const;
  std::vector<int64_t> form() const;  // what stays when sizes change that engines take as they come
};

// y = softmax(scale * q k^T [causal]) v; dims B, H, S, D.
struct DnnAttention {
  DType dtype = DType::float16;
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  std::vector<int64_t> q_strides, k_strides, v_strides, y_strides;
  bool causal = false;       // row >= column, both from the first
  std::vector<int64_t> key() const;
  std::vector<int64_t> form() const;  // what stays when batch and lengths change
};

// Ids of tensors in the graphs, in the order in which run() takes their addresses.
class DnnRun {
 public:
  DnnRun(std::unique_ptr<DnnPlan> plan, std::vector<int64_t> ids)
      : plan(std::move(plan)), ids(std::move(ids)) {}
  const std::unique_ptr<DnnPlan> plan;
  const std::vector<int64_t> ids;
};

class Dnn {
 public:
  static constexpr size_t workspace_alignment = 256;
  explicit Dnn(std::shared_ptr<Driver> driver);  // throws Error(device)
  // One that takes every problem and runs none.
  static std::unique_ptr<Dnn> assumed(std::shared_ptr<Driver> driver);
  ~Dnn();

  // Null, with the reason, when cuDNN has nothing (good) for it.
  // Addresses: x, w, y, then bias and residual where there are any.
  std::shared_ptr<const DnnRun> convolution(const DnnConv& conv, std::string& reason);
  // Refuses a form that came with many lengths: each is compiled anew, for half a second or more.
  // Addresses: q, k, v, y, the host's float scale, then the host's float of minus infinity where
  // it is causal.
  std::shared_ptr<const DnnRun> attention(const DnnAttention& attention, std::string& reason);
  // Bytes for run(), which aligns them as the library likes.
  static size_t workspace(const DnnRun& run) {
    return run.plan->workspace ? run.plan->workspace + workspace_alignment : 0;
  }
  void run(const DnnRun& run, std::span<void* const> addresses, void* workspace, Stream stream);

 private:
  Dnn(std::shared_ptr<Driver> driver, std::nullptr_t);
  const std::shared_ptr<Driver> driver_;
  template <class Problem, class Build>
  std::shared_ptr<const DnnRun> find(const Problem& problem, const std::vector<int64_t>& ids,
                                     const Build& build, std::string& reason);
  // Plans from one process to the next: found by heuristics and finalised, or even compiled, a
  // model's take seconds.
  std::unique_ptr<DnnPlan> stored(const Digest& key) const;
  void store(const Digest& key, const DnnPlan& plan) const;
  std::unique_ptr<DnnPlan> fused(const DnnConv& conv);
  Digest digest(const std::vector<int64_t>& problem) const;

  const DnnFunctions functions_;
  const std::string version_;
  std::mutex mutex_;      // one handle, whose stream changes
  void* handle_ = nullptr;
  // Layers repeat, and a plan takes up to a second: those in use serve all of them.
  std::map<std::vector<int64_t>, std::weak_ptr<const DnnRun>> plans_;
  std::map<std::vector<int64_t>, int> lengths_;  // of each form of attention: plans compiled
  std::map<std::vector<int64_t>, std::string> refused_;  // forms of fused convolutions: why
};

// The plan for a problem that is in use already, or a new one; null when it is refused.
template <class Problem, class Build>
std::shared_ptr<const DnnRun> Dnn::find(const Problem& problem, const std::vector<int64_t>& ids,
                                        const Build& build, std::string& reason) {
  if (!handle_) return std::make_shared<const DnnRun>(std::make_unique<DnnPlan>(), ids);
  const std::lock_guard lock(mutex_);
  auto& held = plans_[problem.key()];
  if (auto found = held.lock()) return found;
  const Current current = driver_->make_current();
  try {
    const Digest key = digest(problem.key());
    std::unique_ptr<DnnPlan> plan = stored(key);
    if (!plan) {
      plan = build();
      store(key, *plan);
    }
    const auto made = std::make_shared<const DnnRun>(std::move(plan), ids);
    held = made;
    return made;
  } catch (const DnnRefusal& refusal) {
    reason = refusal.reason;
    return nullptr;
  }
}

}  // namespace rlx::cuda
