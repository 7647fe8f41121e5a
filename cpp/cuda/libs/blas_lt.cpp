// cuBLASLt through declarations of our own: descriptors, the heuristic's first choice, the call.
#include "cuda/libs/blas_lt.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "cuda/api/loader.h"
#include "cuda/cache.h"

namespace rlx::cuda {
namespace {

// The library's enumerations (cublasLt.h, library_types.h), equal in 12 and 13.
constexpr int desc_trans_a = 3, desc_trans_b = 4, desc_epilogue = 7, desc_bias_pointer = 8;
constexpr int layout_batch_count = 5, layout_batch_stride = 6;
constexpr int preference_workspace = 1, preference_alignment_a = 5;  // b, c, d follow
constexpr int compute_32f = 68, compute_64f = 70, compute_32f_tf32 = 77, compute_32i = 72;
constexpr uint32_t epilogue_none = 1, epilogue_relu = 2, epilogue_bias = 4, epilogue_relu_bias = 6;

int type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return 0;
    case DType::float64: return 1;
    case DType::float16: return 2;
    case DType::int8: return 3;
    case DType::int32: return 10;
    case DType::bfloat16: return 14;
    default: return -1;
  }
}

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

const char* text_of_status(int status) {
  switch (status) {
    case 1: return "not initialised";
    case 3: return "allocation failed";
    case 7: return "invalid value";
    case 8: return "architecture mismatch";
    case 13: return "execution failed";
    case 15: return "not supported";
    default: return "error";
  }
}

void check(int status, const char* call) {
  if (status == 0) return;
  throw Error(ErrorKind::device, std::string(call) + " failed: " + text_of_status(status) + " (" +
                                     std::to_string(status) + ")");
}

}  // namespace

struct BlasLt::Functions {
  int (*create)(void**);
  int (*destroy)(void*);
  int (*desc_create)(void**, int, int);
  int (*desc_destroy)(void*);
  int (*desc_set)(void*, int, const void*, size_t);
  int (*layout_create)(void**, int, uint64_t, uint64_t, int64_t);
  int (*layout_destroy)(void*);
  int (*layout_set)(void*, int, const void*, size_t);
  int (*preference_create)(void**);
  int (*preference_destroy)(void*);
  int (*preference_set)(void*, int, const void*, size_t);
  int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*);
  int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                const void*, void*, void*, void*, const Algorithm*, void*, size_t, Stream);
};

