// Keeps chains on one lane and starts what depends on nothing recent on the lane longest idle.
#include "plan/lanes.h"

#include <algorithm>

namespace rlx::plan {
namespace {

bool overlap(std::span<const Range> a, std::span<const Range> b) {
  for (const Range& x : a) {
    for (const Range& y : b) {
      if (x.space == y.space && x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

bool conflict(const Touch& a, const Touch& b) {
  return overlap(a.writes, b.reads) || overlap(a.writes, b.writes) || overlap(a.reads, b.writes);
}

}  // namespace

std::vector<LaneStep> assign_lanes(std::span<const Touch> nodes, size_t lanes) {
  std::vector<LaneStep> steps(nodes.size());
  std::vector<int64_t> last(lanes, -1);  // of each lane
  // seen[a][b]: the latest node of lane b that lane a is known to come after.
  std::vector<std::vector<int64_t>> seen(lanes, std::vector<int64_t>(lanes, -1));
  for (size_t t = 0; t < nodes.size(); ++t) {
    std::vector<int64_t> latest(lanes, -1);  // dependency in each lane
    for (size_t u = t; u-- > 0;) {
      const uint32_t lane = steps[u].lane;
      if (latest[lane] < 0 && conflict(nodes[u], nodes[t])) latest[lane] = int64_t(u);
    }
    size_t chosen = size_t(std::ranges::min_element(last) - last.begin());
    int64_t best = -1;
    for (size_t lane = 0; lane < lanes; ++lane) {
      if (latest[lane] > best && latest[lane] == last[lane]) best = latest[lane], chosen = lane;
    }
    steps[t].lane = uint32_t(chosen);
    for (size_t lane = 0; lane < lanes; ++lane) {
      if (lane == chosen || latest[lane] <= seen[chosen][lane]) continue;
      seen[chosen][lane] = latest[lane];
      steps[t].waits.push_back(uint32_t(latest[lane]));
      steps[size_t(latest[lane])].signals = true;
    }
    last[chosen] = int64_t(t);
  }
  return steps;
}

}  // namespace rlx::plan
