// An opened shared library, and the tables of functions that are taken from one.
#pragma once

#include <string>

#include "core/error.h"

namespace rlx::cuda::api {

// What the search for one library came to.
struct Found {
  std::string name;      // "cuBLAS"
  std::string path;      // of the opened file; empty when it was not found
  std::string how;       // "in the process", "pip wheel", "conda", "system loader", "CUDA_HOME"
  std::string version;
  std::string reason;    // why it is not usable
  std::string remedy;    // the command that installs it

  bool usable() const { return handle != nullptr; }
  void* handle = nullptr;
};

// The address of a function; throws Error(device) naming the library's file.
void* symbol(const Found& library, const char* name);
// Null when the library lacks it.
void* symbol_or_null(const Found& library, const char* name) noexcept;

// Fills one pointer of a function table.
template <class F>
void load(const Found& library, F*& function, const char* name) {
  function = reinterpret_cast<F*>(symbol(library, name));
}
template <class F>
void load_optional(const Found& library, F*& function, const char* name) noexcept {
  function = reinterpret_cast<F*>(symbol_or_null(library, name));
}

}  // namespace rlx::cuda::api
