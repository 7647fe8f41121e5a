// Runs the blocks of a launch: each on one OS thread, its threads as fibers in a chosen order.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "cpp/emu/device/launch.h"
#include "cpp/emu/device/shim.h"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

extern "C" void rlx_emu_entry(const void* params);  // calls the kernel
extern "C" unsigned long rlx_emu_params_size();

// Saves the callee's registers on the stack in use, and goes on where `to` was saved.
asm(R"(
.text
.type rlx_emu_switch, @function
rlx_emu_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size rlx_emu_switch, .-rlx_emu_switch
)");
extern "C" void rlx_emu_switch(void** from, void* to);

namespace rlx::emu {

thread_local Lane* current = nullptr;

namespace {

constexpr size_t stack_bytes = 128 << 10;

struct Meeting {  // a barrier in use: who has come, and how often all have
  unsigned long generation = 0;
  int arrived = 0;
};

struct Warp {
  Meeting in, out;
  Gathered given;
};

struct Fiber {
  Lane lane;
  void* saved = nullptr;
  bool done = false;
  const Meeting* waits = nullptr;  // at a barrier since its `generation`
  unsigned long generation = 0;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<unsigned char> shared;
  Meeting barrier;
  unsigned char* stacks = nullptr;
  size_t stack_count = 0;
  void* scheduler = nullptr;
  int running = 0;
  int finished = 0;
  const void* params = nullptr;
  std::string error;
  ~Block() {
    if (stacks) munmap(stacks, stack_count * stack_bytes);
  }
};

thread_local Block* block = nullptr;

void to_scheduler() {
  rlx_emu_switch(&block->fibers[size_t(block->running)].saved, block->scheduler);
}

void fiber_main() {
  rlx_emu_entry(block->params);
  block->fibers[size_t(block->running)].done = true;
  ++block->finished;
  to_scheduler();
  __builtin_trap();
}

void meet(Meeting& meeting, int expected) {
  if (++meeting.arrived == expected) {
    meeting.arrived = 0;
    ++meeting.generation;
    return;
  }
  Fiber& me = block->fibers[size_t(block->running)];
  me.waits = &meeting;
  me.generation = meeting.generation;
  to_scheduler();
}

void prepare(Block& b, const Launch& launch) {
  const size_t threads = size_t(launch.block[0]) * launch.block[1] * launch.block[2];
  if (b.stack_count < threads) {
    b.stacks = static_cast<unsigned char*>(
        mmap(nullptr, threads * stack_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    b.stack_count = threads;
  }
  b.fibers.resize(threads);
  b.warps.resize((threads + 31) / 32);
  b.shared.resize(launch.shared + 16);
  b.params = launch.params;
}

void start(Block& b, size_t k) {
  Fiber& fiber = b.fibers[k];
  auto* top = reinterpret_cast<void**>(b.stacks + (k + 1) * stack_bytes);
  *--top = nullptr;  // keeps the stack aligned as after a call
  *--top = reinterpret_cast<void*>(&fiber_main);
  for (int r = 0; r < 6; ++r) *--top = nullptr;
  fiber.saved = top;
  fiber.done = false;
  fiber.waits = nullptr;
}

// Goes round the fibers until all are done; each runs until it must wait.
void run_fibers(Block& b, bool reverse) {
  const size_t n = b.fibers.size();
  b.finished = 0;
  while (b.finished < int(n)) {
    bool moved = false;
    for (size_t i = 0; i < n; ++i) {
      const size_t k = reverse ? n - 1 - i : i;
      Fiber& fiber = b.fibers[k];
      if (fiber.done || (fiber.waits && fiber.waits->generation == fiber.generation)) continue;
      fiber.waits = nullptr;
      moved = true;
      b.running = int(k);
      current = &fiber.lane;
      rlx_emu_switch(&b.scheduler, fiber.saved);
      if (!b.error.empty()) return;
    }
    if (!moved) {
      b.error = "some threads wait at a barrier that others never reach";
      return;
    }
  }
}

void run_block(Block& b, const Launch& launch, unsigned long index) {
  const Index3 dim = {launch.block[0], launch.block[1], launch.block[2]};
  const Index3 grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  const Index3 at = {unsigned(index % grid.x), unsigned(index / grid.x % grid.y),
                     unsigned(index / grid.x / grid.y)};
  for (size_t k = 0; k < b.fibers.size(); ++k) {
    b.fibers[k].lane = {{unsigned(k % dim.x), unsigned(k / dim.x % dim.y),
                         unsigned(k / dim.x / dim.y)}, at, dim, grid};
    start(b, k);
  }
  b.barrier = {};
  for (Warp& warp : b.warps) warp.in = warp.out = {};
  std::memset(b.shared.data(), 0xff, b.shared.size());  // NaN, to show what was never written
  run_fibers(b, launch.reverse);
}

}  // namespace

unsigned char* dynamic_shared() {
  auto at = reinterpret_cast<uintptr_t>(block->shared.data());
  return reinterpret_cast<unsigned char*>((at + 15) / 16 * 16);
}

void block_barrier() { meet(block->barrier, int(block->fibers.size())); }

static Warp& warp_of(unsigned mask) {
  const size_t warp = size_t(block->running) / 32;
  if (!(mask >> lane() & 1)) fail("a lane takes part in a warp operation without its mask");
  if (warp * 32 + size_t(32 - __builtin_clz(mask)) > block->fibers.size()) {
    fail("a warp operation waits for lanes that the block does not have");
  }
  return block->warps[warp];
}

const Gathered& warp_gather(unsigned mask, const void* mine, int bytes) {
  Warp& warp = warp_of(mask);
  if (bytes) std::memcpy(warp.given.slot[lane()], mine, size_t(bytes));
  meet(warp.in, __builtin_popcount(mask));
  return warp.given;
}

void warp_release(unsigned mask) { meet(warp_of(mask).out, __builtin_popcount(mask)); }

void fail(const char* what) {
  block->error = what;
  to_scheduler();
  __builtin_trap();
}

}  // namespace rlx::emu

// Returns an empty string, or what the kernel did wrong (in `message`).
extern "C" int rlx_emu_launch(const rlx::emu::Launch* launch, char* message, int length) {
  using namespace rlx::emu;
  const auto say = [&](const std::string& text) {
    std::strncpy(message, text.c_str(), size_t(length - 1));
    return 1;
  };
  if (launch->params_bytes != rlx_emu_params_size()) {
    return say("the launch gives " + std::to_string(launch->params_bytes) +
               " bytes of parameters, the kernel takes " + std::to_string(rlx_emu_params_size()));
  }
  const unsigned long blocks =
      (unsigned long)(launch->grid[0]) * launch->grid[1] * launch->grid[2];
  std::atomic<unsigned long> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&](std::string& error) {
    thread_local Block own;
    block = &own;
    own.error.clear();
    prepare(own, *launch);
    for (unsigned long i; !failed && (i = next++) < blocks;) {
      run_block(own, *launch, launch->reverse ? blocks - 1 - i : i);
      if (!own.error.empty()) failed = true;
    }
    error = own.error;
  };
  std::string errors[2];
  if (blocks > 1) {
    std::thread other([&] { work(errors[1]); });
    work(errors[0]);
    other.join();
  } else {
    work(errors[0]);
  }
  for (const std::string& error : errors) {
    if (!error.empty()) return say(error);
  }
  return 0;
}
