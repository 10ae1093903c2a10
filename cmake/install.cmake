# Installation: library, header, tool, pkg-config file, CMake package.
install(TARGETS kiln_shared EXPORT kiln LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  NAMELINK_COMPONENT development)
install(TARGETS kiln_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(TARGETS kiln_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
install(FILES include/kiln.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
install(EXPORT kiln NAMESPACE kiln:: FILE kiln-config.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kiln COMPONENT development)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/kiln-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kiln-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kiln COMPONENT development)

set(private_libs "-lz -ldl -lm -pthread")
if(ZSTD_INCLUDE_DIR AND ZSTD_LIBRARY)
  string(APPEND private_libs " -lzstd")
endif()
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix}) # ../.. or, with Debian's multiarch, one more
configure_file(cmake/kiln.pc.in kiln.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
