# The examples are clients like any other: kiln.h and the shared library, nothing else.
function(kiln_example name expected)
  add_executable(example_${name} ${CMAKE_SOURCE_DIR}/examples/${name}.c)
  target_link_libraries(example_${name} PRIVATE kiln_flags kiln_shared m)
  add_test(NAME example_${name} COMMAND ${CMAKE_COMMAND} "-DCOMMAND=$<TARGET_FILE:example_${name}>;${ARGN}"
    "-DEXPECTED=${expected}" -P ${CMAKE_SOURCE_DIR}/tests/examples/expect.cmake)
  set_tests_properties(example_${name} PROPERTIES TIMEOUT 120)
endfunction()

kiln_example(00_first "^y = 1[.]96 x [+] 1[.]10\n$")
kiln_example(01_linreg "converged after [0-9]+ iterations [(]tolerance[)], R2 = 0[.]837"
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz arr_delay ${CMAKE_CURRENT_BINARY_DIR}/flights.kiln cpu)
kiln_example(02_logreg "converged after [0-9]+ steps, objective [0-9.]+\nanemone: 12 of 12\n"
  ${CMAKE_CURRENT_LIST_DIR}/flowers.csv species)
kiln_example(03_power_iteration "^largest singular value 1[.]9777 after [0-9]+ steps\n$")
kiln_example(04_serve "^[0-9]+ columns, 1000 calls\n *50[.]0 % within [0-9.]+ us\n"
  ${CMAKE_CURRENT_BINARY_DIR}/flights.kiln 1000)
set_tests_properties(example_04_serve PROPERTIES DEPENDS example_01_linreg)
