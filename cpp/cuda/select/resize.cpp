// Resize: nearest copies in one launch; the rest filters axis by axis in float or double.
#include "cuda/select/parts.h"
#include "kernels/params/resize.h"

namespace rlx::cuda {
namespace {

template <class E, size_t N>
E place_in(const std::string& name, const std::string_view (&names)[N]) {
  for (size_t k = 0; k < N; ++k) {
    if (names[k] == name) return E(k);
  }
  throw Error(ErrorKind::internal, "resize has no mode " + name);
}

params::ResizeAxis axis_of(const Resize& prim, const SelectRequest& request, size_t j) {
  static constexpr std::string_view modes[] = {"nearest", "linear", "cubic"};
  static constexpr std::string_view coordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
      "tf_crop_and_resize", "tf_half_pixel_for_nn"};
  static constexpr std::string_view nearest[] = {"round_prefer_floor", "round_prefer_ceil",
                                                 "floor", "ceil"};
  params::ResizeAxis a;
  a.mode = place_in<params::ResizeMode>(prim.mode, modes);
  a.coordinates = place_in<params::ResizeCoordinates>(prim.coordinate_transformation_mode,
                                                      coordinates);
  a.nearest = place_in<params::ResizeNearest>(prim.nearest_mode, nearest);
  a.cubic_a = prim.cubic_coeff_a;
  a.exclude_outside = prim.exclude_outside;
  a.antialias = prim.antialias;
  a.scale = request.real(prim.scales[j]);
  if (!prim.roi.empty()) {
    a.roi_start = request.real(prim.roi[j]);
    a.roi_end = request.real(prim.roi[j + prim.axes.size()]);
  }
  return a;
}

std::vector<params::ResizeAxis> axes_of(const Resize& prim, const SelectRequest& request) {
  const Dims &in = request.inputs[0].shape, &out = request.outputs[0].shape;
  std::vector<params::ResizeAxis> axes(in.size());
  if (in.size() > size_t(params::resize_axes)) {
    throw Error(ErrorKind::unsupported, "resizing over more than 8 axes");
  }
  for (size_t k = 0; k < in.size(); ++k) {
    for (size_t j = 0; j < prim.axes.size(); ++j) {
      if (prim.axes[j] == int(k)) axes[k] = axis_of(prim, request, j);
    }
    axes[k].input = in[k];
    axes[k].output = out[k];
    if (in[k] == 0) throw Error(ErrorKind::input, "cannot resize an empty axis");
  }
  return axes;
}

// Whether the axis stays as it is.
bool identity(const params::ResizeAxis& a) {
  const bool crops = a.coordinates == params::ResizeCoordinates::tf_crop_and_resize;
  return a.input == a.output && a.scale == 1.0 &&
         (!crops || (a.roi_start == 0.0 && a.roi_end == 1.0)) &&
         a.coordinates != params::ResizeCoordinates::tf_half_pixel_for_nn;
}

Selection select_nearest(const std::vector<params::ResizeAxis>& axes, const SelectRequest& request,
                         const Tools& tools) {
  const TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  LaunchBuilder<params::ResizeNearestAll> launch;
  params::ResizeNearestAll& p = launch.params;
  p.count = y.count();
  p.axes = int(axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    p.extents[k] = params::Divisor(y.shape[k]);
    p.strides[k] = x.strides[k];
    p.axis[k] = axes[k];
  }
  launch.bind(p.x, Source::operand(0));
  launch.bind(p.y, Source::operand(1));
  KernelSpec kernel{"kernels/resize.cu", "resize",
                    {define("RLX_FORM", 0), define("RLX_WORD", integer_name(size_of(y.dtype)))},
                    {}};
  return one_step("nearest", launch.finish(tools.jit.get(kernel), walk_of(tools, p.count)));
}

class Passes {
 public:
  Passes(const SelectRequest& request, const Tools& tools)
      : request_(request), tools_(tools), type_(request.inputs[0].dtype) {
    const DType compute = compute_type(type_);
    wide_ = compute == DType::float64 || (is_integer(compute) && size_of(compute) > 2)
                ? DType::float64 : DType::float32;
  }

