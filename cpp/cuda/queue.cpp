// Puts work on the Context's stream or the caller's, and keeps the two in order.
#include "cuda/queue.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cuda/api/nvtx.h"
#include "plan/lane_queue.h"

namespace rlx::cuda {
namespace {

using api::Ranges;

// Host arrays are copied by way of pinned slots, so that one's upload goes on while the next is
// filled, and while other queues compute.
constexpr size_t slot_bytes = size_t{1} << 20, slot_count = 4;

class GraphRecording final : public Recording {
 public:
  GraphRecording(std::shared_ptr<Driver> driver, Graph graph, Queue& queue)
      : driver_(std::move(driver)), graph_(graph), queue_(queue) {}
  ~GraphRecording() override { driver_->free(graph_); }
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;

  void replay() override { driver_->launch(graph_, static_cast<Stream>(queue_.stream())); }

 private:
  const std::shared_ptr<Driver> driver_;
  const Graph graph_;
  Queue& queue_;
};

class StreamQueue final : public LaneQueue {
 public:
  StreamQueue(std::shared_ptr<Driver> driver, uint64_t random, std::shared_ptr<MemoryPool> pool,
              std::shared_ptr<Weights> weights, const void* user)
      : driver_(std::move(driver)), pool_(std::move(pool)), weights_(std::move(weights)),
        user_(user),
        own_(driver_->make_stream()),
        current_(own_),
        done_(driver_->make_event(false)),
        random_(static_cast<uint64_t*>(driver_->allocate_host(2 * sizeof(uint64_t)))) {
    random_[0] = random;
    random_[1] = 0;
  }
  ~StreamQueue() override {  // drained before
    pool_->settle(own_);
    driver_->free_host(random_);
    for (const Slot& slot : slots_) {
      if (slot.memory) driver_->free_host(slot.memory);
      if (slot.read) driver_->free(slot.read);
    }
    for (const Event event : {done_, begin_, end_}) {
      if (event) driver_->free(event);
    }
    for (const Event event : signals_) {
      if (event) driver_->free(event);
    }
    for (const Lane& lane : lanes_) {
      driver_->free(lane.stream);
      driver_->free(lane.done);
    }
    driver_->free(own_);
  }
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  void use(void* stream) override {
    const Stream next = stream ? static_cast<Stream>(stream) : own_;
    if (!is_left_) {
      if (next == current_) return;
      driver_->record(done_, current_);
      is_left_ = true;
    }
    driver_->wait(next, done_);
    is_left_ = false;
    current_ = next;
  }
  // Until the next run the caller may capture its stream, or destroy it.
  void leave() noexcept override {
    if (current_ == own_) return;
    try {
      driver_->record(done_, current_);
      is_left_ = true;
    } catch (const Error&) {  // nothing is in order on a GPU that is lost
    }
    current_ = own_;
  }
  void* stream() override {
    weights_->settle(user_);
    return current_;
  }
  uint64_t* random() override { return random_; }

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    if (driver_->on_device(from)) return driver_->copy(to, from, bytes, current_);
    for (size_t at = 0; at < bytes;) {
      const size_t part = std::min(bytes - at, slot_bytes);
      std::byte* place = stage(part);
      std::memcpy(place, static_cast<const std::byte*>(from) + at, part);
      driver_->copy_in(static_cast<std::byte*>(to) + at, place, part, current_);
      at += part;
    }
  }
  std::shared_ptr<void> allocate(size_t bytes) override { return pool_->get(bytes, own_); }
  void synchronize() override {
    if (is_left_) driver_->synchronize(done_);
    else driver_->synchronize(current_);
    for (Slot& slot : slots_) slot.waits = false;
    staged_ = 0;
    if (std::exchange(random_[1], 0) != 0) {
      throw Error(ErrorKind::input, "an index lies outside its axis");
    }
  }
  void drain() noexcept override {
    try {
      synchronize();
    } catch (const Error&) {
      return;  // the context is lost: nothing runs any more
    }
  }

  void name_node(const char* name) override { ranges_.enter(name); }
  void begin_timing() override {
    if (!begin_) begin_ = driver_->make_event(true), end_ = driver_->make_event(true);
    driver_->record(begin_, current_);
  }
  int64_t end_timing() override {
    driver_->record(end_, current_);
    driver_->synchronize(end_);
    return int64_t(driver_->milliseconds(begin_, end_) * 1e6);
  }

