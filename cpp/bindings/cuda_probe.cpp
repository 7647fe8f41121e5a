// _core.cuda_probe: libraries, GPUs and the kernel cache, as rlx doctor and rlx.devices show them.
#include "bindings/cuda_probe.h"

#include <pybind11/stl.h>

#include "bindings/interpreter_lock.h"
#include "core/env.h"
#include "cuda/api/driver.h"
#include "cuda/api/forked.h"
#include "cuda/api/loader.h"
#include "cuda/cache.h"
#include "cuda/device.h"
#include "cuda/flight.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

using cuda::api::Found;
using cuda::api::Lib;

py::dict dict_of(const Found& found) {
  py::dict d;
  d["name"] = found.name, d["usable"] = found.usable(), d["path"] = found.path;
  d["how"] = found.how, d["version"] = found.version, d["reason"] = found.reason;
  d["remedy"] = found.remedy;
  return d;
}

py::dict probe() {
  find_cuda();
  py::dict d;
  py::list libraries, gpus;
  for (const Found& found : cuda::api::loader().all()) libraries.append(dict_of(found));
  for (const auto& gpu : cuda::api::list_devices()) {
    py::dict row;
    row["name"] = "cuda:" + std::to_string(gpu.ordinal), row["gpu"] = gpu.name;
    row["capability"] = gpu.capability, row["memory_bytes"] = gpu.memory_bytes;
    gpus.append(row);
  }
  d["libraries"] = libraries, d["gpus"] = gpus, d["reason"] = cuda_reason();
  d["cuda_major"] = cuda::api::loader().cuda_major();
  d["cache_folder"] = cuda::cache_folder();
  return d;
}

py::list statistics() {
  py::list list;
  for (const auto& gpu : cuda::opened_gpus()) {
    const cuda::PoolStatistics pool = gpu->pool->statistics();
    py::dict d;
    d["device"] = "cuda:" + std::to_string(gpu->driver->info().ordinal);
    d["used_bytes"] = pool.used, d["kept_bytes"] = pool.kept;
    d["most_used_bytes"] = pool.most_used;
    d["driver_allocations"] = pool.driver_allocations;
    if (const auto* jit = dynamic_cast<cuda::NvrtcJit*>(gpu->jit.get())) {
      const cuda::JitStatistics kernels = jit->statistics();
      d["kernels_compiled"] = kernels.compiled, d["kernels_read"] = kernels.read;
      d["kernels_loaded"] = kernels.loaded, d["compile_seconds"] = kernels.compile_seconds;
      d["load_seconds"] = kernels.load_seconds;
    }
    list.append(d);
  }
  return list;
}

py::bytes compile_kernel(const std::string& file, const std::string& entry,
                         std::vector<std::string> defines, int capability,
                         const std::vector<std::pair<std::string, std::string>>& generated) {
  find_cuda();
  cuda::KernelSpec spec{file, entry, std::move(defines), {}};
  for (const auto& [name, text] : generated) spec.generated.push_back({name, text});
  std::vector<std::byte> image;
  {
    const Unlocked unlocked;
    image = cuda::compile_kernel(spec, capability);
  }
  return {reinterpret_cast<const char*>(image.data()), image.size()};
}

}  // namespace

void find_cuda() {
  static bool found = false;
  if (found) return;
  cuda::api::SearchPaths paths;
  const py::module_ sys = py::module_::import("sys");
  for (const py::handle& entry : sys.attr("path")) {
    if (py::isinstance<py::str>(entry)) paths.site_packages.push_back(entry.cast<std::string>());
  }
  if (const auto conda = system_env("CONDA_PREFIX")) paths.prefixes.push_back(*conda);
  paths.prefixes.push_back(sys.attr("prefix").cast<std::string>());
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto home = system_env(name)) paths.homes.push_back(*home);
  }
  cuda::api::set_search_paths(std::move(paths));
  found = true;
}

std::string cuda_reason() {
  find_cuda();
  for (Lib lib : {Lib::driver, Lib::nvrtc}) {
    const Found& found = cuda::api::loader().get(lib);
    if (!found.usable()) return found.name + ": " + found.reason + "; try: " + found.remedy;
  }
  if (!cuda::api::claim_cuda()) {
    const Error error = cuda::api::forked_error();
    return std::string(error.what()) + "; try: " + error.remedy;
  }
  return cuda::api::list_devices().empty() ? "the driver shows no GPU" : "";
}

std::vector<int> usable_gpus() {
  std::vector<int> ordinals;
  if (!cuda_reason().empty()) return ordinals;
  for (const auto& gpu : cuda::api::list_devices()) ordinals.push_back(gpu.ordinal);
  return ordinals;
}

void register_cuda_probe(py::module_& module) {
  using namespace py::literals;
  module.def("cuda_probe", &probe, "What of CUDA this machine has.");
  module.def("cuda_statistics", &statistics, "Memory and kernels of each GPU in use.");
  module.def("cuda_cache_folder", &cuda::cache_folder, "The kernel cache; empty: there is none.");
  module.def("cuda_empty_cache", [] {
    cuda::sweep_flights();
    for (const auto& gpu : cuda::opened_gpus()) gpu->pool->empty();
  });
  module.def("override_variable", [](const std::string& name, std::optional<std::string> value) {
    override_env(name, std::move(value));
    cuda::bound_pools();
  }, "name"_a, "value"_a, "The value of RLX_<name> in this process from now on; None: as it was.");
  module.def("cuda_compile_kernel", &compile_kernel, "file"_a, "entry"_a, "defines"_a,
             "capability"_a, "generated"_a = std::vector<std::pair<std::string, std::string>>(),
             "The image of a kernel, as NVRTC makes it; needs no GPU.");
  module.def("cuda_reset", &cuda::reset_gpu, "ordinal"_a,
             "Destroys the GPU's context; whatever rlx has there is stale.");
  module.def("cuda_kernel_files", [] {
    std::vector<std::string> names;
    for (const cuda::EmbeddedFile& file : cuda::kernel_files()) names.push_back(file.name);
    return names;
  });
}

}  // namespace rlx::bindings
