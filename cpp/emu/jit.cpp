// Compiles kernels by g++ into shared objects, kept in a directory by the digest of their text.
#include "emu/jit.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <semaphore>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/hash.h"

extern char** environ;

namespace rlx::emu {
namespace {

namespace fs = std::filesystem;
using cuda::KernelSpec;

const fs::path root = RLX_SOURCE_DIR;

fs::path cache_folder() {
  return fs::temp_directory_path() / ("rlx-emu-" + std::to_string(getuid()));
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw Error(ErrorKind::internal, "cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs a command; its output goes to the file `log`.
int run_command(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  pid_t pid = 0;
  const int rc = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (rc != 0 || waitpid(pid, &status, 0) < 0) return -1;
  return status;
}

class Compiler {
 public:
  // The shared object of a spec, compiled unless it is there.
  fs::path object(const KernelSpec& spec) {
    const std::string source = source_of(spec);
    std::string all = source;
    for (const auto& header : spec.generated) all += header.name + "\n" + header.text;
    std::set<std::string> seen;
    for (const auto& header : spec.generated) add_includes(header.text, all, seen);
    add_includes(source, all, seen);
    all += read_file(root / "cpp/emu/device/runtime.cpp");
    const fs::path folder = cache_folder();
    std::ostringstream name;
    name << std::hex << hash_bytes(std::as_bytes(std::span(all))) << "-" << all.size();
    const fs::path kept = folder / name.str();
    note(folder, name.str());
    if (fs::exists(kept / "kernel.so")) return kept / "kernel.so";
    const fs::path work = folder / (name.str() + "." + std::to_string(getpid()) + "." +
                                    std::to_string(counter_++));
    compile(spec, source, work);
    std::error_code taken;  // another process may have been faster
    fs::rename(work, kept, taken);
    if (taken) fs::remove_all(work);
    return kept / "kernel.so";
  }

 private:
  static std::string source_of(const KernelSpec& spec) {
    std::ostringstream s;
    for (const std::string& d : spec.defines) {
      const size_t at = d.find('=');
      s << "#define " << d.substr(0, at) << " "
        << (at == std::string::npos ? "1" : d.substr(at + 1)) << "\n";
    }
    s << "#if !defined(__CUDACC_RTC__)\n#include \"cpp/emu/device/shim.h\"\n#endif\n#include \""
      << spec.file << "\"\n#if !defined(__CUDACC_RTC__)\n"
      << "extern \"C\" void rlx_emu_entry(const void* p) { ::rlx::emu::call(&" << spec.entry
      << ", p); }\nextern \"C\" unsigned long rlx_emu_params_size() { return "
      << "::rlx::emu::params_size(&" << spec.entry << "); }\n#endif\n";
    return s.str();
  }

  // Appends what `text` includes from the repository, with what that includes.
  void add_includes(const std::string& text, std::string& all, std::set<std::string>& seen) {
    const std::string word = "#include \"";
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
      at += word.size();
      const std::string name = text.substr(at, text.find('"', at) - at);
      if (name.starts_with("generated/") || !seen.insert(name).second) continue;
      const std::string inner = read_file(root / name);
      all += inner;
      add_includes(inner, all, seen);
    }
  }

  // Leaves kernel.cu, which NVRTC takes as well, and kernel.so in `work`.
  void compile(const KernelSpec& spec, const std::string& source, const fs::path& work) {
    fs::create_directories(work / "generated");
    for (const auto& header : spec.generated) std::ofstream(work / header.name) << header.text;
    std::ofstream(work / "kernel.cu") << source;
    const fs::path log = work / "log", runtime = runtime_object(log);
    slots_.acquire();
    const int rc = run_command({RLX_CXX, "-std=c++20", "-O1", "-fPIC", "-shared", "-w", "-pthread",
                                "-I" + work.string(), "-I" + root.string(), "-x", "c++",
                                (work / "kernel.cu").string(), "-x", "none", runtime.string(),
                                "-o", (work / "kernel.so").string()},
                               log);
    slots_.release();
    if (rc != 0) {
      throw Error(ErrorKind::internal, "the emulator could not compile " + spec.file + " in " +
                                           work.string() + ":\n" + read_file(log));
    }
  }

  // The scheduler of the fibers, compiled once.
  fs::path runtime_object(const fs::path& log) {
    const std::lock_guard lock(notes_);
    const fs::path source = root / "cpp/emu/device/runtime.cpp";
    const std::string text = read_file(source) + read_file(root / "cpp/emu/device/shim.h");
    std::ostringstream name;
    name << "runtime-" << std::hex << hash_bytes(std::as_bytes(std::span(text)));
    const fs::path object = cache_folder() / (name.str() + ".o");
    if (fs::exists(object)) return object;
    const fs::path made = object.string() + "." + std::to_string(getpid());
    if (run_command({RLX_CXX, "-std=c++20", "-O2", "-fPIC", "-c", "-I" + root.string(),
                     source.string(), "-o", made.string()}, log) != 0) {
      throw Error(ErrorKind::internal, "the emulator could not compile " + source.string() + ":\n" +
                                           read_file(log));
    }
    fs::rename(made, object);
    return object;
  }

  // Tells tests which kernels this process asked for.
  void note(const fs::path& folder, const std::string& name) {
    const std::lock_guard lock(notes_);
    fs::create_directories(folder);
    std::ofstream(folder / ("asked." + std::to_string(getpid())), std::ios::app) << name << "\n";
  }

  std::mutex notes_;
  std::counting_semaphore<> slots_{2};
  std::atomic<int> counter_{0};
};

class EmuKernel final : public cuda::Kernel {
 public:
  EmuKernel(cuda::Driver& driver, Compiler& compiler, const KernelSpec& spec, bool late)
      : driver_(driver), spec_(spec), late_(late) {
    object_ = std::async(late ? std::launch::deferred : std::launch::async,
                         [this, &compiler] { return compiler.object(spec_); }).share();
  }
  cuda::Driver& driver() const override { return driver_; }
  const std::string& entry() const override { return spec_.entry; }
  bool ready() const override { return !late_; }
  cuda::Function function() const override {
    std::call_once(once_, [this] {
      const std::string path = object_.get().string();
      const std::span<const char> text(path.c_str(), path.size() + 1);
      function_ = driver_.function(driver_.load(std::as_bytes(text)), spec_.entry);
    });
    return function_;
  }

 private:
  cuda::Driver& driver_;
  const KernelSpec spec_;
  const bool late_;
  std::shared_future<fs::path> object_;
  mutable std::once_flag once_;
  mutable cuda::Function function_ = nullptr;
};

class EmuJit final : public cuda::Jit {
 public:
  EmuJit(cuda::Driver& driver, bool late) : driver_(driver), late_(late) {}

  cuda::KernelPtr get(const KernelSpec& spec) override {
    std::string key = spec.file + "\n" + spec.entry;
    for (const std::string& d : spec.defines) key += "\n" + d;
    for (const auto& header : spec.generated) key += "\n" + header.name + "\n" + header.text;
    const std::lock_guard lock(mutex_);
    cuda::KernelPtr& kernel = kernels_[key];
    const bool late = late_ && spec.file == "kernels/region.cu";
    if (!kernel) kernel = std::make_shared<EmuKernel>(driver_, compiler_, spec, late);
    return kernel;
  }

 private:
  cuda::Driver& driver_;
  const bool late_;
  Compiler compiler_;
  std::mutex mutex_;
  std::map<std::string, cuda::KernelPtr> kernels_;
};

}  // namespace

std::unique_ptr<cuda::Jit> make_jit(cuda::Driver& driver, bool late) {
  return std::make_unique<EmuJit>(driver, late);
}

}  // namespace rlx::emu
