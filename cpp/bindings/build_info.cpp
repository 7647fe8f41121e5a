// Exposes the version and the facts of this build.
#include "core/build_info.h"

#include "bindings/register.h"

namespace py = pybind11;

namespace rlx::bindings {

void register_build_info(py::module_& module) {
  module.attr("__version__") = build_info().version;
  module.def(
      "build_info",
      [] {
        const BuildInfo& info = build_info();
        py::dict facts;
        facts["version"] = info.version;
        facts["compiler"] = info.compiler;
        facts["build_type"] = info.build_type;
        facts["onednn"] = info.onednn;
        return facts;
      },
      "Facts about this build, fixed when it was compiled.");
}

}  // namespace rlx::bindings
