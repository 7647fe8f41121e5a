// Convolution, channels last, as one matrix product for each group: a row of A is what an output
// pixel reads, found through a table of pointers instead of a copy.
#include <algorithm>
#include <cstring>

#include "cpu/kernels/gemm.h"
#include "cpu/select/compose.h"
#include "cpu/select/conv_rungs.h"
#include "cpu/select/gemm_epilogue.h"
#include "cpu/select/gemm_tile.h"

namespace rlx::cpu {
namespace {

// The pointers of one run; they change only with the address of x.
struct State : StepState {
  std::vector<const void*> table;
  const void* x = nullptr;
};

// A tap of the table: `taps` for each output pixel, each a run of `run` values.
struct GemmConv {
  ConvGeometry geometry;
  AxisTaps axes[3];
  DType type = DType::none;      // of x and w
  GemmCall call;
  bool direct = false;           // A is x itself
  std::shared_ptr<const void> packed;  // null: packed on each run, into the workspace
  size_t packed_bytes = 0, reordered_bytes = 0, tile_bytes = 0;
  GemmChain chain;
  std::optional<GemmTile> tile;
  size_t result = conv_operands;  // the operand that is written
  std::vector<std::byte> zeros;  // what padding reads
};

// w of one group as [taps, channels in, channels out].
template <class T>
void reorder(const ConvGeometry& g, int64_t group, const T* w, T* to) {
  const int64_t in = g.in_per_group(), out = g.out_per_group(), taps = g.taps();
  for (int64_t c = 0; c < in; ++c) {
    for (int64_t m = 0; m < out; ++m) {
      const int64_t row = g.transposed ? (group * in + c) * out + m : (group * out + m) * in + c;
      for (int64_t t = 0; t < taps; ++t) to[(t * in + c) * out + m] = w[row * taps + t];
    }
  }
}

void reorder(const ConvGeometry& g, size_t item, int64_t group, const void* w, void* to) {
  const auto as = [&](auto tag) {
    reorder(g, group, static_cast<const decltype(tag)*>(w), static_cast<decltype(tag)*>(to));
  };
  switch (item) {
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    default: return as(uint64_t{});
  }
}

void pack(const ConvGeometry& g, DType type, const void* w, void* reordered, void* packed,
          int threads) {
  const int64_t k = g.taps() * g.in_per_group(), n = g.out_per_group();
  const size_t each = size_t(gemm_packed_count(type, k, n)) * size_of(gemm_packed_type(type));
  for (int64_t group = 0; group < g.groups; ++group) {
    reorder(g, size_of(type), group, w, reordered);
    gemm_pack_b(type, reordered, n, false, k, n,
                static_cast<std::byte*>(packed) + size_t(group) * each, threads);
  }
}

struct GemmBody : StepBody {
  GemmConv conv;

  std::unique_ptr<StepState> make_state() const override {
    auto state = std::make_unique<State>();
    if (!conv.direct) state->table.resize(size_t(conv.call.shape.m * conv.call.taps));
    return state;
  }

  void run(const RunArgs& args) const override {
    auto& state = static_cast<State&>(*args.state);
    GemmCall call = conv.call;
    call.threads = args.threads;
    call.a = args.operands[0];
    call.c = args.operands[conv.result];
    if (conv.chain.bias >= 0) call.epilogue.bias = args.operands[conv.chain.bias];
    if (conv.chain.residual >= 0) {
      call.epilogue.residual = static_cast<const float*>(args.operands[conv.chain.residual]);
    }
    std::byte* workspace = static_cast<std::byte*>(args.workspace);
    call.b = conv.packed.get();
    if (!call.b) {
      pack(conv.geometry, conv.type, args.operands[1], workspace + conv.packed_bytes, workspace,
           args.threads);
      call.b = workspace;
      workspace += conv.packed_bytes + conv.reordered_bytes;
    }
    std::optional<GemmTile::Use> use;
    if (conv.tile) use.emplace(*conv.tile, call, args.operands + conv_operands - 1, workspace);
    call.workspace = workspace + conv.tile_bytes;
    if (!conv.direct) {
      if (state.x != call.a) fill_table(state, static_cast<const std::byte*>(call.a));
      call.a = state.table.data();
    }
    gemm(call);
  }

 private:
  void fill_table(State& state, const std::byte* x) const {
    const ConvGeometry& g = conv.geometry;
    const void** to = state.table.data();
    std::fill(state.table.begin(), state.table.end(), conv.zeros.data());
    for (int64_t n = 0; n < g.batch; ++n) {
      for (int64_t d = 0; d < g.out[0]; ++d) {
        for (int64_t h = 0; h < g.out[1]; ++h) {
          for (int64_t w = 0; w < g.out[2]; ++w, to += g.taps()) {
            const TapRun* runs[3] = {&conv.axes[0].runs[size_t(d)], &conv.axes[1].runs[size_t(h)],
                                     &conv.axes[2].runs[size_t(w)]};
            fill_pixel(runs, x + n * g.x.batch * int64_t(size_of(conv.type)), to);
          }
        }
      }
    }
    state.x = x;
  }

