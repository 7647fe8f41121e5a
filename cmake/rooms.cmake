# rlx_core_lib: everything under cpp/ but the bindings, found by folder and file name.
configure_file(cmake/build_info.cpp.in generated/build_info.cpp @ONLY)

set(sources "${PROJECT_BINARY_DIR}/generated/build_info.cpp")
set(rooms core program plan exec cpu)
if(NOT RLX_SANITIZE)  # only the C++ tests are built then, which have no GPU
  list(APPEND rooms cuda)
endif()
foreach(room IN LISTS rooms)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cpp/${room}/*.cpp")
  list(APPEND sources ${files})
endforeach()

# The emulator is for tests: it reads the sources in place and needs the build's compiler.
if(RLX_EMULATOR)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cpp/emu/*.cpp")
  list(APPEND sources ${files})
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_DEFINITIONS
    "RLX_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"" "RLX_CXX=\"${CMAKE_CXX_COMPILER}\"")
endif()

# NVRTC and the emulator compile kernels at run time, from their texts inside the extension.
file(GLOB_RECURSE kernel_files CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/kernels/*.cu" "${PROJECT_SOURCE_DIR}/kernels/*.h")
set(kernel_table "${PROJECT_BINARY_DIR}/generated/kernel_files.cpp")
add_custom_command(OUTPUT "${kernel_table}" VERBATIM
  COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.py" "${kernel_table}"
    "${PROJECT_SOURCE_DIR}" ${kernel_files}
  DEPENDS ${kernel_files} "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.py")
list(APPEND sources "${kernel_table}")

# A backend that is absent is a folder that is not compiled; the core has no #ifdef for it.
if(RLX_ONEDNN)
  list(FILTER sources EXCLUDE REGEX "/cpp/cpu/no_onednn/")
else()
  list(FILTER sources EXCLUDE REGEX "/cpp/cpu/onednn/")
endif()
if(NOT RLX_X86_64)
  list(FILTER sources EXCLUDE REGEX "_avx(2|512)\\.cpp$")
endif()

# Kernels want vectorised loops; none of them reads errno or the floating-point exception flags.
set(kernels ${sources})
list(FILTER kernels INCLUDE REGEX "/cpp/cpu/kernels/")
set(kernel_level -O3)
if(RLX_SANITIZE)
  set(kernel_level -O1)
endif()
set_property(SOURCE ${kernels} APPEND PROPERTY COMPILE_OPTIONS
  ${kernel_level} -fno-math-errno -fno-trapping-math)

# The file name names the instruction set; everything else stays baseline x86-64.
set(avx2 ${sources})
list(FILTER avx2 INCLUDE REGEX "_avx2\\.cpp$")
set_property(SOURCE ${avx2} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c)
set(avx512 ${sources})
list(FILTER avx512 INCLUDE REGEX "_avx512\\.cpp$")
set_property(SOURCE ${avx512} APPEND PROPERTY COMPILE_OPTIONS
  -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl)
if(RLX_SANITIZE)  # half of what they cost; most of their loops are checked in the AVX2 files too
  set_property(SOURCE ${avx512} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=undefined)
endif()

# An object library, so that files which only register themselves are linked too.
add_library(rlx_core_lib OBJECT ${sources})
rlx_parse_once(rlx_core_lib)
set_property(SOURCE ${kernels} ${avx2} ${avx512} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
target_link_libraries(rlx_core_lib PUBLIC rlx_flags $<$<BOOL:${RLX_ONEDNN}>:rlx_onednn>)
