// What _core.Executable holds besides the core's Executable.
#pragma once

#include <vector>

#include "bindings/arrays.h"
#include "cuda/driver.h"
#include "exec/executable.h"
#include "exec/state.h"

namespace rlx::bindings {

struct Endpoint {  // an input or output of the program
  PyObject* name;  // interned; looked up in dicts by its cached hash
  ValueKind kind;
  DType dtype;
  const char* text() const { return PyUnicode_AsUTF8(name); }
};

struct PyExecutable {
  PyExecutable(ProgramPtr program, std::shared_ptr<const Device> device,
               std::shared_ptr<Packs> packs, ExecOptions options);

  // Held for a whole run: the driver's calls need not enter a context one by one, and PyTorch
  // lends only what lies on the current GPU. Of a GPU that is lost those calls tell.
  cuda::Current make_current() const;
  // CUDA's legacy one, on which other libraries' arrays are ordered; null on the host.
  void* default_stream() const;

  Executable executable;
  std::vector<Endpoint> inputs, outputs;
  std::vector<bool> from_state;  // of each input
  std::shared_ptr<const Device> device;
  int ordinal = -1;              // of the GPU; -1 on the host
};

struct PyState {
  explicit PyState(std::shared_ptr<PyExecutable> e)
      : executable(std::move(e)),
        state(executable->executable.main().facts, executable->executable.device()) {}
  std::shared_ptr<PyExecutable> executable;
  State state;
};

// Executable.run(feeds, out=None, state=None) as a raw method: called once for each run, it must
// cost less than a microsecond.
extern PyMethodDef run_method;

// Throws Error(input) for a key of `dict` that is no endpoint.
void reject_unknown(PyObject* dict, const std::vector<Endpoint>& endpoints, const char* what);

// Borrows the program's inputs from a dict, a sequence in their order, or a single array.
// Device arrays are made to wait for by `stream`.
std::vector<Borrowed> borrow_inputs(const PyExecutable& self, PyObject* feeds, bool with_state,
                                    StringTable* strings, void* stream);

// Makes Host stages call Python, and loops stop on Ctrl-C.
void install_hooks();

}  // namespace rlx::bindings
