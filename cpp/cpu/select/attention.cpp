// Attention: tasks of query rows over the team; masks and biases are a Region on score rows.
#include "cpu/kernels/attention.h"

#include <algorithm>
#include <optional>

#include "core/cpuid.h"
#include "cpu/kernels/region.h"
#include "cpu/select/select.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

struct AttentionBody : StepBody {
  AttentionShape shape;
  AttentionBlock block = nullptr;
  std::optional<RegionProgram> score;
  size_t floats = 0, region_bytes = 0;  // of scratch for each thread

  struct Rewriting {
    const RegionProgram* program;
    RegionProgram::Frame* frame;
  };

  static void rewrite(void* context, int64_t row, int64_t key, int64_t n, float* scores) {
    auto& r = *static_cast<Rewriting*>(context);
    void* outputs[] = {scores};
    r.program->evaluate(*r.frame, row, key, n, outputs, scores);
  }

  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    const size_t extras = size_t(inputs) - 3;
    void* y = o[inputs];
    const int64_t tasks = attention_tasks(shape);
    parallel_tasks(threads, tasks, [&](int64_t task, int thread) {
      auto* scratch = static_cast<std::byte*>(args.workspace) +
                      size_t(thread) * (floats * sizeof(float) + region_bytes);
      ScoreHook hook;
      Rewriting rewriting{};
      if (score) {
        const void* loads[max_loads] = {};
        for (size_t k = 0; k < extras; ++k) loads[k + 1] = o[3 + k];
        rewriting = {&*score, &score->begin(scratch + floats * sizeof(float), loads)};
        hook = {rewrite, &rewriting};
      }
      // The last rows of a head see most keys when causal: they go first.
      block(shape, o[0], o[1], o[2], y, tasks - 1 - task, reinterpret_cast<float*>(scratch), hook);
    });
  }

  static constexpr size_t max_loads = 32;
  int inputs = 3, threads = 1;
};

HeadStrides strides_of(const TensorDesc& t, HeadLayout layout) {
  const bool heads_first = layout == HeadLayout::bhsd;
  return {t.strides[0], t.strides[heads_first ? 1 : 2], t.strides[heads_first ? 2 : 1]};
}

int64_t heads_of(const TensorDesc& t, HeadLayout layout) {
  return t.shape[layout == HeadLayout::bhsd ? 1 : 2];
}

int64_t rows_of(const TensorDesc& t, HeadLayout layout) {
  return t.shape[layout == HeadLayout::bhsd ? 2 : 1];
}

AttentionShape shape_of(const Attention& prim, const SelectRequest& request) {
  const TensorDesc &q = request.inputs[0], &k = request.inputs[1], &v = request.inputs[2];
  AttentionShape s;
  s.batch = q.shape[0];
  s.heads = heads_of(q, prim.q_layout);
  s.kv_heads = heads_of(k, prim.k_layout);
  s.queries = rows_of(q, prim.q_layout);
  s.keys = rows_of(k, prim.k_layout);
  s.depth = q.shape[3];
  s.value_depth = v.shape[3];
  s.q = strides_of(q, prim.q_layout);
  s.k = strides_of(k, prim.k_layout);
  s.v = strides_of(v, prim.v_layout);
  s.y = strides_of(request.outputs[0], prim.y_layout);
  s.scale = float(prim.scale);
  s.causal = prim.causal;
  s.causal_offset = request.dim(prim.causal_offset);
  s.dtype = q.dtype;
  if (k.shape[3] != s.depth || rows_of(v, prim.v_layout) != s.keys || s.kv_heads == 0 ||
      s.heads % s.kv_heads != 0) {
    throw Error(ErrorKind::input, "queries, keys and values do not fit each other");
  }
  return s;
}

AttentionBlock block_for_isa() {
  if (cpu_isa() == Isa::avx512) return attention_avx512;
  return cpu_isa() == Isa::avx2 ? attention_avx2 : attention_portable;
}

// The team, or this thread alone where sharing some 30 us would cost more than it saves.
int threads_for(const AttentionShape& s, int threads) {
  const double pairs = double(s.batch * s.heads * s.queries) * double(s.keys);
  const double ns = pairs * (double(s.depth + s.value_depth) / 12.0 + 1.0);
  return ns * (s.causal ? 0.5 : 1.0) < 30000.0 ? 1 : std::max(threads, 1);
}

}  // namespace

Selection select_attention(const Attention& prim, const SelectRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  if (dtype != DType::float32 && !is_half(dtype)) {
    throw Error(ErrorKind::unsupported, std::string("attention takes no ") + name_of(dtype));
  }
  auto body = std::make_shared<AttentionBody>();
  body->shape = shape_of(prim, request);
  body->inputs = int(request.inputs.size());
  body->block = block_for_isa();
  body->threads = threads_for(body->shape, request.threads);
  divide_attention(body->shape, body->threads);
  body->floats = size_t(attention_scratch(body->shape).size);
  if (prim.score) {
    std::vector<TensorDesc> loads(1);
    loads[0].dtype = DType::float32;
    const AttentionShape& s = body->shape;
    loads[0].shape = {s.batch, s.heads, s.queries, s.keys};
    loads[0].strides = {s.heads * s.queries * s.keys, s.queries * s.keys, s.keys, 1};
    for (size_t k = 3; k < request.inputs.size(); ++k) loads.push_back(request.inputs[k]);
    if (loads.size() > AttentionBody::max_loads) {
      throw Error(ErrorKind::unsupported, "attention has too many score operands");
    }
    RegionProgram::Spec spec;
    spec.region = prim.score.get();
    spec.numbers = request.numbers;
    spec.inputs = loads;
    spec.outputs = std::span(loads).first(1);
    spec.row_rank = 3;
    spec.given_first = true;
    body->score.emplace(spec);
    body->region_bytes = body->score->scratch_bytes();
  }
  Selection selection;
  selection.rung = "blocked attention";
  selection.workspace =
      (body->floats * sizeof(float) + body->region_bytes) * size_t(body->threads);
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
