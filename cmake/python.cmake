# The Python package: the shared library and what cffi reads of its headers, installed into the package's folder.
find_package(Python COMPONENTS Interpreter REQUIRED)
set(binding ${CMAKE_CURRENT_BINARY_DIR}/_binding.py)
file(GLOB headers CONFIGURE_DEPENDS include/kiln.h include/kiln/*.h)
add_custom_command(OUTPUT ${binding}
  COMMAND Python::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/binding.py ${CMAKE_C_COMPILER}
    ${CMAKE_CURRENT_SOURCE_DIR}/include ${binding}
  DEPENDS python/binding.py ${headers} VERBATIM)
add_custom_target(kiln_binding DEPENDS ${binding})
install(FILES ${binding} DESTINATION kiln COMPONENT python)
get_target_property(soversion kiln_shared SOVERSION)
install(FILES $<TARGET_FILE:kiln_shared> DESTINATION kiln RENAME libkiln.so.${soversion} COMPONENT python)

# The tool, for the command `kiln` of the package's environment; it takes the library beside it.
add_executable(kiln_bundled cli/main.c $<TARGET_OBJECTS:kiln_tool>)
target_include_directories(kiln_bundled PRIVATE cli ${JANSSON_INCLUDE_DIR})
target_link_libraries(kiln_bundled PRIVATE kiln_flags kiln_shared ${JANSSON_LIBRARY} m)
set_target_properties(kiln_bundled PROPERTIES OUTPUT_NAME kiln-tool INSTALL_RPATH "$ORIGIN")
install(TARGETS kiln_bundled RUNTIME DESTINATION kiln COMPONENT python)
