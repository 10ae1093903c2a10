# Several processes by functions of their own, and by each MPI that a plug-in was built for; these are skipped where there is none.
add_executable(processes_meet ${CMAKE_CURRENT_LIST_DIR}/meet.c)
target_link_libraries(processes_meet PRIVATE kiln_flags kiln_static)
add_test(NAME processes_meet COMMAND processes_meet)
set_tests_properties(processes_meet PROPERTIES TIMEOUT 120) # a process that waits for ever
if(mpi_plugins)
  add_executable(processes_united ${CMAKE_CURRENT_LIST_DIR}/united.c)
  target_include_directories(processes_united PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(processes_united PRIVATE kiln_flags kiln_static)
  add_dependencies(processes_united kiln_mpi stub_whole_cuda stub_whole_nvrtc stub_whole_nccl)
  add_test(NAME processes COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/processes_test.py $<TARGET_FILE:kiln_cli>
    ${CMAKE_SOURCE_DIR}/data/flights.csv.gz $<TARGET_FILE:processes_united> ${stubs}/whole)
  set_tests_properties(processes PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 COST 200) # mostly waits, so it begins early
endif()
