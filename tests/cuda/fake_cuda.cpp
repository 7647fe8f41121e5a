// A libcuda.so.1 for tests: memory is the host's, kernels do nothing, every call is counted.
//
// FAKE_CUDA_FAIL=name:code[:nth] makes the nth call of a function fail; FAKE_CUDA_LOG names a file
// that gets one line for each call, and "mapped:BYTES"; with FAKE_CUDA_COPIES also
// "to:ADDRESS:BYTES" for what is copied to the device.
// FAKE_CUDA_SLOW=name:ms makes each call of a function take so long.
// A copy to the device takes FAKE_CUDA_COPY_MS; a process that ends meanwhile ends with status 87.
// Copies refuse memory that is on the wrong side.
// Events are logged as "records:STREAM" and "waits:STREAM", waits of the host beside a capture as
// "synchronizes:STREAM". All memory lies on GPU FAKE_CUDA_ORDINAL, and is managed with
// FAKE_CUDA_MANAGED. A module is loaded when FAKE_CUDA_LOADS_MEET loads have begun.
// A stream FAKE_CUDA_CAPTURED is being captured in global mode by somebody else: threads that have
// not asked for the relaxed mode may then do little but launch, record and wait, and what they do
// all the same is logged as "spoils:CALL". What the graph keeps goes with fake_cuda_drop_graph().
// With FAKE_CUDA_CAPTURE_BLOCKS that stream is none that cuStreamNonBlocking made.
// Streams given to fake_cuda_destroy_stream() are gone.
// There are FAKE_CUDA_GPUS, or one; what works in a context fails where none is current.
// FAKE_CUDA_VERSION is what cuDriverGetVersion tells, FAKE_CUDA_MEMORY the card's bytes, which are
// 1 at first with FAKE_CUDA_FILL: what kernels decide is true.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "fake_context.h"
#include "taken_down.h"

