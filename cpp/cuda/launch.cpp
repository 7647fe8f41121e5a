// Sets the pointers of a kernel's parameter from the run's operands and launches it.
#include "cuda/launch.h"

namespace rlx::cuda {

void* Source::address(const RunArgs& args) const {
  void* base = nullptr;
  switch (kind) {
    case Kind::operand: base = args.operands[index]; break;
    case Kind::workspace: base = args.workspace; break;
    case Kind::random: base = args.random; break;
    case Kind::fault: base = args.random + 1; break;
  }
  return base ? static_cast<std::byte*>(base) + byte_offset : nullptr;
}

LaunchBody::LaunchBody(KernelPtr kernel, const LaunchShape& shape,
                       std::span<const std::byte> params, std::vector<Patch> patches,
                       std::vector<std::shared_ptr<const void>> kept)
    : kernel_(std::move(kernel)), shape_(shape), params_(params.begin(), params.end()),
      patches_(std::move(patches)), kept_(std::move(kept)) {}

void LaunchBody::run(const RunArgs& args, uint32_t counter, int64_t value) const {
  alignas(16) std::byte params[max_params];
  std::memcpy(params, params_.data(), params_.size());
  std::memcpy(params + counter, &value, sizeof value);
  launch(args, {params, params_.size()});
}

void LaunchBody::launch(const RunArgs& args, std::span<const std::byte> given) const {
  if (shape_.shared_bytes > (48 << 10)) {
    std::call_once(shared_allowed_, [&] {
      kernel_->driver().allow_shared(kernel_->function(), shape_.shared_bytes);
    });
  }
  alignas(16) std::byte params[max_params];
  std::memcpy(params, given.data(), given.size());
  for (const Patch& patch : patches_) {
    void* const address = patch.source.address(args);
    std::memcpy(params + patch.offset, &address, sizeof address);
  }
  kernel_->driver().launch(kernel_->function(), shape_, {params, given.size()},
                           static_cast<Stream>(args.stream));
}

}  // namespace rlx::cuda
