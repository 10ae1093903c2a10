foreach(name operations files verbs)
  kiln_test(faults_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.c ${CMAKE_CURRENT_LIST_DIR}/brutal.c
    ${CMAKE_CURRENT_LIST_DIR}/../core/fake.c)
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/../conformance/cases.cmake)
target_link_libraries(faults_operations PRIVATE kiln_cases)
