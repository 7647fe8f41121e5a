// Which way a product takes whose weights are quantised or chosen by each row, and the kernels
// that read such weights as they lie.
#include "cuda/select/matmul_dequant.h"

#include "cuda/libs/libraries.h"

namespace rlx::cuda {
namespace {

constexpr size_t weights_operand = 1, groups_operand = 5;
constexpr int64_t few_rows = 4;         // that read weights at the speed of memory
constexpr int64_t library_rows = 256;   // from here on a library is ahead of our tiles by more
                                        // than it costs to write the weights once

bool given(const SelectRequest& request, size_t i) {
  return request.inputs[i].dtype != DType::none;
}

int64_t rows_of(const SelectRequest& request) {
  const TensorDesc& y = request.outputs[0];
  const int64_t n = y.shape[y.shape.size() - 1];
  return n ? y.count() / n : 0;
}

bool tensor_cores(const SelectRequest& request, const Tools& tools) {
  const DType a = request.inputs[0].dtype;
  const bool type = is_half(a) || (a == DType::float32 && tools.options.tf32);
  return type && tools.driver.info().capability >= 80;
}

int largest_dividing(int most, int64_t of) {
  while (most > 1 && of % most != 0) most /= 2;
  return most;
}

// The values of A that are read as one word.
int a_run(const TensorDesc& a, int64_t k) {
  return largest_dividing(16 / int(size_of(a.dtype)), k);
}

void add(KernelSpec& kernel, std::vector<std::string> defines) {
  kernel.defines.insert(kernel.defines.end(), defines.begin(), defines.end());
}

// What both kernels are told: operands, the epilogue, and where groups come from.
struct Setup {
  LaunchBuilder<params::MatMulDequant> launch;
  OutRegion out;
  KernelSpec kernel;
  bool groups = false;

