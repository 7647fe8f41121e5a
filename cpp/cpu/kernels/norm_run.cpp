// Runs Norm: statistics of a row while it is in cache, then the row again to write it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/kernels/norm.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t chunk = 1024;

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

// One run; what threads share. T is the type computed in.
template <class T>
class NormRun {
 public:
  NormRun(const NormProgram& program, void* const* operands, void* workspace)
      : p_(program), loops_(norm_loops<T>()), operands_(operands),
        base_(static_cast<std::byte*>(workspace)) {
    out_ = output<std::byte>(0);
    kept_ = p_.keeps_input_ ? output<std::byte>(3) : nullptr;
    auto** pointers = reinterpret_cast<const void**>(base_ + p_.pointers_);
    reader_inputs_ = pointers;
    for (int input : p_.reader_inputs_) *pointers++ = operands[input];
    epilogue_inputs_ = pointers;
    for (int input : p_.epilogue_inputs_) *pointers++ = operands[input];
    scale_ = vector(p_.scale_);
    bias_ = vector(p_.bias_);
  }

  void run(int threads) {
    if (p_.by_channel_) {
      for (int64_t image = 0; image < p_.images_; ++image) run_image(image, threads);
      return;
    }
    parallel_for(threads, p_.rows_, p_.grain_, [&](int64_t begin, int64_t end) {
      Task task = make_task();
      for (int64_t row = begin; row < end; ++row) run_row(task, row);
    });
  }

 private:
  struct Task {
    RowReader::Cursor cursor;
    RegionProgram::Frame* epilogue;
    T *values, *made;  // a row; normalised values on their way to the output
  };

  template <class U>
  U* output(int k) const {
    return k < p_.outputs_ ? static_cast<U*>(operands_[p_.inputs_ + k]) : nullptr;
  }

  const T* vector(const NormProgram::Vector& from) const {
    if (from.input < 0) return nullptr;
    if (from.make.empty()) return static_cast<const T*>(operands_[from.input]);
    void* made = base_ + from.offset;
    const void* input = operands_[from.input];
    from.make[0].run(&input, &made, base_ + p_.threads_, 1);
    return static_cast<const T*>(made);
  }

  Task make_task() const {
    std::byte* at = base_ + p_.threads_ + size_t(team_share()) * p_.scratch_;
    Task task{RowReader::Cursor(*p_.reader_, reader_inputs_, at), nullptr, nullptr, nullptr};
    at += padded(p_.reader_->scratch_bytes());
    for (const RegionProgram& epilogue : p_.epilogue_) {
      task.epilogue = &epilogue.begin(at, epilogue_inputs_);
      at += padded(epilogue.scratch_bytes());
    }
    task.values = reinterpret_cast<T*>(at);
    task.made = reinterpret_cast<T*>(at + p_.row_bytes_);
    return task;
  }

  // n values from element `at` on, kept as an output if that is asked for.
  const T* read(Task& task, int64_t at, int64_t n, bool keep) const {
    std::byte* kept = kept_ ? kept_ + at * int64_t(p_.in_item_) : nullptr;
    void* buffer = kept && !p_.store_input_ ? static_cast<void*>(kept) : task.values;
    const int64_t row = at / p_.columns_;
    const void* x = task.cursor.read(row, at - row * p_.columns_, n, buffer);
    if (kept && keep && p_.store_input_) {
      p_.store_input_(kept, x, nullptr, nullptr, n);
    } else if (kept && keep && x != kept) {
      std::memcpy(kept, x, size_t(n) * sizeof(T));
    }
    return static_cast<const T*>(x);
  }

  // Where normalised values of element `at` on are made.
  T* target(Task& task, int64_t at) const {
    if (task.epilogue || p_.store_) return task.made;
    return reinterpret_cast<T*>(out_ + at * int64_t(p_.out_item_));
  }

  void emit(Task& task, int64_t at, int64_t n, T* y) const {
    void* to = out_ + at * int64_t(p_.out_item_);
    if (task.epilogue) {
      const int64_t row = at / p_.columns_;
      p_.epilogue_[0].evaluate(*task.epilogue, row, at - row * p_.columns_, n, &to, y);
    } else if (p_.store_) {
      p_.store_(to, y, nullptr, nullptr, n);
    }
  }

  void statistic(int k, int64_t row, double value) const {
    auto* to = output<std::byte>(k);
    if (!to) return;
    if (p_.statistic_ == DType::float64) {
      reinterpret_cast<double*>(to)[row] = value;
    } else if (p_.store_statistic_) {
      const float x = float(value);
      p_.store_statistic_(to + row * int64_t(size_of(p_.statistic_)), &x, nullptr, nullptr, 1);
    } else {
      reinterpret_cast<float*>(to)[row] = float(value);
    }
  }

  // The mean as the nearest T and a rest, and 1 / deviation.
  Normaliser<T> normaliser(int64_t row, double mean, double variance) const {
    const double inverse = 1.0 / std::sqrt(variance + p_.epsilon_);
    statistic(1, row, mean);
    statistic(2, row, inverse);
    const T shift = T(mean);
    return {shift, T(mean - double(shift)), T(inverse), T(0)};
  }

