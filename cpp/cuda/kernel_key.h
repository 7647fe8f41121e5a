// The key that compiled kernels are kept under: rlx's own and those of users.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/sha256.h"
#include "cuda/jit.h"

namespace rlx::cuda {

// All that decides what becomes of a source; rlx's version is taken too.
struct KernelKey {
  std::string_view compilers;             // their versions
  std::string_view name, text;            // of the source
  std::span<const std::string> options;   // with the architecture
  std::span<const std::string> entries;   // what is asked of it
  std::span<const Digest> headers;        // of all that it may include
};

Digest digest_of(const KernelKey& key);
Digest digest_of(std::span<const NamedText> headers);

}  // namespace rlx::cuda
