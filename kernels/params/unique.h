// Unique slices of an [outer, length, inner] tensor.
#pragma once

namespace rlx::params {

struct Unique {
  const void* x = nullptr;
  void* y = nullptr;
  long long* indices = nullptr;
  long long* inverse = nullptr;
  long long* counts = nullptr;
  const long long* count = nullptr;   // how many groups there are
  long long* order = nullptr;         // slices by value, `padded` of them
  unsigned char* heads = nullptr;     // 1 where a group begins
  const long long* begins = nullptr;  // of each group in `order`
  const long long* firsts = nullptr;  // by appearance: the first slice of each group
  long long outer = 1, length = 1, inner = 1, padded = 1;
  long long run = 2, distance = 1;    // of one step of a bitonic sort
};

}  // namespace rlx::params
