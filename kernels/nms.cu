// Greedy non-maximum suppression: a block for each batch and class, then all lists behind another.
#include "kernels/include/scalar_ops.h"
#include "kernels/include/warp.h"
#include "kernels/params/nms.h"

namespace {

constexpr int threads = 256;

struct Box {
  float y1, x1, y2, x2;
};

RLX_FN float smaller(float a, float b) { return b < a ? b : a; }
RLX_FN float larger(float a, float b) { return a < b ? b : a; }

RLX_FN Box box_at(const float* p) {
#if RLX_CENTER
  return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
#else
  return {smaller(p[0], p[2]), smaller(p[1], p[3]), larger(p[0], p[2]), larger(p[1], p[3])};
#endif
}

RLX_FN float overlap(const Box& a, const Box& b) {
  const float height = smaller(a.y2, b.y2) - larger(a.y1, b.y1);
  const float width = smaller(a.x2, b.x2) - larger(a.x1, b.x1);
  if (height <= 0.0f || width <= 0.0f) return 0.0f;
  const float common = height * width;
  const float both = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - common;
  return both > 0.0f ? common / both : 0.0f;
}

struct Best {
  float score;
  int index;  // -1: none is left
};

RLX_FN Best better(Best a, Best b) {
  if (b.index < 0) return a;
  if (a.index < 0) return b;
  return b.score > a.score || (b.score == a.score && b.index < a.index) ? b : a;
}

}  // namespace

#if RLX_FORM == 0
extern "C" __global__ void __launch_bounds__(threads) nms(const rlx::params::Nms p) {
  __shared__ Best parts[threads / rlx::warp_size];
  const long long task = (long long)(rlx::block_rank()), n = p.box_count;
  if (task >= p.batches * p.classes) return;
  const float* boxes = p.boxes + task / p.classes * n * 4;
  const float* scores = p.scores + task * n;
  unsigned char* state = p.state + task * n;
  const long long limit = p.limit ? *p.limit : 0;
  const float iou = p.iou ? *p.iou : 0.0f;
  for (long long i = threadIdx.x; i < n; i += threads) {
    state[i] = !p.least || scores[i] > *p.least;
  }
  long long kept = 0;
  for (; kept < limit && kept < n; ++kept) {
    Best best = {0.0f, -1};
    for (long long i = threadIdx.x; i < n; i += threads) {
      if (state[i]) best = better(best, {scores[i], int(i)});
    }
    best = rlx::group_reduce<threads>(best, parts, better);
    if (best.index < 0) break;
    if (threadIdx.x == 0) p.picked[task * n + kept] = best.index;
    const Box box = box_at(boxes + (long long)(best.index) * 4);
    for (long long i = threadIdx.x; i < n; i += threads) {
      if (i == best.index || (state[i] && !(overlap(box_at(boxes + i * 4), box) <= iou))) {
        state[i] = 0;
      }
    }
  }
  if (threadIdx.x == 0) p.picks[task] = kept;
}
#else
extern "C" __global__ void __launch_bounds__(threads) nms(const rlx::params::Nms p) {
  long long at = 0;
  for (long long task = 0; task < p.batches * p.classes; ++task) {
    const long long picks = p.picks[task];
    for (long long i = threadIdx.x; i < picks; i += threads) {
      long long* to = p.selected + (at + i) * 3;
      to[0] = task / p.classes;
      to[1] = task % p.classes;
      to[2] = p.picked[task * p.box_count + i];
    }
    at += picks;
  }
  if (threadIdx.x == 0) *p.count = at;
}
#endif
