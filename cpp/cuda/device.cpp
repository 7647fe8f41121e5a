// Puts the parts of the CUDA backend behind the executor's interface.
#include "cuda/device.h"

#include <map>
#include <mutex>
#include <set>

#include "core/env.h"
#include "cuda/api/driver.h"
#include "cuda/arena.h"
#include "cuda/libs/libraries.h"
#include "cuda/of_process.h"
#include "cuda/offline.h"
#include "cuda/queue.h"
#include "cuda/select/region_program.h"
#include "plan/weight_updates.h"

namespace rlx::cuda {
namespace {

// The kernels of one Session, so that what is wrong with others' is not told to it.
class SessionJit final : public Jit {
 public:
  explicit SessionJit(Jit& all) : all_(all) {}

  KernelPtr get(const KernelSpec& spec) override {
    KernelPtr kernel = all_.get(spec);
    const std::lock_guard lock(mutex_);
    kernels_.insert(kernel);
    return kernel;
  }
  void finish() const {
    std::set<KernelPtr> asked;
    {
      const std::lock_guard lock(mutex_);
      asked = kernels_;
    }
    for (const KernelPtr& kernel : asked) kernel->function();
  }

 private:
  Jit& all_;
  mutable std::mutex mutex_;
  std::set<KernelPtr> kernels_;
};

class CudaDevice final : public Device, public plan::WeightUpdates {
 public:
  CudaDevice(std::shared_ptr<const Gpu> gpu, DeviceOptions options)
      : gpu_(std::move(gpu)),
        jit_(*gpu_->jit),
        tools_{*gpu_->driver, jit_, gpu_->libraries.get(), options, gpu_->weights.get(), this} {}
  ~CudaDevice() override { gpu_->weights->leave(this); }

  std::string name() const override {
    return "cuda:" + std::to_string(gpu_->driver->info().ordinal);
  }
  int ordinal() const override { return gpu_->driver->info().ordinal; }
  Selection select(const SelectRequest& request) const override {
    return cuda::select(request, tools_);
  }
  std::unique_ptr<Arena> make_arena() const override { return cuda::make_arena(gpu_->driver); }
  int default_threads() const override { return 1; }  // of the host: it only launches
  std::span<const std::string_view> rungs() const override { return cuda::rungs(); }
  std::unique_ptr<Queue> make_queue(uint64_t random) const override {
    return cuda::make_queue(gpu_->driver, random, gpu_->pool, gpu_->weights, this);
  }
  std::shared_ptr<const void> upload(const Constant& constant) const override {
    return gpu_->weights->upload(this, constant);
  }
  std::shared_ptr<void> allocate(size_t bytes) const override {
    std::shared_ptr<void> block = gpu_->pool->get(bytes);
    MemoryPool::lend(block);
    return block;
  }
  void copy(void* to, const void* from, size_t bytes) const override {
    gpu_->weights->settle(this);
    gpu_->driver->synchronize_all();
    gpu_->weights->copy(to, from, bytes);
  }
  bool only_mine(const Constant& constant) const override {
    return gpu_->weights->only_of(this, constant);
  }
  void replace(const Constant& constant, const Constant& now) const override {
    gpu_->weights->replace(constant, now);
  }
  bool arena_is_visible() const override { return gpu_->driver->host_memory(); }
  const Gpu& gpu() const { return *gpu_; }
  void ask_for(const KernelSpec& spec) { jit_.get(spec); }
  void finish_kernels() const { jit_.finish(); }

 private:
  const std::shared_ptr<const Gpu> gpu_;
  SessionJit jit_;
  const Tools tools_;
};

struct Gpus {
  std::mutex mutex;
  std::map<int, std::shared_ptr<const Gpu>> opened;
};

Gpus& gpus() { return of_process<Gpus>(); }

// Bytes of free blocks that the pool keeps.
size_t pool_cap(const Driver& driver) {
  const size_t least = size_t{1} << 30;
  const auto chosen = env_int("CUDA_ARENA_POOL", 0, INT64_MAX);
  return chosen ? size_t(*chosen) : std::max(least, driver.info().memory_bytes / 8);
}

}  // namespace

std::shared_ptr<const Gpu> open_gpu(int ordinal) {
  const std::lock_guard lock(gpus().mutex);
  auto driver = api::open_driver(ordinal);  // throws also when CUDA was lost since
  auto& gpu = gpus().opened[ordinal];
  if (gpu) return gpu;
  auto made = std::make_shared<Gpu>();
  made->driver = std::move(driver);
  made->pool = std::make_shared<MemoryPool>(made->driver, pool_cap(*made->driver));
  made->weights = std::make_shared<Weights>(made->driver, made->pool);
  made->jit = make_jit(made->driver);
  made->libraries = std::make_shared<Libraries>(made->driver);
  return gpu = made;
}

void bound_pools() {
  for (const auto& gpu : opened_gpus()) gpu->pool->set_cap(pool_cap(*gpu->driver));
}

void reset_gpu(int ordinal) {
  const std::lock_guard lock(gpus().mutex);
  api::reset_driver(ordinal);
  gpus().opened.erase(ordinal);
}

std::vector<std::shared_ptr<const Gpu>> opened_gpus() {
  const std::lock_guard lock(gpus().mutex);
  std::vector<std::shared_ptr<const Gpu>> opened;
  for (const auto& [ordinal, gpu] : gpus().opened) {
    if (gpu) opened.push_back(gpu);
  }
  return opened;
}

std::shared_ptr<Device> make_device(std::shared_ptr<const Gpu> gpu, DeviceOptions options) {
  return std::make_shared<CudaDevice>(std::move(gpu), options);
}

std::shared_ptr<Device> make_offline_device(int capability, bool libraries, std::string folder,
                                            DeviceOptions options) {
  auto gpu = std::make_shared<Gpu>();
  gpu->driver = make_offline_driver(capability);
  gpu->pool = std::make_shared<MemoryPool>(gpu->driver, 0);
  gpu->weights = std::make_shared<Weights>(gpu->driver, gpu->pool);
  gpu->jit = make_jit(gpu->driver, std::move(folder));
  if (libraries) gpu->libraries = std::make_shared<Libraries>(gpu->driver, true);
  const auto device = std::make_shared<CudaDevice>(std::move(gpu), options);
  device->ask_for(interpreter());  // runs do or not, by how soon other kernels are there
  return device;
}

const Gpu* gpu_of(const Device& device) {
  const auto* cuda = dynamic_cast<const CudaDevice*>(&device);
  return cuda ? &cuda->gpu() : nullptr;
}

void finish_kernels(const Device& device) {
  if (const auto* cuda = dynamic_cast<const CudaDevice*>(&device)) cuda->finish_kernels();
}

}  // namespace rlx::cuda