  void begin_lanes(size_t count) override {
    while (lanes_.size() + 1 < count) {
      lanes_.push_back({driver_->make_stream(), driver_->make_event(false), false});
    }
    for (Lane& lane : lanes_) lane.used = false;
    weights_->settle(user_);
    driver_->record(done_, current_);
  }
  // Lane 0 is the queue's own stream; the others begin behind what it was given.
  void* lane(size_t i) override {
    if (i == 0) return current_;
    Lane& lane = lanes_[i - 1];
    if (!std::exchange(lane.used, true)) driver_->wait(lane.stream, done_);
    return lane.stream;
  }
  void signal(size_t at, size_t node) override {
    if (node >= signals_.size()) signals_.resize(node + 1, nullptr);
    if (!signals_[node]) signals_[node] = driver_->make_event(false);
    driver_->record(signals_[node], static_cast<Stream>(lane(at)));
  }
  void wait(size_t at, size_t node) override {
    driver_->wait(static_cast<Stream>(lane(at)), signals_[node]);
  }
  void end_lanes() override {
    for (const Lane& lane : lanes_) {
      if (!lane.used) continue;
      driver_->record(lane.done, lane.stream);
      driver_->wait(current_, lane.done);
    }
  }

  void begin_recording() override {
    recorded_on_ = current_;
    use(own_);  // the legacy stream cannot be recorded
    driver_->begin_capture(own_);
  }
  std::unique_ptr<Recording> end_recording() override {
    const Graph graph = driver_->end_capture(own_);
    use(recorded_on_);
    return std::make_unique<GraphRecording>(driver_, graph, *this);
  }
  void abandon_recording() noexcept override {
    driver_->abandon_capture(own_);
    try {
      use(recorded_on_);
    } catch (const Error&) {  // nothing is in order on a GPU that is lost
    }
  }

 private:
  struct Lane {
    Stream stream;
    Event done;
    bool used;
  };

  struct Slot {
    std::byte* memory = nullptr;
    Event read = nullptr;  // all that was put into it has been copied
    bool waits = false;    // for that event
  };

  // Pinned memory for the next copy of the stream.
  std::byte* stage(size_t bytes) {
    Slot* slot = &slots_[slot_];
    if (staged_ + bytes > slot_bytes) {
      if (!slot->read) slot->read = driver_->make_event(false);
      driver_->record(slot->read, current_);
      slot->waits = true;
      slot_ = (slot_ + 1) % slot_count;
      slot = &slots_[slot_];
      if (std::exchange(slot->waits, false)) driver_->synchronize(slot->read);
      staged_ = 0;
    }
    if (!slot->memory) slot->memory = static_cast<std::byte*>(driver_->allocate_host(slot_bytes));
    std::byte* place = slot->memory + staged_;
    staged_ += (bytes + 63) / 64 * 64;
    return place;
  }

  const std::shared_ptr<Driver> driver_;
  const std::shared_ptr<MemoryPool> pool_;
  const std::shared_ptr<Weights> weights_;
  const void* const user_;  // of the weights
  const Stream own_;
  Stream current_, recorded_on_ = nullptr;
  const Event done_;
  bool is_left_ = false;    // what was done last was done on a caller's stream, until done_
  Event begin_ = nullptr, end_ = nullptr;  // of timed work
  Ranges ranges_;
  std::vector<Lane> lanes_;
  std::vector<Event> signals_;             // of each node that another lane waits for
  uint64_t* const random_;  // pinned, so that the host sees faults without a copy
  Slot slots_[slot_count];
  size_t slot_ = 0, staged_ = 0;  // the one that is being filled, and how far
};

}  // namespace

std::unique_ptr<Queue> make_queue(std::shared_ptr<Driver> driver, uint64_t random,
                                  std::shared_ptr<MemoryPool> pool,
                                  std::shared_ptr<Weights> weights, const void* user) {
  return std::make_unique<StreamQueue>(std::move(driver), random, std::move(pool),
                                       std::move(weights), user);
}

}  // namespace rlx::cuda
