# Installs under a temporary prefix and builds the first example outside the tree against what was installed.
find_program(PKG_CONFIG pkg-config REQUIRED)
add_test(NAME install COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${CMAKE_SOURCE_DIR}
  -DWORK=${CMAKE_CURRENT_BINARY_DIR}/install -DCC=${CMAKE_C_COMPILER} -DPKG_CONFIG=${PKG_CONFIG}
  -DLIBDIR=${CMAKE_INSTALL_LIBDIR} -DBINDIR=${CMAKE_INSTALL_BINDIR} "-DGENERATOR=${CMAKE_GENERATOR}"
  "-DLINK_FLAGS=$<$<BOOL:${KILN_SANITIZE}>:-fsanitize=${sanitizers}>" -DVERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_DIR}/install.cmake)
set_tests_properties(install PROPERTIES TIMEOUT 300)
