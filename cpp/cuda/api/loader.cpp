// The catalogue of NVIDIA's libraries and the search for each.
#include "cuda/api/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <filesystem>

#include "cuda/of_process.h"

namespace rlx::cuda::api {
namespace {

// A child that is forked in the middle of dlopen has a linker that finds no symbols: forks wait.
std::mutex& opening = *new std::mutex;
const int registered = pthread_atfork([] { opening.lock(); }, [] { opening.unlock(); },
                                      [] { opening.unlock(); });

void* open_library(const std::string& name, int flags) {
  const std::lock_guard lock(opening);
  return dlopen(name.c_str(), flags);
}

namespace fs = std::filesystem;

struct Edition {
  const char *soname, *wheel_folder, *package;
};

struct Entry {
  const char* name;
  Edition cuda12, cuda13;
  const char* version_symbol;
};

// From CUDA 13 on the toolkit's wheels share one folder; cuDNN keeps its own, and its soname.
constexpr Entry catalogue[lib_count] = {
    {"driver", {"libcuda.so.1", "", ""}, {"libcuda.so.1", "", ""}, nullptr},
    {"NVRTC", {"libnvrtc.so.12", "cuda_nvrtc", "nvidia-cuda-nvrtc-cu12"},
     {"libnvrtc.so.13", "cu13", "'nvidia-cuda-nvrtc>=13,<14'"}, nullptr},
    {"cuBLASLt", {"libcublasLt.so.12", "cublas", "nvidia-cublas-cu12"},
     {"libcublasLt.so.13", "cu13", "'nvidia-cublas>=13,<14'"}, "cublasLtGetVersion"},
    {"cuBLAS", {"libcublas.so.12", "cublas", "nvidia-cublas-cu12"},
     {"libcublas.so.13", "cu13", "'nvidia-cublas>=13,<14'"}, nullptr},
    {"cuDNN", {"libcudnn.so.9", "cudnn", "'nvidia-cudnn-cu12>=9'"},
     {"libcudnn.so.9", "cudnn", "'nvidia-cudnn-cu13>=9'"}, "cudnnGetVersion"},
    {"nvJitLink", {"libnvJitLink.so.12", "nvjitlink", "nvidia-nvjitlink-cu12"},
     {"libnvJitLink.so.13", "cu13", "'nvidia-nvjitlink>=13,<14'"}, nullptr},
    {"NVTX", {"libnvToolsExt.so.1", "nvtx", "nvidia-nvtx-cu12"},
     {"libnvtx3interop.so.1", "cu13", "'nvidia-nvtx>=13,<14'"}, nullptr},
};

const Edition& edition(Lib lib, int major) {
  const Entry& entry = catalogue[size_t(lib)];
  return major == 12 ? entry.cuda12 : entry.cuda13;
}

std::string file_of(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

// Some NVRTC wheels (13.0) do not find their builtins, which lie beside them: they must be in the
// process first. Remove when no such wheel is in use.
void load_nvrtc_builtins(const fs::path& nvrtc) {
  std::error_code none;
  for (const auto& file : fs::directory_iterator(nvrtc.parent_path(), none)) {
    if (file.path().filename().string().starts_with("libnvrtc-builtins.so.")) {
      open_library(file.path(), RTLD_NOW | RTLD_LOCAL);
    }
  }
}

// cuDNN's soname says nothing of the CUDA that it was built for.
std::string other_major(Lib lib, void* handle, int major) {
  if (lib != Lib::cudnn) return "";
  const auto built_for =
      reinterpret_cast<size_t (*)()>(dlsym(handle, "cudnnGetCudartVersion"));
  const int found = built_for ? int(built_for() / 1000) : major;
  if (found == major) return "";
  return "it was built for CUDA " + std::to_string(found) + ", this process uses CUDA " +
         std::to_string(major);
}

std::string version_of(Lib lib, void* handle) {
  if (lib == Lib::nvrtc) {
    const auto get = reinterpret_cast<int (*)(int*, int*)>(dlsym(handle, "nvrtcVersion"));
    int major = 0, minor = 0;
    if (!get || get(&major, &minor) != 0) return "";
    return std::to_string(major) + "." + std::to_string(minor);
  }
  if (lib == Lib::nvjitlink) {
    const auto get = reinterpret_cast<int (*)(unsigned*, unsigned*)>(
        dlsym(handle, "nvJitLinkVersion"));
    unsigned major = 0, minor = 0;
    if (!get || get(&major, &minor) != 0) return "";
    return std::to_string(major) + "." + std::to_string(minor);
  }
  const char* name = catalogue[size_t(lib)].version_symbol;
  const auto get = name ? reinterpret_cast<size_t (*)()>(dlsym(handle, name)) : nullptr;
  if (!get) return "";
  const size_t v = get();
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
         std::to_string(v % 100);
}

}  // namespace

void* symbol_or_null(const Found& library, const char* name) noexcept {
  return library.handle ? dlsym(library.handle, name) : nullptr;
}

void* symbol(const Found& library, const char* name) {
  if (void* found = symbol_or_null(library, name)) return found;
  Error error(ErrorKind::device, library.usable()
                                     ? library.path + " has no function '" + name + "'"
                                     : library.name + " cannot be used: " + library.reason);
  error.remedy = library.remedy;
  throw error;
}

Found Loader::search(Lib lib, int major) const {
  const Edition& wanted = edition(lib, major);
  Found found;
  found.name = catalogue[size_t(lib)].name;
  found.remedy = *wanted.package ? std::string("pip install ") + wanted.package : "";
  std::string refusals;
  const auto attempt = [&](const std::string& file, const char* how, int flags) {
    if (found.handle) return;
    if (lib == Lib::nvrtc && file.find('/') != std::string::npos) load_nvrtc_builtins(file);
    void* handle = open_library(file, flags);
    if (!handle) {
      if (fs::exists(file)) refusals += std::string("; ") + dlerror();
      return;
    }
    const std::string refusal = other_major(lib, handle, major);
    if (!refusal.empty()) {
      refusals += "; " + file_of(handle) + ": " + refusal;
      dlclose(handle);
      return;
    }
    found.handle = handle, found.how = how, found.path = file_of(handle);
    found.version = version_of(lib, handle);
  };
  constexpr int now = RTLD_NOW | RTLD_LOCAL;
  attempt(wanted.soname, "in the process", RTLD_NOW | RTLD_NOLOAD);
  if (*wanted.wheel_folder) {
    for (const std::string& site : paths_.site_packages) {
      const fs::path folder = fs::path(site) / "nvidia" / wanted.wheel_folder / "lib";
      if (fs::exists(folder / wanted.soname)) {
        attempt((folder / wanted.soname).string(), "pip wheel", now);
      }
    }
  }
  for (const std::string& prefix : paths_.prefixes) {
    const std::string file = prefix + "/lib/" + wanted.soname;
    if (fs::exists(file)) attempt(file, "conda", now);
  }
  attempt(wanted.soname, "system loader", now);
  for (const std::string& home : paths_.homes) {
    for (const char* folder : {"/lib64/", "/lib/"}) {
      const std::string file = home + folder + wanted.soname;
      if (fs::exists(file)) attempt(file, "CUDA_HOME", now);
    }
  }
  if (!found.handle) found.reason = std::string(wanted.soname) + " was not found" + refusals;
  return found;
}

Found Loader::open_driver() {
  Found found = search(Lib::driver, 13);
  if (!found.handle) {
    found.remedy = "install NVIDIA's driver, which brings libcuda.so.1";
    return found;
  }
  const auto version = reinterpret_cast<int (*)(int*)>(dlsym(found.handle,
                                                             "cuDriverGetVersion"));
  if (version && version(&driver_version_) == 0) {
    found.version = std::to_string(driver_version_ / 1000) + "." +
                    std::to_string(driver_version_ % 1000 / 10);
  }
  if (driver_version_ < 12000) {
    found.reason = "the driver supports CUDA " + found.version + ", rlx needs 12 or newer";
    found.remedy = "update NVIDIA's driver";
    found.handle = nullptr;
  }
  return found;
}

int Loader::choose_major() {
  open(Lib::driver);
  for (int major : {13, 12}) {
    const std::string suffix = ".so." + std::to_string(major);
    for (const char* name : {"libcudart", "libcublasLt", "libnvrtc"}) {
      if (open_library(name + suffix, RTLD_NOW | RTLD_NOLOAD)) return major;
    }
  }
  for (int major : {13, 12}) {
    if (driver_version_ > 0 && driver_version_ / 1000 < major) continue;
    Found nvrtc = search(Lib::nvrtc, major);
    if (!nvrtc.usable()) continue;
    found_[size_t(Lib::nvrtc)] = std::move(nvrtc);
    opened_[size_t(Lib::nvrtc)] = true;
    return major;
  }
  return driver_version_ > 0 ? std::min(driver_version_ / 1000, 13) : 13;
}

const Found& Loader::open(Lib lib) {
  const size_t i = size_t(lib);
  if (opened_[i]) return found_[i];
  if (lib == Lib::driver) {
    found_[i] = open_driver();
  } else {
    const int major = cuda_major();
    // cuDNN compiles by NVRTC and multiplies by cuBLASLt, which it finds in the process.
    if (lib == Lib::cudnn) open(Lib::nvrtc), open(Lib::cublas_lt);
    if (opened_[i]) return found_[i];
    found_[i] = search(lib, major);
  }
  opened_[i] = true;
  return found_[i];
}

const Found& Loader::get(Lib lib) {
  // Another thread may be opening the next library for a tenth of a second.
  if (opened_[size_t(lib)]) return found_[size_t(lib)];
  const std::lock_guard lock(mutex_);
  return open(lib);
}

int Loader::cuda_major() {
  const std::lock_guard lock(mutex_);
  if (major_ < 0) major_ = choose_major();
  return major_;
}

int Loader::driver_version() {
  const std::lock_guard lock(mutex_);
  open(Lib::driver);
  return driver_version_;
}

std::vector<Found> Loader::all() {
  std::vector<Found> found;
  for (size_t i = 0; i < lib_count; ++i) found.push_back(get(Lib(i)));
  return found;
}

namespace {

// Never destroyed: a forked child makes a loader of its own when it first needs one.
SearchPaths& search_paths = *new SearchPaths;

}  // namespace

Loader::Loader() : paths_(search_paths) {}

void set_search_paths(SearchPaths paths) {
  static std::once_flag once;
  std::call_once(once, [&] { search_paths = std::move(paths); });
}

Loader& loader() { return of_process<Loader>(); }

}  // namespace rlx::cuda::api
