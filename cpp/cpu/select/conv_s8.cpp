// Convolution of int8 and uint8, channels last, as one exact matrix product for each group.
#include <algorithm>

#include "cpu/kernels/gemm_s8.h"
#include "cpu/kernels/zero_point.h"
#include "cpu/select/compose.h"
#include "cpu/select/conv_rungs.h"
#include "cpu/select/conv_table.h"
#include "cpu/select/gemm_tile.h"

namespace rlx::cpu {
namespace {

struct S8Body : StepBody {
  explicit S8Body(const ConvGeometry& geometry) : geometry(geometry), table(geometry, 1) {}

  ConvGeometry geometry;
  PixelTable table;
  DType x_zero_type = DType::none, w_type = DType::none;
  GemmS8Call call;
  std::optional<GemmTile> tile;
  size_t result = conv_operands;       // the operand that is written
  std::shared_ptr<const void> packed;  // null: packed on each run, into the workspace
  size_t packed_bytes = 0, reordered_bytes = 0, tile_bytes = 0;

  std::unique_ptr<StepState> make_state() const override { return table.make_state(0); }

  void run(const RunArgs& args) const override {
    auto& state = static_cast<PixelTable::State&>(*args.state);
    void* const* o = args.operands;
    const std::byte zero = std::byte(zero_point(x_zero_type, o[2], 0));
    std::fill(state.padding.begin(), state.padding.end(), zero);
    GemmS8Call now = call;
    now.threads = args.threads;
    now.a = table.operand(state, o[0]);
    now.a_zero = o[2];
    now.b_zero = o[3];
    now.c = static_cast<int32_t*>(o[result]);
    std::byte* workspace = static_cast<std::byte*>(args.workspace);
    now.b = packed.get();
    if (!packed) {
      pack(o[1], workspace + packed_bytes, workspace, args.threads);
      now.b = workspace;
      workspace += packed_bytes + reordered_bytes;
    }
    std::optional<GemmTile::Use> use;
    if (tile) use.emplace(*tile, now, o + conv_operands - 1, workspace);
    now.workspace = workspace + tile_bytes;
    gemm_s8(now);
  }

  void pack(const void* w, void* reordered, void* to, int threads) const {
    const int64_t k = call.shape.k, n = call.shape.n;
    for (int64_t group = 0; group < geometry.groups; ++group) {
      reorder_weights(geometry, 1, group, w, reordered);
      gemm_s8_pack_b(w_type == DType::int8, reordered, n, false, k, n,
                     static_cast<std::byte*>(to) + group * call.shape.b_batch[2], threads);
    }
  }
};

bool is_byte(DType type) { return type == DType::int8 || type == DType::uint8; }

GemmS8Call product(const ConvGeometry& g, const SelectRequest& request, int64_t taps) {
  GemmS8Call call;
  params::Gemm& s = call.shape;
  s.m = g.batch * g.out_pixels();
  s.n = g.out_per_group();
  s.k = g.taps() * g.in_per_group();
  s.lda = g.in_channels;
  s.ldc = g.out_channels;
  s.batch[2] = g.groups;
  s.a_batch[2] = g.in_per_group();
  s.b_batch[2] = gemm_s8_packed_bytes(s.k, s.n);
  s.c_batch[2] = g.out_per_group();
  call.a_signed = request.inputs[0].dtype == DType::int8;
  call.b_signed = request.inputs[1].dtype == DType::int8;
  call.b_packed = true;
  call.taps = taps;
  if (request.inputs[3].count() > 1) {
    call.b_zero_step = 1;
    call.b_zero_batch[2] = g.out_per_group();
  }
  call.threads = request.threads;
  return call;
}

}  // namespace

std::optional<Selection> conv_s8(const SelectRequest& request, const ConvGeometry& g,
                                 const ConvFusion* fused, std::string& refusal) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1];
  const DType y_type = fused ? fused->product.dtype : request.outputs[0].dtype;
  if (!is_byte(x.dtype) || !is_byte(w.dtype) || y_type != DType::int32) {
    refusal += "; not 8-bit";
    return std::nullopt;
  }
  auto body = std::make_shared<S8Body>(g);
  body->x_zero_type = request.inputs[2].dtype;
  body->w_type = w.dtype;
  body->call = product(g, request, body->table.taps());
  Selection selection;
  selection.rung = "gemm s8";
  if (fused) {
    body->result = request.inputs.size();
    body->tile.emplace(fused->region, request, fused->product,
                       request.inputs.subspan(conv_operands));
    GemmTile::claim(body->call);
    body->tile_bytes = aligned(body->tile->workspace(request.threads));
    selection.rung += " + region";
  }
  selection.workspace = body->tile_bytes + gemm_s8_workspace(body->call);
  const params::Gemm& shape = body->call.shape;
  const size_t bytes = size_t(g.groups * shape.b_batch[2]), reordered = size_t(shape.k * shape.n);
  if (w.constant) {
    const std::string format =
        (g.transposed ? "s8 deconv " : "s8 conv ") + std::to_string(g.groups);
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
