// Matrix products: our packed kernel with the epilogue inside it, or plain loops.
//
// oneDNN is not asked: on one AVX2 core its f32 product (gemm:jit, which packs nothing) takes 0.55
// ms for 16 x 768 x 768 against our 0.53, 3.1 against 2.7 for 16 x 3072 x 768, 1.28 against 1.34
// for 1 x 8000 x 768. It is ahead at 4 x 768 x 768 (0.12 against 0.21), behind at 1 (0.05, 0.04).
#include <algorithm>
#include <optional>

#include "cpu/kernels/gemm.h"
#include "cpu/kernels/matmul_plain.h"
#include "cpu/select/compose.h"
#include "cpu/select/epilogue.h"
#include "cpu/select/gemm_epilogue.h"
#include "cpu/select/gemm_tile.h"
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

constexpr size_t fixed_operands = 4;  // a, b, a_zero, b_zero

struct BatchAxis {
  int64_t extent, a, b, c;  // strides in elements; 0 repeats
};

// The batch of a and b against c: right-aligned, broadcast, neighbours that run on made one.
std::vector<BatchAxis> batch_axes(const TensorDesc& a, const TensorDesc& b, const TensorDesc& c) {
  const size_t rank = c.shape.size() - 2;
  const auto stride = [&](const TensorDesc& desc, size_t axis) -> int64_t {
    const size_t missing = c.shape.size() - desc.shape.size();
    if (axis < missing || desc.shape[axis - missing] == 1) return 0;
    return desc.strides[axis - missing];
  };
  std::vector<BatchAxis> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (c.shape[axis] == 1) continue;
    const BatchAxis next{c.shape[axis], stride(a, axis), stride(b, axis), c.strides[axis]};
    if (!axes.empty()) {
      BatchAxis& last = axes.back();
      const int64_t n = next.extent;
      if (last.a == next.a * n && last.b == next.b * n && last.c == next.c * n) {
        last = {last.extent * n, next.a, next.b, next.c};
        continue;
      }
    }
    axes.push_back(next);
  }
  return axes;
}

struct Matrix {  // as the kernel wants it: rows `ld` apart, perhaps of the transpose
  int64_t ld = 0;
  bool trans = false;
};

// The last two axes, read as [rows, cols], or transposed; nothing when neither is dense.
std::optional<Matrix> matrix_of(const TensorDesc& desc, bool trans) {
  const size_t rank = desc.shape.size();
  int64_t rows = desc.shape[rank - 2], cols = desc.shape[rank - 1];
  int64_t by_row = desc.strides[rank - 2], by_col = desc.strides[rank - 1];
  if (by_col == 1 || cols == 1) return Matrix{rows == 1 ? cols : by_row, trans};
  if (by_row == 1 || rows == 1) return Matrix{by_col, !trans};
  return std::nullopt;
}

struct GemmBody : StepBody {
  GemmCall call;
  GemmChain chain;
  std::optional<GemmTile> tile;
  std::shared_ptr<const void> packed;
  std::vector<BatchAxis> outer;  // what the kernel's three batch axes do not hold
  size_t result = 0;             // the operand that is written
  size_t tile_workspace = 0;

  void run(const RunArgs& args) const override {
    GemmCall now = call;
    now.threads = args.threads;
    now.workspace = static_cast<std::byte*>(args.workspace) + tile_workspace;
    now.a = args.operands[0];
    now.b = packed ? packed.get() : args.operands[1];
    now.c = args.operands[result];
    if (chain.bias >= 0) now.epilogue.bias = args.operands[chain.bias];
    if (chain.residual >= 0) {
      now.epilogue.residual = static_cast<const float*>(args.operands[chain.residual]);
    }
    std::optional<GemmTile::Use> use;
    if (tile) use.emplace(*tile, now, args.operands + fixed_operands - 1, args.workspace);
    each(now, 0);
  }

 private:
  void each(GemmCall& now, size_t axis) const {
    if (axis == outer.size()) return gemm(now);
    const GemmCall start = now;
    const int64_t b_item = int64_t(size_of(packed ? gemm_packed_type(now.b_type) : now.b_type));
    for (int64_t i = 0; i < outer[axis].extent; ++i) {
      const auto advance = [&](const auto* base, int64_t bytes) {
        return static_cast<const std::byte*>(base) + i * bytes;
      };
      now.a = advance(start.a, outer[axis].a * int64_t(size_of(now.a_type)));
      now.b = advance(start.b, outer[axis].b * b_item);
      now.c = static_cast<std::byte*>(start.c) + i * outer[axis].c * int64_t(size_of(now.c_type));
      if (start.epilogue.residual) {
        now.epilogue.residual = start.epilogue.residual + i * outer[axis].c;
      }
      each(now, axis + 1);
    }
    now.a = start.a, now.b = start.b, now.c = start.c;
    now.epilogue.residual = start.epilogue.residual;
  }
};

