// Calls NVRTC through declarations of our own.
#include "cuda/api/nvrtc.h"

#include <algorithm>

#include "cuda/api/loader.h"

namespace rlx::cuda::api {
namespace {

struct ProgramTag;
using Program = ProgramTag*;

}  // namespace

struct Nvrtc::Functions {
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, const char* const*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*lto_size)(Program, size_t*);  // null before CUDA 12
  int (*lto)(Program, char*);
  int (*add_expression)(Program, const char*);
  int (*lowered_name)(Program, const char*, const char**);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*arch_count)(int*);
  int (*archs)(int*);
  const char* (*error_string)(int);
};

Nvrtc::Nvrtc(const Found& library) {
  auto functions = std::make_shared<Functions>();
  const auto get = [&](auto*& function, const char* name) { load(library, function, name); };
  get(functions->create, "nvrtcCreateProgram");
  get(functions->destroy, "nvrtcDestroyProgram");
  get(functions->compile, "nvrtcCompileProgram");
  get(functions->cubin_size, "nvrtcGetCUBINSize");
  get(functions->cubin, "nvrtcGetCUBIN");
  get(functions->ptx_size, "nvrtcGetPTXSize");
  get(functions->ptx, "nvrtcGetPTX");
  load_optional(library, functions->lto_size, "nvrtcGetLTOIRSize");
  load_optional(library, functions->lto, "nvrtcGetLTOIR");
  get(functions->add_expression, "nvrtcAddNameExpression");
  get(functions->lowered_name, "nvrtcGetLoweredName");
  get(functions->log_size, "nvrtcGetProgramLogSize");
  get(functions->log, "nvrtcGetProgramLog");
  get(functions->arch_count, "nvrtcGetNumSupportedArchs");
  get(functions->archs, "nvrtcGetSupportedArchs");
  get(functions->error_string, "nvrtcGetErrorString");
  int count = 0;
  if (functions->arch_count(&count) == 0) {
    supported_.resize(size_t(count));
    functions->archs(supported_.data());
  }
  functions_ = functions;
  version_ = library.version;
}

const Nvrtc& Nvrtc::get() {
  // Opened before: what a child is forked into the middle of never ends there.
  const Found& library = loader().get(Lib::nvrtc);
  static const Nvrtc nvrtc(library);
  return nvrtc;
}

std::string Nvrtc::architecture(int capability) const {
  if (std::ranges::count(supported_, capability)) {
    // From Hopper on, tensor-core instructions need the architecture's own variant.
    return "sm_" + std::to_string(capability) + (capability >= 90 ? "a" : "");
  }
  int best = 0;
  for (int arch : supported_) {
    if (arch < capability) best = std::max(best, arch);
  }
  if (best == 0) {
    std::string list;
    for (int arch : supported_) list += (list.empty() ? "" : ", ") + std::to_string(arch);
    throw Error(ErrorKind::device, "NVRTC " + version_ + " cannot compile for this GPU")
        .expected_got("compute capability " + list, std::to_string(capability));
  }
  return "compute_" + std::to_string(best);
}

Compiled Nvrtc::compile(const std::string& name, const std::string& text,
                        const std::vector<NamedText>& headers,
                        const std::vector<std::string>& options,
                        const std::vector<std::string>& expressions) const {
  const Functions& f = *functions_;
  std::vector<const char*> texts, names, flags;
  for (const NamedText& header : headers) {
    texts.push_back(header.text.c_str());
    names.push_back(header.name.c_str());
  }
  for (const std::string& option : options) flags.push_back(option.c_str());
  Program program = nullptr;
  const auto check = [&](int result, const char* call) {
    if (result == 0) return;
    throw Error(ErrorKind::internal,
                std::string(call) + " failed for " + name + ": " + f.error_string(result));
  };
  check(f.create(&program, text.c_str(), name.c_str(), int(texts.size()), texts.data(),
                 names.data()),
        "nvrtcCreateProgram");
  const std::shared_ptr<ProgramTag> owner(program, [&f](Program p) { f.destroy(&p); });
  for (const std::string& expression : expressions) {
    check(f.add_expression(program, expression.c_str()), "nvrtcAddNameExpression");
  }
  const int result = f.compile(program, int(flags.size()), flags.data());
  Compiled compiled;
  size_t size = 0;
  if (f.log_size(program, &size) == 0 && size > 1) {
    compiled.log.resize(size);
    f.log(program, compiled.log.data());
    compiled.log.resize(size - 1);
  }
  if (result != 0) {
    throw Error(ErrorKind::internal, "NVRTC " + version_ + " cannot compile " + name + ": " +
                                         f.error_string(result) + "\n" + compiled.log);
  }
  const auto fetch = [&](auto get_size, auto get) {
    std::vector<std::byte> bytes;
    if (!get_size) return bytes;
    check(get_size(program, &size), "NVRTC's size of its result");
    if (size <= 1) return bytes;
    bytes.resize(size);
    check(get(program, reinterpret_cast<char*>(bytes.data())), "NVRTC's copy of its result");
    return bytes;
  };
  compiled.cubin = fetch(f.cubin_size, f.cubin);
  compiled.ptx = fetch(f.ptx_size, f.ptx);
  compiled.lto = fetch(f.lto_size, f.lto);
  for (const std::string& expression : expressions) {
    const char* lowered = nullptr;
    check(f.lowered_name(program, expression.c_str(), &lowered), "nvrtcGetLoweredName");
    compiled.lowered.emplace_back(lowered);
  }
  return compiled;
}

}  // namespace rlx::cuda::api
