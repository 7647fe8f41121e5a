// Owning handles over oneDNN's C API; a failing call throws an Error that names it.
#pragma once

#include <dnnl.h>

#include <span>
#include <utility>
#include <vector>

#include "core/dtype.h"

namespace rlx::cpu::onednn {

template <class T, dnnl_status_t (*destroy)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_) destroy(raw_);
  }
  T get() const { return raw_; }
  T* out() { return &raw_; }  // only while empty
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  T raw_ = nullptr;
};

using MemoryDesc = Handle<dnnl_memory_desc_t, dnnl_memory_desc_destroy>;
using Memory = Handle<dnnl_memory_t, dnnl_memory_destroy>;
using Attributes = Handle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;
using PostOps = Handle<dnnl_post_ops_t, dnnl_post_ops_destroy>;
using PrimitiveDesc = Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Primitive = Handle<dnnl_primitive_t, dnnl_primitive_destroy>;
using Stream = Handle<dnnl_stream_t, dnnl_stream_destroy>;

// Throws Error(internal) "oneDNN: <call> gave <status>" unless status is success.
void check(dnnl_status_t status, const char* call);

// The one engine of the process; it owns no threads, so it survives a fork.
dnnl_engine_t engine();

// oneDNN bakes OpenMP's thread count into a primitive: 1 while this lives. rlx's own team runs
// parts of the work side by side; OpenMP's threads are never started.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

dnnl_data_type_t data_type(DType dtype);  // dnnl_data_type_undef where oneDNN has none

MemoryDesc strided_desc(DType dtype, std::span<const int64_t> dims,
                        std::span<const int64_t> strides);
MemoryDesc any_desc(DType dtype, std::span<const int64_t> dims);  // oneDNN picks the format
MemoryDesc clone(const_dnnl_memory_desc_t desc);
size_t size_of(const MemoryDesc& desc);

// One of a primitive's own descriptors, e.g. (dnnl_query_weights_md, 0).
MemoryDesc query_desc(const PrimitiveDesc& primitive, dnnl_query_t what, int index = 0);
const char* implementation_of(const PrimitiveDesc& primitive);  // e.g. "brgconv:avx2"

}  // namespace rlx::cpu::onednn
