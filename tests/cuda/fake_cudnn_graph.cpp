// A libcudnn for tests of plans: one engine for each graph, which convolves nothing and compiles
// where there is more than one operation. FAKE_CUDA_LOG gets what the heuristics are asked.
//
// CUDNN_FAILS: fused engines need not compile, but fail to make a plan.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "taken_down.h"

namespace {

constexpr int kind_plan = 5;
constexpr int heuristic_mode = 200, heuristic_graph = 201, heuristic_results = 202;
constexpr int config_engine = 300, plan_config = 401, plan_workspace = 402, plan_text = 405;
constexpr int graph_operations = 801, engine_index = 1301, engine_behaviour = 1305;
constexpr char text[] = "{plan}";

struct Thing {
  int kind = 0, mode = 0;
  int64_t operations = 0;
};

Thing* thing(void* p) { return static_cast<Thing*>(p); }
Thing* first_of(const void* values) { return thing(*static_cast<void* const*>(values)); }
bool fails() { return std::getenv("CUDNN_FAILS") != nullptr; }

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 91900; }
size_t cudnnGetCudartVersion() { return 13000; }
void cudnnGetLastErrorString(char* to, size_t) { *to = 0; }
int cudnnCreate(void** p) { *p = new Thing; return 0; }
int cudnnDestroy(void* p) { delete thing(p); return 0; }
int cudnnSetStream(void*, void*) { return 0; }
int cudnnBackendCreateDescriptor(int kind, void** p) { *p = new Thing{kind}; return 0; }
int cudnnBackendDestroyDescriptor(void* p) { delete thing(p); return 0; }
int cudnnBackendExecute(void*, void*, void*) { return has_context() ? 0 : 5000; }

int cudnnBackendSetAttribute(void* p, int attribute, int, int64_t count, const void* values) {
  if (attribute == graph_operations) thing(p)->operations = count;
  if (attribute == heuristic_mode) thing(p)->mode = *static_cast<const int*>(values);
  if (attribute == heuristic_graph || attribute == plan_config) {
    thing(p)->operations = first_of(values)->operations;
  }
  return 0;
}

int cudnnBackendFinalize(void* p) {
  return thing(p)->kind == kind_plan && thing(p)->operations > 1 && fails() ? 4000 : 0;
}

int cudnnBackendGetAttribute(void* p, int attribute, int, int64_t, int64_t* count, void* values) {
  *count = 1;
  const Thing& from = *thing(p);
  if (attribute == heuristic_results) {
    if (FILE* file = std::fopen(std::getenv("FAKE_CUDA_LOG"), "a")) {
      std::fprintf(file, "asked:%d:%d\n", int(from.operations), from.mode);
      std::fclose(file);
    }
    first_of(values)->operations = from.operations;
  } else if (attribute == config_engine) {
    first_of(values)->operations = from.operations;
  } else if (attribute == engine_index) {
    *static_cast<int64_t*>(values) = 7;
  } else if (attribute == engine_behaviour && from.operations > 1 && !fails()) {
    *static_cast<int*>(values) = 0;  // compiles at run time
  } else if (attribute == plan_workspace) {
    *static_cast<int64_t*>(values) = 0;
  } else if (attribute == plan_text) {
    *count = int64_t(sizeof text);
    if (values) std::memcpy(values, text, sizeof text);
  } else {
    *count = 0;
  }
  return 0;
}

}  // extern "C"
