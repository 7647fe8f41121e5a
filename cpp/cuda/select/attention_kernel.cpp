// Attention by our own kernels: any head dims, masks, score modifier and grouped queries.
#include "cuda/select/attention_parts.h"

namespace rlx::cuda {
namespace {

params::HeadStrides strides_of(const TensorDesc& t, HeadLayout layout) {
  const bool heads_first = layout == HeadLayout::bhsd;
  return {t.strides[0], t.strides[heads_first ? 1 : 2], t.strides[heads_first ? 2 : 1]};
}

int64_t heads_of(const TensorDesc& t, HeadLayout layout) {
  return t.shape[layout == HeadLayout::bhsd ? 1 : 2];
}

int64_t rows_of(const TensorDesc& t, HeadLayout layout) {
  return t.shape[layout == HeadLayout::bhsd ? 2 : 1];
}

void fill(const Attention& prim, const SelectRequest& request, params::Attention& p) {
  const TensorDesc &q = request.inputs[0], &k = request.inputs[1], &v = request.inputs[2];
  p.batch = q.shape[0];
  p.heads = heads_of(q, prim.q_layout);
  p.kv_heads = heads_of(k, prim.k_layout);
  p.queries = rows_of(q, prim.q_layout);
  p.keys = rows_of(k, prim.k_layout);
  p.depth = int(q.shape[3]);
  p.value_depth = int(v.shape[3]);
  p.q_strides = strides_of(q, prim.q_layout);
  p.k_strides = strides_of(k, prim.k_layout);
  p.v_strides = strides_of(v, prim.v_layout);
  p.y_strides = strides_of(request.outputs[0], prim.y_layout);
  p.scale = float(prim.scale);
  p.causal_offset = prim.causal ? request.dim(prim.causal_offset) : 0;
  if (k.shape[3] != p.depth || rows_of(v, prim.v_layout) != p.keys || p.kv_heads == 0 ||
      p.heads % p.kv_heads != 0) {
    throw Error(ErrorKind::input, "queries, keys and values do not fit each other");
  }
}

RegionSource score_source(const Region& score, const SelectRequest& request,
                          const params::Attention& p, int vector_limit) {
  std::vector<TensorDesc> inputs(1);
  inputs[0].dtype = DType::float32;
  inputs[0].shape = {p.batch, p.heads, p.queries, p.keys};
  for (size_t k = 3; k < request.inputs.size(); ++k) inputs.push_back(request.inputs[k]);
  RegionSpec spec;
  spec.region = &score;
  spec.numbers = request.numbers;
  spec.inputs = inputs;
  spec.given = DType::float32;
  spec.name = "score";
  spec.vector_limit = vector_limit;
  return region_source(spec);
}

}  // namespace

void add_score(const Attention& prim, const SelectRequest& request, AttentionLaunch& launch,
               KernelSpec& kernel, int vector_limit) {
  if (!prim.score) return;
  const RegionSource score = score_source(*prim.score, request, launch.params, vector_limit);
  kernel.defines.push_back(define("RLX_SCORE_VECTOR",
                                  fitting_vector(score.vector, launch.params.keys)));
  bind_region(launch, launch.params.score, score,
              [](int load) { return Source::operand(2 + size_t(load)); });
  kernel.generated.push_back({"generated/score.h", score.text});
}

int aligned_elements(const params::Attention& p, size_t size) {
  for (int chunk : {int(16 / size), 2}) {
    bool fits = p.depth % chunk == 0 && p.value_depth % chunk == 0;
    for (const params::HeadStrides* s : {&p.q_strides, &p.k_strides, &p.v_strides, &p.y_strides}) {
      fits = fits && s->batch % chunk == 0 && s->head % chunk == 0 && s->row % chunk == 0;
    }
    if (fits) return chunk;
  }
  return 1;
}

namespace {

constexpr int64_t mma_rows = 16;

std::string mma_refusal(const params::Attention& p, DType dtype, const Tools& tools) {
  if (dtype == DType::float32 && !tools.options.tf32) return "float32 without TF32";
  if (tools.driver.info().capability < 80) return "the card has no such tensor cores";
  if (p.depth > 128 || p.value_depth > 128) return "head dims above 128";
  // A tile would be mostly empty, and its weights are rounded to half before the second product.
  if (p.queries < mma_rows || p.keys < mma_rows) return "fewer rows than a tile has";
  return dtype != DType::float32 && aligned_elements(p, 2) == 1 ? "odd head dims or strides" : "";
}

// Warps of a block of the tensor cores' kernel: `rows` times 16 rows, each shared by `ways` warps.
struct MmaForm {
  int rows, ways, tile;
};

// One for all lengths and batches: a new shape compiles nothing. 32 rows a block give 12 heads of
// 512 queries 192 blocks, more than a card has multiprocessors.
MmaForm mma_form(const params::Attention& p, size_t size) {
  const int columns = int(ceil_div(p.depth, 16) * 16 + ceil_div(p.value_depth, 16) * 16);
  return {2, 2, size == 4 && columns > 128 ? 32 : 64};  // two tiles fit in 96 KiB
}

Selection mma_attention(const Attention& prim, const SelectRequest& request, const Tools& tools,
                        AttentionLaunch& launch, KernelSpec kernel) {
  const params::Attention& p = launch.params;
  const int size = int(size_of(request.inputs[0].dtype));
  const int depth = int(ceil_div(p.depth, 16) * 16), width = int(ceil_div(p.value_depth, 16) * 16);
  const MmaForm form = mma_form(p, size_t(size));
  kernel.file = "kernels/attention_mma.cu";
  kernel.entry = "attention_mma";
  for (const auto& [name, value] : {std::pair{"RLX_DEPTH", depth}, {"RLX_VALUE_DEPTH", width},
                                    {"RLX_CHUNK", aligned_elements(p, size_t(size))},
                                    {"RLX_ROW_WARPS", form.rows}, {"RLX_WAYS", form.ways},
                                    {"RLX_TILE", form.tile}}) {
    kernel.defines.push_back(define(name, value));
  }
  add_score(prim, request, launch, kernel, 2);
  const int tiles = 2 * form.tile * (depth + width + 32 / size) * size;
  const int joined = (form.ways - 1) * (width / 2 + 4) * form.rows * 32 * 4;
  const LaunchShape shape = blocks_of(p.batch * p.heads * ceil_div(p.queries, form.rows * 16),
                                      form.rows * form.ways * 32, size_t(std::max(tiles, joined)));
  return one_step("tensor core attention", launch.finish(tools.jit.get(kernel), shape));
}

}  // namespace

Selection select_attention_kernel(const Attention& prim, const SelectRequest& request,
                                  const Tools& tools) {
  const DType dtype = request.inputs[0].dtype;
  if (dtype != DType::float32 && !is_half(dtype)) {
    throw Error(ErrorKind::unsupported, std::string("attention takes no ") + name_of(dtype));
  }
  if (request.outputs[0].count() == 0) return {};
  AttentionLaunch launch;
  params::Attention& p = launch.params;
  fill(prim, request, p);
  launch.bind(p.q, Source::operand(0));
  launch.bind(p.k, Source::operand(1));
  launch.bind(p.v, Source::operand(2));
  launch.bind(p.y, Source::operand(request.inputs.size()));
  const std::string refusal = mma_refusal(p, dtype, tools);
  const std::string_view force = request.force;
  const bool tiled = force == "tiled attention" || force == "kernel";
  const bool mma = refusal.empty() && !tiled;
  const std::string few = decode_refusal(p, dtype, force);
  const bool decode = few.empty() && !tiled && !(mma && force == "tensor core attention");
  const int slice = p.value_depth <= 32 ? 32 : p.value_depth <= 64 ? 64 : 128;
  KernelSpec kernel{"kernels/attention.cu", "attention",
                    {define("RLX_T", storage_name(dtype)), define("RLX_CAUSAL", prim.causal),
                     define("RLX_SCORE", prim.score != nullptr)},
                    {}};
  if (decode) {
    Selection selection = decode_attention(prim, request, tools, launch, kernel);
    if (force == "tensor core attention") selection.reason = refusal + "; " + selection.reason;
    return selection;
  }
  if (mma) {
    Selection selection = mma_attention(prim, request, tools, launch, kernel);
    selection.reason = few;
    return selection;
  }
  kernel.defines.push_back(define("RLX_VALUE_SLICE", slice));
  add_score(prim, request, launch, kernel);
  const int64_t blocks = p.batch * p.heads * ceil_div(p.queries, 16) *
                         ceil_div(p.value_depth, slice);
  Selection selection = one_step("tiled attention",
                                 launch.finish(tools.jit.get(kernel), blocks_of(blocks, 128)));
  selection.reason = few + (few.empty() || refusal.empty() ? "" : "; ") + refusal;
  return selection;
}

}  // namespace rlx::cuda
