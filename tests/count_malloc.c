// Counts every call that takes memory from the C library while counting is on; LD_PRELOADed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static volatile int counting, count, trap_at;

void count_malloc_start(void) { count = 0, counting = 1; }
int count_malloc_stop(void) { counting = 0; return count; }
// The n-th call hits a breakpoint, so that a debugger shows who made it.
void count_malloc_trap(int n) { trap_at = n; }

static void tell(void) {
  if (!counting) return;
  if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == trap_at) __builtin_trap();
}

void *malloc(size_t n) { tell(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { tell(); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { tell(); return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { tell(); return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { tell(); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
  tell();
  *p = __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}
