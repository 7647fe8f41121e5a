// Map: one launch of a body of kernels/map, compiled for the element type it is asked for.
#include <iterator>

#include "cuda/select/parts.h"
#include "kernels/params/map.h"

namespace rlx::cuda {
namespace {

const params::MapBody& body_of(const Map& prim) {
  for (const params::MapBody& body : params::map_bodies) {
    if (prim.body == body.name) return body;
  }
  throw Error(ErrorKind::internal, "there is no Map body '" + prim.body + "'");
}

// What the body's T is for an element type, as kernels/params/map.h says.
std::string element_name(const params::MapBody& body, DType type) {
  if (body.types == params::MapTypes::bytes) {
    return size_of(type) == 16 ? "rlx::C128" : integer_name(size_of(type));
  }
  switch (type) {
    case DType::float32: case DType::float64: return storage_name(type);
    case DType::float16: return "rlx::F16";
    case DType::bfloat16: return "rlx::BF16";
    default: break;
  }
  if (body.types == params::MapTypes::number) {
    if (type == DType::boolean) return "unsigned char";
    if (is_integer(type)) return storage_name(compute_type(type));
  }
  throw Error(ErrorKind::unsupported, std::string("there is no ") + body.name + " of " +
                                          name_of(type));
}

}  // namespace

Selection select_map(const Map& prim, const SelectRequest& request, const Tools& tools) {
  const params::MapBody& body = body_of(prim);
  LaunchBuilder<params::Map> launch;
  params::Map& p = launch.params;
  const size_t inputs = request.inputs.size();
  if (inputs != size_t(body.inputs) || request.outputs.size() != size_t(body.outputs) ||
      prim.ints.size() > std::size(p.ints) || prim.floats.size() > std::size(p.floats)) {
    throw Error(ErrorKind::internal, prim.body + " takes other operands or options");
  }
  DType typed = DType::none;
  for (size_t k = 0; k < inputs + request.outputs.size(); ++k) {
    const TensorDesc& desc = k < inputs ? request.inputs[k] : request.outputs[k - inputs];
    if (int(k) == body.typed) typed = desc.dtype;
    if (desc.dtype == DType::none) continue;
    if (desc.shape.size() > std::size(p.operands[k].shape) || !desc.contiguous()) {
      throw Error(ErrorKind::unsupported, "a Map takes dense tensors of up to 8 axes");
    }
    p.operands[k].dtype = int(desc.dtype);
    p.operands[k].rank = int(desc.shape.size());
    std::copy(desc.shape.begin(), desc.shape.end(), p.operands[k].shape);
    launch.bind(p.operands[k].data, Source::operand(k));
  }
  for (size_t k = 0; k < prim.ints.size(); ++k) p.ints[k] = request.dim(prim.ints[k]);
  for (size_t k = 0; k < prim.floats.size(); ++k) p.floats[k] = request.real(prim.floats[k]);
  p.items = request.dim(prim.items);
  if (p.items <= 0) return {};
  launch.bind(p.fault, Source::fault());
  KernelSpec kernel{"kernels/map.cu", "run_map",
                    {define("RLX_BODY", prim.body), define("RLX_T", element_name(body, typed))},
                    {{"generated/body.h", "#pragma once\n#include \"kernels/include/element.h\"\n"
                                          "#include \"kernels/map/" + prim.body + ".h\"\n"}}};
  return one_step("map " + prim.body,
                  launch.finish(tools.jit.get(kernel), walk_of(tools, p.items)));
}

}  // namespace rlx::cuda
