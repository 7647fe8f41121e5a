// The CUDA driver behind the interface of cuda/driver.h, each call checked by one function.
#include "cuda/api/driver.h"

#include <map>
#include <mutex>

#include "cuda/api/driver_errors.h"
#include "cuda/api/driver_table.h"
#include "cuda/api/forked.h"
#include "cuda/api/launch_of.h"
#include "cuda/api/loader.h"
#include "cuda/api/loss.h"
#include "cuda/of_process.h"

namespace rlx::cuda::api {
namespace {

int attribute(DeviceId device, int which) {
  int value = 0;
  check_start(driver_table().device_attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

DevicePtr address(const void* p) { return reinterpret_cast<DevicePtr>(p); }

template <class To, class From>
To as(From* handle) { return reinterpret_cast<To>(handle); }

// Of all GPUs, by an error on one.
Loss& process_loss() { return of_process<Loss>(); }

class RealDriver final : public GpuDriver {
 public:
  RealDriver(int ordinal, int generation) : generation_(generation) {
    check_start(cu_.device_get(&device_, ordinal), "cuDeviceGet");
    char name[128] = "";
    check_start(cu_.device_name(name, sizeof name, device_), "cuDeviceGetName");
    info_.ordinal = ordinal;
    info_.name = name;
    info_.capability =
        attribute(device_, capability_major) * 10 + attribute(device_, capability_minor);
    info_.multiprocessors = attribute(device_, multiprocessor_count);
    info_.shared_per_block = attribute(device_, shared_per_block_optin);
    info_.threads_per_multiprocessor = attribute(device_, threads_per_multiprocessor);
    info_.l2_bytes = size_t(attribute(device_, l2_cache_size));
    check_start(cu_.device_memory(&info_.memory_bytes, device_), "cuDeviceTotalMem");
    check_start(cu_.retain(&context_, device_), "cuDevicePrimaryCtxRetain");
    properties_ = {1, 0, {1, device_}, nullptr, {}};
  }

  const DeviceInfo& info() const override { return info_; }
  // Everything made here is gone: nothing must reach the driver any more.
  void forget() { lost_.tell("the GPU was reset", "load the model again"); }
  DeviceId device() const { return device_; }
  int generation() const override { return generation_; }
  Current make_current() override { return enter(); }
  Current make_current_quietly() noexcept override { return enter_quietly(); }
  void synchronize_all() override {
    const Current current = enter();
    check(cu_.context_synchronize(), "cuCtxSynchronize");
  }

  cuda::Module load(std::span<const std::byte> image) override {
    const Current current = enter();
    api::Module module = nullptr;
    check(cu_.load(&module, image.data(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    return as<cuda::Module>(module);
  }
  void unload(cuda::Module module) noexcept override {
    if (const Current current = enter_quietly()) cu_.unload(as<api::Module>(module));
  }
  cuda::Function function(cuda::Module module, const std::string& entry) override {
    const Current current = enter();
    api::Function function = nullptr;
    check(cu_.get_function(&function, as<api::Module>(module), entry.c_str()),
          "cuModuleGetFunction");
    return as<cuda::Function>(function);
  }
  void allow_shared(cuda::Function function, uint32_t bytes) override {
    // Launches of several sizes share a function: what one was allowed stays.
    const std::lock_guard lock(shared_mutex_);
    const Current current = enter();
    if (attribute_of(function, attribute_max_dynamic_shared) >= int(bytes)) return;
    check(cu_.set_attribute(as<api::Function>(function), attribute_max_dynamic_shared, int(bytes)),
          "cuFuncSetAttribute");
  }
  int blocks_per_multiprocessor(cuda::Function function, uint32_t threads,
                                uint32_t shared) override {
    const Current current = enter();
    int blocks = 0;
    check(cu_.occupancy(&blocks, as<api::Function>(function), int(threads), shared),
          "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks;
  }
  void launch(cuda::Function function, const LaunchShape& shape,
              std::span<const std::byte> params, cuda::Stream stream) override {
    void* const parameter = const_cast<std::byte*>(params.data());
    launch_with(function, shape, {&parameter, 1}, stream);
  }
  void launch_with(cuda::Function function, const LaunchShape& shape,
                   std::span<void* const> parameters, cuda::Stream stream) override;
  int attribute_of(cuda::Function function, int which) override {
    const Current current = enter();
    int value = 0;
    check(cu_.get_attribute(&value, which, as<api::Function>(function)), "cuFuncGetAttribute");
    return value;
  }

  void* allocate(size_t bytes) override {
    const Current current = enter();
    DevicePtr memory = 0;
    check(cu_.allocate(&memory, bytes), "cuMemAlloc");
    return reinterpret_cast<void*>(memory);
  }
  void free(void* memory) noexcept override {
    if (const Current current = enter_quietly()) cu_.free(address(memory));
  }
  void* allocate_host(size_t bytes) override {
    const Current current = enter();
    void* memory = nullptr;
    check(cu_.allocate_host(&memory, bytes), "cuMemAllocHost");
    return memory;
  }
  void free_host(void* memory) noexcept override {
    if (const Current current = enter_quietly()) cu_.free_host(memory);
  }
  void copy(void* to, const void* from, size_t bytes, cuda::Stream stream) override {
    const Current current = enter();
    const auto s = as<api::Stream>(stream);
    if (!on_device(from)) {
      copy_in(to, from, bytes, stream);
    } else if (!on_device(to)) {
      check(cu_.copy_out(to, address(from), bytes, s), "cuMemcpyDtoHAsync");
    } else {
      check(cu_.copy_within(address(to), address(from), bytes, s), "cuMemcpyDtoDAsync");
    }
  }
  void copy_in(void* to, const void* from, size_t bytes, cuda::Stream stream) override {
    const Current current = enter();
    check(cu_.copy_in(address(to), from, bytes, as<api::Stream>(stream)), "cuMemcpyHtoDAsync");
  }
  void fill(void* to, uint8_t value, size_t bytes, cuda::Stream stream) override {
    const Current current = enter();
    check(cu_.fill(address(to), value, bytes, as<api::Stream>(stream)), "cuMemsetD8Async");
  }
  bool on_device(const void* memory) override { return on_device(memory, nullptr); }
  int ordinal_of(const void* memory) override {
    int ordinal = -1;
    return on_device(memory, &ordinal) ? ordinal : -1;
  }

  size_t granularity() override {
    const Current current = enter();
    size_t bytes = 0;
    check(cu_.granularity(&bytes, &properties_, 0), "cuMemGetAllocationGranularity");
    return bytes;
  }
  void* reserve(size_t bytes) override {
    const Current current = enter();
    DevicePtr at = 0;
    check(cu_.reserve(&at, bytes, 0, 0, 0), "cuMemAddressReserve");
    return reinterpret_cast<void*>(at);
  }
  void unreserve(void* at, size_t bytes) noexcept override {
    if (const Current current = enter_quietly()) cu_.unreserve(address(at), bytes);
  }
  void map(void* at, size_t bytes) override {
    const Current current = enter();
    unsigned long long memory = 0;
    check(cu_.create(&memory, bytes, &properties_, 0), "cuMemCreate");
    const Result mapped = cu_.map(address(at), bytes, 0, memory, 0);
    cu_.release_memory(memory);  // the mapping keeps it
    check(mapped, "cuMemMap");
    const AccessDescription access{{1, device_}, 3};
    check(cu_.set_access(address(at), bytes, &access, 1), "cuMemSetAccess");
  }
  void unmap(void* at, size_t bytes) noexcept override {
    if (const Current current = enter_quietly()) cu_.unmap(address(at), bytes);
  }

  cuda::Stream make_stream() override {
    const Current current = enter();
    api::Stream stream = nullptr;
    check(cu_.stream_create(&stream, stream_non_blocking), "cuStreamCreate");
    return as<cuda::Stream>(stream);
  }
  void free(cuda::Stream stream) noexcept override {
    if (const Current current = enter_quietly()) cu_.stream_destroy(as<api::Stream>(stream));
  }
  void synchronize(cuda::Stream stream) override {
    const Current current = enter();
    check(cu_.stream_synchronize(as<api::Stream>(stream)), "cuStreamSynchronize");
  }
  cuda::Event make_event(bool timed) override {
    const Current current = enter();
    api::Event event = nullptr;
    check(cu_.event_create(&event, timed ? 0 : event_no_timing), "cuEventCreate");
    return as<cuda::Event>(event);
  }
  void free(cuda::Event event) noexcept override {
    if (const Current current = enter_quietly()) cu_.event_destroy(as<api::Event>(event));
  }
  void record(cuda::Event event, cuda::Stream stream) override {
    const Current current = enter();
    check(cu_.event_record(as<api::Event>(event), as<api::Stream>(stream)), "cuEventRecord");
  }
  void wait(cuda::Stream stream, cuda::Event event) override {
    const Current current = enter();
    check(cu_.stream_wait(as<api::Stream>(stream), as<api::Event>(event), 0),
          "cuStreamWaitEvent");
  }
  void synchronize(cuda::Event event) override {
    const Current current = enter();
    check(cu_.event_synchronize(as<api::Event>(event)), "cuEventSynchronize");
  }
  bool passed(cuda::Event event) override {
    const Current current = enter();
    const Result result = cu_.event_query(as<api::Event>(event));
    if (result != not_ready) check(result, "cuEventQuery");
    return result == 0;
  }
  double milliseconds(cuda::Event begin, cuda::Event end) override {
    const Current current = enter();
    float elapsed = 0;
    check(cu_.event_elapsed(&elapsed, as<api::Event>(begin), as<api::Event>(end)),
          "cuEventElapsedTime");
    return elapsed;
  }

  void begin_capture(cuda::Stream stream) override {
    const Current current = enter();
    check(cu_.begin_capture(as<api::Stream>(stream), capture_relaxed), "cuStreamBeginCapture");
  }
  cuda::Graph end_capture(cuda::Stream stream) override {
    const Current current = enter();
    api::Graph graph = nullptr;
    check(cu_.end_capture(as<api::Stream>(stream), &graph), "cuStreamEndCapture");
    GraphExec exec = nullptr;
    const Result made = cu_.instantiate(&exec, graph, 0);
    cu_.destroy_graph(graph);
    check(made, "cuGraphInstantiate");
    return as<cuda::Graph>(exec);
  }
  void abandon_capture(cuda::Stream stream) noexcept override {
    api::Graph graph = nullptr;
    const Current current = enter_quietly();
    if (current && cu_.end_capture(as<api::Stream>(stream), &graph) == 0 && graph) {
      cu_.destroy_graph(graph);
    }
  }
  void launch(cuda::Graph graph, cuda::Stream stream) override {
    const Current current = enter();
    check(cu_.launch_graph(as<GraphExec>(graph), as<api::Stream>(stream)), "cuGraphLaunch");
  }
  void free(cuda::Graph graph) noexcept override {
    if (const Current current = enter_quietly()) cu_.destroy_exec(as<GraphExec>(graph));
  }
  bool is_captured(cuda::Stream stream) override {
    const Current current = enter();
    int status = capture_none;
    const Result result = cu_.capture_status(as<api::Stream>(stream), &status);
    if (result == capture_implicit) {  // asked of the default stream, and harmless to the capture
      Error error(ErrorKind::input, "a stream is being captured that waits for the default stream, "
                                    "which can then be given no work");
      error.remedy = "a capture of a non-blocking stream (cupy.cuda.Stream(non_blocking=True))";
      throw error;
    }
    check(result, "cuStreamIsCapturing");
    return status != capture_none;
  }
  void keep_with_capture(cuda::Stream stream, void* what, void (*let_go)(void*)) override {
    const Current current = enter();
    UserObject object = nullptr;
    const Result made = cu_.user_object_create(&object, what, let_go, 1, user_object_no_sync);
    if (made != 0) let_go(what);
    check(made, "cuUserObjectCreate");
    int status = capture_none;
    api::Graph graph = nullptr;
    const Result found =
        cu_.capture_info(as<api::Stream>(stream), &status, nullptr, &graph, nullptr, nullptr);
    const Result kept =
        graph ? cu_.user_object_retain(graph, object, 1, user_object_move) : found;
    if (!graph || kept != 0) cu_.user_object_release(object, 1);
    check(found, "cuStreamGetCaptureInfo");
    check(kept, "cuGraphRetainUserObject");
  }

 private:
  bool on_device(const void* memory, int* ordinal) {
    const Current current = enter();
    // Asked for several attributes, the driver does not call a pointer to host memory an error.
    unsigned type = 0, is_managed = 0;
    int attributes[] = {pointer_memory_type, pointer_is_managed, pointer_ordinal};
    void* answers[] = {&type, &is_managed, ordinal};
    const Result result =
        cu_.pointer_attributes(ordinal ? 3 : 1, attributes, answers, address(memory));
    return result == 0 && type == memory_type_device && !is_managed;
  }

  Current enter() {
    if (fork_generation() != born_) throw forked_error();
    process_.check(ErrorKind::stale_handle);
    lost_.check(ErrorKind::stale_handle);
    Context before = nullptr;
    check(cu_.get_current(&before), "cuCtxGetCurrent");
    if (before != context_) check(cu_.set_current(context_), "cuCtxSetCurrent");
    return entered(before);
  }
  Current enter_quietly() noexcept {
    Context before = nullptr;
    const bool alive = !process_ && !lost_ && fork_generation() == born_ &&
                       cu_.get_current(&before) == 0 &&
                       (before == context_ || cu_.set_current(context_) == 0);
    return alive ? entered(before) : Current(false);
  }
  Current entered(Context before) const {
    return {cu_.exchange_capture_mode, capture_relaxed,
            before == context_ ? nullptr : cu_.set_current, before};
  }

  void check(Result result, const char* call) {
    if (result == 0) return;
    Error error = failure(result, call);
    if (is_sticky(result)) {
      error.remedy = "a new process: CUDA is lost to this one";
      process_.tell("an earlier error on cuda:" + std::to_string(info_.ordinal) +
                        " lost CUDA for this process: " + error.what(), error.remedy);
    }
    throw error;
  }

  std::mutex shared_mutex_;
  const DriverTable& cu_ = driver_table();
  const int generation_;
  DeviceId device_ = 0;
  Context context_ = nullptr;
  DeviceInfo info_;
  AllocationProperties properties_{};
  const uint64_t born_ = fork_generation();
  Loss lost_;
  Loss& process_ = process_loss();
};

void RealDriver::launch_with(cuda::Function function, const LaunchShape& shape,
                             std::span<void* const> parameters, cuda::Stream stream) {
  const LaunchOf launch(shape, as<api::Stream>(stream));
  const Current current = enter();
  auto* const kernel = as<api::Function>(function);
  check(cu_.launch(&launch.config, kernel, const_cast<void**>(parameters.data()), nullptr),
        "cuLaunchKernelEx");
}

struct Drivers {
  std::mutex mutex;
  std::map<int, std::shared_ptr<RealDriver>> opened;
  std::map<int, int> resets;
};

Drivers& drivers() { return of_process<Drivers>(); }

}  // namespace

void reset_driver(int ordinal) {
  auto& [mutex, opened, resets] = drivers();
  const std::lock_guard lock(mutex);
  const auto found = opened.find(ordinal);
  if (found == opened.end() || !found->second) return;
  process_loss().check(ErrorKind::device);  // the driver would reset it, and open none again
  const std::shared_ptr<RealDriver> driver = std::move(found->second);
  opened.erase(found);
  ++resets[ordinal];
  driver->forget();
  check_start(driver_table().reset(driver->device()), "cuDevicePrimaryCtxReset");
}

std::shared_ptr<GpuDriver> open_driver(int ordinal) {
  auto& [mutex, opened, resets] = drivers();
  const std::lock_guard lock(mutex);
  auto& driver = opened[ordinal];
  process_loss().check(ErrorKind::device);
  if (driver) return driver;
  const Found& library = loader().get(Lib::driver);
  if (!library.usable()) {
    Error error(ErrorKind::device, "CUDA cannot be used: " + library.reason);
    error.remedy = library.remedy + "; device=\"auto\" would take the CPU";
    throw error;
  }
  initialise_driver();
  int count = 0;
  check_start(driver_table().device_count(&count), "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count) {
    throw Error(ErrorKind::device, "there is no such GPU")
        .expected_got("cuda:0 to cuda:" + std::to_string(count - 1),
                      "cuda:" + std::to_string(ordinal));
  }
  return driver = std::make_shared<RealDriver>(ordinal, resets[ordinal]);
}

}  // namespace rlx::cuda::api
