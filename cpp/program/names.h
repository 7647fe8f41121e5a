// The Python strings of every enum of prims.h and program.h, in the order of the enumerators.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string_view>

#include "program/program.h"

namespace rlx {

template <class E>
struct EnumNames;  // one specialisation for each enum below

template <class E>
concept NamedEnum = requires { EnumNames<E>::values; };

template <NamedEnum E>
constexpr std::string_view name_of(E e) {
  return EnumNames<E>::values.at(size_t(e));
}

template <NamedEnum E>
constexpr std::optional<E> enum_from(std::string_view name) {
  const auto& names = EnumNames<E>::values;
  for (size_t k = 0; k < names.size(); ++k)
    if (names[k] == name) return E(k);
  return std::nullopt;
}

template <size_t N>
using NameList = std::array<std::string_view, N>;

// Scalar functions are one kind in C++ and their own names in Python.
template <> struct EnumNames<RegionOp::Kind> {
  static constexpr NameList<6> values{"load", "const", "index", "dim", "cast", "scalar"};
};
template <> struct EnumNames<ReduceKind> {
  static constexpr NameList<12> values{"sum", "mean", "max", "min", "prod", "l1", "l2",
                                       "sum_square", "log_sum", "log_sum_exp", "argmax", "argmin"};
};
template <> struct EnumNames<CumulateKind> {
  static constexpr NameList<2> values{"sum", "prod"};
};
template <> struct EnumNames<PoolKind> {
  static constexpr NameList<3> values{"max", "average", "lp"};
};
template <> struct EnumNames<NormKind> {
  static constexpr NameList<3> values{"layer", "rms", "group"};
};
template <> struct EnumNames<HeadLayout> {
  static constexpr NameList<2> values{"bhsd", "bshd"};
};
template <> struct EnumNames<GatherKind> {
  static constexpr NameList<3> values{"axis", "elements", "nd"};
};
template <> struct EnumNames<ScatterKind> {
  static constexpr NameList<2> values{"elements", "nd"};
};
template <> struct EnumNames<ScatterReduction> {
  static constexpr NameList<5> values{"none", "add", "mul", "max", "min"};
};
template <> struct EnumNames<MoveMode> {
  static constexpr NameList<5> values{"none", "constant", "edge", "reflect", "wrap"};
};
template <> struct EnumNames<SortKind> {
  static constexpr NameList<4> values{"topk", "nonzero", "compress", "unique"};
};
template <> struct EnumNames<RandomKind> {
  static constexpr NameList<4> values{"uniform", "normal", "bernoulli", "multinomial"};
};
template <> struct EnumNames<RecurrentKind> {
  static constexpr NameList<3> values{"lstm", "gru", "rnn"};
};
template <> struct EnumNames<Direction> {
  static constexpr NameList<3> values{"forward", "reverse", "bidirectional"};
};
template <> struct EnumNames<ValueKind> {
  static constexpr NameList<3> values{"tensor", "sequence", "optional"};
};
template <> struct EnumNames<Symbol::Kind> {
  static constexpr NameList<2> values{"dim", "element"};
};
template <> struct EnumNames<SequenceKind> {
  static constexpr NameList<11> values{"construct", "empty", "at", "insert", "erase", "length",
                                       "concat", "split", "optional", "has_element",
                                       "get_element"};
};

}  // namespace rlx
