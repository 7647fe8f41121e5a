// Selects as the CUDA device without any library does; runs on the CPU's arena.
#include "emu/device.h"

#include <cstring>

#include "cpu/arena.h"
#include "cuda/device.h"
#include "cuda/select/select.h"
#include "emu/driver.h"
#include "emu/jit.h"
#include "exec/devices.h"
#include "plan/memory.h"

namespace rlx::emu {
namespace {

// Tells what the kernels before it found wrong with their data.
struct FaultCheck final : StepBody {
  void run(const RunArgs& args) const override {
    if (args.random[1] == 0) return;
    args.random[1] = 0;
    throw Error(ErrorKind::input, "an index lies outside its axis");
  }
};

class EmuDevice final : public Device {
 public:
  explicit EmuDevice(std::string name)
      : name_(std::move(name)),
        driver_(make_driver(name_.ends_with("descending") ? FiberOrder::descending
                                                          : FiberOrder::ascending)),
        jit_(make_jit(*driver_, name_.ends_with("late"))) {
    options_.tf32 = name_.starts_with("emu:tf32");
  }

  std::string name() const override { return name_; }
  Selection select(const SelectRequest& request) const override {
    Selection made = cuda::select(request, cuda::Tools{*driver_, *jit_, nullptr, options_});
    if (std::holds_alternative<Gather>(request.prim) ||
        std::holds_alternative<Scatter>(request.prim) ||
        std::holds_alternative<Recurrent>(request.prim)) {
      made.steps.push_back({StepKind::host, std::make_shared<FaultCheck>()});
    }
    return made;
  }
  // A GPU's copy of a weight begins aligned, whatever its place in the file.
  std::shared_ptr<const void> upload(const Constant& constant) const override {
    if (reinterpret_cast<uintptr_t>(constant.data) % plan::alignment == 0) {
      return Device::upload(constant);
    }
    std::shared_ptr<void> copy = allocate(constant.bytes);
    std::memcpy(copy.get(), constant.data, constant.bytes);
    return copy;
  }
  std::unique_ptr<Arena> make_arena() const override { return cpu::make_arena(); }
  int default_threads() const override { return 1; }
  std::span<const std::string_view> rungs() const override { return cuda::rungs(); }

 private:
  std::string name_;
  cuda::DeviceOptions options_;
  std::unique_ptr<cuda::Driver> driver_;
  std::unique_ptr<cuda::Jit> jit_;
};

// The device of a real GPU, with its queue, arena, pool and weights, over the emulator's driver. A
// process has one, and never destroys it.
std::shared_ptr<const Device> make_card() {
  static const auto* const card = [] {
    auto gpu = std::make_shared<cuda::Gpu>();
    gpu->driver = make_driver(FiberOrder::ascending, true);
    gpu->pool = std::make_shared<cuda::MemoryPool>(gpu->driver, size_t{1} << 30);
    gpu->weights = std::make_shared<cuda::Weights>(gpu->driver, gpu->pool);
    gpu->jit = make_jit(*gpu->driver, false);
    return new std::shared_ptr<const cuda::Gpu>(std::move(gpu));
  }();
  return cuda::make_device(*card, {.tf32 = false});
}

const bool registered = [] {
  extra_devices().push_back({"emu:card", make_card});
  for (const char* name :
       {"emu", "emu:descending", "emu:late", "emu:tf32", "emu:tf32:descending"}) {
    extra_devices().push_back({name, [name] { return make_device(name); }});
  }
  return true;
}();

}  // namespace

std::shared_ptr<const Device> make_device(const std::string& name) {
  return std::make_shared<EmuDevice>(name);
}

}  // namespace rlx::emu
