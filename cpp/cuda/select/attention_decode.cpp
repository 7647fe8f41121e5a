// Attention of few query rows: the query heads of a key head share a block, long keys are split.
#include <bit>

#include "cuda/select/attention_parts.h"

namespace rlx::cuda {
namespace {

constexpr int64_t most_rows = 16;  // of queries
constexpr int64_t warps = 8;       // of a block
constexpr size_t most_shared = 48 * 1024;

// How the kernel's warps divide a key and the rows that read it.
struct Form {
  bool cores = false;                            // tensor cores: eight rows a warp
  int rows = 1;                                  // of a warp
  int chunk = 1, lanes = 1;                      // elements aligned together; lanes of a key
  int64_t pieces = 1, value_pieces = 1;          // chunks of a lane
  size_t shared = 0;
};

int64_t ratio_of(const params::Attention& p) { return p.heads / p.kv_heads; }

size_t shared_of(const params::Attention& p, int rows) {
  return size_t(warps * rows * (int64_t(p.value_depth) + 3)) * sizeof(float);
}

// Known from head dims, the heads that share keys, and alignment: no length compiles another.
Form form_of(const params::Attention& p, DType dtype) {
  const size_t size = size_of(dtype);
  Form f;
  f.chunk = aligned_elements(p, size);
  const int64_t widest = ceil_div(std::max(p.depth, p.value_depth), f.chunk);
  f.lanes = int(std::min<int64_t>(32, int64_t(std::bit_ceil(uint64_t(widest)))));
  f.pieces = ceil_div(p.depth, int64_t(f.lanes) * f.chunk);
  f.value_pieces = ceil_div(p.value_depth, int64_t(f.lanes) * f.chunk);
  // Queries and sums of a lane stay in registers, the block's sums in 48 KiB.
  const int64_t floats = (f.pieces + f.value_pieces) * f.chunk;
  const auto fits = [&](int rows) {
    return rows <= ratio_of(p) && rows * floats <= 96 && shared_of(p, rows) <= most_shared;
  };
  while (f.rows < 4 && fits(2 * f.rows)) f.rows *= 2;
  f.shared = shared_of(p, f.rows);
  return f;
}

bool takes_cores(const params::Attention& p, DType dtype, int capability) {
  return is_half(dtype) && capability >= 80 && p.depth <= 256 && p.value_depth <= 256 &&
         aligned_elements(p, 2) == 8;
}

// Parts of the keys: as many as the card takes at once, each long enough to be worth a second pass.
// More keys never have fewer, so that what is planned for a capacity is enough on the way there.
int64_t most_parts(const params::Attention& p, const Form& f, int64_t blocks,
                   int multiprocessors) {
  constexpr int64_t worth = 256;
  if (p.keys <= 2 * worth) return 1;
  // By the registers of a thread: 170 for head dims of 128 on tensor cores.
  const int64_t resident = f.cores && p.depth + p.value_depth > 160 ? 1 : 2;
  return std::clamp<int64_t>(resident * multiprocessors / blocks, 1, ceil_div(p.keys, worth));
}

void add_form(const params::Attention& p, const Form& f, KernelSpec& kernel) {
  if (f.cores) {
    kernel.file = "kernels/attention_decode_mma.cu";
    kernel.entry = "attention_decode_mma";
    kernel.defines.push_back(define("RLX_DEPTH", ceil_div(p.depth, 32) * 32));
    kernel.defines.push_back(define("RLX_VALUE_DEPTH", ceil_div(p.value_depth, 64) * 64));
    return;
  }
  kernel.file = "kernels/attention_decode.cu";
  kernel.entry = "attention_decode";
  for (const auto& [name, value] :
       {std::pair<const char*, int64_t>{"RLX_ROWS", f.rows}, {"RLX_CHUNK", f.chunk},
        {"RLX_LANES", f.lanes}, {"RLX_PIECES", f.pieces}, {"RLX_VALUE_PIECES", f.value_pieces}}) {
    kernel.defines.push_back(define(name, value));
  }
}

}  // namespace

std::string decode_refusal(const params::Attention& p, DType dtype, std::string_view force) {
  if (p.queries >= most_rows && force != "decode attention") {
    return "decode attention is for fewer than " + std::to_string(most_rows) + " query rows";
  }
  if (form_of(p, dtype).shared > most_shared) return "head dims whose sums no block holds";
  return "";
}

Selection decode_attention(const Attention& prim, const SelectRequest& request,
                           const Tools& tools, AttentionLaunch& launch, KernelSpec kernel) {
  params::Attention& p = launch.params;
  const DType dtype = request.inputs[0].dtype;
  const DeviceInfo& info = tools.driver.info();
  Form form = form_of(p, dtype);
  if (takes_cores(p, dtype, info.capability)) {
    form.cores = true;
    form.rows = 8;
    form.shared = shared_of(p, form.rows);
  }
  const int64_t groups = ceil_div(p.queries * ratio_of(p), int64_t(form.rows));
  p.row_groups = int(std::min<int64_t>(warps, int64_t(std::bit_ceil(uint64_t(groups)))));
  const int64_t blocks = p.batch * p.kv_heads * ceil_div(groups, int64_t(p.row_groups));
  const int64_t parts = most_parts(p, form, blocks, info.multiprocessors);
  p.part = ceil_div(ceil_div(std::max<int64_t>(p.keys, 1), parts), 64) * 64;
  p.parts = int(ceil_div(std::max<int64_t>(p.keys, 1), p.part));
  add_form(p, form, kernel);
  add_score(prim, request, launch, kernel);
  Selection made;
  made.rung = "decode attention";
  made.reason = std::string(form.cores ? "on tensor cores" : "on ordinary cores") + ", " +
                std::to_string(blocks * p.parts) + " blocks";
  // Asked for in any case: a past that grows compiles nothing when it is first split.
  const KernelPtr join = tools.jit.get({"kernels/attention_join.cu", "attention_join",
                                        {define("RLX_T", storage_name(dtype))}, {}});
  const int64_t lines = p.batch * p.heads * p.queries;
  if (parts > 1) {
    made.workspace = size_t(lines * parts * (p.value_depth + 2)) * sizeof(float);
    launch.bind(p.partial, Source::workspace());
  }
  made.steps.push_back(launch.finish(tools.jit.get(kernel),
                                     blocks_of(blocks * p.parts, warps * 32, form.shared)));
  if (p.parts > 1) {
    made.reason += ", keys in " + std::to_string(p.parts) + " parts";
    made.steps.push_back(launch.finish(join, blocks_of(lines * ceil_div(p.value_depth, 128),
                                                       warps * 32)));
  }
  return made;
}

}  // namespace rlx::cuda
