// 8-bit matrix products against 64-bit sums: exact, full-range values and zero points included.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/kernels/gemm_s8.h"
#include "tests/cpp/check.h"
#include "tests/cpp/gemm_cases.h"

namespace {

using namespace rlx;
using namespace rlx::cpu;
using namespace rlx::test;

struct Problem8 {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool a_signed = false, b_signed = true, trans_a = false, trans_b = false, packed = true;
  bool extremes = false;  // only the outermost values of each type
  int a_zero_step = -1, b_zero_step = -1;  // -1: no zero point
  int threads = 1;
  int64_t taps = 0;
  bool store = true;
  int small = 0;  // B lies around 0 (unsigned: `around`) by less than this ...
  int rare = 0;   // ... but for the outermost values, one in so many
  int around = 128;
};

struct Setup8 {
  const Problem8& p;
  std::vector<uint8_t> a, b, a_zero, b_zero, packed;
  std::vector<int32_t> c, seen;
  std::vector<const void*> table;
  GemmS8Call call;

  explicit Setup8(const Problem8& problem)
      : p(problem), a(bytes(p.batch * p.m * p.k)), b(bytes(p.batch * p.n * p.k)),
        a_zero(bytes(p.batch * p.m)), b_zero(bytes(p.batch * p.n)),
        c(size_t(p.batch * p.m * p.n) + 1), seen(c.size()) {
    std::mt19937 random(uint32_t(p.m * 977 + p.n * 31 + p.k));
    fill(random, a, p.a_signed);
    fill(random, b, p.b_signed);
    if (p.small) make_small(random, b);
    fill(random, a_zero, p.a_signed);
    fill(random, b_zero, p.b_signed);
    params::Gemm& s = call.shape;
    s = {.m = p.m, .n = p.n, .k = p.k, .lda = p.trans_a ? p.m : p.k,
         .ldb = p.trans_b ? p.k : p.n, .ldc = p.n, .trans_a = p.trans_a, .trans_b = p.trans_b,
         .batch = {1, p.batch, 1}, .a_batch = {0, p.m * p.k, 0}, .b_batch = {0, p.n * p.k, 0},
         .c_batch = {0, p.m * p.n, 0}};
    call.a_signed = p.a_signed;
    call.b_signed = p.b_signed;
    call.threads = p.threads;
    call.taps = p.taps;
    call.store = p.store;
    call.a = a.data();
    call.b = b.data();
    call.c = p.store ? c.data() : nullptr;
    if (p.a_zero_step >= 0) call.a_zero = a_zero.data();
    if (p.b_zero_step >= 0) call.b_zero = b_zero.data();
    call.a_zero_step = p.a_zero_step > 0;
    call.b_zero_step = p.b_zero_step > 0;
    call.a_zero_batch[1] = p.m;
    call.b_zero_batch[1] = p.n;
    call.tile = &Setup8::hook;
    call.context = this;
    if (p.packed) pack();
    for (int64_t i = 0; i < p.m * p.taps; ++i) table.push_back(tap(i));
    if (p.taps) call.a = table.data();
  }

  static std::vector<uint8_t> bytes(int64_t count) {
    return std::vector<uint8_t>(size_t(count) + 1);
  }

  void fill(std::mt19937& random, std::vector<uint8_t>& values, bool is_signed) const {
    for (uint8_t& value : values) {
      value = uint8_t(random());
      if (p.extremes) value = is_signed ? (value % 4 ? 0x80 : 0x7f) : (value % 4 ? 0xff : 0);
    }
  }

  void make_small(std::mt19937& random, std::vector<uint8_t>& values) const {
    for (uint8_t& value : values) {
      int number = int(random() % unsigned(2 * p.small)) - p.small;
      if (p.rare && random() % unsigned(p.rare) == 0) number = random() % 2 ? 127 : -128;
      value = uint8_t(p.b_signed ? number : std::clamp(number + p.around, 0, 255));
    }
  }

  const uint8_t* tap(int64_t i) const {
    const int64_t run = p.k / p.taps;
    return a.data() + i * 5 % (p.m * p.taps) * run;
  }

