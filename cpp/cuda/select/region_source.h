// Writes a Region as a device function: CUDA C++ text and the parameters it reads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "kernels/params/region.h"

namespace rlx::cuda {

struct RegionSpec {
  const Region* region = nullptr;
  std::span<const Number> numbers;
  std::span<const TensorDesc> inputs;   // one for each load index
  std::span<const TensorDesc> outputs;  // one for each result; strides matter to run() only
  // Load 0 is not read but given, as values of this type.
  DType given = DType::none;
  std::string name = "region";  // the namespace inside rlx
  int vector_limit = 8;
};

// namespace rlx::NAME { using Index; struct Results { T0 r0[N]; ... };
//   template <int N> void values(const params::Region&, Index at, const Given* given, results...);
//   template <int N> void run(const params::Region&, Index at, const Given* given); }
// values() gives N neighbours from `at` on in compute types; run() stores them as well.
struct RegionSource {
  std::string text;
  params::Region params;
  int vector = 1;   // the widest N whose accesses are aligned
  bool wide = false;  // Index has 64 bits
  // Which operand of the node each pointer is: a load index, or -1 - result.
  std::vector<int> operands;
};

RegionSource region_source(const RegionSpec& spec);

}  // namespace rlx::cuda
