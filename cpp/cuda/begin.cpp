// Opens what the first run needs while the caller still imports its model, once; and ends in order.
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/api/driver.h"
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

enum class Part { context, compiler, products, half_products, dnn, count };

// A forked child does not begin again what its parent began, which may have held the locks of
// what is opened.
bool is_first(int ordinal, Part part) {
  static std::atomic<bool> begun[size_t(Part::count)][16] = {};
  return ordinal < 16 && !begun[size_t(part)][ordinal].exchange(true);
}

// Without a driver there is nothing to open for. While a library is opened the linker lets nobody
// else open one, 0.07 s for cuBLASLt: cuInit comes first, which opens the driver's own, and by then
// the caller has imported most of Python's.
template <class Work>
void begin(Work work) {
  auto& beginners = of_process<Beginners>();
  const std::lock_guard lock(beginners.mutex);
  if (beginners.ended) return;
  beginners.threads.emplace_back([work] {
    try {
      if (!api::loader().get(api::Lib::driver).usable()) return;
      api::initialise_driver();
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

// Libraries are opened beside the context, which takes longer: 0.1 s.
void begin_gpu(int ordinal) {
  if (!is_first(ordinal, Part::context)) return;
  begin([ordinal] { open_gpu(ordinal); });
  begin([] {
    api::loader().get(api::Lib::nvrtc);
    api::loader().get(api::Lib::cublas_lt);
  });
}

void begin_libraries(int ordinal, bool half, bool dnn) {
  // With it small regions need not wait for kernels of their own.
  if (std::thread::hardware_concurrency() >= spare_cores && is_first(ordinal, Part::compiler)) {
    begin([ordinal] { open_gpu(ordinal)->jit->get(interpreter()); });
  }
  if (is_first(ordinal, half ? Part::half_products : Part::products)) {
    begin([ordinal, half] {
      if (!api::loader().get(api::Lib::cublas_lt).usable()) return;
      std::string reason;
      const BlasLt* library = open_gpu(ordinal)->libraries->blas_lt(reason);
      if (library) library->begin(half ? DType::float16 : DType::float32);
    });
  }
  if (dnn && is_first(ordinal, Part::dnn)) {
    begin([ordinal] {
      api::loader().get(api::Lib::cudnn);
      std::string reason;
      const auto gpu = open_gpu(ordinal);
      gpu->libraries->blas_lt(reason);  // begun side by side they take 0.02 s longer
      gpu->libraries->dnn(reason);
    });
  }
}

void rest_gpus() {
  join_beginners();
  rest_compilers();
  at_work().rest();
}

}  // namespace rlx::cuda
