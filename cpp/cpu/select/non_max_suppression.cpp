// NonMaxSuppression: greedy by score for each batch and class, as the operator text says.
#include <algorithm>

#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

struct Box {
  float y1, x1, y2, x2;
};

Box box_at(const float* p, bool center) {
  if (center) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

float overlap(const Box& a, const Box& b) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0.0f || width <= 0.0f) return 0.0f;
  const float common = height * width;
  const float both = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - common;
  return both > 0.0f ? common / both : 0.0f;
}

struct NmsBody : StepBody {
  int64_t batches = 0, classes = 0, boxes = 0;
  bool center = false;

  void run(const RunArgs& args) const override {
    const auto* corners = static_cast<const float*>(args.operands[0]);
    const auto* scores = static_cast<const float*>(args.operands[1]);
    const auto* limit = static_cast<const int64_t*>(args.operands[2]);
    const auto* iou = static_cast<const float*>(args.operands[3]);
    const auto* least = static_cast<const float*>(args.operands[4]);
    auto* selected = static_cast<int64_t*>(args.operands[5]);
    auto* order = static_cast<int64_t*>(args.workspace);
    const int64_t most = limit ? std::clamp<int64_t>(*limit, 0, boxes) : 0;
    int64_t n = 0;
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t c = 0; c < classes; ++c) {
        const float* score = scores + (b * classes + c) * boxes;
        const int64_t kept = pick(corners + b * boxes * 4, score, most, iou ? *iou : 0.0f, least,
                                  order);
        for (int64_t k = 0; k < kept; ++k, ++n) {
          selected[3 * n] = b;
          selected[3 * n + 1] = c;
          selected[3 * n + 2] = order[k];
        }
      }
    }
    *static_cast<int64_t*>(args.operands[6]) = n;
  }

  // Keeps the chosen boxes at the front of `order`; returns how many.
  int64_t pick(const float* corners, const float* score, int64_t most, float iou,
               const float* least, int64_t* order) const {
    int64_t candidates = 0;
    for (int64_t i = 0; i < boxes; ++i) {
      if (!least || score[i] > *least) order[candidates++] = i;
    }
    std::sort(order, order + candidates, [&](int64_t a, int64_t b) {
      return score[a] == score[b] ? a < b : score[a] > score[b];
    });
    int64_t kept = 0;
    for (int64_t i = 0; i < candidates && kept < most; ++i) {
      const Box box = box_at(corners + order[i] * 4, center);
      bool free = true;
      for (int64_t k = 0; k < kept && free; ++k) {
        free = overlap(box, box_at(corners + order[k] * 4, center)) <= iou;
      }
      if (free) order[kept++] = order[i];
    }
    return kept;
  }
};

}  // namespace

Selection select_non_max_suppression(const NonMaxSuppression& prim, const SelectRequest& request) {
  const TensorDesc &boxes = request.inputs[0], &scores = request.inputs[1];
  if (boxes.shape.size() != 3 || scores.shape.size() != 3 || boxes.shape[2] != 4 ||
      boxes.shape[0] != scores.shape[0] || boxes.shape[1] != scores.shape[2]) {
    throw Error(ErrorKind::input, "boxes must be [batch, n, 4] and scores [batch, classes, n]");
  }
  auto body = std::make_shared<NmsBody>();
  body->batches = scores.shape[0];
  body->classes = scores.shape[1];
  body->boxes = scores.shape[2];
  body->center = prim.center_point_box;
  Selection selection;
  selection.rung = "greedy";
  selection.workspace = size_t(body->boxes) * sizeof(int64_t);
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
