// Owning handles over oneDNN's C API: creation, queries and error text.
#include "cpu/onednn/handles.h"

#include <dnnl_debug.h>
#include <omp.h>

#include <string>

#include "core/error.h"

namespace rlx::cpu::onednn {

void check(dnnl_status_t status, const char* call) {
  if (status == dnnl_success) return;
  throw Error(ErrorKind::internal, std::string("oneDNN: ") + call + " gave " +
                                       dnnl_status2str(status));
}

dnnl_engine_t engine() {
  static const dnnl_engine_t cpu = [] {
    dnnl_engine_t made = nullptr;
    check(dnnl_engine_create(&made, dnnl_cpu, 0), "dnnl_engine_create");
    return made;
  }();
  return cpu;
}

OneThread::OneThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

dnnl_data_type_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return dnnl_f32;
    case DType::float64: return dnnl_f64;
    case DType::float16: return dnnl_f16;
    case DType::bfloat16: return dnnl_bf16;
    case DType::int32: return dnnl_s32;
    case DType::int8: return dnnl_s8;
    case DType::uint8: return dnnl_u8;
    default: return dnnl_data_type_undef;
  }
}

MemoryDesc strided_desc(DType dtype, std::span<const int64_t> dims,
                        std::span<const int64_t> strides) {
  MemoryDesc made;
  check(dnnl_memory_desc_create_with_strides(made.out(), int(dims.size()), dims.data(),
                                             data_type(dtype), strides.data()),
        "dnnl_memory_desc_create_with_strides");
  return made;
}

MemoryDesc any_desc(DType dtype, std::span<const int64_t> dims) {
  MemoryDesc made;
  check(dnnl_memory_desc_create_with_tag(made.out(), int(dims.size()), dims.data(),
                                         data_type(dtype), dnnl_format_tag_any),
        "dnnl_memory_desc_create_with_tag");
  return made;
}

MemoryDesc clone(const_dnnl_memory_desc_t desc) {
  MemoryDesc made;
  check(dnnl_memory_desc_clone(made.out(), desc), "dnnl_memory_desc_clone");
  return made;
}

size_t size_of(const MemoryDesc& desc) { return dnnl_memory_desc_get_size(desc.get()); }

MemoryDesc query_desc(const PrimitiveDesc& primitive, dnnl_query_t what, int index) {
  const const_dnnl_memory_desc_t found =
      dnnl_primitive_desc_query_md(primitive.get(), what, index);
  if (!found) throw Error(ErrorKind::internal, "oneDNN: dnnl_primitive_desc_query_md gave null");
  return clone(found);
}

const char* implementation_of(const PrimitiveDesc& primitive) {
  const char* name = "";
  check(dnnl_primitive_desc_query(primitive.get(), dnnl_query_impl_info_str, 0, &name),
        "dnnl_primitive_desc_query");
  return name;
}

}  // namespace rlx::cpu::onednn
