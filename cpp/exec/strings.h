// String tensors hold ids into the table of their run; equal strings have equal ids.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/error.h"

namespace rlx {

class StringTable {
 public:
  // Ids of `base` (the constants' table, which no longer grows) are valid here too.
  explicit StringTable(const StringTable* base = nullptr) : base_(base) {
    first_ = base ? base->end() : 0;
    if (!base) id("");  // so that a zero-filled tensor holds empty strings
  }

  int64_t id(std::string_view text) {
    if (const int64_t known = find(text); known >= 0) return known;
    texts_.emplace_back(text);
    const int64_t fresh = end() - 1;
    ids_.emplace(texts_.back(), fresh);
    return fresh;
  }

  const std::string& text(int64_t id) const {
    if (base_ && id >= 0 && id < first_) return base_->text(id);
    if (id < first_ || id >= end()) throw Error(ErrorKind::internal, "no string has this id");
    return texts_[size_t(id - first_)];
  }

 private:
  int64_t end() const { return first_ + int64_t(texts_.size()); }
  int64_t find(std::string_view text) const {
    if (base_) {
      if (const int64_t id = base_->find(text); id >= 0) return id;
    }
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

  const StringTable* base_;
  int64_t first_ = 0;
  std::deque<std::string> texts_;  // a deque: its strings never move
  std::unordered_map<std::string_view, int64_t> ids_;
};

}  // namespace rlx
