// The bodies of kernels/map compiled for the CPU: one loop over items for each element type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/dtype.h"
#include "kernels/params/map.h"

namespace rlx::cpu {

using MapLoop = void (*)(const params::Map& map, int64_t begin, int64_t end);

struct MapEntry {
  std::string_view body;
  DType element;  // what map_element gives
  MapLoop loop;
};

struct MapTable {
  const MapEntry* entries;
  size_t count;
};

extern const MapTable map_table_portable, map_table_avx2, map_table_avx512;

// The type that stands for all that a body handles alike; none where it takes no such elements.
DType map_element(params::MapTypes types, DType dtype);

// Null where the body is not compiled for that element.
MapLoop find_map_loop(std::string_view body, DType element);

}  // namespace rlx::cpu
