// Prints and verifies programs (both follow in the next change).
#include "program/program.h"
namespace rlx { std::string dump(const Program&) { return ""; } void verify(const Program&) {} }
