// Primitives that the CPU backend does not have yet; a family that lands takes its function away.
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

[[noreturn]] void refuse(const Prim& prim) {
  throw Error(ErrorKind::unsupported,
              std::string("the CPU backend has no ") + name_of(prim) + " primitive");
}

}  // namespace

Selection select_map(const Map& prim, const SelectRequest&) {
  refuse(prim);
}

}  // namespace rlx::cpu
