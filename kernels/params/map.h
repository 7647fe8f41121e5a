// What a body of kernels/map gets: its operands at known dims and its options; and the bodies.
#pragma once

namespace rlx::params {

inline constexpr int map_rank = 8, map_operands = 12, map_ints = 24, map_floats = 8;

// A dense tensor; data is null when it is absent.
struct MapOperand {
  void* data = nullptr;
  int dtype = 0;  // onnx.TensorProto.DataType
  int rank = 0;
  long long shape[map_rank] = {};
};

// The body runs once for each item of [0, items); operands are the inputs, then the outputs.
struct Map {
  long long items = 0;
  MapOperand operands[map_operands];
  long long ints[map_ints] = {};
  double floats[map_floats] = {};
  int* fault = nullptr;  // a body that meets wrong data writes 1 here; null: nobody looks
};

// What a body's type parameter T stands for: the element type of operand `typed`, as
// real: float, double, F16, BF16 (kernels/include/element.h);
// number: those, and the integers (bool and the small ones are a byte);
// bytes: the unsigned integer of the element's size, C128 for 16 bytes.
enum class MapTypes { real, number, bytes };

// kernels/map/<name>.h holds rlx::map::<name><T>(const params::Map&, long long item).
// `fault` says what wrong data the body reports; null when it takes all data.
struct MapBody {
  const char* name;
  MapTypes types;
  int typed, inputs, outputs;
  const char* fault = nullptr;
};

inline constexpr MapBody map_bodies[] = {
    {"bit_cast", MapTypes::bytes, 0, 1, 1},
    {"col2im", MapTypes::number, 0, 1, 1},
    {"crop_and_resize", MapTypes::real, 0, 3, 1, "a batch index is out of range"},
    {"deform_columns", MapTypes::real, 0, 3, 1},
    {"det", MapTypes::real, 0, 1, 2},
    {"frames", MapTypes::bytes, 0, 1, 1},
    {"grid_nearest", MapTypes::bytes, 0, 2, 1},
    {"grid_sample", MapTypes::real, 0, 2, 1},
    {"inverse", MapTypes::real, 0, 1, 2},
    {"linear_attention", MapTypes::real, 0, 6, 2},
    {"max_roi_pool", MapTypes::real, 0, 2, 1, "a batch index is out of range"},
    {"pairwise_coupling", MapTypes::real, 0, 1, 2},
    {"roi_align", MapTypes::real, 0, 3, 1, "a batch index is out of range"},
    {"tree_ensemble", MapTypes::real, 0, 6, 1},
};

}  // namespace rlx::params