BlasLt::BlasLt(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {
  const api::Found& library = api::loader().get(api::Lib::cublas_lt);
  auto f = std::make_unique<Functions>();
  const auto get = [&](auto*& function, const char* name) { api::load(library, function, name); };
  get(f->create, "cublasLtCreate");
  get(f->destroy, "cublasLtDestroy");
  get(f->desc_create, "cublasLtMatmulDescCreate");
  get(f->desc_destroy, "cublasLtMatmulDescDestroy");
  get(f->desc_set, "cublasLtMatmulDescSetAttribute");
  get(f->layout_create, "cublasLtMatrixLayoutCreate");
  get(f->layout_destroy, "cublasLtMatrixLayoutDestroy");
  get(f->layout_set, "cublasLtMatrixLayoutSetAttribute");
  get(f->preference_create, "cublasLtMatmulPreferenceCreate");
  get(f->preference_destroy, "cublasLtMatmulPreferenceDestroy");
  get(f->preference_set, "cublasLtMatmulPreferenceSetAttribute");
  get(f->heuristic, "cublasLtMatmulAlgoGetHeuristic");
  get(f->matmul, "cublasLtMatmul");
  version_ = library.version;
  functions_ = std::move(f);
  const Current current = driver_->make_current();
  check(functions_->create(&handle_), "cublasLtCreate");
}

BlasLt::BlasLt(std::shared_ptr<Driver> driver, std::nullptr_t) : driver_(std::move(driver)) {}

std::unique_ptr<BlasLt> BlasLt::assumed(std::shared_ptr<Driver> driver) {
  return std::unique_ptr<BlasLt>(new BlasLt(std::move(driver), nullptr));
}

BlasLt::~BlasLt() {
  if (!functions_) return;
  if (const Current current = driver_->make_current_quietly()) functions_->destroy(handle_);
}

// Column-major, the library computes D' = B' A' with the matrices' memory as it is: its "A" is
// our B and its "B" our A.
struct LtProduct::Parts {
  using Owned = std::unique_ptr<void, int (*)(void*)>;
  const BlasLt::Functions& f;
  Driver& driver;
  void* handle;
  LtProblem problem;
  mutable std::mutex mutex;
  Owned desc, left, right, result;
  Heuristic chosen{};
  size_t room = 0;                           // the workspace that is planned for
  std::optional<Digest> kept;                // the key of a choice from disk
  mutable std::atomic<bool> proven = false;  // has run; until then one thread at a time

  Parts(const BlasLt::Functions& functions, Driver& driver, void* handle, const LtProblem& p)
      : f(functions), driver(driver), handle(handle), problem(p), desc(nullptr, f.desc_destroy),
        left(layout(p.b, p.trans_b ? p.k : p.n, p.trans_b ? p.n : p.k, p.ldb, p.stride_b)),
        right(layout(p.a, p.trans_a ? p.m : p.k, p.trans_a ? p.k : p.m, p.lda, p.stride_a)),
        result(layout(p.d, p.n, p.m, p.ldd, p.stride_d)) {
    describe();
  }

  Owned layout(DType dtype, int64_t rows, int64_t cols, int64_t ld, int64_t stride) const {
    void* made = nullptr;
    check(f.layout_create(&made, type_of(dtype), uint64_t(rows), uint64_t(cols), ld),
          "cublasLtMatrixLayoutCreate");
    Owned owned(made, f.layout_destroy);
    const int32_t batch = int32_t(problem.batch);
    if (batch > 1) {
      check(f.layout_set(made, layout_batch_count, &batch, sizeof batch), "batch count");
      check(f.layout_set(made, layout_batch_stride, &stride, sizeof stride), "batch stride");
    }
    return owned;
  }

  void describe() {
    const bool is_double = problem.d == DType::float64, is_integer = problem.d == DType::int32;
    const int compute = is_double      ? compute_64f
                        : is_integer   ? compute_32i
                        : problem.tf32 ? compute_32f_tf32
                                       : compute_32f;
    void* made = nullptr;
    check(f.desc_create(&made, compute, is_double ? 1 : is_integer ? 10 : 0),
          "cublasLtMatmulDescCreate");
    desc.reset(made);
    set(desc_trans_a, int32_t(problem.trans_b));
    set(desc_trans_b, int32_t(problem.trans_a));
    const uint32_t epilogue = problem.bias   ? (problem.relu ? epilogue_relu_bias : epilogue_bias)
                              : problem.relu ? epilogue_relu
                                             : epilogue_none;
    set(desc_epilogue, epilogue);
  }

  template <class T>
  void set(int attribute, T value) const {
    check(f.desc_set(desc.get(), attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  // What was chosen in an earlier process. It is not asked about: the library's first answer takes
  // it 90 ms, beside which weights can be copied.
  bool read(const Digest& key) {
    const auto bytes = DiskCache(cache_folder(), "algo").read(key);
    if (!bytes || bytes->size() != sizeof chosen) return false;
    std::memcpy(&chosen, bytes->data(), sizeof chosen);
    if (chosen.state != 0 || chosen.workspace > problem.workspace_limit) return false;
    kept = key;
    return true;
  }

  void write(const Digest& key) const {
    DiskCache(cache_folder(), "algo").write(key, std::as_bytes(std::span(&chosen, 1)));
  }

  // One of at most this workspace; the library's status.
  int choose(uint64_t most) {
    void* made = nullptr;
    check(f.preference_create(&made), "cublasLtMatmulPreferenceCreate");
    const Owned preference(made, f.preference_destroy);
    check(f.preference_set(made, preference_workspace, &most, sizeof most), "workspace limit");
    const uint32_t alignment = uint32_t(problem.alignment);
    for (int operand = 0; operand < 4; ++operand) {
      check(f.preference_set(made, preference_alignment_a + operand, &alignment,
                             sizeof alignment),
            "alignment");
    }
    int found = 0;
    const int status = f.heuristic(handle, desc.get(), left.get(), right.get(), result.get(),
                                   result.get(), made, 1, &chosen, &found);
    return status != 0 ? status : found > 0 ? chosen.state : 15;
  }
};

LtProduct::LtProduct(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LtProduct::~LtProduct() = default;

// The library refuses workspace at other addresses; the arena aligns to 64 only.
constexpr size_t workspace_alignment = 256;

size_t LtProduct::workspace() const {
  const size_t bytes = parts_ ? parts_->room : 0;
  return bytes ? bytes + workspace_alignment : 0;
}

void LtProduct::run(const void* a, const void* b, const void* bias, const void* c, void* d,
                    void* workspace, Stream stream) const {
  Parts& p = *parts_;
  const uintptr_t misplaced = reinterpret_cast<uintptr_t>(workspace) % workspace_alignment;
  workspace = static_cast<std::byte*>(workspace) +
              (misplaced ? workspace_alignment - misplaced : 0);
  const Current current = p.driver.make_current();
  // The bias pointer is part of the descriptor, which other threads may be using.
  std::unique_lock lock(p.mutex, std::defer_lock);
  if (p.problem.bias || !p.proven) lock.lock();
  if (p.problem.bias) p.set(desc_bias_pointer, bias);
  const double alpha64 = p.problem.alpha, beta64 = p.problem.residual ? 1 : 0;
  const float alpha32 = float(alpha64), beta32 = float(beta64);
  const int32_t alpha_i = int32_t(alpha64), beta_i = int32_t(beta64);
  const void *alpha = &alpha32, *beta = &beta32;
  if (p.problem.d == DType::float64) alpha = &alpha64, beta = &beta64;
  if (p.problem.d == DType::int32) alpha = &alpha_i, beta = &beta_i;
  const void* added = p.problem.residual ? c : d;
  const auto run = [&] {
    return p.f.matmul(p.handle, p.desc.get(), alpha, b, p.left.get(), a, p.right.get(), beta,
                      added, p.result.get(), d, p.result.get(), &p.chosen.algorithm, workspace,
                      p.room, stream);
  };
  int status = run();
  if (status != 0 && !p.proven && p.kept && p.choose(p.room) == 0) {
    status = run();
    if (status == 0) p.write(*p.kept);
  }
  check(status, "cublasLtMatmul");
  p.proven = true;
}

Digest BlasLt::digest(const LtProblem& p) const {
  Sha256 hash;
  for (const std::string& text : {std::string("cublaslt algorithm"), version_,
                                  driver_->info().name,
                                  std::to_string(driver_->info().multiprocessors),
                                  std::to_string(api::loader().driver_version())}) {
    hash.add_text(text);
  }
  const int64_t numbers[] = {p.m, p.n, p.k, p.lda, p.ldb, p.ldd, p.trans_a, p.trans_b, p.batch,
                             p.stride_a, p.stride_b, p.stride_d, int64_t(p.a), int64_t(p.b),
                             int64_t(p.d), p.tf32, p.bias, p.relu, p.residual, p.alignment,
                             int64_t(p.workspace_limit)};
  hash.add(std::as_bytes(std::span(numbers)));
  return hash.finish();
}

void BlasLt::begin(DType dtype) const {
  if (!functions_) return;
  const Current current = driver_->make_current();
  const LtProblem any{.m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldd = 8, .a = dtype, .b = dtype,
                      .d = dtype, .tf32 = dtype == DType::float32};
  LtProduct::Parts(*functions_, *driver_, handle_, any).choose(0);
}

std::unique_ptr<LtProduct> BlasLt::make(const LtProblem& problem, std::string& reason) const {
  if (!functions_) return std::unique_ptr<LtProduct>(new LtProduct(nullptr));
  const Current current = driver_->make_current();
  auto parts = std::make_unique<LtProduct::Parts>(*functions_, *driver_, handle_, problem);
  const Digest key = digest(problem);
  if (!parts->read(key)) {
    if (const int status = parts->choose(problem.workspace_limit)) {
      reason = std::string("cuBLASLt: ") + text_of_status(status);
      return nullptr;
    }
    parts->write(key);
  }
  parts->room = parts->chosen.workspace;
  return std::unique_ptr<LtProduct>(new LtProduct(std::move(parts)));
}

}  // namespace rlx::cuda
