// What a kernel of a user is launched with, out of Python's objects.
#pragma once

#include <deque>
#include <vector>

#include "bindings/device_array.h"
#include "cuda/user_kernel.h"

namespace rlx::bindings {

// `given` has for each parameter the bytes of a value, None for a null pointer, or a tuple of an
// array's name, the array, the element types that fit (none: all do), and whether it is written.
// Throws Error(input) for arrays that do not fit, Error(stale_handle) for those before a reset.
class LaunchOperands {
 public:
  LaunchOperands(const cuda::UserKernel& kernel, void* stream, const py::list& given);
  // Arrays of ours say from now on which stream makes their contents.
  void written() const;

  std::vector<void*> values;
  std::vector<std::shared_ptr<void>> owners;

 private:
  void add_array(const py::tuple& given);

  const cuda::UserKernel& kernel_;
  void* const stream_;
  std::deque<const void*> pointers_;  // what `values` point to stays where it is
  std::vector<DeviceArray*> written_;
};

}  // namespace rlx::bindings
