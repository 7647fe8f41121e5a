// What two Programs have in common that differ in the bytes of their constants only.
#pragma once

#include <string>

#include "program/program.h"

namespace rlx {

// dump() with exact numbers, with all expressions, and without what tells constants apart.
std::string form_of(const Program& program);

}  // namespace rlx
