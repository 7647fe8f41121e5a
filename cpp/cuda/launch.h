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
  void run(const RunArgs& args) const override;

 private:
  KernelPtr kernel_;
  LaunchShape shape_;
  std::vector<std::byte> params_;
  std::vector<Patch> patches_;
  std::vector<std::shared_ptr<const void>> kept_;
  mutable std::once_flag shared_allowed_;
};

// Launches in a row as one step, e.g. one for each step of a recurrent layer.
class LaunchesBody final : public StepBody {
 public:
  explicit LaunchesBody(std::vector<SelectedStep> launches) : launches_(std::move(launches)) {}
  void run(const RunArgs& args) const override {
    for (const SelectedStep& launch : launches_) launch.body->run(args);
  }

 private:
  const std::vector<SelectedStep> launches_;
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
    const auto bytes = std::as_bytes(std::span(&params, 1));
    return {StepKind::launch,
            std::make_shared<LaunchBody>(std::move(kernel), shape, bytes, patches_, kept_)};
  }

 private:
  std::vector<Patch> patches_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace rlx::cuda
