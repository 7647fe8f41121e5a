// The fields of every primitive by name: one table for the bindings, dump, verify and whoever
// asks which expressions a primitive reads.
#pragma once

#include <functional>
#include <string_view>
#include <tuple>

#include "program/prims.h"

namespace rlx {

// `dim`: the member holds ExprIds, which C++ cannot tell from other integers.
template <class S, class T>
struct Field {
  std::string_view name;
  T S::*member;
  bool dim;
};

template <class S, class T>
constexpr Field<S, T> field(std::string_view name, T S::*member) { return {name, member, false}; }
template <class S, class T>
constexpr Field<S, T> dim_field(std::string_view name, T S::*member) {
  return {name, member, true};
}

template <class S>
struct Fields;  // name: the Python class; list: a tuple of Field

template <> struct Fields<AxisMap> {
  static constexpr std::string_view name = "AxisMap";
  static constexpr std::tuple list{field("axis", &AxisMap::axis), dim_field("div", &AxisMap::div),
                                   dim_field("mod", &AxisMap::mod)};
};
template <> struct Fields<Region> {
  static constexpr std::string_view name = "Region";
  static constexpr std::tuple list{
      dim_field("shape", &Region::shape), field("accesses", &Region::accesses),
      field("ops", &Region::ops), field("results", &Region::results)};
};
template <> struct Fields<Reduce> {
  static constexpr std::string_view name = "Reduce";
  static constexpr std::tuple list{
      field("kind", &Reduce::kind), field("axes", &Reduce::axes),
      field("keepdims", &Reduce::keepdims),
      field("select_last_index", &Reduce::select_last_index),
      field("prologue", &Reduce::prologue)};
};
template <> struct Fields<Cumulate> {
  static constexpr std::string_view name = "Cumulate";
  static constexpr std::tuple list{
      field("kind", &Cumulate::kind), field("axis", &Cumulate::axis),
      field("exclusive", &Cumulate::exclusive), field("reverse", &Cumulate::reverse)};
};
template <> struct Fields<MatMul> {
  static constexpr std::string_view name = "MatMul";
  static constexpr std::tuple list{
      field("trans_a", &MatMul::trans_a), field("trans_b", &MatMul::trans_b),
      field("alpha", &MatMul::alpha), field("accumulate", &MatMul::accumulate),
      field("epilogue", &MatMul::epilogue), field("b_type", &MatMul::b_type),
      field("block_k", &MatMul::block_k), field("block_n", &MatMul::block_n)};
};
template <> struct Fields<Conv> {
  static constexpr std::string_view name = "Conv";
  static constexpr std::tuple list{
      field("strides", &Conv::strides), field("dilations", &Conv::dilations),
      dim_field("pads_begin", &Conv::pads_begin), dim_field("pads_end", &Conv::pads_end),
      field("groups", &Conv::groups), field("transposed", &Conv::transposed),
      field("channels_last", &Conv::channels_last), field("accumulate", &Conv::accumulate),
      field("epilogue", &Conv::epilogue)};
};
template <> struct Fields<Pool> {
  static constexpr std::string_view name = "Pool";
  static constexpr std::tuple list{
      field("kind", &Pool::kind), field("kernel", &Pool::kernel),
      field("strides", &Pool::strides), field("dilations", &Pool::dilations),
      dim_field("pads_begin", &Pool::pads_begin), dim_field("pads_end", &Pool::pads_end),
      field("count_include_pad", &Pool::count_include_pad), field("p", &Pool::p),
      field("storage_order", &Pool::storage_order),
      field("channels_last", &Pool::channels_last)};
};
template <> struct Fields<Softmax> {
  static constexpr std::string_view name = "Softmax";
  static constexpr std::tuple list{field("axis", &Softmax::axis), field("log", &Softmax::log),
                                   field("prologue", &Softmax::prologue)};
};
template <> struct Fields<Norm> {
  static constexpr std::string_view name = "Norm";
  static constexpr std::tuple list{
      field("kind", &Norm::kind), field("epsilon", &Norm::epsilon), field("axis", &Norm::axis),
      field("groups", &Norm::groups), field("channels_last", &Norm::channels_last),
      field("prologue", &Norm::prologue), field("epilogue", &Norm::epilogue)};
};
template <> struct Fields<Attention> {
  static constexpr std::string_view name = "Attention";
  static constexpr std::tuple list{
      field("scale", &Attention::scale), field("causal", &Attention::causal),
      dim_field("causal_offset", &Attention::causal_offset),
      field("q_layout", &Attention::q_layout), field("k_layout", &Attention::k_layout),
      field("v_layout", &Attention::v_layout), field("y_layout", &Attention::y_layout),
      field("score", &Attention::score)};
};
template <> struct Fields<Gather> {
  static constexpr std::string_view name = "Gather";
  static constexpr std::tuple list{field("kind", &Gather::kind), field("axis", &Gather::axis),
                                   field("batch_dims", &Gather::batch_dims)};
};
template <> struct Fields<Scatter> {
  static constexpr std::string_view name = "Scatter";
  static constexpr std::tuple list{field("kind", &Scatter::kind), field("axis", &Scatter::axis),
                                   field("reduction", &Scatter::reduction)};
};
template <> struct Fields<MovePart> {
  static constexpr std::string_view name = "MovePart";
  static constexpr std::tuple list{
      field("input", &MovePart::input), field("perm", &MovePart::perm),
      dim_field("starts", &MovePart::starts), dim_field("steps", &MovePart::steps),
      dim_field("extents", &MovePart::extents), dim_field("offsets", &MovePart::offsets)};
};
template <> struct Fields<Move> {
  static constexpr std::string_view name = "Move";
  static constexpr std::tuple list{field("parts", &Move::parts), field("mode", &Move::mode),
                                   field("fill", &Move::fill)};
};
template <> struct Fields<Resize> {
  static constexpr std::string_view name = "Resize";
  static constexpr std::tuple list{
      field("mode", &Resize::mode), field("axes", &Resize::axes),
      dim_field("scales", &Resize::scales),
      field("coordinate_transformation_mode", &Resize::coordinate_transformation_mode),
      field("nearest_mode", &Resize::nearest_mode),
      field("cubic_coeff_a", &Resize::cubic_coeff_a),
      field("exclude_outside", &Resize::exclude_outside), field("antialias", &Resize::antialias),
      field("extrapolation_value", &Resize::extrapolation_value), dim_field("roi", &Resize::roi)};
};
template <> struct Fields<Sort> {
  static constexpr std::string_view name = "Sort";
  static constexpr std::tuple list{
      field("kind", &Sort::kind), field("axis", &Sort::axis), dim_field("k", &Sort::k),
      field("largest", &Sort::largest), field("sorted", &Sort::sorted)};
};
template <> struct Fields<NonMaxSuppression> {
  static constexpr std::string_view name = "NonMaxSuppression";
  static constexpr std::tuple list{
      field("center_point_box", &NonMaxSuppression::center_point_box)};
};
template <> struct Fields<Random> {
  static constexpr std::string_view name = "Random";
  static constexpr std::tuple list{field("kind", &Random::kind), field("a", &Random::a),
                                   field("b", &Random::b), field("seed", &Random::seed)};
};
template <> struct Fields<Recurrent> {
  static constexpr std::string_view name = "Recurrent";
  static constexpr std::tuple list{
      field("kind", &Recurrent::kind), field("hidden_size", &Recurrent::hidden_size),
      field("direction", &Recurrent::direction), field("activations", &Recurrent::activations),
      field("activation_alpha", &Recurrent::activation_alpha),
      field("activation_beta", &Recurrent::activation_beta), field("clip", &Recurrent::clip),
      field("input_forget", &Recurrent::input_forget),
      field("linear_before_reset", &Recurrent::linear_before_reset),
      field("batchwise", &Recurrent::batchwise)};
};
template <> struct Fields<Fft> {
  static constexpr std::string_view name = "Fft";
  static constexpr std::tuple list{field("axis", &Fft::axis), dim_field("length", &Fft::length),
                                   field("inverse", &Fft::inverse),
                                   field("onesided", &Fft::onesided)};
};
template <> struct Fields<Map> {
  static constexpr std::string_view name = "Map";
  static constexpr std::tuple list{
      field("body", &Map::body), dim_field("items", &Map::items), dim_field("ints", &Map::ints),
      dim_field("floats", &Map::floats)};
};

// Calls visit(field) for each field of a struct of this table.
template <class S, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, Fields<S>::list);
}

// Calls visit for every expression that a primitive reads, those of its Regions included.
void for_each_dim(const Prim& prim, const std::function<void(ExprId)>& visit);

}  // namespace rlx
