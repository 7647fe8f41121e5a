// SequenceOp and Host: values that are lists, options, or made by Python.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "exec/hooks.h"
#include "exec/stages.h"

namespace rlx {
namespace {

using Items = std::vector<RunValue>;

RunValue owned(RunValue value) {
  const auto* tensor = std::get_if<Tensor>(&value);
  return tensor && !tensor->owner ? copy_of(*tensor) : value;
}

class SequenceRun {
 public:
  SequenceRun(Runner& runner, const SequenceOp& op) : runner_(runner), op_(op) {}

  void run() {
    switch (op_.kind) {
      case SequenceKind::construct: return construct();
      case SequenceKind::empty: return define(Items{});
      case SequenceKind::at: return take();
      case SequenceKind::insert: return insert();
      case SequenceKind::erase: return erase();
      case SequenceKind::length:
        return scalar(int64_t(items(0).size()));
      case SequenceKind::concat: return concat();
      case SequenceKind::split: return split();
      case SequenceKind::optional: return make_optional();
      case SequenceKind::has_element: return scalar(uint8_t(contents() != nullptr));
      case SequenceKind::get_element: return get_element();
    }
  }

 private:
  bool given(size_t i) const { return i < op_.inputs.size() && op_.inputs[i] >= 0; }
  RunValue input(size_t i) const { return runner_.value(op_.inputs[i]); }

  const Items& items(size_t i) {
    held_ = input(i);
    const auto* sequence = std::get_if<Sequence>(&held_);
    if (!sequence || !sequence->items) throw Error(ErrorKind::model, "a sequence was expected");
    return *sequence->items;
  }

  void define(Items items) {
    runner_.define(op_.outputs[0], Sequence{std::make_shared<const Items>(std::move(items))});
  }

  template <class T>
  void scalar(T x) {
    *static_cast<T*>(runner_.result(op_.outputs[0], {})) = x;
  }

  // The position that input `i` gives, from the end if negative; `missing` when it is absent.
  // Valid ones are below size + extra.
  int64_t position(size_t i, int64_t missing, int64_t extra) {
    const auto size = int64_t(items(0).size());
    int64_t p = missing;
    if (given(i)) {
      const Tensor tensor = runner_.tensor(op_.inputs[i]);
      p = read_number(tensor.dtype, tensor.data, 0).i;
    }
    const int64_t wrapped = p < 0 ? p + size : p;
    if (wrapped < 0 || wrapped >= size + extra) {
      throw Error(ErrorKind::input, "position " + std::to_string(p) + " is outside a sequence of " +
                                        std::to_string(size));
    }
    return wrapped;
  }

  void take() {
    const int64_t p = position(1, -1, 0);
    runner_.define(op_.outputs[0], items(0)[size_t(p)]);
  }

  void construct() {
    Items made;
    for (size_t i = 0; i < op_.inputs.size(); ++i) made.push_back(owned(input(i)));
    define(std::move(made));
  }

  void insert() {
    const int64_t p = position(2, int64_t(items(0).size()), 1);
    Items made = items(0);
    RunValue inserted = owned(input(1));
    const auto* tensor = std::get_if<Tensor>(&inserted);
    const auto* first = made.empty() ? nullptr : std::get_if<Tensor>(&made[0]);
    if (tensor && first && tensor->dtype != first->dtype) {
      throw Error(ErrorKind::input, "the tensors of a sequence must have one type")
          .expected_got(name_of(first->dtype), name_of(tensor->dtype));
    }
    made.insert(made.begin() + p, std::move(inserted));
    define(std::move(made));
  }

  void erase() {
    const int64_t p = position(1, -1, 0);
    Items made = items(0);
    made.erase(made.begin() + p);
    define(std::move(made));
  }

  // Tensors side by side along `axis`, or each as a slice of a new axis.
  void concat() {
    const Items parts = items(0);
    if (parts.empty()) throw Error(ErrorKind::input, "an empty sequence cannot be concatenated");
    const auto& first = std::get<Tensor>(parts[0]);
    const auto rank = int64_t(first.shape.size()) + op_.new_axis;
    const int64_t axis = op_.axis < 0 ? op_.axis + rank : op_.axis;
    if (axis < 0 || axis >= rank) throw Error(ErrorKind::input, "the axis is outside the rank");
    const auto shape_of = [&](const RunValue& part) {
      Dims shape;
      const Dims& own = std::get<Tensor>(part).shape;
      for (size_t k = 0; k <= own.size(); ++k) {
        if (op_.new_axis && int64_t(k) == axis) shape.push_back(1);
        if (k < own.size()) shape.push_back(own[k]);
      }
      return shape;
    };
    Dims full = shape_of(first);
    full[size_t(axis)] = 0;
    for (const RunValue& part : parts) {
      Dims shape = shape_of(part);
      const bool same_rank = int64_t(shape.size()) == rank;
      const int64_t length = same_rank ? shape[size_t(axis)] : 0;
      if (same_rank) shape[size_t(axis)] = full[size_t(axis)];
      if (!(shape == full) || std::get<Tensor>(part).dtype != first.dtype) {
        throw Error(ErrorKind::input, "the tensors of the sequence do not fit together")
            .expected_got(text_of(first.shape), text_of(std::get<Tensor>(part).shape));
      }
      full[size_t(axis)] += length;
    }
    runner_.check_type(op_.outputs[0], first.dtype, full.size());
    auto* to = static_cast<std::byte*>(runner_.result(op_.outputs[0], full));
    const auto outer = element_count({full.data(), size_t(axis)});
    for (int64_t o = 0; o < outer; ++o) {
      for (const RunValue& part : parts) {
        const auto& tensor = std::get<Tensor>(part);
        const size_t bytes = tensor.bytes() / size_t(outer);
        if (bytes) std::memcpy(to, static_cast<std::byte*>(tensor.data) + size_t(o) * bytes, bytes);
        to += bytes;
      }
    }
  }

