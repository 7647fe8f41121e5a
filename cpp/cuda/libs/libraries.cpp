// Opens each library once and keeps why one cannot be used.
#include "cuda/libs/libraries.h"

#include "core/error.h"
#include "cuda/libs/blas_lt.h"
#include "cuda/libs/dnn.h"
#include "cuda/libs/dnn_rnn.h"

namespace rlx::cuda {

Libraries::Libraries(std::shared_ptr<Driver> driver, bool assumed)
    : driver_(std::move(driver)), assumed_(assumed) {}
Libraries::~Libraries() = default;

template <class Library>
Library* Libraries::open(Slot<Library>& slot, std::string& reason) {
  const std::lock_guard lock(slot.mutex);
  if constexpr (requires { Library::assumed(driver_); }) {
    if (assumed_ && !slot.library) slot.library = Library::assumed(driver_);
  }
  if (!slot.library && !slot.missing) {
    try {
      slot.library = std::make_unique<Library>(driver_);
    } catch (const Error& error) {
      slot.missing = error.what() + (error.remedy.empty() ? "" : "; try " + error.remedy);
    }
  }
  if (slot.missing) reason = *slot.missing;
  return slot.library.get();
}

BlasLt* Libraries::blas_lt(std::string& reason) { return open(blas_lt_, reason); }
Dnn* Libraries::dnn(std::string& reason) { return open(dnn_, reason); }
DnnRnn* Libraries::dnn_rnn(std::string& reason) { return open(dnn_rnn_, reason); }

}  // namespace rlx::cuda
