// Packed forms of constants, made once and shared by the Executables of a Session.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "backend.h"

namespace rlx {

class Packs final : public PackCache {
 public:
  std::shared_ptr<const void> get(const Constant& constant, const std::string& format,
                                  size_t bytes,
                                  const std::function<void(void*)>& fill) override;
  // The packed forms of these bytes, and those that name their source, are not asked for again.
  void forget(const Constant& constant);
  int64_t count() const { return count_; }
  int64_t bytes() const { return bytes_; }

 private:
  using Key = std::tuple<const void*, std::string, size_t>;
  std::atomic<int64_t> count_{0}, bytes_{0};
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const void>> packed_;
};

}  // namespace rlx
