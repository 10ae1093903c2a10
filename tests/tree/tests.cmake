# The shipped files, seen from outside. Sanitizers bring symbols and sections of their own.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(NOT KILN_SANITIZE AND NOT KILN_FUZZ)
  add_test(NAME tree_binaries COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/binaries.py
    $<TARGET_FILE:kiln_shared> $<TARGET_FILE:kiln_cli>)
endif()
