# Several processes by MPI, of each MPI that a plug-in was built for; skipped where there is none.
if(mpi_plugins)
  add_test(NAME processes COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/processes_test.py $<TARGET_FILE:kiln_cli>
    ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
  set_tests_properties(processes PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()
