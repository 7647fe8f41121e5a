# rlx_flags: the compile options that every target of ours shares.
add_library(rlx_flags INTERFACE)
target_compile_options(rlx_flags INTERFACE -Wall -Wextra $<$<BOOL:${RLX_WERROR}>:-Werror>)
target_include_directories(rlx_flags INTERFACE
  "${PROJECT_SOURCE_DIR}/cpp"  # "core/dtype.h"
  "${PROJECT_SOURCE_DIR}")     # "kernels/params/..."
target_link_libraries(rlx_flags INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

if(RLX_SANITIZE)
  list(JOIN RLX_SANITIZE "," names)
  target_compile_options(rlx_flags INTERFACE
    -fsanitize=${names} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rlx_flags INTERFACE -fsanitize=${names})
endif()