namespace {

TakenDown taken_down{87};

std::mutex mutex;
std::map<std::string, int> calls;
std::map<uintptr_t, size_t> device_memory;  // begin -> bytes
std::map<void*, int> shared_of;             // dynamic shared memory that a function may have
std::set<void*> captured_events, destroyed_streams;
thread_local int capture_mode = 0;

void log(const std::string& line) {
  const char* path = std::getenv("FAKE_CUDA_LOG");
  if (FILE* file = path ? std::fopen(path, "a") : nullptr) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

void* captured() {
  const char* text = std::getenv("FAKE_CUDA_CAPTURED");
  return text ? reinterpret_cast<void*>(std::strtoull(text, nullptr, 0)) : nullptr;
}

bool is_safe(const std::string& name) {
  return name == "cuLaunchKernelEx" || name == "cuEventRecord" || name == "cuStreamWaitEvent" ||
         name == "cuEventCreate" || name == "cuEventDestroy_v2" || name == "cuInit" ||
         name.starts_with("cuDevice");
}

int enter(const char* name) {
  const std::lock_guard lock(mutex);
  if (captured() && capture_mode != 2 && !is_safe(name)) {
    log(std::string("spoils:") + name);
    return 900;
  }
  const int nth = ++calls[name];
  log(name);
  if (lacks_context(name)) return 201;
  const char* fail = std::getenv("FAKE_CUDA_FAIL");
  if (!fail) return 0;
  char wanted[64] = "";
  int code = 0, at = 1;
  if (std::sscanf(fail, "%63[^:]:%d:%d", wanted, &code, &at) < 2) return 0;
  return std::strcmp(wanted, name) == 0 && nth >= at ? code : 0;
}

void keep(uintptr_t at, size_t bytes) {
  const std::lock_guard lock(mutex);
  device_memory[at] = bytes;
}

bool on_device(uintptr_t p) {
  const std::lock_guard lock(mutex);
  auto found = device_memory.upper_bound(p);
  if (found == device_memory.begin()) return false;
  --found;
  return p < found->first + found->second;
}

// Until a function has been called as often as the variable says; false when that takes too long.
bool meet(const char* variable, const char* name) {
  const char* wanted = std::getenv(variable);
  for (int i = 0; wanted && i < 5000; ++i) {
    {
      const std::lock_guard lock(mutex);
      if (calls[name] >= std::atoi(wanted)) return true;
    }
    usleep(1000);
  }
  return !wanted;
}

}  // namespace

#define ENTER                                        \
  if (const int code = enter(__func__)) return code; \
  linger("FAKE_CUDA_SLOW", __func__)

using Ptr = unsigned long long;

#include "fake_user_objects.h"

extern "C" {

int cuInit(unsigned) { ENTER; return 0; }
int cuDriverGetVersion(int* v) {
  const char* text = std::getenv("FAKE_CUDA_VERSION");
  *v = text ? std::atoi(text) : 13000;
  return 0;
}
// NVRTC asks for it when it finds a driver.
int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return 801;
}
int cuDeviceGetCount(int* n) { *n = gpu_count(); ENTER; return 0; }
int cuDeviceGet(int* d, int i) { *d = i; ENTER; return 0; }
int cuDeviceGetName(char* name, int n, int) { std::snprintf(name, n, "Fake GPU"); return 0; }
int cuDeviceGetAttribute(int* v, int which, int) {
  const std::map<int, int> known = {{75, 9}, {76, 0}, {16, 4}, {38, 1 << 20}, {39, 2048},
                                    {97, 227 << 10}};
  const auto found = known.find(which);
  *v = found == known.end() ? 0 : found->second;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* n, int) {
  const char* text = std::getenv("FAKE_CUDA_MEMORY");
  *n = text ? size_t(std::atoll(text)) : size_t(1) << 32;
  return 0;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                               : "CUDA_ERROR_FAKE";
  return 0;
}
int cuGetErrorString(int, const char** text) { *text = "as the test asked"; return 0; }
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = context_of(d); ENTER; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { ENTER; return 0; }
int cuDevicePrimaryCtxReset_v2(int) { ENTER; return 0; }
int cuCtxGetCurrent(void** c) { *c = current_context; return 0; }
int cuCtxSetCurrent(void* c) { current_context = c; return 0; }
int cuCtxSynchronize() { ENTER; return 0; }

int cuModuleLoadDataEx(void** m, const void* image, unsigned, int*, void**) {
  ENTER;
  if (!meet("FAKE_CUDA_LOADS_MEET", "cuModuleLoadDataEx")) return 999;
  // What NVRTC makes for a GPU is an ELF file.
  if (std::memcmp(image, "\177ELF", 4) != 0) return 200;
  *m = std::malloc(1);
  return 0;
}
int cuModuleUnload(void* m) {
  {
    const std::lock_guard lock(mutex);
    shared_of.erase(m);
  }
  std::free(m);
  ENTER;
  return 0;
}
int cuModuleGetFunction(void** f, void* m, const char*) { *f = m; ENTER; return 0; }
int cuFuncSetAttribute(void* f, int which, int value) {
  ENTER;
  const std::lock_guard lock(mutex);
  if (which == 8) shared_of[f] = value;
  return 0;
}
int cuFuncGetAttribute(int* value, int which, void* f) {
  if (which == 8) {
    const std::lock_guard lock(mutex);
    *value = std::max(shared_of[f], 48 << 10);
    return 0;
  }
  const std::map<int, int> known = {{0, 512}, {1, 64}, {3, 8}, {4, 21}};
  const auto found = known.find(which);
  *value = found == known.end() ? 0 : found->second;
  ENTER;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, void*, int, size_t) { *n = 2; return 0; }
// Refuses what a card would: the configuration begins with the extents of the grid and of a block.
// FAKE_CUDA_PARAMS lists the sizes of parameters to log, as in "4,8".
int cuLaunchKernelEx(const void* config, void* f, void** parameters, void**) {
  ENTER;
  int shared = 0;
  cuFuncGetAttribute(&shared, 8, f);
  if (static_cast<const unsigned*>(config)[6] > unsigned(shared)) return 1;
  const char* sizes = std::getenv("FAKE_CUDA_PARAMS");
  for (int i = 0; sizes && *sizes; ++i) {
    char* end = nullptr;
    const long size = std::strtol(sizes, &end, 10);
    std::string line = "param:";
    for (long k = 0; k < size; ++k) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char*>(parameters[i])[k]);
      line += hex;
    }
    log(line);
    sizes = *end ? end + 1 : end;
  }
  const unsigned* e = static_cast<const unsigned*>(config);
  const bool grid = e[0] > 0 && e[0] < 1u << 31 && e[1] > 0 && e[1] <= 65535 && e[2] > 0 &&
                    e[2] <= 65535;
  const unsigned long long threads = 1ull * e[3] * e[4] * e[5];
  return grid && threads > 0 && threads <= 1024 && e[5] <= 64 ? 0 : 1;
}

