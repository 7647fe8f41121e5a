// Kernels from their sources: compiled by NVRTC (jit_nvrtc.cpp) or, in the emulator, by g++.
//
// A source is a file under kernels/ (embedded in the extension), seen by its path from the
// repository's root; it includes our headers by such paths ("kernels/include/types.h") and
// generated ones by the names given here. It is compiled as C++20 for the device's architecture,
// once for each set of definitions, and defines `extern "C" __global__ void ENTRY(Params)` with one
// POD parameter of at most 4064 bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/driver.h"

namespace rlx::cuda {

struct NamedText {
  std::string name, text;
};

struct KernelSpec {
  std::string file;                   // "kernels/softmax.cu"
  std::string entry;                  // "softmax"
  std::vector<std::string> defines;   // "T=float"; different ones make different kernels
  std::vector<NamedText> generated;   // headers made for this kernel
};

// A kernel that may still be compiling on another thread.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Driver& driver() const = 0;
  virtual const std::string& entry() const = 0;
  // Waits for the compiler; throws Error(internal) with its log, or Error(device).
  virtual Function function() const = 0;
  virtual bool ready() const = 0;     // function() would not wait
};
using KernelPtr = std::shared_ptr<const Kernel>;

class Jit {
 public:
  virtual ~Jit() = default;
  // Begins to compile on another thread; equal specs give one Kernel.
  virtual KernelPtr get(const KernelSpec& spec) = 0;
};

// The files under kernels/ as they were when the extension was built.
struct EmbeddedFile {
  const char *name, *text;
};
std::span<const EmbeddedFile> kernel_files();

}  // namespace rlx::cuda
