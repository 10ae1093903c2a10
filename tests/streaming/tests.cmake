kiln_test(streaming_budgets ${CMAKE_CURRENT_LIST_DIR}/budgets.c)
set_tests_properties(streaming_budgets PROPERTIES SKIP_RETURN_CODE 77)
kiln_test(streaming_mapped ${CMAKE_CURRENT_LIST_DIR}/mapped.c ${CMAKE_CURRENT_LIST_DIR}/../faults/brutal.c)
kiln_test(streaming_mapped_group ${CMAKE_CURRENT_LIST_DIR}/mapped_group.c ${CMAKE_CURRENT_LIST_DIR}/../faults/brutal.c)
