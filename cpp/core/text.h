// Text built piece by piece, with plain digits whatever locale the process has set.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace rlx {

class Text {
 public:
  Text& operator<<(std::string_view piece) {
    text_ += piece;
    return *this;
  }
  Text& operator<<(char c) {
    text_ += c;
    return *this;
  }
  template <std::integral T>
  Text& operator<<(T number) {
    return *this << std::string_view(std::to_string(number));
  }
  Text& operator<<(double number) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number,
                                   std::chars_format::general, 6).ptr;
    return *this << std::string_view(digits, size_t(end - digits));
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

}  // namespace rlx
