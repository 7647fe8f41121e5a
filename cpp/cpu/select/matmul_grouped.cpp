// Products whose rows each name a matrix (experts): rows are sorted by it, and each matrix that any
// row names is multiplied once.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/kernels/gemm.h"
#include "cpu/kernels/indices.h"
#include "cpu/kernels/widen.h"
#include "cpu/select/compose.h"
#include "cpu/select/matmul_quantised.h"
#include "cpu/select/matmul_task.h"

namespace rlx::cpu {
namespace {

constexpr size_t group_operand = 5;
constexpr int64_t most_rows = 256;   // of one product, so that its workspace is known
constexpr int64_t direct_rows = 32;  // of all groups, up to which stored bytes are read

enum class Way : uint8_t { floats, packed, stored, dequantised };

struct GroupedBody : StepBody {
  GemmCall call;  // shape.m set for each group
  Way way = Way::floats;
  Quantised q;
  MatrixSteps steps;
  std::shared_ptr<const void> packed;
  int64_t rows = 0, groups = 0, matrix = 0;  // `matrix`: elements from one b to the next
  bool narrow_ids = false;
  size_t order = 0, from = 0, sums = 0, dense = 0;  // in the workspace

  void run(const RunArgs& args) const override {
    auto* base = static_cast<std::byte*>(args.workspace);
    auto* starts = reinterpret_cast<int64_t*>(base + order);
    int64_t* places = starts + groups + 1;
    sort({args.operands[group_operand], narrow_ids}, starts, places);
    const size_t a_row = size_t(call.shape.k) * size_of(call.a_type);
    const size_t c_row = size_t(call.shape.n) * size_of(call.c_type);
    const auto* a = static_cast<const std::byte*>(args.operands[0]);
    auto* c = static_cast<std::byte*>(args.operands[matmul_operands]);
    for (int64_t g = 0; g < groups; ++g) {
      const void* b = nullptr;
      const int64_t step = way == Way::stored ? most_gemv_rows : most_rows;
      for (int64_t at = starts[g]; at < starts[g + 1]; at += step) {
        if (!b) b = matrix_of_group(args, g);
        const int64_t count = std::min(step, starts[g + 1] - at);
        for (int64_t i = 0; i < count; ++i) {
          std::memcpy(base + from + size_t(i) * a_row, a + size_t(places[at + i]) * a_row, a_row);
        }
        multiply(args, g, b, count);
        for (int64_t i = 0; i < count; ++i) {
          std::memcpy(c + size_t(places[at + i]) * c_row, base + sums + size_t(i) * c_row, c_row);
        }
      }
    }
  }

 private:
  // starts[g]: where group g begins in `places`, the rows by group and then by number.
  void sort(const Indices& ids, int64_t* starts, int64_t* places) const {
    std::fill_n(starts, groups + 1, int64_t{0});
    for (int64_t i = 0; i < rows; ++i) {
      if (ids[i] < 0 || ids[i] >= groups) {
        throw Error(ErrorKind::input, "a row of a grouped product names no group")
            .expected_got("in [0, " + std::to_string(groups - 1) + "]", std::to_string(ids[i]));
      }
      ++starts[ids[i] + 1];
    }
    std::partial_sum(starts, starts + groups + 1, starts);
    for (int64_t i = 0; i < rows; ++i) places[starts[ids[i]]++] = i;
    for (int64_t g = groups; g > 0; --g) starts[g] = starts[g - 1];
    starts[0] = 0;
  }

  const void* matrix_of_group(const RunArgs& args, int64_t g) const {
    const auto item = int64_t(size_of(packed ? gemm_packed_type(call.b_type) : call.b_type));
    auto* base = static_cast<std::byte*>(args.workspace);
    if (way == Way::dequantised) {
      const Quantised one = with_operands(q, args.operands).matrix(g, steps.codes, steps.scales);
      dequantise(one, 0, q.n, reinterpret_cast<float*>(base + dense), q.k);
      return base + dense;
    }
    const auto* b = static_cast<const std::byte*>(packed ? packed.get() : args.operands[1]);
    return b + g * matrix * item;
  }