  Selection select(const std::vector<params::ResizeAxis>& axes, double outside) {
    std::vector<size_t> filtered;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (!identity(axes[k])) filtered.push_back(k);
    }
    if (filtered.empty()) filtered.push_back(0);  // one pass that copies
    Dims shape = request_.inputs[0].shape;
    size_t half = 0;
    for (size_t k : filtered) {
      shape[k] = axes[k].output;
      half = std::max(half, (size_t(element_count(shape)) * size_of(wide_) + 255) / 256 * 256);
    }
    shape = request_.inputs[0].shape;
    for (size_t n = 0; n < filtered.size(); ++n) {
      const bool first = n == 0, last = n + 1 == filtered.size();
      const Source from = first ? Source::operand(0)
                                : Source::workspace(int64_t((n - 1) % 2 * half));
      const Source to = last ? Source::operand(1) : Source::workspace(int64_t(n % 2 * half));
      add(axes[filtered[n]], filtered[n], shape, from, to, first ? type_ : wide_,
          last ? type_ : wide_);
    }
    selection_.workspace = filtered.size() > 1 ? 2 * half : 0;
    bool crops = false;
    for (const auto& a : axes) {
      crops |= a.coordinates == params::ResizeCoordinates::tf_crop_and_resize;
    }
    if (crops) add_outside(axes, outside);
    selection_.rung = "axis by axis";
    return std::move(selection_);
  }

 private:
  void add(const params::ResizeAxis& axis, size_t k, Dims& shape, Source from, Source to,
           DType from_type, DType to_type) {
    const AxisView view = view_of(shape, k);
    LaunchBuilder<params::ResizePass> launch;
    params::ResizePass& p = launch.params;
    p.axis = axis;
    p.inner = params::Divisor(view.inner);
    p.output = params::Divisor(axis.output);
    p.count = view.outer * axis.output * view.inner;
    launch.bind(p.x, from);
    launch.bind(p.y, to);
    KernelSpec kernel{"kernels/resize.cu", "resize",
                      {define("RLX_FORM", 1), define("RLX_FROM", storage_name(from_type)),
                       define("RLX_TO", storage_name(to_type)),
                       define("RLX_WIDE", storage_name(wide_))},
                      {}};
    selection_.steps.push_back(launch.finish(tools_.jit.get(kernel), walk_of(tools_, p.count)));
    shape[k] = axis.output;
  }

  void add_outside(const std::vector<params::ResizeAxis>& axes, double value) {
    const TensorDesc& y = request_.outputs[0];
    LaunchBuilder<params::ResizeOutside> launch;
    params::ResizeOutside& p = launch.params;
    p.count = y.count();
    p.axes = int(axes.size());
    p.value = value;
    for (size_t k = 0; k < axes.size(); ++k) {
      p.extents[k] = params::Divisor(y.shape[k]);
      p.axis[k] = axes[k];
    }
    launch.bind(p.y, Source::operand(1));
    KernelSpec kernel{"kernels/resize.cu", "resize",
                      {define("RLX_FORM", 2), define("RLX_TO", storage_name(y.dtype))}, {}};
    selection_.steps.push_back(launch.finish(tools_.jit.get(kernel), walk_of(tools_, p.count)));
  }

  const SelectRequest& request_;
  const Tools& tools_;
  DType type_, wide_;
  Selection selection_;
};

}  // namespace

Selection select_resize(const Resize& prim, const SelectRequest& request, const Tools& tools) {
  if (request.outputs[0].count() == 0) return {};
  const std::vector<params::ResizeAxis> axes = axes_of(prim, request);
  const bool crops = prim.coordinate_transformation_mode == "tf_crop_and_resize";
  if ((prim.mode == "nearest" && !crops) || axes.empty()) {
    return select_nearest(axes, request, tools);
  }
  const DType type = compute_type(request.inputs[0].dtype);
  if (type == DType::boolean || is_complex(type)) {
    throw Error(ErrorKind::unsupported, std::string("resizing takes no ") + name_of(type));
  }
  return Passes(request, tools).select(axes, prim.extrapolation_value);
}

}  // namespace rlx::cuda
