# _core: the bindings, linked with the core and, beside it, one copy of libdnnl.so.3.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
find_package(pybind11 CONFIG REQUIRED)
file(GLOB_RECURSE bindings CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cpp/bindings/*.cpp")
pybind11_add_module(_core MODULE NO_EXTRAS ${bindings})
target_link_libraries(_core PRIVATE rlx_core_lib)
rlx_parse_once(_core <pybind11/numpy.h> <pybind11/stl.h>)
set_target_properties(_core PROPERTIES
  BUILD_RPATH_USE_ORIGIN ON
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN")
add_custom_command(TARGET _core PRE_LINK VERBATIM COMMAND_EXPAND_LISTS
  COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/check_isa.py" "${CMAKE_NM}"
    "$<TARGET_OBJECTS:rlx_core_lib>")
install(TARGETS _core LIBRARY DESTINATION rlx)

set(package_dir "${PROJECT_SOURCE_DIR}/python/rlx")
if(RLX_DEV_INPLACE)
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${package_dir}")
  # As pip does: else first results wait for Python's compiler where it keeps no bytecode.
  add_custom_command(TARGET _core POST_BUILD VERBATIM
    COMMAND "${Python_EXECUTABLE}" -m compileall -q "${package_dir}")
endif()

if(RLX_ONEDNN)
  # Stripping saves 10 of 54 MB; the library is copied first, the wheel's own file stays as it is.
  set(bundled "${PROJECT_BINARY_DIR}/libdnnl.so.3")
  if(RLX_DEV_INPLACE)
    set(bundled "${package_dir}/libdnnl.so.3")
  endif()
  add_custom_command(OUTPUT "${bundled}"
    COMMAND "${CMAKE_STRIP}" --strip-unneeded -o "${bundled}" "${RLX_ONEDNN_LIBRARY}"
    DEPENDS "${RLX_ONEDNN_LIBRARY}" VERBATIM)
  add_custom_target(rlx_bundled_onednn ALL DEPENDS "${bundled}")
  add_dependencies(_core rlx_bundled_onednn)
  install(PROGRAMS "${bundled}" DESTINATION rlx)
  install(FILES "${RLX_ONEDNN_NOTICES}/LICENSE" "${RLX_ONEDNN_NOTICES}/THIRD-PARTY-PROGRAMS"
    DESTINATION rlx/licenses/onednn)
endif()
