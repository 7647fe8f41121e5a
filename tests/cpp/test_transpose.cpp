// Columns as rows, in pieces: each element by its index.
#include <cstring>
#include <vector>

#include "core/transpose.h"
#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

void check_piece(int64_t rows, int64_t cols, int64_t first, int64_t count) {
  std::vector<uint32_t> from(size_t(rows * cols));
  for (size_t i = 0; i < from.size(); ++i) from[i] = uint32_t(i) * 2654435761u;
  std::vector<std::byte> odd(from.size() * 4 + 1);  // a file's weights lie anywhere
  std::memcpy(odd.data() + 1, from.data(), from.size() * 4);
  const auto* at = reinterpret_cast<const uint32_t*>(odd.data() + 1 + first * 4);
  std::vector<uint32_t> to(size_t(rows * count) + 1, 7);
  transpose(at, cols, rows, count, to.data(), rows);
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      check_equal(to[size_t(c * rows + r)], from[size_t(r * cols + first + c)]);
    }
  }
  check_equal(to.back(), 7u);
}

const Test pieces{"transpose: columns of any matrix become rows", [] {
  for (const int64_t rows : {1, 3, 15, 16, 17, 48, 100}) {
    for (const int64_t cols : {1, 4, 16, 31, 64, 129}) {
      check_piece(rows, cols, 0, cols);
      check_piece(rows, cols, cols / 3, cols - cols / 3);
      check_piece(rows, cols, cols - 1, 1);
      check_piece(rows, cols, cols, 0);
    }
  }
}};

}  // namespace
}  // namespace rlx::test
