// Sources of users: compiled by NVRTC, linked by nvJitLink where asked, kept in memory and on disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/sha256.h"
#include "cuda/jit.h"

namespace rlx::cuda {

struct UserSource {
  std::string name, text;                // the name is that of messages
  std::vector<NamedText> headers;        // by the names that the source includes
  std::string included;                  // stands for the contents of files it may include
  std::string architecture;              // of architecture_named or architecture_of
  std::vector<std::string> options;      // the others
  std::vector<std::string> expressions;  // kernels whose symbols are asked for
  bool typed = false;                    // whether the parameters of the first are asked for
  bool lto = false;                      // through nvJitLink
};

struct UserProgram {
  Digest key{};
  std::string architecture;
  std::vector<std::byte> cubin, ptx;     // each may be empty; PTX ends with a zero
  std::string log;                       // of the compiler, then of the linker
  std::vector<std::string> lowered;      // symbols of the expressions
  // "rlx_signature<void (float*, int), rlx_sizes<8ull, 4ull> >"; empty unless typed
  std::string signature;
};
using UserProgramPtr = std::shared_ptr<const UserProgram>;

// Of equal sources one is made, whichever threads ask. Throws Error(input) with the compiler's log,
// Error(device) for a library that is missing.
UserProgramPtr compile_user(const UserSource& source);

// "sm_90", "90a", "compute_90" ... as NVRTC takes it; throws Error(input) with what it supports.
std::string architecture_named(const std::string& name);
// That of GPU `ordinal`.
std::string architecture_of(int ordinal);

}  // namespace rlx::cuda