  void fill_pixel(const TapRun* const* runs, const std::byte* image, const void** to) const {
    const ConvGeometry& g = conv.geometry;
    const AxisTaps* axes = conv.axes;
    const int64_t item = int64_t(size_of(conv.type));
    for (int64_t i = 0; i < runs[0]->count; ++i) {
      const int64_t tap0 = (runs[0]->tap + i * axes[0].tap_step) * g.kernel[1];
      const int64_t at0 = (runs[0]->source + i * axes[0].source_step) * g.x.space[0];
      for (int64_t j = 0; j < runs[1]->count; ++j) {
        const int64_t tap1 = (tap0 + runs[1]->tap + j * axes[1].tap_step) * g.kernel[2];
        const int64_t at1 = at0 + (runs[1]->source + j * axes[1].source_step) * g.x.space[1];
        for (int64_t k = 0; k < runs[2]->count; ++k) {
          const int64_t at = at1 + (runs[2]->source + k * axes[2].source_step) * g.x.space[2];
          to[tap1 + runs[2]->tap + k * axes[2].tap_step] = image + at * item;
        }
      }
    }
  }
};

bool takes(DType x, DType w, DType y) {
  const bool small = x == DType::float16 || x == DType::bfloat16;
  if (w != x) return false;
  if (x == DType::float64) return y == x;
  return (x == DType::float32 && y == x) || (small && (y == x || y == DType::float32));
}

GemmCall product(const ConvGeometry& g, DType type, DType y_type, bool direct, int threads) {
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
  call.a_type = call.b_type = type;
  call.c_type = y_type;
  call.b_packed = true;
  call.taps = direct ? 0 : g.taps();
  call.threads = threads;
  return call;
}

// Gives the product the epilogue: as a chain that it knows, or as a Region on its blocks.
void fuse(GemmConv& conv, const SelectRequest& request, const ConvFusion& fusion) {
  GemmCall& call = conv.call;
  conv.result = request.inputs.size();
  if (fusion.chain && request.outputs.size() == 1) {
    if (const auto chain = gemm_chain(*fusion.chain)) {
      conv.chain = *chain;
      call.epilogue = chain->epilogue;
      call.shape.alpha *= chain->alpha;
      call.epilogue.bias_batch[2] = call.shape.n;
      call.epilogue.residual_ld = call.shape.ldc;
      call.epilogue.residual_batch[2] = call.shape.n;
      return;
    }
  }
  conv.tile.emplace(fusion.region, request, fusion.product, request.inputs.subspan(conv_operands));
  GemmTile::claim(call);
  conv.tile_bytes = aligned(conv.tile->workspace(request.threads));
}

// Pixels lie behind one another and each reads only itself.
bool is_pointwise(const ConvGeometry& g) {
  for (int axis = 0; axis < 3; ++axis) {
    if (g.kernel[axis] != 1 || g.stride[axis] != 1 || g.pad[axis] != 0) return false;
    if (g.in[axis] != g.out[axis]) return false;
  }
  return true;
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
  if (x.count() == 0 || w.count() == 0) {
    refusal += "; empty operands";
    return std::nullopt;
  }
  auto body = std::make_shared<GemmBody>();
  GemmConv& conv = body->conv;
  conv.geometry = g;
  conv.type = x.dtype;
  for (int axis = 0; axis < 3; ++axis) conv.axes[axis] = axis_taps(g, axis);
  conv.direct = is_pointwise(g);
  conv.zeros.resize(size_t(g.in_channels) * size_of(x.dtype));
  conv.call = product(g, x.dtype, y_type, conv.direct, request.threads);
  Selection selection;
  selection.rung = "gemm";
  if (fused) {
    fuse(conv, request, *fused);
    selection.rung += conv.tile ? " + region" : " + chain";
  }
  selection.workspace = conv.tile_bytes + gemm_workspace(conv.call);
  const size_t bytes = size_t(g.groups * conv.call.shape.b_batch[2]) *
                       size_of(gemm_packed_type(x.dtype));
  const size_t reordered = size_t(conv.call.shape.k * conv.call.shape.n) * size_of(x.dtype);
  if (w.constant) {
    const std::string format =
        (g.transposed ? "gemm deconv " : "gemm conv ") + std::to_string(g.groups);
    conv.packed = request.packs.get(*w.constant, format, bytes, [&](void* to) {
      std::vector<std::byte> temporary(reordered);
      pack(g, x.dtype, w.constant->data, temporary.data(), to, request.threads);
    });
  } else {
    conv.packed_bytes = aligned(bytes);
    conv.reordered_bytes = aligned(reordered);
    selection.workspace += conv.packed_bytes + conv.reordered_bytes;
  }
  selection.steps.push_back({StepKind::gemm, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