  void pack() {
    const int64_t size = gemm_s8_packed_bytes(p.k, p.n);
    packed.resize(size_t(size * p.batch) + 1);
    for (int64_t i = 0; i < p.batch; ++i) {
      gemm_s8_pack_b(p.b_signed, b.data() + i * p.n * p.k, call.shape.ldb, p.trans_b, p.k, p.n,
                     packed.data() + i * size, p.threads);
    }
    call.b = packed.data();
    call.b_packed = true;
    call.shape.b_batch[1] = size;
  }

  static void hook(void* context, int32_t* c, int64_t row, int64_t col, int64_t rows, int64_t cols,
                   int64_t ldc) {
    Setup8& self = *static_cast<Setup8*>(context);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        self.seen[size_t((row + i) * self.p.n + col + j)] += c[i * ldc + j];
      }
    }
  }

  static int64_t number(bool is_signed, uint8_t byte) { return is_signed ? int8_t(byte) : byte; }

  int64_t a_value(int64_t item, int64_t i, int64_t k) const {
    const uint8_t* from = a.data() + item * p.m * p.k + (p.trans_a ? k * p.m + i : i * p.k + k);
    if (p.taps) from = tap(i * p.taps + k / (p.k / p.taps)) + k % (p.k / p.taps);
    const int64_t zero = p.a_zero_step < 0 ? 0 :
        number(p.a_signed, a_zero[size_t(item * p.m + i * (p.a_zero_step > 0))]);
    return number(p.a_signed, *from) - zero;
  }

  int64_t b_value(int64_t item, int64_t k, int64_t j) const {
    const int64_t at = item * p.n * p.k + (p.trans_b ? j * p.k + k : k * p.n + j);
    const int64_t zero = p.b_zero_step < 0 ? 0 :
        number(p.b_signed, b_zero[size_t(item * p.n + j * (p.b_zero_step > 0))]);
    return number(p.b_signed, b[size_t(at)]) - zero;
  }

  void run() {
    const size_t size = gemm_s8_workspace(call);
    std::vector<char> memory(size + 128, char(0x7f));
    char* start = memory.data() + 64 - uintptr_t(memory.data()) % 64;
    call.workspace = start;
    gemm_s8(call);
    for (char* byte = start + size; byte < memory.data() + memory.size(); ++byte) {
      check(*byte == 0x7f, "wrote past its workspace");
    }
  }

  void compare() const {
    for (int64_t row = 0; row < p.batch * p.m; ++row) {
      for (int64_t j = 0; j < p.n; ++j) {
        int64_t sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          sum += a_value(row / p.m, row % p.m, k) * b_value(row / p.m, k, j);
        }
        const size_t at = size_t(row * p.n + j);
        if (p.store) check_equal(c[at], int32_t(sum));
        check_equal(seen[at], int32_t(sum));
      }
    }
  }
};

void check_case(const Problem8& problem) {
  for (Isa isa : supported_levels()) {
    limit_cpu_isa(isa);
    Setup8 setup(problem);
    setup.run();
    setup.compare();
  }
  limit_cpu_isa(Isa::avx512);
}

Test sizes{"gemm_s8 sizes", [] {
  for (int64_t m : {0, 1, 2, 5, 6, 7, 40}) {
    for (int64_t n : {0, 1, 7, 16, 33, 130}) {
      for (int64_t k : {0, 1, 2, 3, 64, 1100}) {
        check_case({.m = m, .n = n, .k = k, .packed = (m + n + k) % 2 == 0, .threads = 2});
      }
    }
  }
}};

// 255 * -128 and 255 * 255, side by side in k, are what instructions on bytes saturate at.
Test extremes{"gemm_s8 is exact at full range", [] {
  for (bool a_signed : {false, true}) {
    for (bool b_signed : {false, true}) {
      for (bool packed : {false, true}) {
        for (int zeros : {-1, 0, 1}) {
          for (bool extreme : {false, true}) {
            check_case({.m = 13, .n = 35, .k = 300, .a_signed = a_signed, .b_signed = b_signed,
                        .packed = packed, .extremes = extreme, .a_zero_step = zeros,
                        .b_zero_step = zeros});
          }
        }
      }
    }
  }
}};

