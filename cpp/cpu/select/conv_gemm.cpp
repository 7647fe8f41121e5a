// Convolution of floats, channels last, as one matrix product for each group.
#include <algorithm>

#include "cpu/kernels/gemm.h"
#include "cpu/select/compose.h"
#include "cpu/select/conv_rungs.h"
#include "cpu/select/conv_table.h"
#include "cpu/select/gemm_epilogue.h"
#include "cpu/select/gemm_tile.h"

namespace rlx::cpu {
namespace {

struct GemmBody : StepBody {
  GemmBody(const ConvGeometry& geometry, DType x_type, DType type)
      : geometry(geometry), type(type), table(geometry, size_of(x_type)) {}

  ConvGeometry geometry;
  DType type;  // of w
  PixelTable table;
  GemmCall call;
  GemmChain chain;
  std::optional<GemmTile> tile;
  size_t result = conv_operands;       // the operand that is written
  std::shared_ptr<const void> packed;  // null: packed on each run, into the workspace
  size_t packed_bytes = 0, reordered_bytes = 0, tile_bytes = 0;

  std::unique_ptr<StepState> make_state() const override { return table.make_state(0); }

  void run(const RunArgs& args) const override {
    GemmCall now = call;
    now.threads = args.threads;
    now.a = table.operand(static_cast<PixelTable::State&>(*args.state), args.operands[0]);
    now.c = args.operands[result];
    if (chain.bias >= 0) now.epilogue.bias = args.operands[chain.bias];
    if (chain.residual >= 0) {
      now.epilogue.residual = static_cast<const float*>(args.operands[chain.residual]);
    }
    std::byte* workspace = static_cast<std::byte*>(args.workspace);
    now.b = packed.get();
    if (!packed) {
      pack(args.operands[1], workspace + packed_bytes, workspace, args.threads);
      now.b = workspace;
      workspace += packed_bytes + reordered_bytes;
    }
    std::optional<GemmTile::Use> use;
    if (tile) use.emplace(*tile, now, args.operands + conv_operands - 1, workspace);
    now.workspace = workspace + tile_bytes;
    gemm(now);
  }

  void pack(const void* w, void* reordered, void* to, int threads) const {
    const int64_t k = call.shape.k, n = call.shape.n;
    const size_t each = size_t(call.shape.b_batch[2]) * size_of(gemm_packed_type(type));
    for (int64_t group = 0; group < geometry.groups; ++group) {
      reorder_weights(geometry, size_of(type), group, w, reordered);
      gemm_pack_b(type, reordered, n, false, k, n,
                  static_cast<std::byte*>(to) + size_t(group) * each, threads);
    }
  }

  // Gives the product the epilogue: as a chain that it knows, or as a Region on its blocks.
  void fuse(const SelectRequest& request, const ConvFusion& fusion) {
    result = request.inputs.size();
    if (fusion.chain && request.outputs.size() == 1) {
      if (const auto found = gemm_chain(*fusion.chain)) {
        chain = *found;
        call.epilogue = chain.epilogue;
        call.shape.alpha *= chain.alpha;
        call.epilogue.bias_batch[2] = call.shape.n;
        call.epilogue.residual_ld = call.shape.ldc;
        call.epilogue.residual_batch[2] = call.shape.n;
        return;
      }
    }
    tile.emplace(fusion.region, request, fusion.product, request.inputs.subspan(conv_operands));
    GemmTile::claim(call);
    tile_bytes = aligned(tile->workspace(request.threads));
  }
};

bool takes(DType x, DType w, DType y) {
  if (x == DType::float32 && is_half(w)) return y == x;
  if (w != x) return false;
  if (x == DType::float64) return y == x;
  return (x == DType::float32 && y == x) || (is_half(x) && (y == x || y == DType::float32));
}

GemmCall product(const ConvGeometry& g, DType x_type, DType type, DType y_type, int64_t taps,
                 int threads) {
  GemmCall call;
  params::Gemm& s = call.shape;
  s.m = g.batch * g.out_pixels();
  s.n = g.out_per_group();
  s.k = g.taps() * g.in_per_group();
  s.lda = g.in_channels;
  s.ldc = g.out_channels;
  s.batch[2] = g.groups;
  s.a_batch[2] = g.in_per_group();
  s.b_batch[2] = gemm_packed_count(type, s.k, s.n);
  s.c_batch[2] = g.out_per_group();
  call.a_type = x_type;
  call.b_type = type;
  call.c_type = y_type;
  call.b_packed = true;
  call.taps = taps;
  call.threads = threads;
  return call;
}

}  // namespace

std::optional<Selection> conv_gemm(const SelectRequest& request, const ConvGeometry& g,
                                   const ConvFusion* fused, std::string& refusal) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1];
  const DType y_type = fused ? fused->product.dtype : request.outputs[0].dtype;
  if (!takes(x.dtype, w.dtype, y_type)) {
    refusal += "; the matrix product lacks this type";
    return std::nullopt;
  }
  auto body = std::make_shared<GemmBody>(g, x.dtype, w.dtype);
  body->call = product(g, x.dtype, w.dtype, y_type, body->table.taps(), request.threads);
  Selection selection;
  selection.rung = "gemm";
  if (fused) {
    body->fuse(request, *fused);
    selection.rung += body->tile ? " + region" : " + chain";
  }
  selection.workspace = body->tile_bytes + gemm_workspace(body->call);
  const params::Gemm& shape = body->call.shape;
  const size_t bytes = size_t(g.groups * shape.b_batch[2]) * size_of(gemm_packed_type(w.dtype));
  const size_t reordered = size_t(shape.k * shape.n) * size_of(w.dtype);
  if (w.constant) {
    const std::string format =
        (g.transposed ? "gemm deconv " : "gemm conv ") + std::to_string(g.groups);
    body->packed = request.packs.get(*w.constant, format, bytes, [&](void* to) {
      std::vector<std::byte> temporary(reordered);
      body->pack(w.constant->data, temporary.data(), to, request.threads);
    });
  } else {
    body->packed_bytes = aligned(bytes);
    body->reordered_bytes = aligned(reordered);
    selection.workspace += body->packed_bytes + body->reordered_bytes;
  }
  selection.steps.push_back({StepKind::gemm, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
