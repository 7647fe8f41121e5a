// Epilogues as chains of named operations, under the names that the CPU's files use.
#pragma once

#include "plan/epilogue.h"

namespace rlx::cpu {

using plan::Epilogue;
using plan::EpilogueOp;
using plan::match_epilogue;

}  // namespace rlx::cpu
