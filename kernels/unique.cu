// Unique: slices sorted by comparing them, groups numbered by value or by where they appear.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/params/unique.h"

namespace {

using S = RLX_T;
using Index = unsigned long long;
using rlx::params::Unique;

// Lexicographic; NaN equals NaN and is above every number.
RLX_FN int compare(const Unique& p, long long a, long long b) {
  for (long long o = 0; o < p.outer; ++o) {
    const S* row = static_cast<const S*>(p.x) + o * p.length * p.inner;
    for (long long i = 0; i < p.inner; ++i) {
      const auto u = rlx::load(row + (a * p.inner + i)), v = rlx::load(row + (b * p.inner + i));
      if (u != u || v != v) {
        if ((u != u) != (v != v)) return u != u ? 1 : -1;
      } else if (u != v) {
        return u < v ? -1 : 1;
      }
    }
  }
  return 0;
}

// Slices behind the last one come last.
RLX_FN bool before(const Unique& p, long long a, long long b) {
  if (a >= p.length || b >= p.length) return a < b;
  const int c = compare(p, a, b);
  return c < 0 || (c == 0 && a < b);
}

// How many of the sorted `list` are below `value`.
RLX_FN long long lower_bound(const long long* list, long long n, long long value) {
  long long low = 0;
  while (low < n) {
    const long long middle = (low + n) / 2;
    if (list[middle] < value) low = middle + 1;
    else n = middle;
  }
  return low;
}

// The number of the group whose slices begin at `begin` of the order.
RLX_FN long long number_of(const Unique& p, long long group, long long n) {
  return p.firsts ? lower_bound(p.firsts, n, p.order[p.begins[group]]) : group;
}

}  // namespace

extern "C" __global__ void unique(const Unique p) {
  const Index rank = rlx::thread_rank(), step = rlx::thread_count();
#if RLX_FORM == 0
  for (Index i = rank; i < Index(p.padded); i += step) p.order[i] = (long long)(i);
#elif RLX_FORM == 1
  const Index distance = Index(p.distance);
  for (Index i = rank; i < Index(p.padded) / 2; i += step) {
    const Index low = 2 * distance * (i / distance) + i % distance, high = low + distance;
    const long long a = p.order[low], b = p.order[high];
    if (before(p, b, a) != ((low & Index(p.run)) == 0)) continue;
    p.order[low] = b;
    p.order[high] = a;
  }
#elif RLX_FORM == 2
  for (Index i = rank; i < Index(p.length); i += step) {
    p.heads[i] = i == 0 || compare(p, p.order[i - 1], p.order[i]) != 0;
  }
#elif RLX_FORM == 3
  // heads by slice instead: 1 for the first slice of a group.
  for (Index i = rank; i < Index(p.length); i += step) p.heads[i] = 0;
#elif RLX_FORM == 4
  for (Index g = rank; g < Index(*p.count); g += step) p.heads[p.order[p.begins[g]]] = 1;
#elif RLX_FORM == 5
  const long long n = *p.count;
  for (Index i = rank; i < Index(p.length); i += step) {
    if (p.inverse) {
      const long long group = lower_bound(p.begins, n, (long long)(i) + 1) - 1;
      p.inverse[p.order[i]] = number_of(p, group, n);
    }
    if ((long long)(i) >= n) continue;
    const long long g = (long long)(i), number = number_of(p, g, n);
    if (p.indices) p.indices[number] = p.order[p.begins[g]];
    if (p.counts) p.counts[number] = (g + 1 < n ? p.begins[g + 1] : p.length) - p.begins[g];
  }
#else
  const Index n = Index(*p.count), inner = Index(p.inner);
  for (Index i = rank; i < Index(p.outer) * n * inner; i += step) {
    const Index in = i % inner, g = i / inner % n, o = i / inner / n;
    const long long slice = p.firsts ? p.firsts[g] : p.order[p.begins[g]];
    static_cast<S*>(p.y)[i] =
        static_cast<const S*>(p.x)[(o * Index(p.length) + Index(slice)) * inner + in];
  }
#endif
}
