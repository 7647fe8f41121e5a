// Facts about this build of rlx, fixed when it was compiled.
#pragma once

#include <string_view>

namespace rlx {

struct BuildInfo {
  std::string_view version;
  std::string_view compiler;
  std::string_view build_type;
  bool onednn;  // whether the oneDNN backend is part of the build
};

const BuildInfo& build_info();

}  // namespace rlx