int cuMemAlloc_v2(Ptr* p, size_t n) {
  ENTER;
  *p = Ptr(std::aligned_alloc(256, (n + 255) / 256 * 256));
  std::memset(reinterpret_cast<void*>(*p), std::getenv("FAKE_CUDA_FILL") != nullptr, n);
  keep(uintptr_t(*p), n);
  return 0;
}
int cuMemFree_v2(Ptr p) { std::free(reinterpret_cast<void*>(p)); ENTER; return 0; }
int cuMemAllocHost_v2(void** p, size_t n) {
  ENTER;
  *p = std::aligned_alloc(256, (n + 255) / 256 * 256);
  return 0;
}
int cuMemFreeHost(void* p) { std::free(p); ENTER; return 0; }
int cuMemcpyHtoDAsync_v2(Ptr to, const void* from, size_t n, void*) {
  ENTER;
  work("FAKE_CUDA_COPY_MS");
  if (n && !on_device(to)) return 1;
  if (std::getenv("FAKE_CUDA_COPIES")) log("to:" + std::to_string(to) + ":" + std::to_string(n));
  std::memcpy(reinterpret_cast<void*>(to), from, n);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, Ptr from, size_t n, void*) {
  ENTER;
  if (n && !on_device(from)) return 1;
  std::memcpy(to, reinterpret_cast<void*>(from), n);
  return 0;
}
int cuMemcpyDtoDAsync_v2(Ptr to, Ptr from, size_t n, void*) {
  ENTER;
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n);
  return 0;
}
int cuMemsetD8Async(Ptr to, unsigned char value, size_t n, void*) {
  ENTER;
  std::memset(reinterpret_cast<void*>(to), value, n);
  return 0;
}
int cuPointerGetAttributes(unsigned n, int* which, void** data, Ptr p) {
  const char* ordinal = std::getenv("FAKE_CUDA_ORDINAL");
  for (unsigned i = 0; i < n; ++i) {
    int value = which[i] == 2   ? (on_device(p) ? 2 : 0)
                : which[i] == 8 ? std::getenv("FAKE_CUDA_MANAGED") != nullptr
                : ordinal       ? std::atoi(ordinal)
                                : 0;
    std::memcpy(data[i], &value, sizeof value);
  }
  return 0;
}
int cuMemGetAllocationGranularity(size_t* n, const void*, int) { *n = 2 << 20; return 0; }
int cuMemAddressReserve(Ptr* p, size_t n, size_t, Ptr, unsigned long long) {
  ENTER;
  void* at = mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *p = Ptr(at);
  keep(uintptr_t(at), n);
  return at == MAP_FAILED ? 2 : 0;
}
int cuMemAddressFree(Ptr p, size_t n) { munmap(reinterpret_cast<void*>(p), n); ENTER; return 0; }
int cuMemCreate(Ptr* handle, size_t, const void*, unsigned long long) {
  ENTER;
  *handle = 1;
  return 0;
}
int cuMemRelease(Ptr) { ENTER; return 0; }
int cuMemMap(Ptr p, size_t n, size_t, Ptr, unsigned long long) {
  ENTER;
  log("mapped:" + std::to_string(n));
  return mprotect(reinterpret_cast<void*>(p), n, PROT_READ | PROT_WRITE) == 0 ? 0 : 2;
}
int cuMemUnmap(Ptr, size_t) { ENTER; return 0; }
int cuMemSetAccess(Ptr, size_t, const void*, size_t) { ENTER; return 0; }

