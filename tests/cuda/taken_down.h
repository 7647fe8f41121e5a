// What a fake library is busy with. A process that ends meanwhile ends with a status of the
// library's own, where one of NVIDIA's breaks the heap.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> at_work;

// A static of the library: destroyed before those of who opened it.
struct TakenDown {
  const int status, loaded_by = getpid();
  ~TakenDown() {
    if (at_work && getpid() == loaded_by) _exit(status);
  }
};

// At work for as many milliseconds as the variable says.
void work(const char* variable) {
  ++at_work;
  if (const char* ms = std::getenv(variable)) usleep(1000 * std::atoi(ms));
  --at_work;
}

// As many milliseconds as the variable says, where it names the function: "name:ms".
[[maybe_unused]] void linger(const char* variable, const char* name) {
  const char* text = std::getenv(variable);
  const size_t size = std::strlen(name);
  if (!text || std::strncmp(text, name, size) != 0 || text[size] != ':') return;
  usleep(1000 * std::atoi(text + size + 1));
}

// Whether the calling thread works in a context of the fake driver, as a library must.
[[maybe_unused]] bool has_context() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto get = driver ? reinterpret_cast<int (*)(void**)>(dlsym(driver, "cuCtxGetCurrent"))
                          : nullptr;
  void* context = nullptr;
  return get && get(&context) == 0 && context;
}

}  // namespace
