// Calls nvJitLink through declarations of our own.
#include "cuda/api/nvjitlink.h"

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "cuda/api/loader.h"

namespace rlx::cuda::api {
namespace {

struct LinkTag;
using Link = LinkTag*;
constexpr int input_lto = 3;

struct Functions {
  explicit Functions(const Found& library) {
    const auto get = [&](auto*& function, const char* name) { load(library, function, name); };
    get(create, "nvJitLinkCreate");
    get(destroy, "nvJitLinkDestroy");
    get(add, "nvJitLinkAddData");
    get(complete, "nvJitLinkComplete");
    get(cubin_size, "nvJitLinkGetLinkedCubinSize");
    get(cubin, "nvJitLinkGetLinkedCubin");
    get(ptx_size, "nvJitLinkGetLinkedPtxSize");
    get(ptx, "nvJitLinkGetLinkedPtx");
    get(error_size, "nvJitLinkGetErrorLogSize");
    get(error, "nvJitLinkGetErrorLog");
    get(info_size, "nvJitLinkGetInfoLogSize");
    get(info, "nvJitLinkGetInfoLog");
  }
  int (*create)(Link*, uint32_t, const char* const*);
  int (*destroy)(Link*);
  int (*add)(Link, int, const void*, size_t, const char*);
  int (*complete)(Link);
  int (*cubin_size)(Link, size_t*);
  int (*cubin)(Link, void*);
  int (*ptx_size)(Link, size_t*);
  int (*ptx)(Link, char*);
  int (*error_size)(Link, size_t*);
  int (*error)(Link, char*);
  int (*info_size)(Link, size_t*);
  int (*info)(Link, char*);
};

const Functions& functions() {
  static const Functions found(loader().get(Lib::nvjitlink));
  return found;
}

int number_of(const std::string& version) {  // 1209 of "12.9"
  const size_t dot = version.find('.');
  const int minor = dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1);
  return 100 * std::atoi(version.c_str()) + minor;
}

std::string log_of(Link link, int (*size_of)(Link, size_t*), int (*get)(Link, char*)) {
  size_t size = 0;
  if (!link || size_of(link, &size) != 0 || size <= 1) return "";
  std::string log(size, '\0');
  get(link, log.data());
  log.resize(log.find('\0'));
  return log;
}

}  // namespace

NvJitLink NvJitLink::get(const std::string& nvrtc) {
  const Found& library = loader().get(Lib::nvjitlink);
  if (!library.usable()) {
    Error error(ErrorKind::device, "link-time optimisation needs nvJitLink: " + library.reason);
    error.remedy = library.remedy;
    throw error;
  }
  // One that tells no version is of CUDA 12.0 to 12.2.
  if (number_of(library.version) < number_of(nvrtc)) {
    Error error(ErrorKind::device, "nvJitLink cannot link what a newer NVRTC has compiled");
    error.expected_got("nvJitLink " + nvrtc + " or newer, as NVRTC is",
                       (library.version.empty() ? "one before 12.3" : library.version) + ", " +
                           library.path);
    error.remedy = library.remedy + " --upgrade";
    throw error;
  }
  if (number_of(library.version) / 100 != number_of(nvrtc) / 100) {
    Error error(ErrorKind::device, "nvJitLink cannot link what an NVRTC of another CUDA compiled");
    error.expected_got("nvJitLink of the same major version as NVRTC " + nvrtc,
                       library.version + ", " + library.path);
    error.remedy = library.remedy;
    throw error;
  }
  functions();
  NvJitLink found;
  found.version_ = library.version;
  return found;
}

Linked NvJitLink::link(const std::string& name, std::span<const std::byte> lto,
                       const std::vector<std::string>& options, bool to_ptx) const {
  const Functions& f = functions();
  std::vector<const char*> flags;
  for (const std::string& option : options) flags.push_back(option.c_str());
  Link link = nullptr;
  const auto check = [&](int result, const char* call) {
    if (result == 0) return;
    throw Error(ErrorKind::internal, "nvJitLink " + version_ + " cannot link " + name + ": " +
                                         call + " gave error " + std::to_string(result) + "\n" +
                                         log_of(link, f.error_size, f.error));
  };
  const int created = f.create(&link, uint32_t(flags.size()), flags.data());
  const std::shared_ptr<void> owner(nullptr, [&](void*) {
    if (link) f.destroy(&link);
  });
  check(created, "nvJitLinkCreate");
  check(f.add(link, input_lto, lto.data(), lto.size(), name.c_str()), "nvJitLinkAddData");
  check(f.complete(link), "nvJitLinkComplete");
  Linked linked;
  const auto fetch = [&](auto get_size, auto get, const char* call) {
    size_t size = 0;
    check(get_size(link, &size), call);
    linked.image.resize(size);
    check(get(link, reinterpret_cast<char*>(linked.image.data())), call);
  };
  if (to_ptx) fetch(f.ptx_size, f.ptx, "nvJitLinkGetLinkedPtx");
  else fetch(f.cubin_size, f.cubin, "nvJitLinkGetLinkedCubin");
  linked.log = log_of(link, f.info_size, f.info);
  return linked;
}

}  // namespace rlx::cuda::api
