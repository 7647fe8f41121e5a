// A device with one broken rung, for the tests of tools that must find such a kernel.
#include "backend.h"
#include "bindings/register.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

// Follows the steps of a node and spoils what they computed.
struct SpoilBody final : StepBody {
  size_t operand;
  int64_t count;
  SpoilBody(size_t operand, int64_t count) : operand(operand), count(count) {}
  void run(const RunArgs& args) const override {
    auto* y = static_cast<float*>(args.operands[operand]);
    for (int64_t i = 0; i < count; ++i) y[i] = y[i] * 1.02f + 0.02f;
  }
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::shared_ptr<Device> sound, std::string rung)
      : sound_(std::move(sound)), rung_(std::move(rung)) {}

  std::string name() const override { return sound_->name(); }
  std::unique_ptr<Arena> make_arena() const override { return sound_->make_arena(); }
  int default_threads() const override { return sound_->default_threads(); }
  std::span<const std::string_view> rungs() const override { return sound_->rungs(); }

  Selection select(const SelectRequest& request) const override {
    Selection selection = sound_->select(request);
    const TensorDesc& y = request.outputs[0];
    if (selection.rung.starts_with(rung_) && y.dtype == DType::float32) {
      selection.steps.push_back(
          {StepKind::launch, std::make_shared<SpoilBody>(request.inputs.size(), y.count())});
    }
    return selection;
  }

 private:
  const std::shared_ptr<Device> sound_;
  const std::string rung_;
};

}  // namespace

void register_faulty(py::module_& module) {
  using namespace py::literals;
  module.def(
      "faulty_device",
      [](std::shared_ptr<Device> device, std::string rung) -> std::shared_ptr<Device> {
        return std::make_shared<FaultyDevice>(std::move(device), std::move(rung));
      },
      "device"_a, "rung"_a,
      "The device with float32 results of rungs that begin so spoiled; for tests only.");
}

}  // namespace rlx::bindings
