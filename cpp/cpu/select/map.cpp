// Map: one step that shares the items of a body of kernels/map among the threads.
#include <algorithm>
#include <iterator>

#include "cpu/kernels/map.h"
#include "cpu/kernels/strided_copy.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t share_elements = 4096;  // a share reads or writes at least about so many

// Bodies see dense tensors: one whose rows lie apart passes through a dense copy.
struct DenseCopy {
  size_t operand;
  bool output;
  size_t offset;  // in the workspace
  StridedCopy copy;
};

struct MapStep final : StepBody {
  params::Map map;
  MapLoop loop = nullptr;
  size_t operands = 0;
  int64_t share = 1;
  const char* fault_text = nullptr;
  std::vector<DenseCopy> copies;

  void run(const RunArgs& args) const override {
    params::Map now = map;
    int fault = 0;
    now.fault = &fault;
    for (size_t k = 0; k < operands; ++k) now.operands[k].data = args.operands[k];
    for (const DenseCopy& c : copies) {
      now.operands[c.operand].data = static_cast<std::byte*>(args.workspace) + c.offset;
      if (!c.output) {
        run_strided_copy(c.copy, args.operands[c.operand], now.operands[c.operand].data,
                         args.threads);
      }
    }
    const int64_t shares = (now.items + share - 1) / share;
    parallel_tasks(args.threads, shares, [&](int64_t task, int) {
      loop(now, task * share, std::min<int64_t>((task + 1) * share, now.items));
    });
    if (fault) throw Error(ErrorKind::input, fault_text ? fault_text : "wrong data");
    for (const DenseCopy& c : copies) {
      if (c.output) {
        run_strided_copy(c.copy, now.operands[c.operand].data, args.operands[c.operand],
                         args.threads);
      }
    }
  }
};

const params::MapBody& body_of(const Map& prim) {
  for (const params::MapBody& body : params::map_bodies) {
    if (prim.body == body.name) return body;
  }
  throw Error(ErrorKind::internal, "there is no Map body '" + prim.body + "'");
}

Dims dense_strides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

class MapSelect {
 public:
  MapSelect(const Map& prim, const SelectRequest& request)
      : prim_(prim), request_(request), body_(body_of(prim)), step_(std::make_shared<MapStep>()) {}

  Selection select() {
    check();
    for (const TensorDesc& desc : request_.inputs) add(desc, false);
    for (const TensorDesc& desc : request_.outputs) add(desc, true);
    const DType dtype = desc_of(size_t(body_.typed)).dtype;
    step_->loop = find_map_loop(prim_.body, map_element(body_.types, dtype));
    if (!step_->loop) {
      throw Error(ErrorKind::unsupported,
                  "the CPU has no " + prim_.body + " of " + name_of(dtype));
    }
    for (size_t k = 0; k < prim_.ints.size(); ++k)
      step_->map.ints[k] = request_.dim(prim_.ints[k]);
    for (size_t k = 0; k < prim_.floats.size(); ++k)
      step_->map.floats[k] = request_.real(prim_.floats[k]);
    const int64_t items = std::max<int64_t>(request_.dim(prim_.items), 0);
    step_->map.items = items;
    step_->fault_text = body_.fault;
    const int64_t cost = std::max<int64_t>(elements_ / std::max<int64_t>(items, 1), 1);
    const int64_t even = items / (8 * std::max(request_.threads, 1));
    step_->share = std::max({share_elements / cost, even, int64_t{1}});
    Selection selection;
    selection.rung = "map " + prim_.body;
    selection.workspace = workspace_;
    selection.steps.push_back({StepKind::launch, step_});
    return selection;
  }

 private:
  const TensorDesc& desc_of(size_t k) const {
    const size_t inputs = request_.inputs.size();
    return k < inputs ? request_.inputs[k] : request_.outputs[k - inputs];
  }

  void check() const {
    const bool fits = request_.inputs.size() == size_t(body_.inputs) &&
                      request_.outputs.size() == size_t(body_.outputs) &&
                      prim_.ints.size() <= std::size(step_->map.ints) &&
                      prim_.floats.size() <= std::size(step_->map.floats);
    if (!fits) throw Error(ErrorKind::internal, prim_.body + " takes other operands or options");
  }

  void add(const TensorDesc& desc, bool output) {
    const size_t k = step_->operands++;
    params::MapOperand& operand = step_->map.operands[k];
    if (desc.dtype == DType::none) return;
    if (desc.shape.size() > std::size(operand.shape))
      throw Error(ErrorKind::unsupported, "a Map takes tensors of up to 8 axes");
    operand.dtype = int(desc.dtype);
    operand.rank = int(desc.shape.size());
    std::copy(desc.shape.begin(), desc.shape.end(), operand.shape);
    elements_ += desc.count();
    if (desc.contiguous()) return;
    const Dims dense = dense_strides(desc.shape);
    const Dims &from = output ? dense : desc.strides, &to = output ? desc.strides : dense;
    step_->copies.push_back({k, output, workspace_,
                             make_strided_copy(desc.shape, from, to, 0, 0, size_of(desc.dtype))});
    workspace_ += (desc.bytes() + 63) / 64 * 64;
  }

  const Map& prim_;
  const SelectRequest& request_;
  const params::MapBody& body_;
  std::shared_ptr<MapStep> step_;
  int64_t elements_ = 0;
  size_t workspace_ = 0;
};

}  // namespace

Selection select_map(const Map& prim, const SelectRequest& request) {
  return MapSelect(prim, request).select();
}

}  // namespace rlx::cpu
