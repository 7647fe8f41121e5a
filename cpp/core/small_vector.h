// A vector of trivial values with inline room, so that shapes cost no allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

namespace rlx {

template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(size_t n, T value) { assign(n, value); }
  SmallVector(std::initializer_list<T> xs) { for (T x : xs) push_back(x); }
  explicit SmallVector(std::span<const T> xs) { for (T x : xs) push_back(x); }
  SmallVector(const SmallVector& o) { for (T x : o) push_back(x); }
  SmallVector(SmallVector&& o) noexcept { swap(o); }
  SmallVector& operator=(SmallVector o) noexcept { swap(o); return *this; }

  T* data() { return heap_ ? heap_.get() : inline_; }
  const T* data() const { return heap_ ? heap_.get() : inline_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  operator std::span<const T>() const { return {data(), size_}; }

  void push_back(T x) {
    if (size_ == capacity_) grow();
    data()[size_++] = x;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void assign(size_t n, T value) {
    clear();
    for (size_t i = 0; i < n; ++i) push_back(value);
  }
  void resize(size_t n, T value = T{}) {
    while (size_ > n) pop_back();
    while (size_ < n) push_back(value);
  }
  void swap(SmallVector& o) noexcept {
    std::swap(heap_, o.heap_);
    std::swap(size_, o.size_);
    std::swap(capacity_, o.capacity_);
    std::swap_ranges(inline_, inline_ + N, o.inline_);
  }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void grow() {
    auto bigger = std::make_unique<T[]>(capacity_ * 2);
    std::copy(begin(), end(), bigger.get());
    heap_ = std::move(bigger);
    capacity_ *= 2;
  }

  std::unique_ptr<T[]> heap_;
  size_t size_ = 0, capacity_ = N;
  T inline_[N] = {};
};

using Dims = SmallVector<int64_t, 6>;

inline int64_t element_count(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

}  // namespace rlx
