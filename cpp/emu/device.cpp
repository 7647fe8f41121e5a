// Selects as the CUDA device without any library does; runs on the CPU's arena.
#include "emu/device.h"

#include "cpu/arena.h"
#include "cuda/select/select.h"
#include "emu/driver.h"
#include "emu/jit.h"
#include "exec/devices.h"

namespace rlx::emu {
namespace {

class EmuDevice final : public Device {
 public:
  explicit EmuDevice(std::string name)
      : name_(std::move(name)),
        driver_(make_driver(name_ == "emu" ? FiberOrder::ascending : FiberOrder::descending)),
        jit_(make_jit(*driver_)) {}

  std::string name() const override { return name_; }
  Selection select(const SelectRequest& request) const override {
    return cuda::select(request, cuda::Tools{*driver_, *jit_, nullptr, {}});
  }
  std::unique_ptr<Arena> make_arena() const override { return cpu::make_arena(); }
  int default_threads() const override { return 1; }

 private:
  std::string name_;
  std::unique_ptr<cuda::Driver> driver_;
  std::unique_ptr<cuda::Jit> jit_;
};

const bool registered = [] {
  for (const char* name : {"emu", "emu:descending"}) {
    extra_devices().push_back({name, [name] { return make_device(name); }});
  }
  return true;
}();

}  // namespace

std::shared_ptr<const Device> make_device(const std::string& name) {
  return std::make_shared<EmuDevice>(name);
}

}  // namespace rlx::emu
