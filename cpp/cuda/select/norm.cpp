// Norms: statistics of each row, then scale, bias and epilogue as one generated Region.
#include "cuda/select/parts.h"
#include "kernels/params/norm.h"

namespace rlx::cuda {
namespace {

struct Rows {
  int64_t rows = 1, length = 1, groups = 1, run = 1, image = 0, group = 0, jump = 0;
};

Rows rows_of(const Norm& prim, const Dims& shape) {
  Rows r;
  if (prim.kind != NormKind::group) {
    const int rank = int(shape.size()), axis = (prim.axis + rank) % std::max(rank, 1);
    for (int k = 0; k < rank; ++k) (k < axis ? r.rows : r.length) *= shape[size_t(k)];
    r.image = r.run = r.length;
    return r;
  }
  const int64_t channels = prim.channels_last ? shape.back() : shape[1];
  const int64_t image = channels == 0 || shape[0] == 0 ? 0 : element_count(shape) / shape[0];
  r.groups = prim.groups;
  r.rows = shape[0] * r.groups;
  r.length = r.run = image / r.groups;
  r.image = image;
  r.group = r.length;
  if (prim.channels_last) {
    r.run = r.group = channels / r.groups;
    r.jump = channels;
  }
  return r;
}

// The normalised value (given), times scale, plus bias, then the epilogue.
// Loads: 0 given, 1 scale, 2 bias, 3.. the epilogue's extras.
struct Tail {
  OwnRegion own;
  std::vector<TensorDesc> inputs;
  std::vector<size_t> operands;
};

class TailBuilder {
 public:
  TailBuilder(const Norm& prim, const SelectRequest& request, const Dims& shape, DType type)
      : prim_(prim), request_(request), shape_(shape), type_(type) {}

  Tail build(size_t extra) {
    OwnRegion& own = tail_.own;
    own.numbers.assign(request_.numbers.begin(), request_.numbers.end());
    for (int64_t dim : shape_) own.region.shape.push_back(own.number(dim));
    add_input(0, {});
    tail_.inputs[0].dtype = type_;
    int value = own.load(0, type_);
    value = affine(value, 1, ScalarOp::mul);
    value = affine(value, 2, ScalarOp::add);
    own.region.results = {value};
    if (prim_.epilogue) append_epilogue(value, extra);
    return std::move(tail_);
  }

 private:
  int add_input(size_t operand, std::vector<AxisMap> access) {
    tail_.operands.push_back(operand);
    tail_.inputs.push_back(request_.inputs[operand]);
    tail_.own.region.accesses.push_back(std::move(access));
    return int(tail_.operands.size()) - 1;
  }

  int affine(int value, size_t operand, ScalarOp op) {
    if (operand >= request_.inputs.size()) return value;
    const TensorDesc& x = request_.inputs[operand];
    if (x.dtype == DType::none) return value;
    OwnRegion& own = tail_.own;
    int at = own.load(add_input(operand, access_of(x)), compute_type(x.dtype));
    if (compute_type(x.dtype) != type_) at = own.cast(at, type_);
    return own.scalar(op, type_, value, at);
  }

  std::vector<AxisMap> access_of(const TensorDesc& x) const {
    if (prim_.kind == NormKind::group) {
      return {{prim_.channels_last ? int(shape_.size()) - 1 : 1, -1, -1}};
    }
    const int lead = int(shape_.size()) - int(x.shape.size());
    std::vector<AxisMap> maps;
    for (int k = 0; k < int(x.shape.size()); ++k) maps.push_back({k + lead, -1, -1});
    return maps;
  }

  void append_epilogue(int value, size_t extra) {
    const Region& epilogue = *prim_.epilogue;
    OwnRegion& own = tail_.own;
    std::vector<int> inputs = {0};
    for (size_t k = 1; k < epilogue.accesses.size(); ++k, ++extra) {
      inputs.push_back(add_input(extra, epilogue.accesses[k]));
    }
    std::vector<int> place;
    for (RegionOp op : epilogue.ops) {
      if (op.kind == RegionOp::Kind::load && op.args[0] == 0) {
        place.push_back(value);
        continue;
      }
      if (op.kind == RegionOp::Kind::load) op.args[0] = inputs[size_t(op.args[0])];
      const int args = op.kind == RegionOp::Kind::scalar ? info_of(op.op).arity
                       : op.kind == RegionOp::Kind::cast ? 1 : 0;
      for (int a = 0; a < args; ++a) op.args[a] = place[size_t(op.args[a])];
      place.push_back(int(own.region.ops.size()));
      own.region.ops.push_back(op);
    }
    own.region.results = {place[size_t(epilogue.results[0])]};
  }

