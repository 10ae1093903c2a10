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
install(FILES $<TARGET_FILE:kiln_shared> DESTINATION kiln RENAME libkiln.so COMPONENT python)