// The layouts of bytes: what eight or four weights of one sign exceed 128 by is kept apart.
Test small{"gemm_s8 of small weights, some of them large", [] {
  for (int m : {1, 2, 3, 6, 7, 130}) {
    for (bool a_signed : {false, true}) {
      for (bool b_signed : {false, true}) {
        for (int rare : {0, 50, 2000}) {
          for (int k : {64, 72, 77, 1100}) {
            for (int small : {12, 32}) {
              check_case({.m = m, .n = 71, .k = k, .a_signed = a_signed, .b_signed = b_signed,
                          .extremes = rare == 2000, .a_zero_step = m % 3 - 1,
                          .b_zero_step = k % 3 - 1, .threads = 2, .store = k != 77,
                          .small = small, .rare = rare});
            }
          }
        }
      }
    }
  }
}};

// Unsigned weights lie around their zero point, which may be anywhere.
Test centred{"gemm_s8 of small unsigned weights around any number", [] {
  for (int around : {0, 90, 121, 178, 255}) {
    for (int zeros : {-1, 0, 1}) {
      check_case({.m = 7, .n = 41, .k = 200, .b_signed = false, .a_zero_step = 0,
                  .b_zero_step = zeros, .threads = 2, .small = 20, .rare = 300,
                  .around = around});
    }
  }
}};

// 255 times weights of one size whose signs follow a pattern: sums reach the limits of 16 bits.
Test limits{"gemm_s8 of weights at the limits of a 16-bit sum", [] {
  for (int size : {15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128}) {
    for (unsigned signs : {0x0000u, 0xffffu, 0x5555u, 0x3333u, 0x00ffu, 0x7777u}) {
      for (Isa isa : supported_levels()) {
        limit_cpu_isa(isa);
        const Problem8 problem{.m = 4, .n = 20, .k = 160};
        Setup8 setup(problem);
        std::fill(setup.a.begin(), setup.a.end(), uint8_t(255));
        for (int64_t i = 0; i < 160 * 20; ++i) {
          const bool minus = signs >> (i / 20 % 16) & 1;
          setup.b[size_t(i)] = uint8_t(minus ? -size : std::min(size, 127));
        }
        setup.pack();
        setup.run();
        setup.compare();
      }
    }
  }
  limit_cpu_isa(Isa::avx512);
}};

// Whole panels of small weights beside ones that are too large for the layout.
Test mixed{"gemm_s8 of small weights, batches and pointers", [] {
  for (int rare : {0, 3, 400}) {
    check_case({.m = 21, .n = 70, .k = 56, .batch = 3, .trans_b = true, .a_zero_step = 0,
                .threads = 2, .small = 20, .rare = rare});
    check_case({.m = 50, .n = 20, .k = 9 * 24, .a_signed = true, .a_zero_step = 0, .threads = 2,
                .taps = 9, .small = 20, .rare = rare});
    check_case({.m = 9, .n = 40, .k = 100, .trans_a = true, .a_zero_step = 1, .small = 20,
                .rare = rare});
  }
}};

Test wraps{"gemm_s8 wraps around beyond int32", [] {
  check_case({.m = 1, .n = 2, .k = 70000, .b_signed = false, .extremes = true});
}};

Test layouts{"gemm_s8 layouts, batches, threads", [] {
  for (bool trans_a : {false, true}) {
    for (bool trans_b : {false, true}) {
      for (bool packed : {false, true}) {
        for (int threads : {1, 2, 5}) {
          check_case({.m = 21, .n = 70, .k = 55, .batch = 3, .b_signed = false,
                      .trans_a = trans_a, .trans_b = trans_b, .packed = packed, .a_zero_step = 1,
                      .b_zero_step = 1, .threads = threads, .store = threads != 2});
        }
      }
    }
  }
}};

Test taps{"gemm_s8 with rows given by pointers", [] {
  for (int64_t run : {1, 3, 40}) {
    check_case({.m = 50, .n = 20, .k = 9 * run, .a_zero_step = 0, .threads = 2, .taps = 9});
  }
}};

}  // namespace
