// Compiles each distinct kernel once, on worker threads that end when nothing is left to do.
#include "cuda/jit_nvrtc.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "cuda/api/nvrtc.h"
#include "cuda/at_work.h"
#include "cuda/cache.h"
#include "cuda/kernel_key.h"

namespace rlx::cuda {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The headers of the kernel table; NVRTC gets all of them, by the names that sources include.
const std::vector<NamedText>& table_headers() {
  static const std::vector<NamedText> headers = [] {
    std::vector<NamedText> found;
    for (const EmbeddedFile& file : kernel_files()) {
      if (std::string_view(file.name).ends_with(".h")) found.push_back({file.name, file.text});
    }
    return found;
  }();
  return headers;
}

std::string source_of(const std::string& file) {
  for (const EmbeddedFile& each : kernel_files()) {
    if (file == each.name) return each.text;
  }
  throw Error(ErrorKind::internal, "there is no kernel source '" + file + "'");
}

std::vector<std::string> options_of(const KernelSpec& spec, const std::string& architecture) {
  std::vector<std::string> options = {"--std=c++20", "-arch=" + architecture,
                                      "--extra-device-vectorization", "-lineinfo"};
  for (const std::string& define : spec.defines) options.push_back("-D" + define);
  // What a generated Region and its interpreter compute must not differ by what the compiler joins.
  if (spec.file.starts_with("kernels/region")) options.push_back("--fmad=false");
  return options;
}

Digest key_of(const KernelSpec& spec, const std::string& text,
              const std::vector<std::string>& options, const std::string& nvrtc) {
  static const Digest table = digest_of(table_headers());
  const Digest headers[] = {table, digest_of(spec.generated)};
  return digest_of({.compilers = nvrtc,
                    .name = spec.file,
                    .text = text,
                    .options = options,
                    .entries = {&spec.entry, 1},
                    .headers = headers});
}

struct Image {
  std::vector<std::byte> bytes;
  bool from_disk = false;
};

Image make_image(const KernelSpec& spec, int capability, const std::string& folder) {
  const api::Nvrtc& nvrtc = api::Nvrtc::get();
  const std::string text = source_of(spec.file);
  const std::vector<std::string> options = options_of(spec, nvrtc.architecture(capability));
  const Digest key = key_of(spec, text, options, nvrtc.version());
  const DiskCache cache(folder);
  if (auto cached = cache.read(key)) return {std::move(*cached), true};
  std::vector<NamedText> headers = table_headers();
  headers.insert(headers.end(), spec.generated.begin(), spec.generated.end());
  api::Compiled compiled = nvrtc.compile(spec.file, text, headers, options);
  Image image{std::move(compiled.cubin.empty() ? compiled.ptx : compiled.cubin), false};
  cache.write(key, image.bytes);
  return image;
}

class JitImpl;

class CompiledKernel final : public Kernel {
 public:
  CompiledKernel(JitImpl& jit, KernelSpec spec) : spec(std::move(spec)), jit_(jit) {}
  ~CompiledKernel() override;

  Driver& driver() const override;
  const std::string& entry() const override { return spec.entry; }
  Function function() const override;
  bool ready() const override { return loaded_; }
  // What fails is told to whoever asks for the function.
  void load() const noexcept;

  const KernelSpec spec;
  std::shared_future<Image> future_;

 private:
  JitImpl& jit_;
  mutable std::mutex mutex_;
  mutable Module module_ = nullptr;
  mutable std::atomic<Function> function_{nullptr};
  mutable std::atomic<bool> loaded_{false};
};

struct Compilers {
  std::mutex mutex;
  std::set<JitImpl*> all;
  bool ended = false;
};

Compilers& compilers() { return of_process<Compilers>(); }

// A kernel that nobody has begun to compile.
struct Task {
  std::shared_ptr<CompiledKernel> kernel;
  std::promise<Image> image;