  Setup(const char* file, const char* entry, const MatMul& prim, const SelectRequest& request,
        const WeightsOperand& weights, DType accumulate, int run) {
    const TensorDesc& a = request.inputs[0];
    groups = given(request, groups_operand);
    out = out_region(prim.epilogue, request, MatMul::operands, accumulate, 2);
    bind_region(launch, launch.params.out, out.source,
                [&](int place) { return out.operand(place); });
    launch.bind(launch.params.a, Source::operand(0));
    weights.bind(launch);
    params::MatMulDequant& p = launch.params;
    p.m = rows_of(request), p.a_row = p.b.k;
    p.group_count = groups ? weights.matrices() : 0;
    p.alpha = float(prim.alpha);
    kernel = {file, entry, {}, {{"generated/out.h", out.source.text}}};
    add(kernel, weights.defines(run));
    add(kernel, {define("RLX_GROUPS", groups), define("RLX_A_RUN", a_run(a, p.b.k)),
                 define("RLX_VECTOR", fitting_vector(std::min(out.source.vector, 2), p.b.n))});
  }
};

SelectedStep sort_rows(const SelectRequest& request, const Tools& tools, int64_t rows,
                       int64_t groups, size_t starts) {
  LaunchBuilder<params::GroupRows> launch;
  launch.params.rows = rows, launch.params.group_count = groups;
  launch.bind(launch.params.groups, Source::operand(groups_operand));
  launch.bind(launch.params.places, Source::workspace(0));
  launch.bind(launch.params.starts, Source::workspace(int64_t(starts)));
  launch.bind(launch.params.fault, Source::fault());
  const KernelSpec kernel{"kernels/group_rows.cu", "group_rows",
                          {define("RLX_I", storage_name(request.inputs[groups_operand].dtype))},
                          {}};
  return launch.finish(tools.jit.get(kernel), blocks_of(groups, 256));
}

void check(const MatMul& prim, const SelectRequest& request) {
  const bool dense = request.inputs[0].contiguous() && request.inputs[weights_operand].contiguous();
  if (!dense || prim.trans_a || !prim.trans_b || given(request, 2)) {
    throw Error(ErrorKind::unsupported, "grouped products take dense rows and [groups, N, K]");
  }
}

}  // namespace

Selection matmul_few_rows(const MatMul& prim, const SelectRequest& request, const Tools& tools,
                          const WeightsOperand& weights) {
  const DType accumulate =
      request.inputs[0].dtype == DType::float64 ? DType::float64 : DType::float32;
  const int run = weights.run(32);
  Setup setup("kernels/matmul_few.cu", "matmul_few", prim, request, weights, accumulate, run);
  const params::MatMulDequant& p = setup.launch.params;
  if (p.m * p.b.n == 0) return {};
  const int rows = setup.groups || p.m == 1 ? 1 : p.m == 2 ? 2 : 4;
  const int split = p.b.k > 32 * run ? 4 : 1;  // lanes of a warp
  if (setup.groups) {
    setup.launch.bind(setup.launch.params.groups, Source::operand(groups_operand));
    setup.launch.bind(setup.launch.params.fault, Source::fault());
    add(setup.kernel,
        {define("RLX_I", storage_name(request.inputs[groups_operand].dtype))});
  }
  add(setup.kernel, {define("RLX_A", storage_name(request.inputs[0].dtype)),
                     define("RLX_ACCUMULATE", compute_name(accumulate)),
                     define("RLX_ROWS", rows), define("RLX_SPLIT", split)});
  const int64_t columns = split > 1 ? 2 : 8;
  const int64_t blocks = ceil_div(p.b.n, columns) * ceil_div(p.m, rows);
  return one_step("kernel of few rows", setup.launch.finish(tools.jit.get(setup.kernel),
                                                            blocks_of(blocks, 128)));
}

Selection matmul_tiles(const MatMul& prim, const SelectRequest& request, const Tools& tools,
                       const WeightsOperand& weights) {
  Setup setup("kernels/matmul_dequant.cu", "matmul_dequant", prim, request, weights,
              DType::float32, weights.run(16));
  const params::MatMulDequant& p = setup.launch.params;
  if (p.m * p.b.n == 0) return {};
  // Half of a tile's rows or more are there on the average.
  const int64_t together = setup.groups ? p.m / std::max<int64_t>(p.group_count, 1) : p.m;
  const int64_t bm = together <= 32 ? 16 : 64;
  add(setup.kernel, {define("RLX_T", storage_name(request.inputs[0].dtype)),
                     define("RLX_BM", bm)});
  Selection selection;
  if (setup.groups) {
    const size_t starts = size_t(round_up(p.m * int64_t(sizeof(int)), 64));
    selection.workspace = starts + size_t(p.group_count + 1) * sizeof(int);
    selection.steps.push_back(sort_rows(request, tools, p.m, p.group_count, starts));
    setup.launch.bind(setup.launch.params.places, Source::workspace(0));
    setup.launch.bind(setup.launch.params.starts, Source::workspace(int64_t(starts)));
  }
  const int64_t tiles = ceil_div(p.m, bm) + p.group_count;
  selection.steps.push_back(setup.launch.finish(tools.jit.get(setup.kernel),
                                                blocks_of(tiles * ceil_div(p.b.n, 64), 128)));
  selection.rung = setup.groups ? "grouped kernel" : "dequantising kernel";
  return selection;
}

// Nobody reads more than the first `few_rows` rows at the speed of memory; the tensor cores' tiles
// need rows enough to share what they dequantise; a library needs weights in memory.
Selection select_matmul_dequant(const MatMul& prim, const SelectRequest& request,
                                const Tools& tools) {
  const WeightsOperand weights(prim, request);
  const int64_t rows = rows_of(request);
  const bool cores = tensor_cores(request, tools);
  const auto because = [](Selection selection, const char* reason) {
    if (selection.reason.empty()) selection.reason = reason;
    return selection;
  };
  if (given(request, groups_operand)) {
    check(prim, request);
    if (rows >= int64_t{1} << 31) {
      throw Error(ErrorKind::unsupported, "a grouped product of 2^31 rows or more");
    }
    const bool share = rows >= 4 * std::min(weights.matrices(), rows);
    if (share && cores) {
      return because(matmul_tiles(prim, request, tools, weights),
                     "rows share weights: sorted by group on the device");
    }
    return because(matmul_few_rows(prim, request, tools, weights),
                   share ? "no tensor cores for this type: each row by itself"
                         : "few rows for each group: each row by itself");
  }
  const bool asked_library = request.force.starts_with("cublaslt");
  if (asked_library || weights.matrices() != 1 || !request.inputs[0].contiguous()) {
    return matmul_dequantised(prim, request, tools, weights);
  }
  if (rows <= few_rows) {
    return because(matmul_few_rows(prim, request, tools, weights),
                   "few rows: the stored bytes are read once");
  }
  const bool own = request.force == "kernel" || !tools.libraries;
  if (!cores || (!own && rows >= library_rows)) {
    return matmul_dequantised(prim, request, tools, weights);
  }
  return because(matmul_tiles(prim, request, tools, weights),
                 "the stored bytes are dequantised on the way to the tensor cores");
}

}  // namespace rlx::cuda
