// Takes the driver's functions from its library.
#include "cuda/api/driver_table.h"

#include "cuda/api/loader.h"

namespace rlx::cuda::api {

DriverTable::DriverTable(const Found& library) {
  const auto get = [&](auto*& function, const char* name) { api::load(library, function, name); };
  get(init, "cuInit");
  get(device_count, "cuDeviceGetCount");
  get(device_get, "cuDeviceGet");
  get(device_name, "cuDeviceGetName");
  get(device_attribute, "cuDeviceGetAttribute");
  get(device_memory, "cuDeviceTotalMem_v2");
  get(error_name, "cuGetErrorName");
  get(error_string, "cuGetErrorString");
  get(retain, "cuDevicePrimaryCtxRetain");
  get(release, "cuDevicePrimaryCtxRelease_v2");
  get(reset, "cuDevicePrimaryCtxReset_v2");
  get(get_current, "cuCtxGetCurrent");
  get(set_current, "cuCtxSetCurrent");
  get(context_synchronize, "cuCtxSynchronize");

  get(load, "cuModuleLoadDataEx");
  get(unload, "cuModuleUnload");
  get(get_function, "cuModuleGetFunction");
  get(set_attribute, "cuFuncSetAttribute");
  get(get_attribute, "cuFuncGetAttribute");
  get(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  get(launch, "cuLaunchKernelEx");

  get(allocate, "cuMemAlloc_v2");
  get(free, "cuMemFree_v2");
  get(allocate_host, "cuMemAllocHost_v2");
  get(free_host, "cuMemFreeHost");
  get(copy_in, "cuMemcpyHtoDAsync_v2");
  get(copy_out, "cuMemcpyDtoHAsync_v2");
  get(copy_within, "cuMemcpyDtoDAsync_v2");
  get(fill, "cuMemsetD8Async");
  get(pointer_attributes, "cuPointerGetAttributes");
  get(granularity, "cuMemGetAllocationGranularity");
  get(reserve, "cuMemAddressReserve");
  get(unreserve, "cuMemAddressFree");
  get(create, "cuMemCreate");
  get(release_memory, "cuMemRelease");
  get(map, "cuMemMap");
  get(unmap, "cuMemUnmap");
  get(set_access, "cuMemSetAccess");
  take_order(library);
}

void DriverTable::take_order(const Found& library) {
  const auto get = [&](auto*& function, const char* name) { api::load(library, function, name); };
  get(stream_create, "cuStreamCreate");
  get(stream_destroy, "cuStreamDestroy_v2");
  get(stream_synchronize, "cuStreamSynchronize");
  get(stream_wait, "cuStreamWaitEvent");
  get(event_create, "cuEventCreate");
  get(event_destroy, "cuEventDestroy_v2");
  get(event_record, "cuEventRecord");
  get(event_synchronize, "cuEventSynchronize");
  get(event_query, "cuEventQuery");
  get(event_elapsed, "cuEventElapsedTime");
  get(begin_capture, "cuStreamBeginCapture_v2");
  get(end_capture, "cuStreamEndCapture");
  get(instantiate, "cuGraphInstantiateWithFlags");
  get(destroy_graph, "cuGraphDestroy");
  get(destroy_exec, "cuGraphExecDestroy");
  get(launch_graph, "cuGraphLaunch");
  get(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  get(capture_status, "cuStreamIsCapturing");
  get(capture_info, "cuStreamGetCaptureInfo_v2");
  get(user_object_create, "cuUserObjectCreate");
  get(user_object_release, "cuUserObjectRelease");
  get(user_object_retain, "cuGraphRetainUserObject");
}

const DriverTable& driver_table() {
  static const DriverTable functions(loader().get(Lib::driver));
  return functions;
}

}  // namespace rlx::cuda::api
