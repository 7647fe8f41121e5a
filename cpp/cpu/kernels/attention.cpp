// What every instruction set of attention shares: how rows become tasks, and the scratch of one.
#include "cpu/kernels/attention.h"

#include <algorithm>

namespace rlx::cpu {
namespace {

// Rows that share one packing of keys and values: as many as leave their queries and sums in the
// second-level cache.
constexpr int64_t row_floats = 49152, most_rows = 512, least_rows = 24;

int64_t line(int64_t floats) { return round_up(floats, 16); }

}  // namespace

void divide_attention(AttentionShape& s, int threads) {
  const int64_t rows = std::max<int64_t>(query_rows(s), 1), heads = s.batch * s.kv_heads;
  const int64_t fit = row_floats / std::max<int64_t>(s.depth + s.value_depth, 1);
  int64_t parts = ceil_div(rows, std::clamp(fit, least_rows, most_rows));
  const int64_t most = std::max(parts, rows / least_rows);
  // Whole rounds of the team, or so many that the last one does not matter.
  auto idle = [&] {
    const int64_t tasks = heads * parts, rounds = round_up(tasks, threads);
    return tasks % threads != 0 && 8 * (rounds - tasks) > rounds;
  };
  while (parts < most && idle()) ++parts;
  s.task_rows = std::min(round_up(ceil_div(rows, parts), attention_tile), rows);
}

AttentionScratch attention_scratch(const AttentionShape& s) {
  AttentionScratch at;
  at.sum_ld = round_up(s.value_depth, 32);
  at.score_ld = key_block + 16;  // rows a power of two apart would share few sets of the cache
  at.keys = line(s.task_rows * s.depth);
  at.values = at.keys + key_block * line(s.depth);
  const int64_t widened = 32 * line(s.depth);  // one panel of half keys, before the values come
  at.scores = at.values + std::max(key_block * at.sum_ld, widened);
  at.sums = at.scores + attention_rows * at.score_ld;
  at.tops = at.sums + s.task_rows * at.sum_ld;
  at.totals = at.tops + line(s.task_rows);
  at.size = at.totals + line(s.task_rows);
  return at;
}

}  // namespace rlx::cpu