struct PlainBody : StepBody {
  PlainMatMul call;
  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    plain_matmul(call, o[0], o[1], o[2], o[3], o[4], args.threads);
  }
};

Dims dense_strides(std::span<const int64_t> shape) {
  Dims strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

bool gemm_takes(DType a, DType b, DType c) {
  const auto is_float = [](DType t) {
    return t == DType::float32 || t == DType::float16 || t == DType::bfloat16;
  };
  if (is_float(a)) return is_float(b) && is_float(c);
  return a == b && a == c &&
         (a == DType::float64 || a == DType::int32 || a == DType::uint32 || a == DType::int64 ||
          a == DType::uint64);
}

class MatMulSelect {
 public:
  MatMulSelect(const MatMul& prim, const SelectRequest& request) : prim_(prim), request_(request) {
    product_ = request.outputs[0];
    if (prim.epilogue) {
      product_.dtype = prim.accumulate;
      product_.strides = dense_strides(product_.shape);
    }
    const size_t rank = a().shape.size();
    m_ = product_.shape[product_.shape.size() - 2];
    n_ = product_.shape[product_.shape.size() - 1];
    k_ = a().shape[prim.trans_a ? rank - 2 : rank - 1];
  }

  Selection select() const {
    std::string refusal;
    if (request_.force.empty() || request_.force == "gemm") {
      if (auto found = by_gemm(refusal)) return std::move(*found);
    }
    return finish(plain(refusal));
  }

 private:
  const TensorDesc& a() const { return request_.inputs[0]; }
  const TensorDesc& b() const { return request_.inputs[1]; }
  bool given(size_t input) const { return request_.inputs[input].dtype != DType::none; }

  std::optional<Selection> by_gemm(std::string& refusal) const {
    if (!gemm_takes(a().dtype, b().dtype, product_.dtype)) {
      refusal = "the packed kernel lacks these types";
      return std::nullopt;
    }
    const auto left = matrix_of(a(), prim_.trans_a), right = matrix_of(b(), prim_.trans_b);
    if (given(2) || given(3) || !left || !right || !request_.outputs[0].contiguous()) {
      refusal = "zero points or strided matrices";
      return std::nullopt;
    }
    auto body = std::make_shared<GemmBody>();
    Selection selection;
    GemmCall& call = body->call;
    params::Gemm& shape = call.shape;
    shape.m = m_, shape.n = n_, shape.k = k_;
    shape.lda = left->ld, shape.ldb = right->ld, shape.ldc = n_;
    shape.trans_a = left->trans, shape.trans_b = right->trans;
    shape.alpha = prim_.alpha;
    call.a_type = a().dtype, call.b_type = b().dtype, call.c_type = product_.dtype;
    call.threads = request_.threads;
    std::vector<BatchAxis> axes = batch_axes(a(), b(), product_);
    pack(*body, *right, axes);
    place_batch(*body, axes);
    selection.rung = "gemm";
    const bool fused = prim_.epilogue && fuse(*body, selection.rung);
    body->result = fused ? request_.inputs.size() : fixed_operands;
    body->tile_workspace = body->tile ? aligned(body->tile->workspace(request_.threads)) : 0;
    selection.workspace = body->tile_workspace + gemm_workspace(call);
    selection.reason = body->packed ? "b packed once" : "b is computed";
    selection.steps.push_back({StepKind::gemm, std::move(body)});
    return fused ? std::move(selection) : finish(std::move(selection));
  }

  // Packs a constant b, matrix by matrix, and makes its batch strides count packed elements.
  void pack(GemmBody& body, const Matrix& matrix, std::vector<BatchAxis>& axes) const {
    const Constant* constant = b().constant;
    if (!constant || !b().contiguous()) return;
    const int64_t size = k_ * n_, count = size > 0 ? b().count() / size : 0;
    if (count == 0) return;
    const DType type = b().dtype;
    const int64_t each = gemm_packed_count(type, k_, n_);
    const size_t item = size_of(gemm_packed_type(type));
    const std::string format = std::string("gemm ") + (matrix.trans ? "transposed " : "") +
                               std::to_string(k_) + " " + std::to_string(n_);
    body.packed = request_.packs.get(
        *constant, format, size_t(count * each) * item, [&](void* to) {
          for (int64_t i = 0; i < count; ++i) {
            gemm_pack_b(type, static_cast<const std::byte*>(constant->data) +
                                  size_t(i * size) * size_of(type),
                        matrix.ld, matrix.trans, k_, n_,
                        static_cast<std::byte*>(to) + size_t(i * each) * item, request_.threads);
          }
        });
    body.call.b_packed = true;
    for (BatchAxis& axis : axes) axis.b = axis.b / size * each;
  }

  void place_batch(GemmBody& body, const std::vector<BatchAxis>& axes) const {
    params::Gemm& shape = body.call.shape;
    const size_t inside = std::min<size_t>(axes.size(), 3);
    body.outer.assign(axes.begin(), axes.end() - int64_t(inside));
    for (size_t i = 0; i < inside; ++i) {
      const BatchAxis& axis = axes[axes.size() - inside + i];
      const size_t at = 3 - inside + i;
      shape.batch[at] = axis.extent;
      shape.a_batch[at] = axis.a;
      shape.b_batch[at] = axis.b;
      shape.c_batch[at] = axis.c;
    }
  }

  // Gives the kernel the epilogue, as a chain that it knows or as a Region on its blocks.
  bool fuse(GemmBody& body, std::string& rung) const {
    GemmCall& call = body.call;
    if (prim_.accumulate != DType::float32 || product_.dtype != DType::float32) return false;
    std::optional<GemmChain> chain;
    if (request_.outputs.size() == 1) {
      const auto named = match_epilogue(request_, prim_.epilogue, int(fixed_operands),
                                        product_.shape.size() - 1);
      if (named) chain = gemm_chain(*named);
    }
    if (chain) {
      body.chain = *chain;
      call.epilogue = chain->epilogue;
      call.shape.alpha *= chain->alpha;
      call.epilogue.residual_ld = n_;
      std::copy_n(call.shape.c_batch, 3, call.epilogue.residual_batch);
      rung += " + chain";
      return true;
    }
    if (!body.outer.empty()) return false;  // the kernel then counts rows from 0 several times
    body.tile.emplace(*prim_.epilogue, request_, product_, request_.inputs.subspan(fixed_operands));
    GemmTile::claim(call);
    rung += " + region";
    return true;
  }

  Selection plain(const std::string& refusal) const {
    auto body = std::make_shared<PlainBody>();
    PlainMatMul& call = body->call;
    call.m = m_, call.n = n_, call.k = k_;
    call.a_type = a().dtype, call.b_type = b().dtype, call.c_type = product_.dtype;
    if (!plain_matmul_takes(call.a_type, call.b_type, call.c_type)) {
      throw Error(ErrorKind::unsupported, "matrix products have no kernel for these types")
          .expected_got("one type, or int8 and uint8 with int32 results",
                        std::string(name_of(call.a_type)) + ", " + name_of(call.b_type) + " -> " +
                            name_of(call.c_type));
    }
    const auto strides = [](const TensorDesc& desc, bool trans) {
      const size_t rank = desc.shape.size();
      MatrixStrides made{desc.strides[rank - 2], desc.strides[rank - 1], {}};
      if (trans) std::swap(made.row, made.col);
      return made;
    };
    call.a = strides(a(), prim_.trans_a);
    call.b = strides(b(), prim_.trans_b);
    call.c = strides(product_, false);
    for (const BatchAxis& axis : batch_axes(a(), b(), product_)) {
      call.batch.push_back(axis.extent);
      call.a.batch.push_back(axis.a);
      call.b.batch.push_back(axis.b);
      call.c.batch.push_back(axis.c);
    }
    call.alpha = prim_.alpha;
    call.a_zero_type = request_.inputs[2].dtype;
    call.b_zero_type = request_.inputs[3].dtype;
    call.a_zero_per_row = given(2) && request_.inputs[2].count() > 1;
    call.b_zero_per_col = given(3) && request_.inputs[3].count() > 1;
    Selection selection;
    selection.rung = "plain";
    selection.reason = refusal;
    selection.steps.push_back({StepKind::launch, std::move(body)});
    return selection;
  }

  // The epilogue as a step of its own, behind a core with operands a, b, zero points, product.
  Selection finish(Selection core) const {
    if (!prim_.epilogue) return core;
    Composer composer;
    const std::string rung = core.rung + ", region", reason = core.reason;
    const bool in_place =
        request_.outputs[0].dtype == product_.dtype && request_.outputs[0].contiguous();
    const Place product = in_place ? Place::operand(request_.inputs.size())
                                   : composer.reserve(product_.bytes());
    std::vector<Place> operands;
    for (size_t i = 0; i < fixed_operands; ++i) operands.push_back(Place::operand(i));
    operands.push_back(product);
    composer.add(std::move(core), std::move(operands));
    composer.add_epilogue(request_, prim_.epilogue, fixed_operands, product_, product);
    return composer.finish(rung, reason);
  }

  const MatMul& prim_;
  const SelectRequest& request_;
  TensorDesc product_;  // before the epilogue
  int64_t m_ = 0, n_ = 0, k_ = 0;
};

}  // namespace

Selection select_matmul(const MatMul& prim, const SelectRequest& request) {
  return MatMulSelect(prim, request).select();
}

}  // namespace rlx::cpu
