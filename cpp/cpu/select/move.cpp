// Move: every part is one strided copy; what no part covers is filled or read through tables.
#include <cstring>

#include "cpu/kernels/strided_copy.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

struct CopyPart {
  int input;
  StridedCopy copy;
};

// Fills y where asked, then copies each part.
struct MoveBody : StepBody {
  std::vector<CopyPart> parts;
  int output = 0, fill = -1;
  bool fills = false;
  int64_t count = 0;
  int size = 0;

  void run(const RunArgs& args) const override {
    auto* y = static_cast<std::byte*>(args.operands[output]);
    if (fills) fill_all(y, fill < 0 ? nullptr : args.operands[fill], args.threads);
    for (const CopyPart& part : parts) {
      const void* x = args.operands[part.input];
      if (x != y) run_strided_copy(part.copy, x, y, args.threads);
    }
  }

  void fill_all(std::byte* y, const void* value, int threads) const {
    parallel_for(threads, count, 1 << 14, [&](int64_t begin, int64_t end) {
      if (!value) {
        std::memset(y + begin * size, 0, size_t((end - begin) * size));
        return;
      }
      for (int64_t i = begin; i < end; ++i) std::memcpy(y + i * size, value, size_t(size));
    });
  }
};

// Edge, reflect and wrap: each output coordinate names the input coordinate it repeats.
struct ExtendBody : StepBody {
  std::vector<std::vector<int64_t>> offsets;  // per axis: input offset of each output place
  int64_t start = 0;
  int size = 0;
  int input = 0, output = 0;

  void run(const RunArgs& args) const override {
    const auto* x = static_cast<const std::byte*>(args.operands[input]) + start * size;
    auto* y = static_cast<std::byte*>(args.operands[output]);
    const size_t rank = offsets.size();
    const auto& inner = offsets[rank - 1];
    int64_t rows = 1;
    for (size_t k = 0; k + 1 < rank; ++k) rows *= int64_t(offsets[k].size());
    parallel_for(args.threads, rows, 256, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t at = 0, rest = r;
        for (size_t k = rank - 1; k-- > 0;) {
          at += offsets[k][size_t(rest % int64_t(offsets[k].size()))];
          rest /= int64_t(offsets[k].size());
        }
        std::byte* row = y + r * int64_t(inner.size()) * size;
        for (size_t i = 0; i < inner.size(); ++i) {
          std::memcpy(row + i * size_t(size), x + (at + inner[i]) * size, size_t(size));
        }
      }
    });
  }
};

Dims dims_of(const std::vector<ExprId>& ids, const SelectRequest& request) {
  Dims dims;
  for (ExprId id : ids) dims.push_back(request.dim(id));
  return dims;
}

struct Block {
  Dims extents, from;
  int64_t start = 0;
};

// The part's block of x, with x's strides permuted and stepped; checks that it lies inside x.
Block block_of(const MovePart& part, const SelectRequest& request) {
  const TensorDesc& x = request.inputs[size_t(part.input)];
  const Dims starts = dims_of(part.starts, request), steps = dims_of(part.steps, request);
  Block block;
  block.extents = dims_of(part.extents, request);
  for (size_t k = 0; k < part.perm.size(); ++k) {
    const size_t axis = size_t(part.perm[k]);
    const int64_t n = block.extents[k], last = starts[k] + steps[k] * (n - 1);
    if (n > 0 && (starts[k] < 0 || starts[k] >= x.shape[axis] || last < 0 ||
                  last >= x.shape[axis])) {
      throw Error(ErrorKind::input, "a block reaches outside its tensor");
    }
    block.from.push_back(x.strides[axis] * steps[k]);
    block.start += n > 0 ? starts[k] * x.strides[axis] : 0;
  }
  return block;
}

int64_t reflected(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  const int64_t m = ((i % period) + period) % period;
  return m < n ? m : period - m;
}

int64_t source_place(MoveMode mode, int64_t i, int64_t n) {
  if (mode == MoveMode::edge) return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == MoveMode::wrap) return ((i % n) + n) % n;
  return reflected(i, n);
}

Selection select_extend(const Move& prim, const SelectRequest& request) {
  const MovePart& part = prim.parts[0];
  const TensorDesc& y = request.outputs[0];
  const Block block = block_of(part, request);
  const Dims begins = dims_of(part.offsets, request);
  auto body = std::make_shared<ExtendBody>();
  body->start = block.start;
  body->size = int(size_of(y.dtype));
  body->input = part.input;
  body->output = int(request.inputs.size());
  for (size_t k = 0; k < y.shape.size(); ++k) {
    auto& offsets = body->offsets.emplace_back();
    if (block.extents[k] == 0) {
      throw Error(ErrorKind::input, "an empty axis cannot be extended from its own values");
    }
    for (int64_t i = 0; i < y.shape[k]; ++i) {
      offsets.push_back(source_place(prim.mode, i - begins[k], block.extents[k]) * block.from[k]);
    }
  }
  Selection selection;
  selection.rung = "extend";
  if (y.shape.empty()) throw Error(ErrorKind::internal, "a scalar cannot be padded");
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace

Selection select_move(const Move& prim, const SelectRequest& request) {
  const TensorDesc& y = request.outputs[0];
  if (prim.mode != MoveMode::none && prim.mode != MoveMode::constant) {
    return select_extend(prim, request);
  }
  auto body = std::make_shared<MoveBody>();
  body->output = int(request.inputs.size());
  body->fills = prim.mode == MoveMode::constant;
  body->fill = prim.fill;
  body->count = y.count();
  body->size = int(size_of(y.dtype));
  int64_t covered = 0;
  for (const MovePart& part : prim.parts) {
    const Block block = block_of(part, request);
    const Dims offsets = dims_of(part.offsets, request);
    int64_t to = 0;
    for (size_t k = 0; k < offsets.size(); ++k) to += offsets[k] * y.strides[k];
    covered += element_count(block.extents);
    body->parts.push_back({part.input, make_strided_copy(block.extents, block.from, y.strides,
                                                         block.start, to, size_of(y.dtype))});
  }
  body->fills = body->fills && covered != y.count();
  Selection selection;
  selection.rung = "strided copy";
  selection.steps.push_back({StepKind::copy, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
