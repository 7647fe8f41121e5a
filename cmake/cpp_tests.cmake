# rlx_cpp_tests: tests/cpp/*.cpp with the core; run it as it is, or through ctest.
file(GLOB_RECURSE tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cpp/*.cpp")
if(RLX_SANITIZE)  # rooms.cmake leaves the GPU out
  list(FILTER tests EXCLUDE REGEX "/tests/cpp/cuda/")
endif()
add_executable(rlx_cpp_tests ${tests})
target_link_libraries(rlx_cpp_tests PRIVATE rlx_core_lib)
if(RLX_SANITIZE)  # references are plain loops, which take minutes unoptimised
  target_compile_options(rlx_cpp_tests PRIVATE -O1)
endif()
rlx_parse_once(rlx_cpp_tests)
enable_testing()
add_test(NAME rlx_cpp_tests COMMAND rlx_cpp_tests)
