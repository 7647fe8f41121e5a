// The stages that are no Segment; each reads and defines values through the Runner.
#pragma once

#include "exec/run.h"

namespace rlx {

void run_if(Runner& runner, const If& stage);
void run_loop(Runner& runner, const Loop& stage);
void run_scan(Runner& runner, const Scan& stage);
void run_sequence_op(Runner& runner, const SequenceOp& stage);
void run_host(Runner& runner, const Host& stage);

// The truth of a bool tensor that must hold one element.
bool truth_of(const Tensor& tensor, const char* what);

}  // namespace rlx
