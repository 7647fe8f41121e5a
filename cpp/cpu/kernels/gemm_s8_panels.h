// The layout of B for 8-bit products on bytes, which gemm_s8_bytes.h explains.
#pragma once

#include <cstdint>

#include "core/divide.h"

namespace rlx::cpu {

// A panel is 16 columns: two vectors of eight. A step is 16 or 8 rows of B (its depth): runs of
// four rows, in each the two vectors, in each the columns' four bytes side by side. What was too
// large for the steps of a panel lies behind all panels: further steps, vector by vector, with
// runs of one vector; then the rows at which they start, in the same order.
constexpr int64_t s8_depths[] = {16, 8}, s8_deepest = s8_depths[0];

struct S8Panel {
  static constexpr int64_t lanes = 8, vectors = 2, width = vectors * lanes;
  int64_t extra_at = 0;              // from the header on
  int32_t extra[vectors] = {0, 0};  // further steps of each vector
};

// From the header on: the sums of the columns as int32, the panels' table, the panels, the rest.
struct S8PanelsLayout {
  int64_t depth, steps, panels;
  S8PanelsLayout(int64_t step_depth, int64_t k, int64_t n)
      : depth(step_depth), steps(ceil_div(k, step_depth)), panels(ceil_div(n, S8Panel::width)) {}
  int64_t table_at() const { return panels * S8Panel::width * int64_t{sizeof(int32_t)}; }
  int64_t panels_at() const {
    return round_up(table_at() + panels * int64_t{sizeof(S8Panel)}, 64);
  }
  int64_t panel_bytes() const { return steps * depth * S8Panel::width; }
  int64_t rest_at() const { return panels_at() + panels * panel_bytes(); }
  int64_t extra_bytes() const { return depth * S8Panel::lanes; }
  int64_t rest_bytes(int64_t extra) const {
    return round_up(extra * (extra_bytes() + int64_t{sizeof(int32_t)}), 64);
  }
};

}  // namespace rlx::cpu