  const Norm& prim_;
  const SelectRequest& request_;
  const Dims& shape_;
  DType type_;
  Tail tail_;
};

RegionSource tail_source(const Tail& tail, const TensorDesc& y, DType given) {
  RegionSpec spec;
  spec.region = &tail.own.region;
  spec.numbers = tail.own.numbers;
  spec.inputs = tail.inputs;
  spec.outputs = {&y, 1};
  spec.given = given;
  spec.name = "out";
  return region_source(spec);
}

}  // namespace

Selection select_norm(const Norm& prim, const SelectRequest& request, const Tools& tools) {
  std::vector<size_t> operands = {0};
  const size_t prologue_extras = prim.prologue ? prim.prologue->accesses.size() - 1 : 0;
  for (size_t k = 0; k < prologue_extras; ++k) operands.push_back(3 + k);
  const SourceRegion source = source_region(prim.prologue, request, operands);
  if (source.type != DType::float32 && source.type != DType::float64) {
    throw Error(ErrorKind::unsupported, std::string("normalisation is not defined for ") +
                                            name_of(source.type));
  }
  const TensorDesc& y = request.outputs[0];
  const Rows rows = rows_of(prim, source.shape);
  if (rows.rows == 0 || rows.length == 0) return {};
  Tail tail = TailBuilder(prim, request, source.shape, source.type).build(3 + prologue_extras);
  const RegionSource out = tail_source(tail, y, source.type);

  LaunchBuilder<params::Norm> launch;
  params::Norm& p = launch.params;
  const size_t outputs = request.inputs.size();
  bind_region(launch, p.source, source.source,
              [&](int load) { return Source::operand(source.operands[size_t(load)]); });
  bind_region(launch, p.out, out, [&](int operand) {
    return Source::operand(operand >= 0 ? tail.operands[size_t(operand)] : outputs);
  });
  const auto wanted = [&](size_t k) {
    return k < request.outputs.size() && request.outputs[k].dtype != DType::none;
  };
  if (wanted(1)) launch.bind(p.mean, Source::operand(outputs + 1));
  if (wanted(2)) launch.bind(p.inv_std, Source::operand(outputs + 2));
  if (wanted(3)) launch.bind(p.kept, Source::operand(outputs + 3));
  p.rows = rows.rows, p.length = rows.length;
  p.groups = params::Divisor(rows.groups), p.run = params::Divisor(rows.run);
  p.image = rows.image, p.group = rows.group, p.jump = rows.jump;
  p.epsilon = prim.epsilon;

  int vector = fitting_vector(std::min(source.source.vector, out.vector), rows.run);
  if (rows.jump) vector = fitting_vector(vector, rows.jump);
  const DType kept = wanted(3) ? request.outputs[3].dtype : y.dtype;
  const DType statistic = wanted(1)   ? request.outputs[1].dtype
                          : wanted(2) ? request.outputs[2].dtype : DType::float32;
  const int64_t runs = ceil_div(rows.length, vector);
  const int threads = row_threads(tools, rows.rows, runs);
  int held = 1;
  while (int64_t(held) * threads < runs) held *= 2;
  if (held * vector > 32) held = 0;
  const int block = std::max(threads, 128);  // several rows of a warp each, or one
  KernelSpec kernel{"kernels/norm.cu", "normalise",
                    {define("RLX_THREADS", threads), define("RLX_BLOCK", block),
                     define("RLX_VECTOR", vector), define("RLX_HELD", held),
                     define("RLX_CENTRED", prim.kind != NormKind::rms),
                     define("RLX_KEEPS", wanted(3)), define("RLX_KEPT", storage_name(kept)),
                     define("RLX_STATISTIC", storage_name(statistic))},
                    {{"generated/source.h", source.source.text}, {"generated/out.h", out.text}}};
  Selection selection = one_step(
      held ? "rows in registers" : "rows read again",
      launch.finish(tools.jit.get(kernel), blocks_of(ceil_div(rows.rows * threads, block), block)));
  selection.reason = std::to_string(threads) + " threads a row";
  return selection;
}

}  // namespace rlx::cuda
