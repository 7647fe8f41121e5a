# rlx_flags: the compile options that every target of ours shares.
add_library(rlx_flags INTERFACE)
target_compile_options(rlx_flags INTERFACE -Wall -Wextra $<$<BOOL:${RLX_WERROR}>:-Werror>)
target_include_directories(rlx_flags INTERFACE
  "${PROJECT_SOURCE_DIR}/cpp"  # "core/dtype.h"
  "${PROJECT_SOURCE_DIR}")     # "kernels/params/..."
target_link_libraries(rlx_flags INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

# What nearly every file includes is parsed once, which saves 1.3 s of a core for each. ccache
# cannot see through it: a build that uses one does without, and finds includes that are missing.
function(rlx_parse_once target)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    target_precompile_headers(${target} PRIVATE <algorithm> <functional> <map> <memory> <mutex>
      <span> <string> <variant> <vector> "${PROJECT_SOURCE_DIR}/cpp/backend.h" ${ARGN})
  endif()
endfunction()

if(RLX_SANITIZE)
  list(JOIN RLX_SANITIZE "," names)
  target_compile_options(rlx_flags INTERFACE
    -fsanitize=${names} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rlx_flags INTERFACE -fsanitize=${names})
endif()
