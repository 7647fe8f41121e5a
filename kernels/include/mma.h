// Tensor-core products of a warp on half types and TF32, and what the emulator does for them.
#pragma once

#include "kernels/include/element.h"

namespace rlx {

// Fragments of c (16 x 8) += a (16 x 16) b (16 x 8), as PTX lays them out: with g = lane / 4 and
// t = lane % 4, words hold pairs along k. a: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8);
// b: (2t, g), (2t + 8, g); c: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
// For float (TF32) words hold one element and k is 8. a: (g, t), (g + 8, t), (g, t + 4),
// (g + 8, t + 4); b: (t, g), (t + 4, g).
struct MmaA {
  unsigned word[4];
};
struct MmaB {
  unsigned word[2];
};
struct MmaC {
  float value[4] = {};
};

// load_matrices gives four 8 x 8 matrices of halves, or 8 x 4 of floats, from shared memory: lane
// 8 i + r names row r of matrix i, 16 aligned bytes. Word i of a lane is word t of row g of matrix
// i; of transposed halves, element g of rows 2t and 2t + 1.

template <class S> RLX_FN unsigned pack_pair(float low, float high) {
  return unsigned(Element<S>::store(low).bits) | unsigned(Element<S>::store(high).bits) << 16;
}

// transpose_matrix: a word is elements 2t and 2t + 1 of row g of an 8 x 8 matrix of halves; its
// transpose's word is given.
#if defined(__CUDACC_RTC__)

RLX_FN unsigned transpose_matrix(unsigned word) {
  unsigned made;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(made) : "r"(word));
  return made;
}

RLX_FN void mma_add(MmaC& c, const MmaA& a, const MmaB& b, F16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c.value[0]), "+f"(c.value[1]), "+f"(c.value[2]), "+f"(c.value[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]),
        "r"(b.word[1]));
}
RLX_FN void mma_add(MmaC& c, const MmaA& a, const MmaB& b, BF16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c.value[0]), "+f"(c.value[1]), "+f"(c.value[2]), "+f"(c.value[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]),
        "r"(b.word[1]));
}
RLX_FN void mma_add(MmaC& c, const MmaA& a, const MmaB& b, float) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c.value[0]), "+f"(c.value[1]), "+f"(c.value[2]), "+f"(c.value[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]),
        "r"(b.word[1]));
}

template <bool transposed> RLX_FN MmaA load_matrices(const void* row) {
  MmaA m;
  const unsigned at = unsigned(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m.word[0]), "=r"(m.word[1]), "=r"(m.word[2]), "=r"(m.word[3])
                 : "r"(at) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m.word[0]), "=r"(m.word[1]), "=r"(m.word[2]), "=r"(m.word[3])
                 : "r"(at) : "memory");
  }
  return m;
}

// 2^x to a few units in the last place.
RLX_FN float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// x rounded to TF32, ties away from zero.
RLX_FN unsigned tf32_word(float x) {
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
  return word;
}

#else

RLX_FN unsigned transpose_matrix(unsigned word) {
  const emu::Gathered& all = emu::warp_gather(all_lanes, &word, sizeof word);
  const int g = emu::lane() / 4, t = emu::lane() % 4;
  unsigned made = 0;
  for (int i = 0; i < 2; ++i) {
    unsigned given;
    copy_bytes(&given, all.slot[(2 * t + i) * 4 + g / 2], 4);
    made |= (given >> (g % 2 * 16) & 0xffffu) << (16 * i);
  }
  emu::warp_release(all_lanes);
  return made;
}

template <bool transposed> RLX_FN MmaA load_matrices(const void* row) {
  const emu::Gathered& all = emu::warp_gather(all_lanes, &row, sizeof row);
  const int g = emu::lane() / 4, t = emu::lane() % 4;
  MmaA m;
  for (int i = 0; i < 4; ++i) {
    const auto of = [&](int r) {
      return *reinterpret_cast<const unsigned char* const*>(all.slot[8 * i + r]);
    };
    if constexpr (transposed) {
      const auto half = [&](int r) { return reinterpret_cast<const unsigned short*>(of(r))[g]; };
      m.word[i] = unsigned(half(2 * t)) | unsigned(half(2 * t + 1)) << 16;
    } else {
      copy_bytes(&m.word[i], of(g) + 4 * t, 4);
    }
  }
  emu::warp_release(all_lanes);
  return m;
}

RLX_FN float fast_exp2(float x) { return __builtin_exp2f(x); }

RLX_FN unsigned tf32_word(float x) {
  const unsigned word = __builtin_bit_cast(unsigned, x);
  return (word & 0x7f800000u) == 0x7f800000u ? word : (word + 0x1000u) & ~0x1fffu;
}

template <class S> RLX_FN float element_of(unsigned word, int k) {
  if constexpr (sizeof(S) == 4) {
    return __builtin_bit_cast(float, word);
  } else {
    return Element<S>::load(S{(unsigned short)(word >> (k % 2 * 16))});
  }
}

template <class S> RLX_FN void mma_add(MmaC& c, const MmaA& a, const MmaB& b, S) {
  struct Given {
    MmaA a;
    MmaB b;
  } mine = {a, b};
  const emu::Gathered& all = emu::warp_gather(all_lanes, &mine, sizeof mine);
  const auto of = [&](int lane) { return reinterpret_cast<const Given*>(all.slot[lane]); };
  constexpr int each = 4 / int(sizeof(S));  // elements of a word
  const int lane = emu::lane();
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 8 * each; ++k) {
      const int high = k / (4 * each), at = k % (4 * each) / each;
      c.value[i] += element_of<S>(of(row % 8 * 4 + at)->a.word[row / 8 + 2 * high], k) *
                    element_of<S>(of(column * 4 + at)->b.word[high], k);
    }
  }
  emu::warp_release(all_lanes);
}

#endif

}  // namespace rlx
