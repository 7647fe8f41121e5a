// A step that launches one kernel: a POD parameter whose pointers are set for each run.
//
//   LaunchBuilder<params::Softmax> launch;
//   launch.params.rows = rows;
//   launch.bind(launch.params.x, Source::operand(0));
//   selection.steps.push_back(launch.finish(tools.jit.get(spec), shape));
#pragma once

#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "backend.h"
#include "cuda/jit.h"

namespace rlx::cuda {

constexpr size_t max_params = 4064;

// Where a pointer of the parameter comes from when the step runs.
struct Source {
  enum class Kind : uint8_t { operand, workspace, random, fault };
  // The node's inputs, then its outputs; null when absent.
  static Source operand(size_t index, int64_t byte_offset = 0) {
    return {Kind::operand, uint32_t(index), byte_offset};
  }
  static Source workspace(int64_t byte_offset = 0) { return {Kind::workspace, 0, byte_offset}; }
  // The Context's Philox counter, a uint64 in device memory.
  static Source random() { return {Kind::random, 0, 0}; }
  // A uint64 behind that counter, zero before a run: a kernel sets bit 0 for a bad index.
  static Source fault() { return {Kind::fault, 0, 0}; }

  Kind kind;
  uint32_t index;
  int64_t byte_offset;
  void* address(const RunArgs& args) const;
};

struct Patch {
  uint32_t offset;  // of the pointer in the parameter
  Source source;
};

class LaunchBody final : public StepBody {
 public:
  LaunchBody(KernelPtr kernel, const LaunchShape& shape, std::span<const std::byte> params,
             std::vector<Patch> patches, std::vector<std::shared_ptr<const void>> kept);
  void run(const RunArgs& args) const override { launch(args, params_); }
  // With another value of the int64 at `counter` of the parameter.
  void run(const RunArgs& args, uint32_t counter, int64_t value) const;

 private:
  void launch(const RunArgs& args, std::span<const std::byte> params) const;

  KernelPtr kernel_;
  LaunchShape shape_;
  std::vector<std::byte> params_;
  std::vector<Patch> patches_;
  std::vector<std::shared_ptr<const void>> kept_;
  mutable std::once_flag shared_allowed_;
};

// Rounds of launches as one step, one for each step of a recurrent layer: an int64 at `counter`
// of the parameter tells which round it is.
class RoundsBody final : public StepBody {
 public:
  RoundsBody(std::vector<std::shared_ptr<const LaunchBody>> launches, uint32_t counter,
             int64_t rounds)
      : launches_(std::move(launches)), counter_(counter), rounds_(rounds) {}
  void run(const RunArgs& args) const override {
    for (int64_t round = 0; round < rounds_; ++round) {
      for (const auto& launch : launches_) launch->run(args, counter_, round);
    }
  }

 private:
  const std::vector<std::shared_ptr<const LaunchBody>> launches_;
  const uint32_t counter_;
  const int64_t rounds_;
};

template <class Params>
  requires(std::is_trivially_copyable_v<Params> && sizeof(Params) <= max_params)
class LaunchBuilder {
 public:
  Params params{};

  // `field` is a pointer inside `params`.
  template <class T>
  void bind(T*& field, Source source) {
    const auto at = reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&params);
    patches_.push_back({uint32_t(at), source});
  }
  // Keeps memory alive that `params` points to by itself, e.g. a packed weight.
  void keep(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }

  SelectedStep finish(KernelPtr kernel, const LaunchShape& shape) const {
    return {StepKind::launch, body(std::move(kernel), shape)};
  }
  // The kernels one after the other, again and again: `counter` is a field of `params`.
  SelectedStep finish_rounds(std::span<const KernelPtr> kernels, const LaunchShape& shape,
                             const long long& counter, int64_t rounds) const {
    std::vector<std::shared_ptr<const LaunchBody>> launches;
    for (const KernelPtr& kernel : kernels) launches.push_back(body(kernel, shape));
    const auto at = reinterpret_cast<const char*>(&counter) -
                    reinterpret_cast<const char*>(&params);
    return {StepKind::launch,
            std::make_shared<RoundsBody>(std::move(launches), uint32_t(at), rounds)};
  }

 private:
  std::shared_ptr<LaunchBody> body(KernelPtr kernel, const LaunchShape& shape) const {
    const auto bytes = std::as_bytes(std::span(&params, 1));
    return std::make_shared<LaunchBody>(std::move(kernel), shape, bytes, patches_, kept_);
  }

  std::vector<Patch> patches_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace rlx::cuda
