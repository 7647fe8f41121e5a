// The driver's functions that rlx calls, by their versioned names.
#pragma once

#include "cuda/api/library.h"
#include "cuda/api/types.h"

namespace rlx::cuda::api {

struct DriverTable {
  explicit DriverTable(const Found& library);

  Result (*init)(unsigned);
  Result (*device_count)(int*);
  Result (*device_get)(DeviceId*, int);
  Result (*device_name)(char*, int, DeviceId);
  Result (*device_attribute)(int*, int, DeviceId);
  Result (*device_memory)(size_t*, DeviceId);
  Result (*error_name)(Result, const char**);
  Result (*error_string)(Result, const char**);
  Result (*retain)(Context*, DeviceId);
  Result (*release)(DeviceId);
  Result (*reset)(DeviceId);
  Result (*get_current)(Context*);
  Result (*set_current)(Context);
  Result (*context_synchronize)();

  Result (*load)(Module*, const void*, unsigned, int*, void**);
  Result (*unload)(Module);
  Result (*get_function)(Function*, Module, const char*);
  Result (*set_attribute)(Function, int, int);
  Result (*get_attribute)(int*, int, Function);
  Result (*occupancy)(int*, Function, int, size_t);
  Result (*launch)(const LaunchConfig*, Function, void**, void**);

  Result (*allocate)(DevicePtr*, size_t);
  Result (*free)(DevicePtr);
  Result (*allocate_host)(void**, size_t);
  Result (*free_host)(void*);
  Result (*copy_in)(DevicePtr, const void*, size_t, Stream);
  Result (*copy_out)(void*, DevicePtr, size_t, Stream);
  Result (*copy_within)(DevicePtr, DevicePtr, size_t, Stream);
  Result (*fill)(DevicePtr, unsigned char, size_t, Stream);
  Result (*pointer_attributes)(unsigned, int*, void**, DevicePtr);
  Result (*granularity)(size_t*, const AllocationProperties*, int);
  Result (*reserve)(DevicePtr*, size_t, size_t, DevicePtr, unsigned long long);
  Result (*unreserve)(DevicePtr, size_t);
  Result (*create)(unsigned long long*, size_t, const AllocationProperties*, unsigned long long);
  Result (*release_memory)(unsigned long long);
  Result (*map)(DevicePtr, size_t, size_t, unsigned long long, unsigned long long);
  Result (*unmap)(DevicePtr, size_t);
  Result (*set_access)(DevicePtr, size_t, const AccessDescription*, size_t);

  Result (*stream_create)(Stream*, unsigned);
  Result (*stream_destroy)(Stream);
  Result (*stream_synchronize)(Stream);
  Result (*stream_wait)(Stream, Event, unsigned);
  Result (*event_create)(Event*, unsigned);
  Result (*event_destroy)(Event);
  Result (*event_record)(Event, Stream);
  Result (*event_synchronize)(Event);
  Result (*event_query)(Event);
  Result (*event_elapsed)(float*, Event, Event);
  Result (*begin_capture)(Stream, int);
  Result (*end_capture)(Stream, Graph*);
  Result (*instantiate)(GraphExec*, Graph, unsigned long long);
  Result (*destroy_graph)(Graph);
  Result (*destroy_exec)(GraphExec);
  Result (*launch_graph)(GraphExec, Stream);
  Result (*exchange_capture_mode)(int*);
  Result (*capture_status)(Stream, int*);
  Result (*capture_info)(Stream, int*, unsigned long long*, Graph*, const void**, size_t*);
  Result (*user_object_create)(UserObject*, void*, void (*)(void*), unsigned, unsigned);
  Result (*user_object_release)(UserObject, unsigned);
  Result (*user_object_retain)(Graph, UserObject, unsigned, unsigned);

 private:
  void take_order(const Found& library);  // streams, events and graphs
};

// Of the process's driver; throws Error(device) when there is none.
const DriverTable& driver_table();

}  // namespace rlx::cuda::api
