// Matrix products against sums in double precision: shapes, layouts, batches, threads, epilogues.
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>
#include <vector>

#include "core/cpuid.h"
#include "cpu/kernels/gemm.h"
#include "tests/cpp/check.h"
#include "tests/cpp/gemm_cases.h"

namespace {

using namespace rlx;
using namespace rlx::cpu;
using namespace rlx::test;

void check_case(const Problem& problem) {
  for (Isa isa : supported_levels()) {
    limit_cpu_isa(isa);
    run_and_compare(problem);
  }
  limit_cpu_isa(Isa::avx512);
}

Test sizes{"gemm sizes", [] {
  for (int64_t m : {0, 1, 2, 3, 5, 7, 8, 31, 130}) {
    for (int64_t n : {0, 1, 8, 15, 33, 97}) {
      for (int64_t k : {0, 1, 3, 64, 300}) {
        for (bool packed : {false, true}) check_case({.m = m, .n = n, .k = k, .packed = packed});
      }
    }
  }
}};

Test layouts{"gemm layouts and threads", [] {
  for (bool trans_a : {false, true}) {
    for (bool trans_b : {false, true}) {
      for (bool packed : {false, true}) {
        for (int threads : {1, 2, 5}) {
          for (int64_t m : {2, 6, 101}) {
            check_case({.m = m, .n = 75, .k = 270, .pad = 5, .trans_a = trans_a,
                        .trans_b = trans_b, .packed = packed, .threads = threads, .alpha = -0.5});
          }
        }
      }
    }
  }
}};

Test large_b{"gemm of few rows by a large B", [] {
  for (int64_t m : {1, 2, 3, 4, 7, 8, 9}) {
    for (bool trans_b : {false, true}) {
      check_case({.m = m, .n = 1100, .k = 131, .pad = 3, .trans_b = trans_b, .threads = 2});
    }
  }
}};

Test batches{"gemm batches", [] {
  for (int threads : {1, 2, 5}) {
    for (bool shared_b : {false, true}) {
      check_case({.m = 33, .n = 20, .k = 17, .batch = {2, 3, 4}, .threads = threads,
                  .shared_b = shared_b});
      check_case({.m = 1, .n = 40, .k = 9, .batch = {1, 3, 5}, .threads = threads,
                  .shared_b = shared_b, .residual = true});
      check_case({.m = 12, .n = 40, .k = 9, .batch = {7, 1, 2}, .packed = true,
                  .threads = threads, .shared_b = shared_b, .heads = true});
    }
  }
}};

Test epilogues{"gemm epilogues", [] {
  for (Activation activation :
       {Activation::none, Activation::relu, Activation::gelu_erf, Activation::gelu_tanh,
        Activation::silu, Activation::sigmoid, Activation::tanh, Activation::clip}) {
    for (bool residual : {false, true}) {
      for (bool first : {false, true}) {
        check_case({.m = 37, .n = 53, .k = 20, .packed = true, .threads = 2, .residual = residual,
                    .residual_first = first, .activation = activation});
        check_case({.m = 1, .n = 53, .k = 0, .residual = residual, .residual_first = first,
                    .activation = activation});
      }
    }
  }
}};

Test half_types{"gemm of 16-bit types", [] {
  for (DType type : {DType::float16, DType::bfloat16}) {
    for (int64_t m : {1, 4, 70}) {
      for (bool trans : {false, true}) {
        for (bool packed : {false, true}) {
          check_case({.m = m, .n = 90, .k = 301, .trans_a = trans, .trans_b = trans,
                      .packed = packed, .threads = 2, .a_type = type, .b_type = type,
                      .c_type = type, .activation = Activation::relu});
        }
      }
      check_case({.m = m, .n = 21, .k = 64, .a_type = DType::float32, .b_type = type});
      check_case({.m = m, .n = 700, .k = 64, .a_type = type, .c_type = type});
    }
  }
}};

Test wide_types{"gemm of float64 and integers", [] {
  for (DType type : {DType::float64, DType::int32, DType::uint32, DType::int64, DType::uint64}) {
    for (int64_t m : {1, 3, 45}) {
      for (bool trans : {false, true}) {
        for (bool packed : {false, true}) {
          check_case({.m = m, .n = 37, .k = 150, .trans_a = trans, .trans_b = trans,
                      .packed = packed, .threads = 2, .a_type = type, .b_type = type,
                      .c_type = type});
        }
      }
    }
  }
}};

Test taps{"gemm with rows given by pointers", [] {
  for (int64_t run : {1, 3, 32}) {
    for (int64_t m : {1, 5, 150}) {
      for (DType type : {DType::float32, DType::float16}) {
        check_case({.m = m, .n = 40, .k = 9 * run, .packed = true, .threads = 2, .taps = 9,
                    .a_type = type});
      }
    }
  }
  check_case({.m = 30, .n = 8, .k = 12, .batch = {1, 1, 3}, .packed = true, .taps = 4});
}};

// The hook sees each element of C exactly once, with its final value, and may replace it.
Test hook{"gemm tile hook", [] {
  for (int64_t m : {1, 3, 260}) {
    for (int threads : {1, 5}) {
      for (bool store : {true, false}) {
        for (bool packed : {true, false}) {
          check_case({.m = m, .n = 333, .k = 40, .batch = {1, 2, 2}, .packed = packed,
                      .threads = threads, .activation = Activation::relu, .hook = true,
                      .store = store});
        }
      }
    }
  }
}};

// Results must not depend on the number of threads, to the bit.
Test deterministic{"gemm results do not depend on threads", [] {
  Problem problem{.m = 301, .n = 130, .k = 700};
  const std::vector<double> alone = run_problem(problem);
  for (int threads : {2, 3, 5}) {
    problem.threads = threads;
    check(run_problem(problem) == alone, "differs with " + std::to_string(threads) + " threads");
  }
}};

Test infinities{"gemm keeps NaN and infinity to their own elements", [] {
  std::vector<float> a(7 * 5, 1.0f), b(5 * 20, 1.0f), c(7 * 20), packed(4096);
  b[19] = INFINITY;  // column 19, beside the padding of the last panel
  a[6 * 5] = NAN;    // row 6
  GemmCall call;
  call.shape = {.m = 7, .n = 20, .k = 5, .lda = 5, .ldb = 20, .ldc = 20};
  gemm_pack_b(DType::float32, b.data(), 20, false, 5, 20, packed.data(), 1);
  for (bool ready : {false, true}) {
    call.b_packed = ready;
    call.a = a.data();
    call.b = ready ? packed.data() : b.data();
    call.c = c.data();
    std::vector<char> workspace(gemm_workspace(call) + 64);
    call.workspace = workspace.data();
    gemm(call);
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 19; ++j) check_equal(c[i * 20 + j], 5.0f);
      check_equal(c[i * 20 + 19], INFINITY);
    }
    for (int64_t j = 0; j < 20; ++j) check(std::isnan(c[6 * 20 + j]), "NaN row");
  }
}};

}  // namespace
