// The CPU as a Device: sends each primitive to the select function of its family.
#include "cpu/device.h"

#include "cpu/arena.h"
#include "cpu/select/select.h"
#include "cpu/threads.h"

namespace rlx::cpu {
namespace {

struct Dispatch {
  const SelectRequest& request;

  Selection operator()(const Region& prim) const { return select_region(prim, request); }
  Selection operator()(const Reduce& prim) const { return select_reduce(prim, request); }
  Selection operator()(const Cumulate& prim) const { return select_cumulate(prim, request); }
  Selection operator()(const MatMul& prim) const { return select_matmul(prim, request); }
  Selection operator()(const Conv& prim) const { return select_conv(prim, request); }
  Selection operator()(const Pool& prim) const { return select_pool(prim, request); }
  Selection operator()(const Softmax& prim) const { return select_softmax(prim, request); }
  Selection operator()(const Norm& prim) const { return select_norm(prim, request); }
  Selection operator()(const Attention& prim) const { return select_attention(prim, request); }
  Selection operator()(const Gather& prim) const { return select_gather(prim, request); }
  Selection operator()(const Scatter& prim) const { return select_scatter(prim, request); }
  Selection operator()(const Move& prim) const { return select_move(prim, request); }
  Selection operator()(const Resize& prim) const { return select_resize(prim, request); }
  Selection operator()(const Sort& prim) const { return select_sort(prim, request); }
  Selection operator()(const NonMaxSuppression& prim) const {
    return select_non_max_suppression(prim, request);
  }
  Selection operator()(const Random& prim) const { return select_random(prim, request); }
  Selection operator()(const Recurrent& prim) const { return select_recurrent(prim, request); }
  Selection operator()(const Fft& prim) const { return select_fft(prim, request); }
  Selection operator()(const Map& prim) const { return select_map(prim, request); }
};

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  Selection select(const SelectRequest& request) const override {
    return std::visit(Dispatch{request}, request.prim);
  }
  std::unique_ptr<Arena> make_arena() const override { return cpu::make_arena(); }
  int default_threads() const override { return available_threads(); }
  std::span<const std::string_view> rungs() const override {
    static constexpr std::string_view names[] = {"onednn", "gemm", "depthwise", "direct", "plain"};
    return names;
  }
};

}  // namespace

std::shared_ptr<const Device> make_cpu_device() { return std::make_shared<CpuDevice>(); }

}  // namespace rlx::cpu