  // Lengths of the parts along the axis: given, equal chunks, or ones.
  std::vector<int64_t> split_lengths(int64_t extent) {
    std::vector<int64_t> lengths;
    int64_t chunk = 1;
    if (given(1)) {
      const Tensor split = runner_.tensor(op_.inputs[1]);
      if (!split.shape.empty()) {
        for (int64_t i = 0; i < element_count(split.shape); ++i) {
          lengths.push_back(read_number(split.dtype, split.data, i).i);
        }
        const bool negative = std::ranges::any_of(lengths, [](int64_t n) { return n < 0; });
        if (negative || std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) != extent) {
          throw Error(ErrorKind::input, "the split lengths must add up to the axis")
              .expected_got(std::to_string(extent), text_of(lengths));
        }
        return lengths;
      }
      chunk = read_number(split.dtype, split.data, 0).i;
      if (chunk <= 0) throw Error(ErrorKind::input, "a split length must be positive");
    }
    for (int64_t done = 0; done < extent; done += chunk) {
      lengths.push_back(std::min(chunk, extent - done));
    }
    return lengths;
  }

  void split() {
    const Tensor x = runner_.tensor(op_.inputs[0]);
    const int64_t axis = op_.axis < 0 ? op_.axis + int64_t(x.shape.size()) : op_.axis;
    if (axis < 0 || axis >= int64_t(x.shape.size())) {
      throw Error(ErrorKind::input, "the axis is outside the rank");
    }
    const int64_t extent = x.shape[size_t(axis)];
    const auto outer = size_t(element_count({x.shape.data(), size_t(axis)}));
    const size_t row = outer ? x.bytes() / outer : 0;
    const size_t step = extent ? row / size_t(extent) : 0;
    Items made;
    size_t begin = 0;
    for (int64_t length : split_lengths(extent)) {
      Dims shape = x.shape;
      shape[size_t(axis)] = length;
      Tensor part = make_tensor(x.dtype, shape);
      const size_t bytes = step * size_t(length);
      for (size_t o = 0; bytes && o < outer; ++o) {
        std::memcpy(static_cast<std::byte*>(part.data) + o * bytes,
                    static_cast<std::byte*>(x.data) + o * row + begin, bytes);
      }
      begin += bytes;
      if (!op_.keepdims && !given(1)) drop_axis(part.shape, size_t(axis));
      made.push_back(std::move(part));
    }
    define(std::move(made));
  }

  static void drop_axis(Dims& shape, size_t axis) {
    for (size_t k = axis; k + 1 < shape.size(); ++k) shape[k] = shape[k + 1];
    shape.pop_back();
  }

  void make_optional() {
    Optional made;
    if (given(0)) made.value = std::make_shared<const RunValue>(owned(input(0)));
    runner_.define(op_.outputs[0], std::move(made));
  }

  // What an optional holds; a tensor or sequence counts as an optional that is present.
  const RunValue* contents() {
    if (!given(0)) return nullptr;
    held_ = input(0);
    const auto* optional = std::get_if<Optional>(&held_);
    return optional ? optional->value.get() : &held_;
  }

  void get_element() {
    const RunValue* value = contents();
    if (!value) throw Error(ErrorKind::input, "the optional is empty");
    runner_.define(op_.outputs[0], owned(*value));
  }

  Runner& runner_;
  const SequenceOp& op_;
  RunValue held_;  // keeps what items() and contents() refer to
};

}  // namespace

void run_sequence_op(Runner& runner, const SequenceOp& stage) { SequenceRun(runner, stage).run(); }

void run_host(Runner& runner, const Host& stage) {
  if (!hooks().call_host) throw Error(ErrorKind::internal, "no one can call host functions");
  std::vector<RunValue> inputs, outputs(stage.outputs.size());
  for (ValueId v : stage.inputs) {
    inputs.push_back(v < 0 ? RunValue(Tensor{}) : runner.value(v));
  }
  ++runner.counters().host_calls;
  hooks().call_host(stage, inputs, outputs, runner.strings());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (stage.outputs[i] >= 0) runner.define(stage.outputs[i], std::move(outputs[i]));
  }
}

}  // namespace rlx
