// The closed table of primitives; twin of python/rlx/ir/prims.py, which documents each field.
// A Dim is the ExprId of its value; strings of closed sets are enums by the same names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/expr.h"

namespace rlx {

struct AxisMap {
  int axis = -1;
  ExprId div = -1, mod = -1;
};

enum class ScalarOp : uint16_t;  // program/scalar_op.h, generated from kernels/include/scalar_ops.h

struct RegionOp {
  enum class Kind : uint8_t { load, constant, index, dim, cast, scalar };
  Kind kind = Kind::load;
  ScalarOp op{};             // kind == scalar
  DType dtype = DType::none;
  int args[4] = {-1, -1, -1, -1};
  int64_t i = 0;             // constant of an integer or bool type; cast: whether it saturates
  double f = 0.0;            // constant of a float type
  ExprId dim = -1;           // kind == dim
};

struct Region {
  std::vector<ExprId> shape;
  std::vector<std::vector<AxisMap>> accesses;
  std::vector<RegionOp> ops;
  std::vector<int> results;
};

using RegionPtr = std::shared_ptr<const Region>;  // null: none

enum class ReduceKind : uint8_t {
  sum, mean, max, min, prod, l1, l2, sum_square, log_sum, log_sum_exp, argmax, argmin
};

struct Reduce {
  ReduceKind kind{};
  std::vector<int> axes;
  bool keepdims = false, select_last_index = false;
  RegionPtr prologue;
};

enum class CumulateKind : uint8_t { sum, prod };

struct Cumulate {
  CumulateKind kind{};
  int axis = 0;
  bool exclusive = false, reverse = false;
};

struct MatMul {  // inputs a, b, a_zero, b_zero, b_scale, groups, *extra
  static constexpr size_t operands = 6;  // those before the extras
  bool trans_a = false, trans_b = false;
  double alpha = 1.0;
  DType accumulate = DType::float32;
  RegionPtr epilogue;
  DType b_type = DType::none;  // set: b is dequantised while it is read
  int block_k = 1, block_n = 1;
};

struct Conv {  // inputs x, w, x_zero, w_zero, *extra
  std::vector<int> strides, dilations;
  std::vector<ExprId> pads_begin, pads_end;
  int groups = 1;
  bool transposed = false, channels_last = false;
  DType accumulate = DType::float32;
  RegionPtr epilogue;
};

enum class PoolKind : uint8_t { max, average, lp };

struct Pool {
  PoolKind kind{};
  std::vector<int> kernel, strides, dilations;
  std::vector<ExprId> pads_begin, pads_end;
  bool count_include_pad = false;
  int p = 2, storage_order = 0;
  bool channels_last = false;
};

struct Softmax {
  int axis = -1;
  bool log = false;
  RegionPtr prologue;
};

enum class NormKind : uint8_t { layer, rms, group };

struct Norm {  // inputs x, scale, bias, *extra; outputs y, mean, inv_std, x_in
  NormKind kind{};
  double epsilon = 0.0;
  int axis = -1, groups = 1;
  bool channels_last = false;
  RegionPtr prologue, epilogue;
};

enum class HeadLayout : uint8_t { bhsd, bshd };

struct Attention {  // inputs q, k, v, *extra
  double scale = 1.0;
  bool causal = false;
  ExprId causal_offset = -1;
  HeadLayout q_layout{}, k_layout{}, v_layout{}, y_layout{};
  RegionPtr score;
};

enum class GatherKind : uint8_t { axis, elements, nd };

struct Gather {
  GatherKind kind{};
  int axis = 0, batch_dims = 0;
};

enum class ScatterKind : uint8_t { elements, nd };
enum class ScatterReduction : uint8_t { none, add, mul, max, min };

struct Scatter {
  ScatterKind kind{};
  int axis = 0;
  ScatterReduction reduction{};
};

struct MovePart {
  int input = 0;
  std::vector<int> perm;
  std::vector<ExprId> starts, steps, extents, offsets;
};

enum class MoveMode : uint8_t { none, constant, edge, reflect, wrap };

struct Move {
  std::vector<MovePart> parts;
  MoveMode mode{};
  int fill = -1;
};

struct Resize {
  std::string mode;
  std::vector<int> axes;
  std::vector<ExprId> scales;
  std::string coordinate_transformation_mode, nearest_mode;
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false, antialias = false;
  double extrapolation_value = 0.0;
  std::vector<ExprId> roi;
};

enum class SortKind : uint8_t { topk, nonzero, compress, unique };

struct Sort {
  SortKind kind{};
  int axis = -1;
  ExprId k = -1;
  bool largest = true, sorted = true;
};

struct NonMaxSuppression {
  bool center_point_box = false;
};

enum class RandomKind : uint8_t { uniform, normal, bernoulli, multinomial };

struct Random {
  RandomKind kind{};
  double a = 0.0, b = 1.0;
  std::optional<double> seed;
};

enum class RecurrentKind : uint8_t { lstm, gru, rnn };
enum class Direction : uint8_t { forward, reverse, bidirectional };

struct Recurrent {  // x, w, r, b, sequence_lens, initial_h, initial_c, p, scales (ir/prims.py)
  RecurrentKind kind{};
  int hidden_size = 0;
  Direction direction{};
  std::vector<std::string> activations;
  std::vector<double> activation_alpha, activation_beta;
  double clip = 0.0;
  bool input_forget = false, linear_before_reset = false, batchwise = false;
};

struct Fft {
  int axis = 0;
  ExprId length = -1;
  bool inverse = false, onesided = false;
};

struct Map {
  std::string body;
  ExprId items = -1;
  std::vector<ExprId> ints, floats;
};

using Prim = std::variant<Region, Reduce, Cumulate, MatMul, Conv, Pool, Softmax, Norm, Attention,
                          Gather, Scatter, Move, Resize, Sort, NonMaxSuppression, Random,
                          Recurrent, Fft, Map>;

const char* name_of(const Prim& prim);

}  // namespace rlx
