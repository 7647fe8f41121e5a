// SHA-256, for keys of files that other processes write and read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  // The text and its length, so that neighbours cannot be confused.
  void add_text(std::string_view text);
  Digest finish();

 private:
  void block(const uint8_t* at);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t buffer_[64];
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

std::string hexadecimal(const Digest& digest);

}  // namespace rlx
