// The table of kernels/map's bodies for one instruction set. A new body: its header, its row here.
#pragma once

#include <array>

#include "cpu/kernels/grid_body.h"
#include "cpu/kernels/map.h"
#include "kernels/include/element.h"
#include "kernels/map/bit_cast.h"
#include "kernels/map/col2im.h"
#include "kernels/map/crop_and_resize.h"
#include "kernels/map/deform_columns.h"
#include "kernels/map/det.h"
#include "kernels/map/frames.h"
#include "kernels/map/grid_nearest.h"
#include "kernels/map/inverse.h"
#include "kernels/map/linear_attention.h"
#include "kernels/map/max_roi_pool.h"
#include "kernels/map/pairwise_coupling.h"
#include "kernels/map/roi_align.h"
#include "kernels/map/tree_ensemble.h"

namespace rlx::cpu {
namespace {

template <class T>
struct Tag {
  using type = T;
};

template <class Body, class T>
void map_loop(const params::Map& map, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; ++item) Body{}(Tag<T>{}, map, item);
}

// Rows of a body: a lambda that calls it with the type of its first argument.
template <class Body, class... T>
constexpr std::array<MapEntry, sizeof...(T)> rows(std::string_view name, Body,
                                                  const DType (&elements)[sizeof...(T)]) {
  std::array<MapEntry, sizeof...(T)> made{};
  const MapLoop loops[] = {&map_loop<Body, T>...};
  for (size_t k = 0; k < made.size(); ++k) made[k] = {name, elements[k], loops[k]};
  return made;
}

template <class Body>
constexpr auto reals(std::string_view name, Body body) {
  return rows<Body, float, double, F16, BF16>(
      name, body, {DType::float32, DType::float64, DType::float16, DType::bfloat16});
}

template <class Body>
constexpr auto integers(std::string_view name, Body body) {
  return rows<Body, signed char, unsigned char, short, unsigned short, int, unsigned, long,
              unsigned long>(
      name, body, {DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32,
                   DType::uint32, DType::int64, DType::uint64});
}

template <class Body>
constexpr auto bytes(std::string_view name, Body body) {
  return rows<Body, unsigned char, unsigned short, unsigned, unsigned long,
              C128>(
      name, body, {DType::uint8, DType::uint16, DType::uint32, DType::uint64, DType::complex128});
}

template <size_t... n>
constexpr auto joined(const std::array<MapEntry, n>&... parts) {
  std::array<MapEntry, (n + ...)> all{};
  size_t at = 0;
  const auto append = [&](const auto& part) {
    for (const MapEntry& entry : part) all[at++] = entry;
  };
  (append(parts), ...);
  return all;
}

constexpr auto col2im = []<class E>(E, const params::Map& map, int64_t item) {
  map::col2im<typename E::type>(map, item);
};

template <class Body>
constexpr auto wide_reals(std::string_view name, Body body) {
  return rows<Body, float, double>(name, body, {DType::float32, DType::float64});
}

constexpr auto map_entries = joined(
    bytes("bit_cast", []<class E>(E, const params::Map& map, int64_t item) {
      map::bit_cast<typename E::type>(map, item);
    }),
    reals("col2im", col2im), integers("col2im", col2im),
    reals("crop_and_resize", []<class E>(E, const params::Map& map, int64_t item) {
      map::crop_and_resize<typename E::type>(map, item);
    }),
    reals("deform_columns", []<class E>(E, const params::Map& map, int64_t item) {
      map::deform_columns<typename E::type>(map, item);
    }),
    reals("det", []<class E>(E, const params::Map& map, int64_t item) {
      map::det<typename E::type>(map, item);
    }),
    bytes("frames", []<class E>(E, const params::Map& map, int64_t item) {
      map::frames<typename E::type>(map, item);
    }),
    bytes("grid_nearest", []<class E>(E, const params::Map& map, int64_t item) {
      map::grid_nearest<typename E::type>(map, item);
    }),
    grid_entries,
    reals("inverse", []<class E>(E, const params::Map& map, int64_t item) {
      map::inverse<typename E::type>(map, item);
    }),
    reals("linear_attention", []<class E>(E, const params::Map& map, int64_t item) {
      map::linear_attention<typename E::type>(map, item);
    }),
    reals("max_roi_pool", []<class E>(E, const params::Map& map, int64_t item) {
      map::max_roi_pool<typename E::type>(map, item);
    }),
    reals("roi_align", []<class E>(E, const params::Map& map, int64_t item) {
      map::roi_align<typename E::type>(map, item);
    }),
    wide_reals("pairwise_coupling", []<class E>(E, const params::Map& map, int64_t item) {
      map::pairwise_coupling<typename E::type>(map, item);
    }),
    wide_reals("tree_ensemble", []<class E>(E, const params::Map& map, int64_t item) {
      map::tree_ensemble<typename E::type>(map, item);
    }));

}  // namespace
}  // namespace rlx::cpu
