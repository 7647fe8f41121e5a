// Compiles Norm: rows, programs for what is read and written around it, workspace.
#include "cpu/kernels/norm.h"

#include <algorithm>

#include "core/error.h"

namespace rlx::cpu {
namespace {

constexpr double share_ns = 15000, value_ns = 1.0;
constexpr int64_t chunk = 1024;

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

// A Region that broadcasts its only input of `rank` axes to `shape`, aligned at the last axis.
Region broadcast(std::span<const int64_t> shape, const TensorDesc& from,
                 std::vector<Number>& numbers) {
  Region region;
  for (int64_t dim : shape) {
    region.shape.push_back(ExprId(numbers.size()));
    numbers.push_back({dim, double(dim), true});
  }
  region.accesses.emplace_back();
  const int lead = int(from.shape.size()) - int(shape.size());
  for (int k = 0; k < int(from.shape.size()); ++k) {
    region.accesses[0].push_back({k < lead ? -1 : k - lead, -1, -1});
    if (k < lead && from.shape[size_t(k)] != 1) {
      throw Error(ErrorKind::unsupported, "scale and bias that vary along axes which a layer "
                                          "norm does not normalise over");
    }
  }
  RegionOp load;
  load.kind = RegionOp::Kind::load;
  load.dtype = from.dtype;
  load.args[0] = 0;
  region.ops.push_back(load);
  region.results = {0};
  return region;
}

}  // namespace

NormProgram::NormProgram(const Spec& spec)
    : kind_(spec.prim->kind), epsilon_(spec.prim->epsilon), inputs_(int(spec.inputs.size())),
      outputs_(int(spec.outputs.size())), groups_(spec.prim->groups) {
  Dims shape = spec.inputs[0].shape;
  if (const Region* prologue = spec.prim->prologue.get()) {
    shape.clear();
    for (ExprId dim : prologue->shape) shape.push_back(spec.numbers[size_t(dim)].i);
  }
  const DType type = compute_type(spec.inputs[0].dtype);
  if (type != DType::float32 && type != DType::float64) {
    throw Error(ErrorKind::unsupported, std::string("normalisation is not defined for ") +
                                            name_of(spec.inputs[0].dtype));
  }
  wide_ = type == DType::float64;
  item_ = size_of(type);
  by_channel_ = kind_ == NormKind::group && spec.prim->channels_last;
  const int rank = int(shape.size());
  axis_ = kind_ == NormKind::group ? 1 : (spec.prim->axis + rank) % std::max(rank, 1);
  find_rows(shape);
  make_programs(spec, shape);
  lay_out(std::max(spec.threads, 1));
}

void NormProgram::find_rows(std::span<const int64_t> shape) {
  row_rank_ = std::min<int>(axis_, int(shape.size()));
  rows_ = extent_of(shape, 0, size_t(row_rank_));
  length_ = columns_ = extent_of(shape, size_t(row_rank_), shape.size());
  if (kind_ != NormKind::group) return;
  images_ = rows_;
  channels_ = by_channel_ ? shape.back() : shape[1];
  places_ = channels_ == 0 ? 0 : columns_ / channels_;
  rows_ = images_ * groups_;
  length_ = columns_ / std::max<int64_t>(groups_, 1);
  if (by_channel_) {
    row_rank_ = int(shape.size()) - 1;
    columns_ = channels_;
  }
}

void NormProgram::make_programs(const Spec& spec, std::span<const int64_t> shape) {
  const Norm& prim = *spec.prim;
  const DType type = wide_ ? DType::float64 : DType::float32;
  // Operands 3 and on: those of the prologue, then those of the epilogue.
  std::vector<TensorDesc> read = {spec.inputs[0]};
  reader_inputs_ = {0};
  int extra = 3;
  if (prim.prologue) {
    for (size_t k = 1; k < prim.prologue->accesses.size(); ++k, ++extra) {
      reader_inputs_.push_back(extra);
      read.push_back(spec.inputs[size_t(extra)]);
    }
  }
  RowReader::Spec rows;
  rows.prologue = prim.prologue.get();
  rows.inputs = read;
  rows.numbers = spec.numbers;
  rows.shape = shape;
  rows.row_rank = row_rank_;
  rows.type = type;
  reader_.emplace(rows);
  const TensorDesc& y = spec.outputs[0];
  const CastMode as_is{false, CastMode::Round::down};
  out_item_ = size_of(y.dtype);
  if (prim.epilogue) {
    TensorDesc first;
    first.dtype = type;
    std::vector<TensorDesc> inputs = {first};
    epilogue_inputs_ = {0};  // its first input is given with each call
    for (size_t k = 1; k < prim.epilogue->accesses.size(); ++k, ++extra) {
      epilogue_inputs_.push_back(extra);
      inputs.push_back(spec.inputs[size_t(extra)]);
    }
    RegionProgram::Spec program;
    program.region = prim.epilogue.get();
    program.numbers = spec.numbers;
    program.inputs = inputs;
    program.outputs = spec.outputs.first(1);
    program.row_rank = row_rank_;
    program.given_first = true;
    epilogue_.emplace_back(program);
  } else {
    store_ = store_loop(y.dtype, as_is);
  }
  for (int k = 1; k < std::min(outputs_, 3); ++k) {
    if (spec.outputs[size_t(k)].dtype != DType::none) statistic_ = spec.outputs[size_t(k)].dtype;
  }
  if (statistic_ != DType::none) store_statistic_ = store_loop(statistic_, as_is);
  keeps_input_ = outputs_ > 3 && spec.outputs[3].dtype != DType::none;
  if (keeps_input_) {
    in_item_ = size_of(spec.outputs[3].dtype);
    store_input_ = store_loop(spec.outputs[3].dtype, as_is);
  }
  const Dims channel{channels_};
  const std::span<const int64_t> trailing = shape.subspan(size_t(row_rank_));
  const bool group = kind_ == NormKind::group;
  make_vector(scale_, spec, 1, group ? std::span<const int64_t>(channel) : trailing);
  make_vector(bias_, spec, 2, group ? std::span<const int64_t>(channel) : trailing);
}

void NormProgram::make_vector(Vector& vector, const Spec& spec, int input,
                              std::span<const int64_t> shape) {
  if (input >= inputs_ || spec.inputs[size_t(input)].dtype == DType::none) return;
  const TensorDesc& from = spec.inputs[size_t(input)];
  const DType type = wide_ ? DType::float64 : DType::float32;
  vector.input = input;
  if (from.dtype == type && from.contiguous() && from.count() == element_count(shape)) return;
  std::vector<Number> numbers;
  Region region = broadcast(shape, from, numbers);
  if (compute_type(from.dtype) != type) {
    RegionOp cast;
    cast.kind = RegionOp::Kind::cast;
    cast.dtype = type;
    cast.args[0] = 0;
    region.ops.push_back(cast);
    region.results = {1};
  }
  TensorDesc to{type, Dims(shape), Dims(shape), nullptr};
  for (int64_t k = int64_t(shape.size()), stride = 1; k-- > 0; stride *= shape[size_t(k)]) {
    to.strides[size_t(k)] = stride;
  }
  RegionProgram::Spec program;
  program.region = &region;
  program.numbers = numbers;
  program.inputs = {&from, 1};
  program.outputs = {&to, 1};
  vector.make.emplace_back(program);
}

size_t NormProgram::take(size_t bytes) {
  const size_t at = workspace_;
  workspace_ += padded(bytes);
  return at;
}

void NormProgram::lay_out(int threads) {
  pointers_ = take((reader_inputs_.size() + epilogue_inputs_.size()) * sizeof(void*));
  const int64_t width = kind_ == NormKind::group ? channels_ : length_;
  for (Vector* vector : {&scale_, &bias_}) {
    if (vector->make.empty()) continue;
    vector->offset = take(size_t(width) * item_ + 64);
  }
  if (by_channel_) {
    channel_data_ = take(4 * padded(size_t(channels_) * item_));
    sums_ = take(size_t(threads) * 2 * padded(size_t(channels_) * sizeof(double)));
  }
  const int64_t values = by_channel_ ? channels_ : length_;
  scratch_ = padded(reader_->scratch_bytes());
  for (const RegionProgram& p : epilogue_) scratch_ += padded(p.scratch_bytes());
  row_bytes_ = reader_->direct() ? 0 : padded(size_t(values) * item_);
  scratch_ += row_bytes_;
  scratch_ += padded(size_t(by_channel_ ? values : chunk) * item_);  // normalised values
  for (const Vector* vector : {&scale_, &bias_}) {
    for (const RegionProgram& p : vector->make) scratch_ = std::max(scratch_, p.scratch_bytes());
  }
  threads_ = take(scratch_ * size_t(threads));
  const double row_ns = (value_ns + reader_->cost()) * double(values);
  grain_ = std::max<int64_t>(1, int64_t(share_ns / std::max(row_ns, 1.0)));
}

}  // namespace rlx::cpu
