// The Composer with the CPU's own Regions as epilogues.
#pragma once

#include "cpu/select/select.h"
#include "plan/compose.h"

namespace rlx::cpu {

using plan::aligned;
using plan::Place;

class Composer : public plan::Composer {
 public:
  void add_epilogue(const SelectRequest& request, const RegionPtr& region, size_t first_extra,
                    const TensorDesc& product, const Place& at) {
    const auto by_region = [](const SelectRequest& part) {
      return select_region(std::get<Region>(part.prim), part);
    };
    plan::Composer::add_epilogue(by_region, request, region, first_extra, product, at);
  }
};

}  // namespace rlx::cpu
