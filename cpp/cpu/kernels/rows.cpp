// Reads rows in place where they are contiguous and of the right type, else by a Region.
#include "cpu/kernels/rows.h"

namespace rlx::cpu {
namespace {

// A Region of `shape` that loads its only input and nothing else.
Region identity(std::span<const int64_t> shape, DType dtype, std::vector<Number>& numbers) {
  Region region;
  region.accesses.emplace_back();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    region.shape.push_back(ExprId(numbers.size()));
    numbers.push_back({shape[axis], double(shape[axis]), true});
    region.accesses[0].push_back({int(axis), -1, -1});
  }
  RegionOp load;
  load.kind = RegionOp::Kind::load;
  load.dtype = dtype;
  load.args[0] = 0;
  region.ops.push_back(load);
  region.results = {0};
  return region;
}

}  // namespace

int64_t extent_of(std::span<const int64_t> shape, size_t from, size_t to) {
  return element_count(shape.subspan(from, to - from));
}

RowReader::RowReader(const Spec& spec)
    : columns_(extent_of(spec.shape, size_t(spec.row_rank), spec.shape.size())),
      item_(int64_t(size_of(spec.type))) {
  const TensorDesc& x = spec.inputs[0];
  if (!spec.prologue && x.dtype == spec.type && x.contiguous()) return;
  std::vector<Number> numbers(spec.numbers.begin(), spec.numbers.end());
  Region region = spec.prologue ? *spec.prologue : identity(spec.shape, x.dtype, numbers);
  int& result = region.results[0];
  if (compute_type(region.ops[size_t(result)].dtype) != spec.type) {
    RegionOp cast;
    cast.kind = RegionOp::Kind::cast;
    cast.dtype = spec.type;
    cast.args[0] = result;
    result = int(region.ops.size());
    region.ops.push_back(cast);
  }
  TensorDesc out;
  out.dtype = spec.type;
  RegionProgram::Spec program;
  program.region = &region;
  program.numbers = numbers;
  program.inputs = spec.inputs;
  program.outputs = {&out, 1};
  program.row_rank = spec.row_rank;
  program_.emplace_back(program);
}

RowReader::Cursor::Cursor(const RowReader& reader, const void* const* inputs, void* scratch)
    : reader_(reader), base_(static_cast<const std::byte*>(inputs[0])) {
  if (!reader.direct()) frame_ = &reader.program_[0].begin(scratch, inputs);
}

}  // namespace rlx::cpu
