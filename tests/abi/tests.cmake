# Promises to programs that were built against the library: symbols, layouts, and structs of older and newer sizes.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_program(KILN_TEST_CXX NAMES c++ g++ clang++ clang++-14 REQUIRED)
if(NOT KILN_SANITIZE AND NOT KILN_FUZZ AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  add_test(NAME abi_list COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/abi.py ${CMAKE_C_COMPILER} ${KILN_TEST_CXX}
    $<TARGET_FILE:kiln_shared>)
endif()
kiln_test(abi_sizes ${CMAKE_CURRENT_LIST_DIR}/sizes.c)
