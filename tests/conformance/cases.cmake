# The cases and what they are made with, as one library: the suite, the benchmark and the runs with faults go through its list of
# operations. A file of cases/ is an operation of that name; nothing else has to name it.
include_guard(GLOBAL)

# kiln_list(header NAME folder): HEADER with NAME(ROW), a row for each file of the folder.
function(kiln_list header name folder)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${folder}/*.c)
  set(rows "")
  foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    string(APPEND rows " \\\n    ROW(${stem})")
  endforeach()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/conformance/${header} CONTENT "#define ${name}(ROW)${rows}\n")
endfunction()
kiln_list(operation_list.h OPERATION_LIST cases)
kiln_list(check_list.h CHECK_LIST checks)

file(GLOB case_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cases/*.c)
set(case_parts batches codes elementwise inputs losses operations reference reference_loss refusals sampled shapes)
list(TRANSFORM case_parts PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM case_parts APPEND .c)
add_library(kiln_cases STATIC ${case_files} ${case_parts})
target_include_directories(kiln_cases PUBLIC ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_SOURCE_DIR}/src
  PRIVATE ${CMAKE_BINARY_DIR}/conformance)
target_link_libraries(kiln_cases PUBLIC kiln_flags kiln_static m)
