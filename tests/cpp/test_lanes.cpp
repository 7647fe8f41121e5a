// Lanes: every conflict is ordered by a lane or by waits, and independent chains run apart.
#include <random>
#include <set>

#include "plan/lanes.h"
#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

using plan::LaneStep;
using plan::Range;
using plan::Touch;

Touch touch(std::vector<size_t> reads, std::vector<size_t> writes) {
  Touch made;
  for (size_t at : reads) made.reads.push_back({-1, at, at + 1});
  for (size_t at : writes) made.writes.push_back({-1, at, at + 1});
  return made;
}

bool conflict(const Touch& a, const Touch& b) {
  const auto meet = [](const std::vector<Range>& x, const std::vector<Range>& y) {
    for (const Range& r : x)
      for (const Range& s : y)
        if (r.space == s.space && r.begin < s.end && s.begin < r.end) return true;
    return false;
  };
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

// Which nodes are done for sure before each node begins.
std::vector<std::set<uint32_t>> done_before(const std::vector<LaneStep>& steps, size_t lanes) {
  std::vector<std::set<uint32_t>> done(steps.size()), lane(lanes);
  for (uint32_t t = 0; t < steps.size(); ++t) {
    std::set<uint32_t>& known = lane[steps[t].lane];
    for (uint32_t u : steps[t].waits) {
      check(steps[u].signals && steps[u].lane != steps[t].lane);
      known.insert(u);
      known.insert(done[u].begin(), done[u].end());
    }
    done[t] = known;
    known.insert(t);
  }
  return done;
}

const Test ordered("lanes: conflicts of random segments are ordered", [] {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<Touch> nodes;
    for (int t = 0; t < 40; ++t) {
      const size_t a = random() % 12, b = random() % 12, c = random() % 12;
      nodes.push_back(touch({a, b}, {c}));
    }
    for (size_t lanes : {1, 2, 4}) {
      const auto steps = plan::assign_lanes(nodes, lanes);
      const auto done = done_before(steps, lanes);
      for (uint32_t t = 0; t < nodes.size(); ++t) {
        check(steps[t].lane < lanes);
        for (uint32_t u = 0; u < t; ++u) {
          if (conflict(nodes[u], nodes[t])) check(done[t].count(u) == 1, "not ordered");
        }
      }
    }
  }
});

const Test apart("lanes: independent chains run apart and wait for nothing", [] {
  std::vector<Touch> nodes;
  for (size_t step = 0; step < 4; ++step) {
    for (size_t chain = 0; chain < 3; ++chain) {
      const size_t base = chain * 10;
      nodes.push_back(touch({base + step}, {base + step + 1}));
    }
  }
  const auto steps = plan::assign_lanes(nodes, 3);
  for (size_t t = 0; t < nodes.size(); ++t) {
    check_equal(steps[t].lane, steps[t % 3].lane);
    check(steps[t].waits.empty() && !steps[t].signals);
  }
  check(steps[0].lane != steps[1].lane && steps[1].lane != steps[2].lane);
});

const Test spaces("lanes: other spaces do not overlap the arena", [] {
  Touch a, b;
  a.writes.push_back({3, 0, 8});
  b.reads.push_back({-1, 0, 8});
  const std::vector<Touch> nodes = {a, b};
  check(plan::assign_lanes(nodes, 2)[1].waits.empty());
});

}  // namespace
}  // namespace rlx::test
