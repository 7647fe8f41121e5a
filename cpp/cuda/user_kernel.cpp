// Loads users' programs and checks launches.
#include "cuda/user_kernel.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "cuda/api/types.h"
#include "cuda/of_process.h"

namespace rlx::cuda {
namespace {

constexpr uint32_t most_yz = 65535, most_block_z = 64, free_shared = 48 << 10;
constexpr uint32_t most_x = (uint32_t{1} << 31) - 1;
constexpr size_t most_modules = 256;

struct Loaded {
  std::mutex mutex;  // of one program: others are loaded meanwhile
  std::shared_ptr<void> module;

  bool idle() {
    const std::unique_lock lock(mutex, std::try_to_lock);
    return lock && module.use_count() <= 1;
  }
};

// The modules of each GPU, by their programs; those that nobody uses stay while they are few, and
// no longer than their driver.
struct Modules {
  using Programs = std::map<Digest, std::shared_ptr<Loaded>>;
  std::mutex mutex;
  std::map<std::weak_ptr<api::GpuDriver>, Programs, std::owner_less<>> loaded;

  std::shared_ptr<Loaded> find(const UserProgram& program,
                               const std::shared_ptr<api::GpuDriver>& driver) {
    const std::lock_guard lock(mutex);
    std::erase_if(loaded, [](const auto& of_driver) { return of_driver.first.expired(); });
    Programs& programs = loaded[driver];
    if (programs.size() >= most_modules) {
      std::erase_if(programs, [](const auto& p) { return p.second->idle(); });
    }
    auto& found = programs[program.key];
    if (!found) found = std::make_shared<Loaded>();
    return found;
  }
};

std::shared_ptr<void> module_of(const UserProgram& program,
                                const std::shared_ptr<api::GpuDriver>& driver) {
  const std::shared_ptr<Loaded> known = of_process<Modules>().find(program, driver);
  const std::lock_guard lock(known->mutex);
  if (known->module) return known->module;
  const Module module = driver->load(program.cubin.empty() ? program.ptx : program.cubin);
  // Who uses a module keeps its driver.
  known->module = {module, [weak = std::weak_ptr(driver)](void* m) {
    if (const auto alive = weak.lock()) alive->unload(static_cast<Module>(m));
  }};
  return known->module;
}

}  // namespace

UserKernel::UserKernel(UserProgramPtr program, const std::string& symbol, std::string name,
                       int ordinal)
    : name_(std::move(name)), driver_(api::open_driver(ordinal)) {
  try {
    module_ = module_of(*program, driver_);
    function_ = driver_->function(static_cast<Module>(module_.get()), symbol);
    usage_.registers = driver_->attribute_of(function_, api::function_registers);
    usage_.shared_bytes = driver_->attribute_of(function_, api::function_shared_bytes);
    usage_.local_bytes = driver_->attribute_of(function_, api::function_local_bytes);
    usage_.max_threads = driver_->attribute_of(function_, api::function_max_threads);
  } catch (const Error& error) {
    throw of_kernel(error, name_ + "' for " + program->architecture + " on '" +
                               driver_->info().name);
  }
}

void UserKernel::check(const LaunchShape& shape) const {
  const Extent3 &g = shape.grid, &b = shape.block;
  const auto text = [](const Extent3& e) {
    return "(" + std::to_string(e.x) + ", " + std::to_string(e.y) + ", " + std::to_string(e.z) +
           ")";
  };
  const auto refuse = [&](const char* what, std::string expected, std::string got) {
    throw Error(ErrorKind::input, "kernel '" + name_ + "': " + what)
        .expected_got(std::move(expected), std::move(got));
  };
  if (!g.x || !g.y || !g.z || g.x > most_x || g.y > most_yz || g.z > most_yz) {
    refuse("the grid is no grid", "1 to (2147483647, 65535, 65535)", text(g));
  }
  const uint64_t threads = uint64_t{b.x} * b.y * b.z;
  if (!b.x || !b.y || !b.z || b.z > most_block_z || b.x > 1024 || b.y > 1024 ||
      threads > uint64_t(usage_.max_threads)) {
    refuse("the block is no block of this kernel",
           "1 to " + std::to_string(usage_.max_threads) + " threads, at most 64 of them in z",
           text(b));
  }
  const int64_t most = driver_->info().shared_per_block - usage_.shared_bytes;
  if (int64_t{shape.shared_bytes} > most) {
    refuse("a block has not so much shared memory",
           "at most " + std::to_string(most) + " bytes beside those that the kernel declares",
           std::to_string(shape.shared_bytes));
  }
}

std::shared_ptr<Flight> UserKernel::launch(const LaunchShape& shape,
                                           std::span<void* const> parameters, Stream stream,
                                           std::vector<std::shared_ptr<void>> owners) const {
  sweep_flights();
  try {
    if (shape.shared_bytes + uint32_t(usage_.shared_bytes) > free_shared) {
      driver_->allow_shared(function_, shape.shared_bytes);
    }
    owners.push_back(module_);
    return Flight::begin(std::make_shared<Flight>(driver_, name_, std::move(owners)), stream,
                         [&] { driver_->launch_with(function_, shape, parameters, stream); });
  } catch (const Error& error) {
    throw of_kernel(error, name_);
  }
}

}  // namespace rlx::cuda