  void multiply(const RunArgs& args, int64_t g, const void* b, int64_t count) const {
    auto* base = static_cast<std::byte*>(args.workspace);
    if (way == Way::stored) {
      QuantisedGemv few;
      few.b = with_operands(q, args.operands).matrix(g, steps.codes, steps.scales);
      few.rows = count, few.ldy = q.n;
      few.a_type = call.a_type, few.a = base + from;
      few.alpha = call.shape.alpha;
      few.workspace = base, few.threads = args.threads;
      const bool half = call.c_type != DType::float32;
      few.y = reinterpret_cast<float*>(base + (half ? dense : sums));
      gemv(few);
      if (half) narrow(call.c_type, few.y, base + sums, count * q.n, args.threads);
      return;
    }
    GemmCall now = call;
    now.shape.m = count;
    now.a = base + from, now.b = b, now.c = base + sums;
    now.workspace = base, now.threads = args.threads;
    gemm(now);
  }
};

// The most that any number of rows needs.
size_t most_workspace(GemmCall call, int64_t rows) {
  size_t most = 0;
  for (call.shape.m = 1; call.shape.m <= std::min(rows, most_rows); ++call.shape.m) {
    most = std::max(most, gemm_workspace(call));
  }
  return most;
}

void pack(GroupedBody& body, const SelectRequest& request, const Constant& constant,
          const std::string& format, bool floats, const Matrix& matrix) {
  const params::Gemm& s = body.call.shape;
  const DType type = body.call.b_type;
  const int64_t each = gemm_packed_count(type, s.k, s.n), size = s.k * s.n;
  const size_t item = size_of(gemm_packed_type(type));
  const auto fill = [&](void* to) {
    const std::unique_ptr<float[]> made(floats ? new float[size_t(size)] : nullptr);
    for (int64_t g = 0; g < body.groups; ++g) {
      const void* from = static_cast<const std::byte*>(constant.data) +
                         size_t(g * size) * size_of(type);
      if (floats) {
        const Quantised all = with_constants(body.q, request);
        dequantise(all.matrix(g, body.steps.codes, body.steps.scales), 0, s.n, made.get(), s.k);
        from = made.get();
      }
      gemm_pack_b(type, from, matrix.ld, matrix.trans, s.k, s.n,
                  static_cast<std::byte*>(to) + size_t(g * each) * item, request.threads);
    }
  };
  body.packed = request.packs.get(constant, format + std::to_string(s.k) + " " +
                                  std::to_string(s.n), size_t(body.groups * each) * item, fill);
  body.call.b_packed = true;
  body.matrix = each;
}

bool is_product_float(DType t) {
  return t == DType::float32 || is_half(t);
}

// How b is read, and what is made of it now.
std::string prepare(GroupedBody& body, const MatMul& prim, const SelectRequest& request) {
  const TensorDesc& b = request.inputs[1];
  params::Gemm& s = body.call.shape;
  if (prim.b_type != DType::none) {
    body.q = quantised_of(prim, request);
    body.steps = matrix_steps(prim, request);
    body.call.b_type = DType::float32;
    s.trans_b = true, s.ldb = s.k;
    if (body.rows <= direct_rows && gemv_takes(body.q)) {
      body.way = Way::stored;
      return "few rows: the stored bytes are read";
    }
    if (quantised_constant(request)) {
      body.way = Way::packed;
      pack(body, request, *b.constant, quantised_source(request) + "groups ", true, {s.k, true});
      return "many rows: weights dequantised once";
    }
    body.way = Way::dequantised;
    return "weights that are computed are dequantised by each run";
  }
  const auto matrix = matrix_of(b, prim.trans_b);
  if (!matrix) throw Error(ErrorKind::unsupported, "grouped products of strided matrices");
  s.trans_b = matrix->trans, s.ldb = matrix->ld;
  body.matrix = b.strides[0];
  if (!b.constant || !b.contiguous()) return "b is computed";
  body.way = Way::packed;
  pack(body, request, *b.constant, matrix->trans ? "groups transposed " : "groups ", false,
       *matrix);
  return "b packed once";
}

}  // namespace

Selection matmul_grouped(const MatMul& prim, const SelectRequest& request) {
  const TensorDesc &a = request.inputs[0], &b = request.inputs[1], &y = request.outputs[0];
  auto body = std::make_shared<GroupedBody>();
  GemmCall& call = body->call;
  call.a_type = a.dtype, call.b_type = b.dtype;
  call.c_type = prim.epilogue ? prim.accumulate : y.dtype;
  const bool same = call.a_type == call.b_type && call.a_type == call.c_type;
  const bool floats = is_product_float(a.dtype) && is_product_float(call.c_type) &&
                      (prim.b_type != DType::none || is_product_float(b.dtype));
  if (!floats && !(same && a.dtype == DType::float64)) {
    throw Error(ErrorKind::unsupported, "grouped products have no kernel for these types")
        .expected_got("floats", std::string(name_of(a.dtype)) + ", " + name_of(b.dtype));
  }
  if (prim.trans_a || !a.contiguous() || request.inputs[2].dtype != DType::none) {
    throw Error(ErrorKind::unsupported, "grouped products of strided rows");
  }
  const DType ids = request.inputs[group_operand].dtype;
  body->rows = a.shape[0], body->groups = b.shape[0];
  body->narrow_ids = ids == DType::int32;
  params::Gemm& s = call.shape;
  s.n = y.shape[1], s.k = a.shape[1];
  s.lda = s.k, s.ldc = s.n;
  s.alpha = prim.alpha;
  call.threads = request.threads;
  Selection selection;
  selection.reason = prepare(*body, prim, request);
  const int64_t together = std::min(body->rows, most_rows);
  size_t at = most_workspace(call, body->rows);
  if (body->way == Way::stored) at = gemv_workspace(body->q, most_gemv_rows);
  const auto reserve = [&](size_t bytes) {
    const size_t begin = aligned(at);
    at = begin + bytes;
    return begin;
  };
  body->order = reserve(size_t(body->groups + 1 + body->rows) * sizeof(int64_t));
  body->from = reserve(size_t(together * s.k) * size_of(call.a_type));
  body->sums = reserve(size_t(together * s.n) * size_of(call.c_type));
  if (body->way == Way::dequantised) body->dense = reserve(size_t(s.n * s.k) * sizeof(float));
  if (body->way == Way::stored) body->dense = reserve(size_t(together * s.n) * sizeof(float));
  selection.workspace = at;
  selection.rung = body->way == Way::stored ? "quantised gemv by group" : "gemm by group";
  selection.steps.push_back({StepKind::gemm, std::move(body)});
  if (!prim.epilogue) return selection;
  const MatMulTask task(prim, request);
  return task.finish(std::move(selection));
}

}  // namespace rlx::cpu
