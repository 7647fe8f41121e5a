// Keeps the operands of launches until the GPU, or a graph that may launch them again, is done.
#include "cuda/flight.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <utility>

#include "cuda/of_process.h"

namespace rlx::cuda {
namespace {

// Launches that may be going on. Those of a stream end in its order; one of which that cannot be
// known is set apart, and keeps its operands while the GPU is there.
struct Flights {
  using Key = std::pair<const api::GpuDriver*, Stream>;
  std::mutex mutex;
  std::map<Key, std::deque<std::shared_ptr<Flight>>> going;
  std::vector<std::shared_ptr<Flight>> unknown;
  std::vector<std::shared_ptr<void>> of_graphs;  // what graphs that are gone have kept

  std::shared_ptr<Flight> first(const Key& key) {
    const std::lock_guard lock(mutex);
    const auto found = going.find(key);
    return found == going.end() ? nullptr : found->second.front();
  }
  void add(const Key& key, std::shared_ptr<Flight> flight) {
    const std::lock_guard lock(mutex);
    going[key].push_back(std::move(flight));
  }
  void remove(const Key& key, const std::shared_ptr<Flight>& flight, bool is_over) {
    const std::lock_guard lock(mutex);
    const auto found = going.find(key);
    if (found == going.end()) return;  // another thread was first
    auto& queue = found->second;
    const bool had = queue.front() == flight;
    if (had) queue.pop_front();
    else if (std::erase(queue, flight) == 0) return;
    if (!is_over) unknown.push_back(flight);
    if (queue.empty()) going.erase(found);
  }
};

Flights& flights() { return of_process<Flights>(); }

using Owners = std::vector<std::shared_ptr<void>>;

// CUDA's thread that calls this must not wait for the interpreter, nor call CUDA: a sweep does.
void let_go(void* kept) {
  const std::unique_ptr<Owners> owners(static_cast<Owners*>(kept));
  const std::lock_guard lock(flights().mutex);
  std::ranges::move(*owners, std::back_inserter(flights().of_graphs));
}

}  // namespace

Error of_kernel(const Error& error, const std::string& name) {
  Error named(error.kind, "kernel '" + name + "': " + error.what());
  named.remedy = error.remedy, named.expected = error.expected, named.got = error.got;
  return named;
}

Flight::Flight(std::shared_ptr<api::GpuDriver> driver, std::string name,
               std::vector<std::shared_ptr<void>> owners)
    : driver_(std::move(driver)), name_(std::move(name)), event_(driver_->make_event(false)),
      owners_(std::move(owners)) {}

Flight::~Flight() { driver_->free(event_); }

std::shared_ptr<Flight> Flight::begin(std::shared_ptr<Flight> flight, Stream stream,
                                      const std::function<void()>& launch) {
  if (flight->driver_->is_captured(stream)) {
    flight->capture(stream);
    launch();
    return flight;
  }
  const Flights::Key key(flight->driver_.get(), stream);
  flights().add(key, flight);  // before it runs: from then on its operands must live
  try {
    launch();
  } catch (const Error&) {
    flights().remove(key, flight, true);
    throw;
  }
  flight->record(stream);
  return flight;
}

void Flight::capture(Stream stream) {
  captured_ = true;
  auto owners = std::make_unique<Owners>(std::move(owners_));
  driver_->keep_with_capture(stream, owners.release(), &let_go);
}

void Flight::check_not_captured() const {
  if (!captured_) return;
  Error error(ErrorKind::input, "kernel '" + name_ + "': the launch was captured into a graph");
  error.remedy = "wait for what launches the graph, which is when the kernel runs";
  throw error;
}

void Flight::record(Stream stream) {
  launched_ = true;
  driver_->record(event_, stream);
  recorded_ = true;
}

void Flight::finish() {
  std::vector<std::shared_ptr<void>> ended;
  const std::lock_guard lock(mutex_);
  ended.swap(owners_);
  finished_ = true;
}

bool Flight::done() {
  check_not_captured();
  if (finished_ || !recorded_) return finished_;
  try {
    if (driver_->passed(event_)) finish();
  } catch (const Error& error) {
    throw of_kernel(error, name_);
  }
  return finished_;
}

void Flight::synchronize() {
  check_not_captured();
  if (finished_) return;
  try {
    driver_->synchronize(event_);
  } catch (const Error& error) {
    throw of_kernel(error, name_);
  }
  finish();
}

Flight::State Flight::state() noexcept {
  if (!launched_) return State::going;
  bool known = recorded_;
  try {
    if (known && done()) return State::over;
  } catch (const Error&) {
    known = false;
  }
  if (!driver_->make_current_quietly()) return State::over;  // nothing runs on a GPU that is lost
  return known ? State::going : State::unknown;
}

void sweep_flights() noexcept {
  std::vector<Flights::Key> streams;
  std::vector<std::shared_ptr<Flight>> unknown;
  Owners of_graphs;
  {
    const std::lock_guard lock(flights().mutex);
    of_graphs.swap(flights().of_graphs);
    for (const auto& [key, queue] : flights().going) streams.push_back(key);
    unknown = flights().unknown;
  }
  // Without the lock: what an operand's end calls may need the interpreter's.
  for (const Flights::Key& key : streams) {
    while (const auto flight = flights().first(key)) {
      const Flight::State state = flight->state();
      if (state == Flight::State::going) break;
      flights().remove(key, flight, state == Flight::State::over);
    }
  }
  std::erase_if(unknown, [](const auto& f) { return f->state() != Flight::State::over; });
  const std::lock_guard lock(flights().mutex);
  for (const auto& flight : unknown) std::erase(flights().unknown, flight);
}

}  // namespace rlx::cuda
