// Epilogues of products as generated functions.
#include "cuda/select/epilogue.h"

namespace rlx::cuda {

OutRegion out_region(const RegionPtr& epilogue, const SelectRequest& request, size_t first_extra,
                     DType type, int vector_limit) {
  OutRegion made;
  made.first_extra = first_extra;
  made.inputs = request.inputs.size();
  TensorDesc given;
  given.dtype = type;
  std::vector<TensorDesc> inputs = {given};
  OwnRegion plain;
  RegionSpec spec;
  spec.name = "out";
  spec.given = type;
  spec.vector_limit = vector_limit;
  spec.outputs = request.outputs;
  if (epilogue) {
    spec.region = epilogue.get();
    spec.numbers = request.numbers;
    const auto extras = request.inputs.subspan(std::min(first_extra, request.inputs.size()));
    inputs.insert(inputs.end(), extras.begin(), extras.end());
  } else {
    spec.outputs = request.outputs.first(1);
    const TensorDesc& y = request.outputs[0];
    for (int64_t dim : y.shape) plain.region.shape.push_back(plain.number(dim));
    plain.region.accesses = {{}};
    int value = plain.load(0, type);
    if (compute_type(y.dtype) != compute_type(type)) value = plain.cast(value, y.dtype);
    plain.region.results = {value};
    spec.region = &plain.region;
    spec.numbers = plain.numbers;
  }
  spec.inputs = inputs;
  made.source = region_source(spec);
  return made;
}

}  // namespace rlx::cuda
