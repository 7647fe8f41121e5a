// Matrix products by cuBLASLt: one chosen algorithm with its workspace, bias and activation.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "backend.h"
#include "core/sha256.h"
#include "cuda/driver.h"

namespace rlx::cuda {

// D[M,N] = act(alpha * A[M,K] * B[K,N] + bias[N]) (+ C), row-major, in a strided batch.
struct LtProblem {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldd = 0;     // between stored rows
  bool trans_a = false, trans_b = false; // A is stored [K,M], B is stored [N,K]
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_d = 0;  // elements
  DType a = DType::float32, b = DType::float32, d = DType::float32;
  bool tf32 = false, bias = false, relu = false, residual = false;
  double alpha = 1;
  int64_t alignment = 16;                // of every address, in bytes
  size_t workspace_limit = size_t{32} << 20;
};

class BlasLt;

// A product ready to run; immutable, may run on several streams at once.
class LtProduct {
 public:
  ~LtProduct();
  size_t workspace() const;
  // `c` is read when the problem has a residual; it has D's type and layout.
  void run(const void* a, const void* b, const void* bias, const void* c, void* d,
           void* workspace, Stream stream) const;

 private:
  friend class BlasLt;
  struct Parts;
  explicit LtProduct(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

class BlasLt {
 public:
  explicit BlasLt(std::shared_ptr<Driver> driver);  // throws Error(device)
  // One that takes every problem and runs none.
  static std::unique_ptr<BlasLt> assumed(std::shared_ptr<Driver> driver);
  ~BlasLt();
  // Has the library load what it chooses by for products of that type, which it does when it is
  // first asked.
  void begin(DType dtype) const;
  // Null when the library has nothing for the problem, with its reason.
  std::unique_ptr<LtProduct> make(const LtProblem& problem, std::string& reason) const;

  struct Functions;

 private:
  const std::shared_ptr<Driver> driver_;
  BlasLt(std::shared_ptr<Driver> driver, std::nullptr_t);
  Digest digest(const LtProblem& problem) const;
  std::unique_ptr<const Functions> functions_;
  std::string version_;
  void* handle_ = nullptr;
};

}  // namespace rlx::cuda
