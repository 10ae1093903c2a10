# The Python package: the shared library and what cffi reads of its headers, installed into the package's folder.
find_package(Python COMPONENTS Interpreter REQUIRED)
set(binding ${CMAKE_CURRENT_BINARY_DIR}/_binding.py)
file(GLOB headers CONFIGURE_DEPENDS include/kiln.h include/kiln/*.h)
add_custom_command(OUTPUT ${binding}
  COMMAND Python::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/binding.py ${CMAKE_C_COMPILER}
    ${CMAKE_CURRENT_SOURCE_DIR}/include ${binding}
  DEPENDS python/binding.py ${headers} VERBATIM)
add_custom_target(kiln_binding ALL DEPENDS ${binding})
install(FILES ${binding} DESTINATION kiln COMPONENT python)
get_target_property(soversion kiln_shared SOVERSION)
if(APPLE)
  set(installed libkiln.${soversion}.dylib)
  set_target_properties(kiln_shared PROPERTIES INSTALL_NAME_DIR "@loader_path" BUILD_WITH_INSTALL_NAME_DIR ON)
else()
  set(installed libkiln.so.${soversion})
endif()
install(FILES $<TARGET_FILE:kiln_shared> DESTINATION kiln RENAME ${installed} COMPONENT python)

# The tool, for the command `kiln` of the package's environment; it takes the library beside it.
add_executable(kiln_bundled cli/main.c $<TARGET_OBJECTS:kiln_tool>)
target_include_directories(kiln_bundled PRIVATE cli ${JANSSON_INCLUDE_DIR})
target_link_libraries(kiln_bundled PRIVATE kiln_flags kiln_shared ${JANSSON_LIBRARY} m)
set_target_properties(kiln_bundled PROPERTIES OUTPUT_NAME kiln-tool INSTALL_RPATH "$ORIGIN")
install(TARGETS kiln_bundled RUNTIME DESTINATION kiln COMPONENT python)

# The package as a system has it (cmake/package.cmake), where the library and the tool are packages of their own.
set(site lib/python3/dist-packages)
install(DIRECTORY python/kiln DESTINATION ${site} COMPONENT system_python FILES_MATCHING PATTERN "*.py" PATTERN py.typed
  PATTERN __pycache__ EXCLUDE)
install(FILES ${binding} DESTINATION ${site}/kiln COMPONENT system_python)
set(about_package ${CMAKE_CURRENT_BINARY_DIR}/dist-info)
file(WRITE ${about_package}/METADATA "Metadata-Version: 2.1\nName: kiln-ml\nVersion: ${PROJECT_VERSION}\nSummary: ${PROJECT_DESCRIPTION}\n")
file(WRITE ${about_package}/entry_points.txt
  "[networkx.backends]\nkiln = kiln._networkx\n\n[networkx.backend_info]\nkiln = kiln._networkx:info\n")
install(DIRECTORY ${about_package}/ DESTINATION ${site}/kiln_ml-${PROJECT_VERSION}.dist-info COMPONENT system_python)
