// The facts of this build are filled in.
#include "core/build_info.h"

#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

const Test filled{"build_info: every field is filled", [] {
  check(!build_info().version.empty());
  check(!build_info().compiler.empty());
}};

}  // namespace
}  // namespace rlx::test
