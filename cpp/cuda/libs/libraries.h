// NVIDIA's libraries on one GPU, opened when a primitive first asks; each present or a reason.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cuda/driver.h"

namespace rlx::cuda {

class BlasLt;
class Dnn;
class DnnRnn;

class Libraries {
 public:
  // `assumed`: cuBLASLt and cuDNN take whatever they might, to see which kernels are left to us.
  explicit Libraries(std::shared_ptr<Driver> driver, bool assumed = false);
  ~Libraries();

  // Null with `reason` set when the library cannot be used.
  BlasLt* blas_lt(std::string& reason);
  Dnn* dnn(std::string& reason);
  DnnRnn* dnn_rnn(std::string& reason);  // cuDNN too, by a handle of its own

 private:
  const std::shared_ptr<Driver> driver_;
  const bool assumed_;
  template <class Library>
  struct Slot {
    std::mutex mutex;  // one each: some take half a second to open, beside the others
    std::unique_ptr<Library> library;
    std::optional<std::string> missing;
  };
  template <class Library>
  Library* open(Slot<Library>& slot, std::string& reason);

  Slot<BlasLt> blas_lt_;
  Slot<Dnn> dnn_;
  Slot<DnnRnn> dnn_rnn_;
};

}  // namespace rlx::cuda