int cuStreamCreate(void** s, unsigned) { *s = std::malloc(1); ENTER; return 0; }
int cuStreamDestroy_v2(void* s) { std::free(s); ENTER; return 0; }
int cuStreamSynchronize(void* s) {
  ENTER;
  if (captured() && s == captured()) return 900;
  {
    const std::lock_guard lock(mutex);
    if (destroyed_streams.contains(s)) return 400;
  }
  if (captured()) log("synchronizes:" + std::to_string(uintptr_t(s)));
  // The device is busy until so many copies to it have been asked for.
  return meet("FAKE_CUDA_MEET", "cuMemcpyHtoDAsync_v2") ? 0 : 999;
}
int cuStreamWaitEvent(void* s, void* e, unsigned) {
  ENTER;
  {
    const std::lock_guard lock(mutex);
    if (destroyed_streams.contains(s)) return 400;
    // A captured stream waits for its own work only, and who waits for that joins the capture.
    if (captured() && (s == captured()) != captured_events.contains(e)) return 905;
  }
  log("waits:" + std::to_string(uintptr_t(s)));
  return 0;
}
int cuEventCreate(void** e, unsigned) { *e = std::malloc(1); ENTER; return 0; }
int cuEventDestroy_v2(void* e) { std::free(e); ENTER; return 0; }
int cuEventRecord(void* e, void* s) {
  ENTER;
  {
    const std::lock_guard lock(mutex);
    if (destroyed_streams.contains(s)) return 400;
    captured_events.erase(e);
    if (captured() && s == captured()) captured_events.insert(e);
  }
  log("records:" + std::to_string(uintptr_t(s)));
  return 0;
}
// With FAKE_CUDA_BUSY nothing has happened as long as a file of that name is there.
int cuEventQuery(void* e) {
  ENTER;
  {
    const std::lock_guard lock(mutex);
    if (captured_events.contains(e)) return 907;
  }
  const char* busy = std::getenv("FAKE_CUDA_BUSY");
  return busy && access(busy, F_OK) == 0 ? 600 : 0;
}
int cuEventSynchronize(void*) { ENTER; return 0; }
int cuEventElapsedTime(float* ms, void*, void*) { *ms = 1; ENTER; return 0; }
int cuStreamBeginCapture_v2(void*, int) { ENTER; return 0; }
int cuStreamEndCapture(void*, void** g) { *g = std::malloc(1); ENTER; return 0; }
int cuGraphInstantiateWithFlags(void** e, void*, unsigned long long) {
  ENTER;
  *e = std::malloc(1);
  return 0;
}
int cuGraphDestroy(void* g) { std::free(g); ENTER; return 0; }
int cuGraphExecDestroy(void* e) { std::free(e); ENTER; return 0; }
int cuGraphLaunch(void*, void*) { ENTER; return 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
int cuStreamIsCapturing(void* s, int* status) {
  *status = captured() && s == captured();
  const bool is_default = uintptr_t(s) < 2;
  return captured() && std::getenv("FAKE_CUDA_CAPTURE_BLOCKS") && is_default ? 906 : 0;
}
int cuStreamGetCaptureInfo_v2(void* s, int* status, unsigned long long*, void** graph,
                              const void**, size_t*) {
  ENTER;
  cuStreamIsCapturing(s, status);
  *graph = *status ? s : nullptr;
  return 0;
}
void fake_cuda_destroy_stream(void* s) {
  const std::lock_guard lock(mutex);
  destroyed_streams.insert(s);
}

}  // extern "C"
