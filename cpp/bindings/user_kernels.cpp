// _core.CudaProgram, CudaKernel and CudaLaunch: users' sources, compiled and launched.
#include "cuda/user_kernel.h"

#include <pybind11/stl.h>

#include "bindings/cuda_probe.h"
#include "bindings/interpreter_lock.h"
#include "bindings/launch_operands.h"
#include "bindings/register.h"
#include "cuda/device.h"

namespace rlx::bindings {
namespace {

using cuda::Flight;
using cuda::UserKernel;
using cuda::UserProgram;
using Texts = std::vector<std::string>;
using Headers = std::vector<std::pair<std::string, std::string>>;  // names and texts

std::shared_ptr<UserProgram> compile(std::string name, std::string text,
                                     const Headers& headers,
                                     std::string included, std::string architecture,
                                     Texts options, Texts expressions, bool typed, bool lto) {
  find_cuda();
  cuda::UserSource source;
  source.name = std::move(name), source.text = std::move(text);
  source.included = std::move(included), source.architecture = std::move(architecture);
  source.options = std::move(options), source.expressions = std::move(expressions);
  source.typed = typed, source.lto = lto;
  for (const auto& [header, contents] : headers) source.headers.push_back({header, contents});
  const Unlocked unlocked;
  // pybind11 holds no pointers to const; nothing of a program changes.
  return std::const_pointer_cast<UserProgram>(cuda::compile_user(source));
}

py::bytes bytes_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

cuda::Extent3 extent(const std::array<uint32_t, 3>& e) { return {e[0], e[1], e[2]}; }

std::shared_ptr<Flight> launch(const UserKernel& kernel, const std::array<uint32_t, 3>& grid,
                               const std::array<uint32_t, 3>& block, uint32_t shared,
                               uintptr_t stream, const py::list& given) {
  const cuda::Current current = kernel.make_current();  // others lend only in theirs
  cuda::LaunchShape shape;
  shape.grid = extent(grid), shape.block = extent(block), shape.shared_bytes = shared;
  kernel.check(shape);
  void* const handle = reinterpret_cast<void*>(stream ? stream : legacy_stream);
  LaunchOperands operands(kernel, handle, given);
  std::shared_ptr<Flight> flight;
  {
    const Unlocked unlocked;
    flight = kernel.launch(shape, operands.values, static_cast<cuda::Stream>(handle),
                           std::move(operands.owners));
  }
  operands.written();
  return flight;
}

// A copy of a host array in memory of the pool, complete when it returns.
std::shared_ptr<DeviceArray> to_device(const py::object& host, int ordinal) {
  find_cuda();
  Borrowed borrowed;
  borrow_tensor(host.ptr(), dtype_of(proxy(host.ptr())->descr), "array", nullptr, borrowed);
  const Input& input = borrowed.input;
  const size_t bytes = size_t(element_count(input.shape)) * size_of(input.dtype);
  auto array = std::make_shared<DeviceArray>();
  array->dtype = input.dtype;
  array->shape.assign(input.shape.begin(), input.shape.end());
  array->ordinal = ordinal;
  array->stream = reinterpret_cast<void*>(legacy_stream);
  const Unlocked unlocked;
  const auto gpu = cuda::open_gpu(ordinal);
  array->device = cuda::make_device(gpu, {});
  array->memory = gpu->pool->get(bytes);
  gpu->weights->copy(array->memory.get(), input.data, bytes);
  return array;
}

std::string architecture(const std::optional<std::string>& name, int ordinal) {
  find_cuda();
  const Unlocked unlocked;
  return name ? cuda::architecture_named(*name) : cuda::architecture_of(ordinal);
}

template <int cuda::KernelUsage::*field>
int usage(const UserKernel& kernel) {
  return kernel.usage().*field;
}

}  // namespace

void register_user_kernels(py::module_& module) {
  using namespace py::literals;
  using cuda::KernelUsage;
  py::class_<UserProgram, std::shared_ptr<UserProgram>>(module, "CudaProgram",
                                                        "What NVRTC made of a source.")
      .def_property_readonly("key", [](const UserProgram& p) { return hexadecimal(p.key); })
      .def_readonly("architecture", &UserProgram::architecture)
      .def_readonly("log", &UserProgram::log)
      .def_readonly("lowered", &UserProgram::lowered)
      .def_readonly("signature", &UserProgram::signature)
      .def_property_readonly("cubin", [](const UserProgram& p) { return bytes_of(p.cubin); })
      .def_property_readonly("ptx", [](const UserProgram& p) {
        return bytes_of(std::span(p.ptx).first(p.ptx.empty() ? 0 : p.ptx.size() - 1));
      })
      .def("kernel", [](const std::shared_ptr<UserProgram>& program, const std::string& symbol,
                        const std::string& name, int ordinal) {
        const Unlocked unlocked;
        return std::make_shared<UserKernel>(program, symbol, name, ordinal);
      }, "symbol"_a, "name"_a, "ordinal"_a);
  py::class_<UserKernel, std::shared_ptr<UserKernel>>(module, "CudaKernel",
                                                      "An entry of a program on one GPU.")
      .def_property_readonly("generation", &UserKernel::generation)
      .def_property_readonly("registers", &usage<&KernelUsage::registers>)
      .def_property_readonly("shared_bytes", &usage<&KernelUsage::shared_bytes>)
      .def_property_readonly("local_bytes", &usage<&KernelUsage::local_bytes>)
      .def_property_readonly("max_threads", &usage<&KernelUsage::max_threads>)
      .def("launch", &launch, "grid"_a, "block"_a, "shared"_a, "stream"_a, "operands"_a);
  py::class_<Flight, std::shared_ptr<Flight>>(module, "CudaLaunch",
                                              "A launch that may be going on.")
      .def("done", &Flight::done, py::call_guard<Unlocked>())
      .def("synchronize", &Flight::synchronize, py::call_guard<Unlocked>());
  module.def("cuda_compile", &compile, "name"_a, "text"_a, "headers"_a, "included"_a,
             "architecture"_a, "options"_a, "expressions"_a, "typed"_a, "lto"_a);
  module.def("cuda_architecture", &architecture, "name"_a, "ordinal"_a,
             "As NVRTC takes it; of the GPU where no name is given.");
  module.def("cuda_to_device", &to_device, "array"_a, "ordinal"_a);
}

}  // namespace rlx::bindings