  void drop() {
    image.set_exception(std::make_exception_ptr(ending_error("no kernel is compiled")));
  }
};

class JitImpl final : public NvrtcJit {
 public:
  JitImpl(std::shared_ptr<Driver> driver, std::optional<std::string> folder)
      : driver(std::move(driver)), folder_(std::move(folder)),
        most_(std::clamp(std::thread::hardware_concurrency(), 1u, 16u)) {
    api::Nvrtc::get();
    const std::lock_guard lock(compilers().mutex);
    compilers().all.insert(this);
    ended_ = compilers().ended;
  }
  ~JitImpl() override {
    {
      const std::lock_guard lock(compilers().mutex);
      compilers().all.erase(this);
    }
    rest();
  }
  // Compiles nothing any more; returns when no thread of its own is left.
  void rest() {
    if (fork_generation() != born_) return;  // a child has none of them
    std::unique_lock lock(mutex_);
    ended_ = true;
    for (Task& task : std::exchange(tasks_, {})) task.drop();
    idle_.wait(lock, [&] { return workers_ == 0; });
  }

  KernelPtr get(const KernelSpec& spec) override;
  JitStatistics statistics() const override {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }
  void count_load(double seconds) {
    const std::lock_guard lock(mutex_);
    ++statistics_.loaded;
    statistics_.load_seconds += seconds;
  }

  const std::shared_ptr<Driver> driver;

 private:
  using Key = std::tuple<std::string, std::string, std::vector<std::string>, std::string>;
  void work();
  Image compile(const KernelSpec& spec);

  const std::optional<std::string> folder_;
  const unsigned most_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  const uint64_t born_ = fork_generation();
  std::deque<Task> tasks_;
  unsigned workers_ = 0;
  bool ended_ = false;
  std::map<Key, std::shared_ptr<CompiledKernel>> kernels_;
  JitStatistics statistics_;
};

KernelPtr JitImpl::get(const KernelSpec& spec) {
  std::string generated;
  for (const NamedText& header : spec.generated) generated += header.name + '\n' + header.text;
  const std::lock_guard lock(mutex_);
  auto& kernel = kernels_[Key{spec.file, spec.entry, spec.defines, std::move(generated)}];
  if (kernel) return kernel;
  kernel = std::make_shared<CompiledKernel>(*this, spec);
  Task task{kernel, {}};
  kernel->future_ = task.image.get_future().share();
  if (ended_) {
    task.drop();
    return kernel;
  }
  tasks_.push_back(std::move(task));
  if (workers_ < most_) {
    ++workers_;
    std::thread([this] { work(); }).detach();
  }
  return kernel;
}

void JitImpl::work() {
  std::unique_lock lock(mutex_);
  while (!tasks_.empty()) {
    {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      try {
        task.image.set_value(compile(task.kernel->spec));
      } catch (...) {
        task.image.set_exception(std::current_exception());
      }
      // Loaded here too: the first run then waits for no module, and a recording meets none.
      task.kernel->load();
    }
    lock.lock();
  }
  if (--workers_ == 0) idle_.notify_all();
}

Image JitImpl::compile(const KernelSpec& spec) {
  const auto begin = Clock::now();
  Image image = make_image(spec, driver->info().capability, folder_ ? *folder_ : cache_folder());
  const std::lock_guard lock(mutex_);
  ++(image.from_disk ? statistics_.read : statistics_.compiled);
  statistics_.compile_seconds += seconds_since(begin);
  return image;
}

CompiledKernel::~CompiledKernel() {
  if (module_) jit_.driver->unload(module_);
}

Driver& CompiledKernel::driver() const { return *jit_.driver; }

Function CompiledKernel::function() const {
  if (const Function made = function_) return made;
  const std::lock_guard lock(mutex_);
  if (function_) return function_;
  const Image& image = future_.get();
  const auto begin = Clock::now();
  module_ = jit_.driver->load(image.bytes);
  function_ = jit_.driver->function(module_, spec.entry);
  jit_.count_load(seconds_since(begin));
  return function_;
}

void CompiledKernel::load() const noexcept {
  try {
    function();
  } catch (const std::exception&) {
  }
  loaded_ = true;
}

}  // namespace

std::unique_ptr<NvrtcJit> make_jit(std::shared_ptr<Driver> driver,
                                   std::optional<std::string> folder) {
  return std::make_unique<JitImpl>(std::move(driver), std::move(folder));
}

void rest_compilers() {
  const std::lock_guard lock(compilers().mutex);
  compilers().ended = true;
  for (JitImpl* jit : compilers().all) jit->rest();
}

std::vector<std::byte> compile_kernel(const KernelSpec& spec, int capability) {
  return make_image(spec, capability, cache_folder()).bytes;
}

}  // namespace rlx::cuda
