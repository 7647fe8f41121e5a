# rlx_onednn: oneDNN as the wheels onednn-cpu-gomp and onednn-devel-cpu-gomp install it.
if(NOT RLX_ONEDNN)
  return()
endif()

# The wheels put their files outside site-packages; their own records say where, in a venv as in
# the isolated environment of a wheel build.
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/find_onednn.py"
  OUTPUT_VARIABLE found RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "oneDNN was not found. Try: pip install onednn-cpu-gomp==2023.2.0 "
    "onednn-devel-cpu-gomp==2023.2.0, or build without it: -DRLX_ONEDNN=OFF")
endif()
list(GET found 0 RLX_ONEDNN_INCLUDE)
list(GET found 1 RLX_ONEDNN_LIBRARY)
list(GET found 2 RLX_ONEDNN_NOTICES)
message(STATUS "oneDNN: ${RLX_ONEDNN_LIBRARY}")

# One thread is all that its OpenMP is asked for (cpp/cpu/onednn/handles.h).
find_package(OpenMP REQUIRED)
add_library(rlx_onednn SHARED IMPORTED)
set_target_properties(rlx_onednn PROPERTIES
  IMPORTED_LOCATION "${RLX_ONEDNN_LIBRARY}"
  IMPORTED_SONAME libdnnl.so.3
  INTERFACE_INCLUDE_DIRECTORIES "${RLX_ONEDNN_INCLUDE}"
  INTERFACE_LINK_LIBRARIES OpenMP::OpenMP_CXX)
