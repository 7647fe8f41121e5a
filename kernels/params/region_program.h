// A small Region as data: what the interpreting kernel walks while a generated one compiles.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

constexpr int program_steps = 32, program_stores = 8;

enum StepOf : unsigned char { step_load, step_constant, step_number, step_cast, step_scalar };
enum Stored : unsigned char { stored_float, stored_half, stored_bfloat, stored_bool };

// One value: the bits of a float, or 0 and 1.
struct RegionStep {
  StepOf kind = step_constant;
  Stored stored = stored_float;  // of a load, or what a cast rounds to
  unsigned char op = 0;          // row of RLX_SCALAR_OPS
  bool boolean = false;          // the arguments are truth values
  unsigned char args[4] = {};    // steps; slot of a load; place of a number
  unsigned bits = 0;             // of a constant
};

struct RegionStore {
  unsigned char step = 0, slot = 0;
  Stored stored = stored_float;
};

struct RegionProgram {
  Region region;
  RegionStep steps[program_steps] = {};
  RegionStore stores[program_stores] = {};
  unsigned char map_axis[region_maps] = {}, map_slot[region_maps] = {};
  bool map_divides[region_maps] = {}, map_wraps[region_maps] = {};
  int axes = 1, maps = 0, step_count = 0, store_count = 0;
};

}  // namespace rlx::params
