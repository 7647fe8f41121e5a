// Non-maximum suppression of [batch, boxes, 4] by scores [batch, classes, boxes].
#pragma once

namespace rlx::params {

struct Nms {
  const float* boxes = nullptr;
  const float* scores = nullptr;
  const long long* limit = nullptr;   // none: 0
  const float* iou = nullptr;         // none: 0
  const float* least = nullptr;       // none: every box is a candidate
  long long* selected = nullptr;
  long long* count = nullptr;
  unsigned char* state = nullptr;     // of each candidate: 1 while it may be selected
  long long* picked = nullptr;        // `boxes` for each batch and class
  long long* picks = nullptr;         // how many, for each batch and class
  long long batches = 0, classes = 0, box_count = 0;
};

}  // namespace rlx::params
