// Runs recurrent layers: one product for all steps, then step by step.
#include "cpu/kernels/recurrent.h"

#include <algorithm>
#include <cstring>

#include "core/cpuid.h"
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/gemm_s8.h"
#include "cpu/kernels/recurrent_cell.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

template <class T>
const CellKernels<T>& cells() {
  if constexpr (std::is_same_v<T, double>) {
    return cell_kernels_double;
  } else {
#if defined(__x86_64__)
    if (cpu_isa() == Isa::avx512) return cell_kernels_avx512;
    if (cpu_isa() == Isa::avx2) return cell_kernels_avx2;
#endif
    return cell_kernels_portable;
  }
}

// Hands out 64-byte aligned parts of a block of memory; with a null block it only counts.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<std::byte*>(base)) {}
  template <class T>
  T* take(int64_t count) {
    std::byte* at = base_ ? base_ + used_ : nullptr;
    used_ += (size_t(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

// Elements of the packed weights of one direction: w, then r, which is in two when split.
struct PackedSizes {
  int64_t w, r, candidate;
  explicit PackedSizes(const RecurrentShape& s) {
    const int64_t all = s.gate_count() * s.hidden, together = s.split() ? 2 * s.hidden : all;
    candidate = 0;
    if (s.rounded()) {
      w = in_floats(gemm_s8_packed_bytes(s.input, all));
      r = in_floats(gemm_s8_packed_bytes(s.hidden, all));
      return;
    }
    w = gemm_packed_count(s.dtype, s.input, all);
    r = gemm_packed_count(s.dtype, s.hidden, together);
    if (s.split()) candidate = gemm_packed_count(s.dtype, s.hidden, s.hidden);
  }
  int64_t total() const { return w + r + candidate; }
  // Packed bytes start at 64-byte steps, as the kernels expect.
  static int64_t in_floats(int64_t bytes) { return (bytes + 63) / 64 * 64 / 4; }
};

template <class T>
class Direction {
 public:
  Direction(const RecurrentShape& shape, const RecurrentArgs& args, int index, int threads,
            void* workspace)
      : s_(shape), a_(args), index_(index), threads_(threads), sizes_(shape) {
    const int64_t all = s_.gate_count() * s_.hidden;
    Carver carver(workspace);
    bias_ = carver.take<T>(all);
    pre_ = carver.take<T>(s_.steps * s_.batch * all);
    product_ = carver.take<T>(s_.batch * all);
    reset_ = carver.take<T>(s_.batch * s_.hidden);
    h_ = carver.take<T>(s_.batch * s_.hidden);
    c_ = carver.take<T>(s_.batch * s_.hidden);
    used_ = carver.take<bool>(s_.rounded() ? s_.batch : 0);
    const size_t bytes = product_workspace();
    gemm_ = carver.take<std::byte>(int64_t(bytes));
    bytes_ = carver.used();
  }
  size_t bytes() const { return bytes_; }

  void run() const {
    add_biases();
    multiply_input();
    load_state(a_.initial_h, h_);
    load_state(a_.initial_c, c_);
    const bool backwards = index_ == 1 || s_.reverse;
    for (int64_t i = 0; i < s_.steps; ++i) step(backwards ? s_.steps - 1 - i : i);
    store_state(h_, a_.y_h);
    store_state(c_, a_.y_c);
  }

 private:
  static const T* at(const void* base, int64_t offset) {
    return base ? static_cast<const T*>(base) + offset : nullptr;
  }
  const T* packed() const { return at(a_.packed, index_ * sizes_.total()); }
  int64_t all() const { return s_.gate_count() * s_.hidden; }
  bool separate_bias() const {
    return s_.kind == RecurrentKind::gru && s_.linear_before_reset && a_.bias;
  }

  GemmCall product(const T* a, int64_t m, int64_t k, const T* b, int64_t n, T* c) const {
    GemmCall call;
    call.shape.m = m;
    call.shape.n = n;
    call.shape.k = k;
    call.shape.lda = k;
    call.shape.ldc = all();
    call.a_type = call.b_type = call.c_type = s_.dtype;
    call.b_packed = true;
    call.a = a;
    call.b = b;
    call.c = c;
    call.workspace = gemm_;
    // A step's product is too short to share out unless it is large.
    call.threads = m * n * k > (1 << 20) ? threads_ : 1;
    return call;
  }
  GemmCall input_product() const {
    GemmCall call = product(at(a_.x, 0), s_.steps * s_.batch, s_.input, packed(), all(), pre_);
    call.epilogue.bias = bias_;
    return call;
  }
  GemmCall state_product() const {
    const T* r = a_.packed ? packed() + sizes_.w : nullptr;
    return product(h_, s_.batch, s_.hidden, r, s_.split() ? 2 * s_.hidden : all(), product_);
  }
  GemmCall candidate_product() const {
    const T* r = a_.packed ? packed() + sizes_.w + sizes_.r : nullptr;
    return product(reset_, s_.batch, s_.hidden, r, s_.hidden, product_ + 2 * s_.hidden);
  }

  size_t product_workspace() const {
    if (s_.rounded()) {
      return std::max(rounded_product_workspace(rounded_input()),
                      rounded_product_workspace(rounded_state()));
    }
    return std::max({gemm_workspace(input_product()), gemm_workspace(state_product()),
                     gemm_workspace(candidate_product())});
  }
  void multiply_input() const {
    if (s_.rounded()) rounded_product(rounded_input());
    else gemm(input_product());
  }
  void multiply_state(int64_t t) const {
    if (!s_.rounded()) return gemm(state_product());
    for (int64_t b = 0; b < s_.batch; ++b) used_[b] = active(t, b);
    rounded_product(rounded_state());
  }

  // Only layers of float32 have 8-bit weights.
  static float* floats(T* values) { return reinterpret_cast<float*>(values); }
  RoundedProduct rounded(const WeightScales& scales, int64_t m, int64_t k, const T* weights) const {
    RoundedProduct p;
    p.m = m;
    p.n = all();
    p.k = k;
    p.weights_signed = s_.weights == DType::int8;
    p.scales = scales;
    const int64_t scale = index_ * (scales.scale_each ? all() : 1);
    const int64_t zero = index_ * (scales.zero_each ? all() : 1);
    if (scales.scale) p.scales.scale += scale;
    if (scales.zero) p.scales.zero = static_cast<const char*>(scales.zero) + zero;
    p.weights = weights;
    // A step's product is too short to share out unless it is large.
    p.threads = m * p.n * k > (1 << 20) ? threads_ : 1;
    p.workspace = gemm_;
    return p;
  }
  RoundedProduct rounded_input() const {
    RoundedProduct p = rounded(a_.w_scales, s_.steps * s_.batch, s_.input, packed());
    p.x = static_cast<const float*>(a_.x);
    p.bias = floats(bias_);
    p.y = floats(pre_);
    return p;
  }
  RoundedProduct rounded_state() const {
    const T* r = a_.packed ? packed() + sizes_.w : nullptr;
    RoundedProduct p = rounded(a_.r_scales, s_.batch, s_.hidden, r);
    p.x = floats(h_);
    p.y = floats(product_);
    p.used = used_;
    return p;
  }

  // The biases of x and of the state are one, but for a candidate that the reset gate scales.
  void add_biases() const {
    const T* bias = at(a_.bias, index_ * 2 * all());
    for (int64_t j = 0; j < all(); ++j) {
      const bool apart = separate_bias() && j >= 2 * s_.hidden;
      bias_[j] = bias ? bias[j] + (apart ? T(0) : bias[all() + j]) : T(0);
    }
  }

  int64_t state_row(int64_t b) const {
    return (s_.batchwise ? b * s_.directions + index_ : index_ * s_.batch + b) * s_.hidden;
  }
  void load_state(const void* from, T* to) const {
    for (int64_t b = 0; b < s_.batch; ++b) {
      T* row = to + b * s_.hidden;
      if (from) std::copy_n(at(from, state_row(b)), s_.hidden, row);
      else std::fill_n(row, s_.hidden, T(0));
    }
  }
  void store_state(const T* from, void* to) const {
    if (!to) return;
    for (int64_t b = 0; b < s_.batch; ++b) {
      std::copy_n(from + b * s_.hidden, s_.hidden, static_cast<T*>(to) + state_row(b));
    }
  }

  bool active(int64_t t, int64_t b) const {
    return !a_.sequence_lens || t < a_.sequence_lens[b];
  }

  template <class F>
  void each_active(int64_t t, F&& f) const {
    CellRow<T> row;
    row.hidden = s_.hidden;
    row.gates = s_.gates[index_];
    row.clip = T(s_.clip);
    row.input_forget = s_.input_forget;
    row.peephole = at(a_.peephole, index_ * 3 * s_.hidden);
    if (separate_bias()) {
      row.candidate_bias = at(a_.bias, index_ * 2 * all() + all() + 2 * s_.hidden);
    }
    for (int64_t b = 0; b < s_.batch; ++b) {
      if (!active(t, b)) continue;
      row.pre = pre_ + (s_.batchwise ? b * s_.steps + t : t * s_.batch + b) * all();
      row.product = product_ + b * all();
      row.h = h_ + b * s_.hidden;
      row.c = c_ + b * s_.hidden;
      row.reset = reset_ + b * s_.hidden;
      f(row);
    }
  }

  void step(int64_t t) const {
    const CellKernels<T>& cell = cells<T>();
    multiply_state(t);
    switch (s_.kind) {
      case RecurrentKind::lstm: each_active(t, cell.lstm); break;
      case RecurrentKind::rnn: each_active(t, cell.rnn); break;
      case RecurrentKind::gru:
        if (s_.split()) {
          each_active(t, cell.gru_reset);
          gemm(candidate_product());
          each_active(t, cell.gru_update);
        } else {
          each_active(t, cell.gru);
        }
    }
    store_step(t);
  }

  void store_step(int64_t t) const {
    if (!a_.y) return;
    const int64_t n = s_.hidden, d = s_.directions;
    for (int64_t b = 0; b < s_.batch; ++b) {
      const int64_t row = s_.batchwise ? (b * s_.steps + t) * d + index_
                                       : (t * d + index_) * s_.batch + b;
      T* to = static_cast<T*>(a_.y) + row * n;
      if (active(t, b)) std::copy_n(h_ + b * n, n, to);
      else std::fill_n(to, n, T(0));
    }
  }

  const RecurrentShape& s_;
  const RecurrentArgs& a_;
  int index_, threads_;
  PackedSizes sizes_;
  T *bias_, *pre_, *product_, *reset_, *h_, *c_;
  bool* used_;  // of a step: the rows whose sequence has not ended
  std::byte* gemm_;
  size_t bytes_;
};

template <class F>
auto with_type(DType dtype, F&& f) {
  return dtype == DType::float64 ? f(double{}) : f(float{});
}

// Two directions are independent: with two threads each has one.
bool side_by_side(const RecurrentShape& s, int threads) {
  return s.directions == 2 && threads > 1;
}

// One direction's weights, in the order of PackedSizes.
void pack_floats(const RecurrentShape& s, const char* w, const char* r, char* to, int threads) {
  const int64_t from_item = int64_t(size_of(s.weights)), item = int64_t(size_of(s.dtype));
  const int64_t n = s.hidden, all = s.gate_count() * n;
  const PackedSizes sizes(s);
  gemm_pack_b(s.weights, w, s.input, true, s.input, all, to, threads);
  gemm_pack_b(s.weights, r, n, true, n, s.split() ? 2 * n : all, to + sizes.w * item, threads);
  if (!s.split()) return;
  gemm_pack_b(s.weights, r + 2 * n * n * from_item, n, true, n, n,
              to + (sizes.w + sizes.r) * item, threads);
}

}  // namespace

size_t recurrent_packed_bytes(const RecurrentShape& s) {
  return size_t(s.directions * PackedSizes(s).total()) * size_of(s.dtype);
}

void recurrent_pack(const RecurrentShape& s, const void* w, const void* r, void* packed,
                    int threads) {
  const int64_t from_item = int64_t(size_of(s.weights)), item = int64_t(size_of(s.dtype));
  const int64_t n = s.hidden, all = s.gate_count() * n;
  const PackedSizes sizes(s);
  const char *from_w = static_cast<const char*>(w), *from_r = static_cast<const char*>(r);
  char* to = static_cast<char*>(packed);
  for (int d = 0; d < s.directions; ++d) {
    if (s.rounded()) {
      const bool is_signed = s.weights == DType::int8;
      gemm_s8_pack_b(is_signed, from_w, s.input, true, s.input, all, to, threads);
      gemm_s8_pack_b(is_signed, from_r, n, true, n, all, to + sizes.w * item, threads);
    } else {
      pack_floats(s, from_w, from_r, to, threads);
    }
    from_w += all * s.input * from_item;
    from_r += all * n * from_item;
    to += sizes.total() * item;
  }
}

size_t recurrent_workspace(const RecurrentShape& s, int threads) {
  return with_type(s.dtype, [&](auto tag) {
    return size_t(s.directions) *
           Direction<decltype(tag)>(s, {}, 0, side_by_side(s, threads) ? 1 : threads, nullptr)
               .bytes();
  });
}

void recurrent(const RecurrentShape& s, const RecurrentArgs& args) {
  with_type(s.dtype, [&](auto tag) {
    using D = Direction<decltype(tag)>;
    const bool both = side_by_side(s, args.threads);
    const int threads = both ? 1 : args.threads;
    const size_t each = D(s, {}, 0, threads, nullptr).bytes();
    parallel_for(both ? 2 : 1, s.directions, 1, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) {
        std::byte* own = static_cast<std::byte*>(args.workspace) + size_t(d) * each;
        D(s, args, int(d), threads, own).run();
      }
    });
  });
}

}  // namespace rlx::cpu
