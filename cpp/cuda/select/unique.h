// Steps of compaction that several primitives share, and Unique.
#pragma once

#include "cuda/select/parts.h"
#include "kernels/params/sort.h"

namespace rlx::cuda {

class CompactSteps {
 public:
  CompactSteps(LaunchBuilder<params::Compact>& launch, DType condition, const Tools& tools,
               Selection& selection);
  // Bytes that list() needs behind `workspace`.
  static size_t workspace(int64_t length);
  // The places of the conditions that hold, and their count.
  void list(int64_t length, int64_t workspace);
  void add(int form, const LaunchShape& shape, const std::string& word = "unsigned char");

 private:
  LaunchBuilder<params::Compact>& launch_;
  DType condition_;
  const Tools& tools_;
  Selection& selection_;
};

Selection select_unique(const Sort& prim, const SelectRequest& request, const Tools& tools);

}  // namespace rlx::cuda
