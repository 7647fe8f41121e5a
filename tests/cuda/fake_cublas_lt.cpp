// A cuBLASLt for tests: it computes nothing and logs the types of the products it is asked for.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Layout {
  int type;
};

extern "C" {
size_t cublasLtGetVersion() { return 130000; }
int cublasLtCreate(void** handle) { *handle = new int; return 0; }
int cublasLtDestroy(void* handle) { delete static_cast<int*>(handle); return 0; }
int cublasLtMatmulDescCreate(void** made, int, int) { *made = new int; return 0; }
int cublasLtMatmulDescDestroy(void* made) { delete static_cast<int*>(made); return 0; }
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatrixLayoutCreate(void** made, int type, uint64_t, uint64_t, int64_t) {
  *made = new Layout{type};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* made) { delete static_cast<Layout*>(made); return 0; }
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulPreferenceCreate(void** made) { *made = new int; return 0; }
int cublasLtMatmulPreferenceDestroy(void* made) { delete static_cast<int*>(made); return 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int,
                                   void* found, int* count) {
  std::memset(found, 0, 96);
  *count = 1;
  return 0;
}
int cublasLtMatmul(void*, void*, const void*, const void*, void* left, const void*, void* right,
                   const void*, const void*, void*, void*, void* result, const void*, void*,
                   size_t, void*) {
  const auto type = [](void* layout) { return static_cast<Layout*>(layout)->type; };
  if (FILE* file = std::fopen(std::getenv("FAKE_CUDA_LOG"), "a")) {
    std::fprintf(file, "product:%d,%d,%d\n", type(right), type(left), type(result));
    std::fclose(file);
  }
  return 0;
}
}
