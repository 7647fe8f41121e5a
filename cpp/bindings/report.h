// NodeReports as Python dicts, for explain() and for what watches runs.
#pragma once

#include <pybind11/stl.h>

#include "exec/explain.h"

namespace rlx::bindings {

inline pybind11::dict to_dict(const NodeReport& r) {
  pybind11::dict d;
  d["path"] = r.path, d["name"] = r.name, d["op"] = r.op, d["also"] = r.also;
  d["prim"] = r.prim, d["rung"] = r.rung, d["reason"] = r.reason;
  d["steps"] = r.steps, d["outputs"] = r.outputs, d["workspace"] = r.workspace;
  d["in_place"] = r.in_place, d["varying"] = r.varying;
  d["creation_seconds"] = r.creation_seconds;
  return d;
}

}  // namespace rlx::bindings
