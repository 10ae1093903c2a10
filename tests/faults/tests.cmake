foreach(name operations files)
  kiln_test(faults_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.c ${CMAKE_CURRENT_LIST_DIR}/brutal.c
    ${CMAKE_CURRENT_LIST_DIR}/../core/fake.c)
endforeach()
