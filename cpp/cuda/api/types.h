// The driver's types and constants that rlx uses, declared by ourselves: a build needs no CUDA.
//
// Layouts and values are those of CUDA 12.9 and 13.0, which agree in all of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cuda {
struct ContextTag;
}

namespace rlx::cuda::api {

using Result = int;        // 0 is success
using DeviceId = int;
using DevicePtr = unsigned long long;
struct StreamTag;
struct EventTag;
struct ModuleTag;
struct FunctionTag;
struct GraphTag;
struct GraphExecTag;
struct UserObjectTag;
using Context = ContextTag*;
using Stream = StreamTag*;
using Event = EventTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;
using Graph = GraphTag*;
using GraphExec = GraphExecTag*;
using UserObject = UserObjectTag*;  // what a graph keeps until it is destroyed

struct LaunchAttribute {
  enum : uint32_t { cooperative = 2, cluster_dimension = 4, programmatic_serialization = 6 };
  uint32_t id;
  uint32_t padding;
  union {
    int flag;
    uint32_t extent[3];
    char bytes[64];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  uint32_t count;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

struct Location {
  int type;  // 1: device
  int id;
};

struct AllocationProperties {
  int type;                  // 1: pinned
  int handle_types;
  Location location;
  void* win32;
  unsigned char flags[8];
};
static_assert(sizeof(AllocationProperties) == 32);

struct AccessDescription {
  Location location;
  int flags;                 // 3: read and write
};
static_assert(sizeof(AccessDescription) == 12);

// Device attributes.
constexpr int multiprocessor_count = 16, l2_cache_size = 38, threads_per_multiprocessor = 39,
              capability_major = 75, capability_minor = 76, shared_per_block_optin = 97,
              virtual_memory_supported = 102;
// Others.
constexpr int function_max_threads = 0, function_shared_bytes = 1, function_local_bytes = 3,
              function_registers = 4, attribute_max_dynamic_shared = 8;  // of a function
constexpr Result not_ready = 600;
constexpr Result capture_implicit = 906;  // a blocking stream is being captured
constexpr int pointer_memory_type = 2, pointer_is_managed = 8, pointer_ordinal = 9,
              memory_type_device = 2;
constexpr unsigned stream_non_blocking = 1, event_no_timing = 2;
constexpr int capture_relaxed = 2, capture_none = 0;
constexpr unsigned user_object_no_sync = 1, user_object_move = 1;

}  // namespace rlx::cuda::api
