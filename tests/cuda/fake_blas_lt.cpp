// A libcublasLt for tests: chooses one algorithm, multiplies nothing, and logs what it is asked.
//
// BLAS_LT_LOG names the log. BLAS_LT_REFUSES: what was chosen earlier may not run here.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

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

int handle;

void log(const char* word, unsigned long long algorithm) {
  if (FILE* file = std::fopen(std::getenv("BLAS_LT_LOG"), "a")) {
    std::fprintf(file, "%s:%llu\n", word, algorithm);
    std::fclose(file);
  }
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
int cublasLtMatmulDescDestroy(void*) { return 0; }
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatrixLayoutCreate(void** p, int, uint64_t, uint64_t, int64_t) { return made(p); }
int cublasLtMatrixLayoutDestroy(void*) { return 0; }
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulPreferenceCreate(void** p) { return made(p); }
int cublasLtMatmulPreferenceDestroy(void*) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int,
                                   Heuristic* found, int* count) {
  *found = {};
  found->algorithm.data[0] = 17;
  *count = 1;
  log("choose", 17);
  return 0;
}
int cublasLtMatmulAlgoCheck(void*, void*, void*, void*, void*, void*, const Algorithm* algorithm,
                            Heuristic* checked) {
  log("check", algorithm->data[0]);
  *checked = {};
  return std::getenv("BLAS_LT_REFUSES") ? 15 : 0;
}
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const Algorithm* algorithm, void*, size_t,
                   void*) {
  log("run", algorithm->data[0]);
  return 0;
}

}  // extern "C"
