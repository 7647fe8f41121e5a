// The contexts of the fake driver: one for each GPU, one of them or none current on a thread.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

thread_local void* current_context = nullptr;

int gpu_count() {
  const char* text = std::getenv("FAKE_CUDA_GPUS");
  return text ? std::atoi(text) : 1;
}

void* context_of(int device) { return reinterpret_cast<void*>(uintptr_t(16 + 16 * device)); }

bool lacks_context(std::string_view call) {
  return !current_context && call != "cuInit" && !call.starts_with("cuDevice");
}

}  // namespace
