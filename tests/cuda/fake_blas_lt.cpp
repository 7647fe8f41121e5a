// A libcublasLt for tests: chooses one algorithm, multiplies nothing, and logs what it is asked.
//
// BLAS_LT_LOG names a log of algorithms, FAKE_CUDA_LOG one of the types of products and of what it
// is asked for to begin with.
// BLAS_LT_REFUSES: what was chosen earlier may not run here.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "taken_down.h"

namespace {

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct Layout {
  int type;
  bool any;  // of what it is asked for to begin with
};
bool chooses;

int handle;

template <class... Values>
void log(const char* variable, const char* format, Values... values) {
  const char* name = std::getenv(variable);
  if (!name) return;
  if (FILE* file = std::fopen(name, "a")) {
    std::fprintf(file, format, values...);
    std::fclose(file);
  }
}

void log_algorithm(const char* word, uint64_t algorithm) {
  log("BLAS_LT_LOG", "%s:%llu\n", word, (unsigned long long)(algorithm));
}

int made(void** p) {
  *p = &handle;
  return 0;
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() {
  const char* version = std::getenv("BLAS_LT_VERSION");
  return version ? size_t(std::atoi(version)) : 130100;
}
int cublasLtCreate(void** p) { return made(p); }
int cublasLtDestroy(void*) { return 0; }
int cublasLtMatmulDescCreate(void** p, int, int) { return made(p); }
int cublasLtMatmulDescDestroy(void*) {
  log("FAKE_CUDA_LOG", "destroyed\n");
  return 0;
}
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatrixLayoutCreate(void** p, int type, uint64_t rows, uint64_t cols, int64_t) {
  *p = new Layout{type, rows == 8 && cols == 8};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* p) { delete static_cast<Layout*>(p); return 0; }
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulPreferenceCreate(void** p) { return made(p); }
int cublasLtMatmulPreferenceDestroy(void*) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, Layout* result, void*, void*, int,
                                   Heuristic* found, int* count) {
  *found = {};
  found->algorithm.data[0] = 17;
  *count = 1;
  if (result->any) {
    log("FAKE_CUDA_LOG", "begun:%d\n", result->type);
    return 0;
  }
  chooses = true;
  log_algorithm("choose", 17);
  return 0;
}
int cublasLtMatmul(void*, void*, const void*, const void*, Layout* left, const void*,
                   Layout* right, const void*, const void*, void*, void*, Layout* result,
                   const Algorithm* algorithm, void*, size_t, void*) {
  if (!has_context()) return 13;
  log_algorithm("run", algorithm->data[0]);
  if (std::getenv("BLAS_LT_REFUSES") && !chooses) return 15;
  log("FAKE_CUDA_LOG", "product:%d,%d,%d\n", right->type, left->type, result->type);
  return 0;
}

}  // extern "C"
