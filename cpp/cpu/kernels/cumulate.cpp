// Runs Cumulate: whole runs where the axis is innermost, else neighbouring runs side by side.
#include "cpu/kernels/cumulate.h"

#include <algorithm>

#include "core/error.h"
#include "cpu/kernels/region_types.h"
#include "cpu/team.h"
#include "kernels/include/scalar_ops.h"

namespace rlx::cpu {
namespace {

constexpr int64_t chunk = 1024;
constexpr int64_t grain_values = 8192;

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

template <class T, class Carry, bool product, bool exclusive>
struct Running {
  // y, and the carry after x.
  static T step(Carry& carry, T x) {
    const Carry before = carry;
    carry = product ? scalar::mul(carry, Carry(x)) : scalar::add(carry, Carry(x));
    return T(exclusive ? before : carry);
  }
  static void start(void* carry, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Carry*>(carry)[i] = product ? 1 : 0;
  }
  template <bool reverse>
  static void row(void* carry, const void* from, void* to, int64_t n) {
    Carry running = *static_cast<Carry*>(carry);
    auto* x = static_cast<const T*>(from);
    auto* y = static_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = reverse ? n - 1 - i : i;
      y[at] = step(running, x[at]);
    }
    *static_cast<Carry*>(carry) = running;
  }
  static void column(void* carry, const void* from, void* to, int64_t n) {
    auto* running = static_cast<Carry*>(carry);
    auto* x = static_cast<const T*>(from);
    auto* y = static_cast<T*>(to);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = step(running[i], x[i]);
  }
};

template <class T, class Carry, bool product, bool exclusive>
CumulateLoops loops_of(bool reverse) {
  using R = Running<T, Carry, product, exclusive>;
  return {sizeof(Carry), &R::start, reverse ? &R::template row<true> : &R::template row<false>,
          &R::column};
}

template <class T, class Carry>
CumulateLoops pick(const Cumulate& prim) {
  if (prim.kind == CumulateKind::prod) {
    return prim.exclusive ? loops_of<T, Carry, true, true>(prim.reverse)
                          : loops_of<T, Carry, true, false>(prim.reverse);
  }
  return prim.exclusive ? loops_of<T, Carry, false, true>(prim.reverse)
                        : loops_of<T, Carry, false, false>(prim.reverse);
}

CumulateLoops pick(const Cumulate& prim, DType type) {
  if (type == DType::float32) return pick<float, double>(prim);
  if (type == DType::float64) return pick<double, double>(prim);
  return with_integer(type, CumulateLoops{}, [&](auto tag) -> CumulateLoops {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) return {};
    else return pick<T, T>(prim);
  });
}

}  // namespace

struct CumulateProgram::Task {
  RowReader::Cursor cursor;
  std::byte *carry, *read, *made, *out;
};

CumulateProgram::CumulateProgram(const Spec& spec) : reverse_(spec.prim->reverse) {
  const TensorDesc& x = spec.inputs[0];
  const auto axis = size_t(spec.prim->axis);
  const DType type = compute_type(x.dtype);
  loops_ = pick(*spec.prim, type);
  if (!loops_.row) {
    throw Error(ErrorKind::unsupported,
                std::string("running sums are not defined for ") + name_of(x.dtype));
  }
  outer_ = extent_of(x.shape, 0, axis);
  extent_ = x.shape[axis];
  inner_ = extent_of(x.shape, axis + 1, x.shape.size());
  item_ = size_of(type);
  out_item_ = size_of(spec.output);
  store_ = store_loop(spec.output, {false, CastMode::Round::down});
  RowReader::Spec rows;
  rows.inputs = spec.inputs.first(1);
  rows.numbers = spec.numbers;
  rows.shape = x.shape;
  rows.row_rank = inner_ == 1 ? int(axis) : int(axis) + 1;
  rows.type = type;
  reader_.emplace(rows);
  scratch_ = padded(reader_->scratch_bytes()) + padded(chunk * loops_.carry_bytes) +
             2 * padded(chunk * item_);
  workspace_ = scratch_ * size_t(std::max(spec.threads, 1));
}

// Where the values from element `at` of the output on are made.
void* CumulateProgram::target(Task& task, int64_t at) const {
  return store_ ? task.made : task.out + at * int64_t(out_item_);
}

void CumulateProgram::write(Task& task, int64_t at, int64_t n) const {
  if (store_) store_(task.out + at * int64_t(out_item_), task.made, nullptr, nullptr, n);
}

void CumulateProgram::run_rows(Task& task, int64_t outer) const {
  loops_.start(task.carry, 1);
  for (int64_t done = 0; done < extent_;) {
    const int64_t n = std::min(chunk, extent_ - done);
    const int64_t first = reverse_ ? extent_ - done - n : done;
    const int64_t at = outer * extent_ + first;
    const void* x = task.cursor.read(outer, first, n, task.read);
    loops_.row(task.carry, x, target(task, at), n);
    write(task, at, n);
    done += n;
  }
}

void CumulateProgram::run_columns(Task& task, int64_t outer, int64_t column, int64_t n) const {
  loops_.start(task.carry, n);
  for (int64_t k = 0; k < extent_; ++k) {
    const int64_t row = outer * extent_ + (reverse_ ? extent_ - 1 - k : k);
    const int64_t at = row * inner_ + column;
    const void* x = task.cursor.read(row, column, n, task.read);
    loops_.column(task.carry, x, target(task, at), n);
    write(task, at, n);
  }
}

void CumulateProgram::run(const void* const* inputs, void* out, void* workspace,
                          int threads) const {
  const int64_t columns = inner_ == 1 ? 1 : (inner_ + chunk - 1) / chunk;
  const int64_t values = std::max<int64_t>(extent_ * std::min(inner_, chunk), 1);
  parallel_for(threads, outer_ * columns, std::max<int64_t>(1, grain_values / values),
               [&](int64_t begin, int64_t end) {
    std::byte* at = static_cast<std::byte*>(workspace) + size_t(team_share()) * scratch_;
    Task task{RowReader::Cursor(*reader_, inputs, at), nullptr, nullptr, nullptr,
              static_cast<std::byte*>(out)};
    task.carry = at + padded(reader_->scratch_bytes());
    task.read = task.carry + padded(chunk * loops_.carry_bytes);
    task.made = task.read + padded(chunk * item_);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t outer = k / columns, column = (k - outer * columns) * chunk;
      if (inner_ == 1) run_rows(task, outer);
      else run_columns(task, outer, column, std::min(chunk, inner_ - column));
    }
  });
}

}  // namespace rlx::cpu