  void run_row(Task& task, int64_t row) const {
    const int64_t first = row * p_.length_, n = p_.length_;
    const T* x = read(task, first, n, true);
    double mean = 0, square = 0;
    if (p_.kind_ != NormKind::rms) {
      mean = loops_.sum(x, n) / double(n);
      const double rest = mean - double(T(mean));
      square = loops_.squares(x, n, T(mean)) / double(n) - rest * rest;
    } else {
      square = loops_.squares(x, n, T(0)) / double(n);
    }
    const Normaliser<T> by = normaliser(row, mean, square > 0 || square != square ? square : 0);
    if (p_.kind_ == NormKind::group) {
      write_channels(task, row, x, by);
      return;
    }
    const bool parts = task.epilogue || p_.store_;
    for (int64_t i = 0; i < n;) {
      const int64_t part = parts ? std::min(chunk, n - i) : n;
      T* y = target(task, first + i);
      loops_.apply(x + i, y, part, by, scale_ ? scale_ + i : nullptr,
                   bias_ ? bias_ + i : nullptr);
      emit(task, first + i, part, y);
      i += part;
    }
  }

  // The channels of one group, one after the other.
  void write_channels(Task& task, int64_t row, const T* x, const Normaliser<T>& by) const {
    const int64_t of_group = p_.channels_ / p_.groups_;
    const int64_t first_channel = row % p_.groups_ * of_group;
    for (int64_t k = 0; k < of_group; ++k) {
      Normaliser<T> own = by;
      if (scale_) own.factor = by.factor * scale_[first_channel + k];
      if (bias_) own.offset = bias_[first_channel + k];
      for (int64_t i = 0; i < p_.places_; i += chunk) {
        const int64_t part = std::min(chunk, p_.places_ - i), from = k * p_.places_ + i;
        const int64_t at = row * p_.length_ + from;
        T* y = target(task, at);
        loops_.apply(x + from, y, part, own, nullptr, nullptr);
        emit(task, at, part, y);
      }
    }
  }

  T* channel_data(int k) const {
    return reinterpret_cast<T*>(base_ + p_.channel_data_ +
                                size_t(k) * padded(size_t(p_.channels_) * sizeof(T)));
  }
  double* sums_of(int thread) const {
    const size_t bytes = 2 * padded(size_t(p_.channels_) * sizeof(double));
    return reinterpret_cast<double*>(base_ + p_.sums_ + size_t(thread) * bytes);
  }

  // Group norm of an image whose channels are last: sums by channel, then all places again.
  void run_image(int64_t image, int threads) {
    const int64_t n = p_.channels_, of_group = n / p_.groups_, first = image * p_.places_ * n;
    T* shift = channel_data(0);
    {
      Task task = make_task();
      const T* x = read(task, first, n, false);
      for (int64_t c = 0; c < n; ++c) shift[c] = x[c / of_group * of_group];
    }
    for (int t = 0; t < threads; ++t) std::fill_n(sums_of(t), 2 * n, 0.0);
    parallel_for(threads, p_.places_, p_.grain_, [&](int64_t begin, int64_t end) {
      Task task = make_task();
      double* sums = sums_of(team_share());
      for (int64_t place = begin; place < end; ++place) {
        loops_.channel_sums(read(task, first + place * n, n, true), n, shift, sums, sums + n);
      }
    });
    for (int64_t group = 0; group < p_.groups_; ++group) finish_group(image, group, threads);
    parallel_for(threads, p_.places_, p_.grain_, [&](int64_t begin, int64_t end) {
      Task task = make_task();
      for (int64_t place = begin; place < end; ++place) {
        const int64_t at = first + place * n;
        const T* x = read(task, at, n, false);
        T* y = target(task, at);
        loops_.channel_apply(x, y, n, shift, channel_data(1), channel_data(2), channel_data(3));
        emit(task, at, n, y);
      }
    });
  }

  // Turns the sums of a group into what its channels are normalised by.
  void finish_group(int64_t image, int64_t group, int threads) const {
    const int64_t of_group = p_.channels_ / p_.groups_, first = group * of_group;
    double sum = 0, square = 0;
    for (int t = 0; t < threads; ++t) {
      const double* sums = sums_of(t);
      for (int64_t c = first; c < first + of_group; ++c) {
        sum += sums[c];
        square += sums[p_.channels_ + c];
      }
    }
    const double count = double(p_.length_), distance = sum / count;
    const double variance = square / count - distance * distance;
    T* shift = channel_data(0);
    const double mean = double(shift[first]) + distance;
    const Normaliser<T> by = normaliser(image * p_.groups_ + group, mean,
                                        variance > 0 || variance != variance ? variance : 0);
    for (int64_t c = first; c < first + of_group; ++c) {
      shift[c] = by.shift;
      channel_data(1)[c] = by.rest;
      channel_data(2)[c] = scale_ ? by.factor * scale_[c] : by.factor;
      channel_data(3)[c] = bias_ ? bias_[c] : T(0);
    }
  }

  const NormProgram& p_;
  const NormLoops<T> loops_;
  void* const* operands_;
  std::byte* base_;
  std::byte *out_ = nullptr, *kept_ = nullptr;
  const void* const* reader_inputs_ = nullptr;
  const void* const* epilogue_inputs_ = nullptr;
  const T *scale_ = nullptr, *bias_ = nullptr;
};

void NormProgram::run(void* const* operands, void* workspace, int threads) const {
  if (rows_ * length_ == 0) return;
  if (wide_) NormRun<double>(*this, operands, workspace).run(threads);
  else NormRun<float>(*this, operands, workspace).run(threads);
}

template <class T>
NormLoops<T> norm_loops() {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case Isa::avx512: return norm_loops_for<Isa::avx512, T>();
    case Isa::avx2: return norm_loops_for<Isa::avx2, T>();
    case Isa::portable: break;
  }
#endif
  return norm_loops_for<Isa::portable, T>();
}

template NormLoops<float> norm_loops<float>();
template NormLoops<double> norm_loops<double>();

}  // namespace rlx::cpu
