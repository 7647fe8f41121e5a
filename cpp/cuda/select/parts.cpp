// Grids, merged layouts and small Selections for the select functions.
#include "cuda/select/parts.h"

namespace rlx::cuda {

LaunchShape blocks_of(int64_t blocks, int threads, size_t shared) {
  constexpr int64_t row = (int64_t{1} << 31) - 1;  // kernels leave out blocks behind the last
  LaunchShape shape;
  shape.block.x = uint32_t(threads);
  shape.grid.x = uint32_t(std::clamp<int64_t>(blocks, 1, row));
  shape.grid.y = uint32_t(std::max<int64_t>(1, ceil_div(blocks, row)));
  shape.shared_bytes = uint32_t(shared);
  return shape;
}

LaunchShape walk_of(const Tools& tools, int64_t items, int threads) {
  const int64_t processors = tools.driver.info().multiprocessors, most = processors * 32;
  while (threads > 64 && ceil_div(items, threads) < 2 * processors) threads /= 2;
  return blocks_of(std::min(ceil_div(items, threads), most), threads);
}

int row_threads(const Tools& tools, int64_t rows, int64_t runs) {
  const int64_t wanted = int64_t(tools.driver.info().multiprocessors) * 512;
  for (int threads : {32, 128, 256, 512}) {
    const bool fills = rows * threads >= wanted || threads >= runs;
    if (fills && runs <= int64_t(threads) * 4) return threads;
  }
  return 1024;
}

AxisView view_of(const Dims& shape, size_t axis) {
  AxisView view;
  for (size_t k = 0; k < shape.size(); ++k) {
    (k < axis ? view.outer : k == axis ? view.length : view.inner) *= shape[k];
  }
  return view;
}

Layout merged(const Dims& extents, const std::vector<Dims>& strides) {
  Layout made;
  std::vector<size_t> innermost;  // axis of each group of merged ones
  for (size_t k = 0; k < extents.size(); ++k) {
    if (extents[k] == 1) continue;
    bool joins = !innermost.empty();
    for (size_t t = 0; t < strides.size() && joins; ++t) {
      joins = strides[t][innermost.back()] == strides[t][k] * extents[k];
    }
    if (joins) {
      made.extents.back() *= extents[k];
      innermost.back() = k;
    } else {
      made.extents.push_back(extents[k]);
      innermost.push_back(k);
    }
  }
  if (innermost.empty()) made.extents.push_back(1);
  for (const Dims& all : strides) {
    Dims kept;
    for (size_t axis : innermost) kept.push_back(all[axis]);
    if (innermost.empty()) kept.push_back(0);
    made.strides.push_back(kept);
  }
  return made;
}

bool narrow_index(int64_t elements) { return elements < (int64_t{1} << 31); }

ExprId OwnRegion::number(int64_t value) {
  numbers.push_back({value, double(value), true});
  return ExprId(numbers.size()) - 1;
}

int OwnRegion::load(int input, DType type) {
  RegionOp op;
  op.dtype = type;
  op.args[0] = input;
  region.ops.push_back(op);
  return int(region.ops.size()) - 1;
}

int OwnRegion::scalar(ScalarOp function, DType type, int a, int b) {
  RegionOp op;
  op.kind = RegionOp::Kind::scalar;
  op.op = function;
  op.dtype = type;
  op.args[0] = a;
  op.args[1] = b;
  region.ops.push_back(op);
  return int(region.ops.size()) - 1;
}

int OwnRegion::cast(int from, DType to) {
  RegionOp op;
  op.kind = RegionOp::Kind::cast;
  op.dtype = to;
  op.args[0] = from;
  region.ops.push_back(op);
  return int(region.ops.size()) - 1;
}

std::vector<AxisMap> OwnRegion::aligned(size_t of) const {
  std::vector<AxisMap> maps;
  const int lead = int(region.shape.size()) - int(of);
  for (int k = 0; k < int(of); ++k) maps.push_back({lead + k, -1, -1});
  return maps;
}

SourceRegion source_region(const RegionPtr& prologue, const SelectRequest& request,
                           std::vector<size_t> operands, int vector_limit) {
  SourceRegion made;
  made.operands = std::move(operands);
  std::vector<TensorDesc> inputs;
  for (size_t operand : made.operands) inputs.push_back(request.inputs[operand]);
  OwnRegion plain;
  RegionSpec spec;
  spec.name = "source";
  spec.vector_limit = vector_limit;
  spec.inputs = inputs;
  if (prologue) {
    spec.region = prologue.get();
    spec.numbers = request.numbers;
    for (ExprId dim : prologue->shape) made.shape.push_back(request.dim(dim));
  } else {
    made.shape = inputs[0].shape;
    for (int64_t dim : made.shape) plain.region.shape.push_back(plain.number(dim));
    plain.region.accesses = {plain.aligned(made.shape.size())};
    plain.region.results = {plain.load(0, compute_type(inputs[0].dtype))};
    spec.region = &plain.region;
    spec.numbers = plain.numbers;
  }
  made.type = compute_type(spec.region->ops[size_t(spec.region->results[0])].dtype);
  made.source = region_source(spec);
  return made;
}

int fitting_vector(int vector, int64_t run) {
  while (vector > 1 && run % vector != 0) vector /= 2;
  return vector;
}

TensorDesc scratch_of(TensorDesc x, DType type) {
  x.dtype = type;
  x.constant = nullptr;
  int64_t next = 1;
  for (size_t k = x.shape.size(); k-- > 0; next *= x.shape[k]) x.strides[k] = next;
  return x;
}

Selection select_cast(const TensorDesc& x, const TensorDesc& scratch,
                      const SelectRequest& request, const Tools& tools) {
  OwnRegion cast;
  for (int64_t dim : x.shape) cast.region.shape.push_back(cast.number(dim));
  cast.region.accesses = {cast.aligned(x.shape.size())};
  cast.region.results = {cast.load(0, compute_type(x.dtype))};
  const Prim prim = cast.region;
  const SelectRequest part{prim,            {&x, 1}, {&scratch, 1}, cast.numbers,
                           request.threads, "",      request.packs};
  return select_region(cast.region, part, tools);
}

Selection one_step(std::string rung, SelectedStep step, size_t workspace) {
  Selection selection;
  selection.rung = std::move(rung);
  selection.workspace = workspace;
  selection.steps.push_back(std::move(step));
  return selection;
}

}  // namespace rlx::cuda
