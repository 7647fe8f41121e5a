// A launch as the driver takes it.
#pragma once

#include "cuda/api/types.h"
#include "cuda/driver.h"

namespace rlx::cuda::api {

class LaunchOf {
 public:
  LaunchOf(const LaunchShape& shape, Stream stream) {
    if (shape.cooperative) flag(LaunchAttribute::cooperative);
    if (shape.programmatic) flag(LaunchAttribute::programmatic_serialization);
    const Extent3 &g = shape.grid, &b = shape.block, &c = shape.cluster;
    if (c.x * c.y * c.z > 1) {
      LaunchAttribute& dims = add(LaunchAttribute::cluster_dimension);
      dims.value.extent[0] = c.x;
      dims.value.extent[1] = c.y;
      dims.value.extent[2] = c.z;
    }
    config = {{g.x, g.y, g.z}, {b.x, b.y, b.z}, shape.shared_bytes, stream, attributes_, count_};
  }
  LaunchOf(const LaunchOf&) = delete;  // `config` points into it

  LaunchConfig config;

 private:
  LaunchAttribute& add(uint32_t id) {
    attributes_[count_] = {id, 0, {}};
    return attributes_[count_++];
  }
  void flag(uint32_t id) { add(id).value.flag = 1; }

  LaunchAttribute attributes_[3];
  uint32_t count_ = 0;
};

}  // namespace rlx::cuda::api
