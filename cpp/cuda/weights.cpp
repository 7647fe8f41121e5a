// Copies weights to the device when a plan first needs them.
#include "cuda/weights.h"

namespace rlx::cuda {

Weights::Weights(std::shared_ptr<Driver> driver, std::shared_ptr<MemoryPool> pool)
    : driver_(std::move(driver)), pool_(std::move(pool)), stream_(driver_->make_stream()) {}

Weights::~Weights() { driver_->free(stream_); }

void Weights::copy_in(void* to, const void* from, size_t bytes) {
  driver_->copy(to, from, bytes, stream_);
  driver_->synchronize(stream_);
}

// The copy keeps the host's bytes alive, so that no other weight can get their address.
std::shared_ptr<const void> Weights::make(const Constant& constant, size_t bytes,
                                          const void* from) {
  const std::shared_ptr<void> memory = pool_->get(bytes);
  if (bytes) copy_in(memory.get(), from, bytes);
  const auto both = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<const void>>>(
      memory, constant.owner);
  return {both, memory.get()};
}

std::shared_ptr<const void> Weights::upload(const Constant& constant) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[Key{constant.data, ""}];
  if (auto found = held.lock()) return found;
  const auto made = make(constant, constant.bytes, constant.data);
  held = made;
  return made;
}

std::shared_ptr<const void> Weights::pack(const Constant& constant, const std::string& format,
                                          size_t bytes, const std::function<void(void*)>& fill) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[Key{constant.data, format + " " + std::to_string(bytes)}];
  if (auto found = held.lock()) return found;
  const std::unique_ptr<std::byte[]> host(new std::byte[bytes]);
  fill(host.get());
  const auto made = make(constant, bytes, host.get());
  held = made;
  return made;
}

}  // namespace rlx::cuda
