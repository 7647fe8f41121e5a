// Opens what the first run needs, once, while the caller still reads its model; and ends in order.
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/api/loader.h"
#include "cuda/at_work.h"
#include "cuda/device.h"
#include "cuda/libs/blas_lt.h"
#include "cuda/libs/libraries.h"
#include "cuda/select/region_program.h"

namespace rlx::cuda {
namespace {

// Fewer have enough to do.
constexpr unsigned spare_cores = 4;

struct Beginners {
  std::mutex mutex;
  std::vector<std::thread> threads;
  bool ended = false;  // no more may begin
};

// Ordinals of GPUs, and whether cuDNN. A forked child does not begin again what its parent began,
// which may have held the locks of what is opened.
bool is_first(int ordinal, bool convolves) {
  static std::atomic<bool> begun[2][16] = {};
  return ordinal < 16 && !begun[convolves][ordinal].exchange(true);
}

template <class Work>
void begin(Work work) {
  auto& beginners = of_process<Beginners>();
  const std::lock_guard lock(beginners.mutex);
  if (beginners.ended) return;
  beginners.threads.emplace_back([work] {
    try {
      work();
    } catch (const std::exception&) {
      // Kept by who opens it, and said when it is asked for.
    }
  });
}

void join_beginners() {
  auto& beginners = of_process<Beginners>();
  std::vector<std::thread> ending;
  {
    const std::lock_guard lock(beginners.mutex);
    beginners.ended = true;
    ending.swap(beginners.threads);
  }
  for (std::thread& thread : ending) thread.join();
}

}  // namespace

void begin_gpu(int ordinal) {
  if (!is_first(ordinal, false)) return;
  begin([ordinal] {
    if (!api::loader().get(api::Lib::driver).usable()) return;
    begin([] {
      for (const api::Lib lib : {api::Lib::nvrtc, api::Lib::cublas_lt}) api::loader().get(lib);
    });
    const auto gpu = open_gpu(ordinal);
    // With it small regions need not wait for kernels of their own.
    if (std::thread::hardware_concurrency() >= spare_cores) gpu->jit->get(interpreter());
    std::string reason;
    if (const BlasLt* blas_lt = gpu->libraries->blas_lt(reason)) blas_lt->begin();
  });
}

void begin_dnn(int ordinal) {
  if (!is_first(ordinal, true)) return;
  begin([ordinal] {
    std::string reason;
    open_gpu(ordinal)->libraries->dnn(reason);
  });
}

void rest_gpus() {
  join_beginners();
  rest_compilers();
  at_work().rest();
}

}  // namespace rlx::cuda
