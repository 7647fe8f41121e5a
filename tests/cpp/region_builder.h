// Writes Regions for tests, one scalar op at a time.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "program/scalar_op.h"
#include "tests/cpp/select_harness.h"

namespace rlx::test {

class RegionBuilder {
 public:
  RegionBuilder(Numbers& numbers, const Dims& shape) : numbers_(numbers) {
    for (int64_t d : shape) region_.shape.push_back(numbers(d));
  }

  // The next input, whose axis k follows axis axes[k] of the shape.
  int load(std::vector<int> axes, DType dtype = DType::float32) {
    std::vector<AxisMap> access;
    for (int axis : axes) access.push_back({axis, numbers_(1), numbers_(0)});
    region_.accesses.push_back(std::move(access));
    RegionOp op;
    op.kind = RegionOp::Kind::load;
    op.dtype = dtype;
    op.args[0] = int(region_.accesses.size()) - 1;
    return add(op);
  }
  // The next input, read at the same place as what is written.
  int load_all(DType dtype = DType::float32) {
    std::vector<int> axes(region_.shape.size());
    for (size_t k = 0; k < axes.size(); ++k) axes[k] = int(k);
    return load(axes, dtype);
  }
  int constant(double value, DType dtype = DType::float32) {
    RegionOp op;
    op.kind = RegionOp::Kind::constant;
    op.dtype = dtype;
    op.f = value;
    op.i = int64_t(value);
    return add(op);
  }
  int scalar(std::string_view name, std::initializer_list<int> args,
             DType dtype = DType::float32) {
    RegionOp op;
    op.kind = RegionOp::Kind::scalar;
    op.op = *scalar_op(name);
    op.dtype = dtype;
    std::copy(args.begin(), args.end(), op.args);
    return add(op);
  }
  int cast(int from, DType dtype) {
    RegionOp op;
    op.kind = RegionOp::Kind::cast;
    op.dtype = dtype;
    op.args[0] = from;
    return add(op);
  }
  RegionPtr finish(int result) {
    region_.results = {result};
    return std::make_shared<Region>(region_);
  }

 private:
  int add(const RegionOp& op) {
    region_.ops.push_back(op);
    return int(region_.ops.size()) - 1;
  }
  Numbers& numbers_;
  Region region_;
};

}  // namespace rlx::test
