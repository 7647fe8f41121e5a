// What a card of its own is like: the host cannot touch its memory, and work put on a stream is
// done when somebody waits for it, or for a stream that waits for it. So what the host reads too
// early, and what no event puts in order, shows without a card.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace rlx::emu {

// Work in order; some of it is to do what another line has before some place.
struct Line {
  struct Item {
    std::function<void()> work;  // null: waits for the other line up to `place`
    std::shared_ptr<Line> other;
    size_t place = 0;
  };
  std::deque<Item> waiting;
  size_t done = 0;
  size_t end() const { return done + waiting.size(); }
};

class Card {
 public:
  Card() = default;
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  void* allocate(size_t bytes);
  void free(void* memory) noexcept;
  // Addresses, and memory behind them: whole pages.
  void* reserve(size_t bytes);
  void unreserve(void* at, size_t bytes) noexcept;
  void map(void* at, size_t bytes);
  void unmap(void* at, size_t bytes) noexcept;
  bool holds(const void* p);

  std::shared_ptr<Line> make_line();
  void put(Line& line, std::function<void()> work);
  size_t place_in(const Line& line);
  void wait(Line& line, std::shared_ptr<Line> other, size_t place);
  // Does what the line has before the place; throws what has gone wrong with any work, from then on
  // always, as a card does.
  void finish(Line& line, size_t place);
  // All of all lines.
  void finish();

 private:
  void work_off(Line& line, size_t place);
  void protect(int how) noexcept;

  std::mutex mutex_;
  std::map<std::byte*, size_t> mapped_;  // whole pages
  std::vector<std::weak_ptr<Line>> lines_;
  std::exception_ptr wrong_;
};

}  // namespace rlx::emu
