// operator new and delete of this module: small blocks are kept for reuse, thread by thread.
//
// A repeated run must not call malloc, and dnnl_primitive_execute makes a few small objects each
// time. libdnnl is loaded as a dependency of this module, so the loader resolves its operator
// new here (unless the process has a global one, which then serves all of us). Every block still
// comes from malloc and may be freed by it: whoever else allocates or frees it does no harm.
// A thread keeps at most most_kept blocks of each size, about 500 KB in all.
#include <malloc.h>
#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t step = 16, classes = 32, largest = step * classes;
constexpr uint32_t most_kept = 64;

struct Block {
  Block* next;
};

struct Cache {
  Block* kept[classes];
  uint32_t count[classes];
  enum State : uint8_t { fresh, registered, gone } state;
};

constinit thread_local Cache cache{};

void empty_cache(void*) {
  cache.state = Cache::gone;  // what this thread frees from now on is really freed
  for (Block*& first : cache.kept) {
    while (Block* block = first) {
      first = block->next;
      std::free(block);
    }
  }
}

// Has the cache emptied when the thread ends; false when that cannot be.
bool usable(Cache& c) {
  if (c.state == Cache::registered) return true;
  if (c.state == Cache::gone) return false;
  static pthread_key_t key;
  static const bool made = pthread_key_create(&key, empty_cache) == 0;
  if (!made || pthread_setspecific(key, &c) != 0) return false;
  c.state = Cache::registered;
  return true;
}

void* get(size_t bytes) noexcept {
  if (bytes > largest) return std::malloc(bytes);
  const size_t k = bytes == 0 ? 0 : (bytes - 1) / step;
  Cache& c = cache;
  if (Block* block = c.kept[k]) {
    c.kept[k] = block->next;
    --c.count[k];
    return block;
  }
  return std::malloc((k + 1) * step);
}

// The class follows from the block itself: it may come from any caller of malloc.
void put(void* memory) noexcept {
  if (!memory) return;
  const size_t k = malloc_usable_size(memory) / step - 1;
  Cache& c = cache;
  if (k >= classes || c.count[k] >= most_kept || !usable(c)) {
    std::free(memory);
    return;
  }
  auto* block = static_cast<Block*>(memory);
  block->next = c.kept[k];
  c.kept[k] = block;
  ++c.count[k];
}

void* get_or_throw(size_t bytes) {
  for (;;) {
    if (void* memory = get(bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

void* get_aligned(size_t bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  const size_t wanted = size_t(alignment) < sizeof(void*) ? sizeof(void*) : size_t(alignment);
  if (posix_memalign(&memory, wanted, bytes) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

#define RLX_EXPORT __attribute__((visibility("default")))

RLX_EXPORT void* operator new(size_t n) { return get_or_throw(n); }
RLX_EXPORT void* operator new[](size_t n) { return get_or_throw(n); }
RLX_EXPORT void* operator new(size_t n, const std::nothrow_t&) noexcept { return get(n); }
RLX_EXPORT void* operator new[](size_t n, const std::nothrow_t&) noexcept { return get(n); }
RLX_EXPORT void* operator new(size_t n, std::align_val_t a) { return get_aligned(n, a); }
RLX_EXPORT void* operator new[](size_t n, std::align_val_t a) { return get_aligned(n, a); }

RLX_EXPORT void operator delete(void* p) noexcept { put(p); }
RLX_EXPORT void operator delete[](void* p) noexcept { put(p); }
RLX_EXPORT void operator delete(void* p, size_t) noexcept { put(p); }
RLX_EXPORT void operator delete[](void* p, size_t) noexcept { put(p); }
RLX_EXPORT void operator delete(void* p, const std::nothrow_t&) noexcept { put(p); }
RLX_EXPORT void operator delete[](void* p, const std::nothrow_t&) noexcept { put(p); }
RLX_EXPORT void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
RLX_EXPORT void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
RLX_EXPORT void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
RLX_EXPORT void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }

#undef RLX_EXPORT
