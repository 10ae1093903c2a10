# The conformance suite: on every device with the best instruction set, then on the CPU with the lesser ones and with
# numbers of threads that do not divide the work evenly. The types run apart, so that ctest -j builds kernels side by side.
include(${CMAKE_CURRENT_LIST_DIR}/cases.cmake)
file(GLOB check_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/checks/*.c)
add_executable(conformance ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/one_case.c
  ${CMAKE_CURRENT_LIST_DIR}/options.c ${CMAKE_CURRENT_LIST_DIR}/plans.c ${check_files})
target_include_directories(conformance PRIVATE ${CMAKE_BINARY_DIR}/conformance ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(conformance PRIVATE kiln_cases)

set(KILN_REQUIRED_DEVICES "cpu,opencl" CACHE STRING "Devices that the conformance suite must not skip")
set(conformance_extent "")
if(KILN_TEST_QUICK)
  set(conformance_extent --quick)
endif()
# Under address sanitizers the CPU goes through both types in conformance_threads and, one a type, with the lesser instruction sets and
# with low limits: the bodies of both types have one text. With no instruction set asked for, undefined behaviour is looked for as well
# (CMakeLists.txt), so f64 goes through those bodies with all problems, and f32 with low limits.
set(conformance_devices --require ${KILN_REQUIRED_DEVICES})
set(conformance_of_baseline "")
set(conformance_of_avx2 "")
if(KILN_SANITIZE AND NOT KILN_SANITIZE STREQUAL thread)
  set(conformance_devices --device opencl --require opencl)
  set(conformance_of_baseline --type f64)
  set(conformance_of_avx2 --type f32)
endif()
# OpenCL in f32 comes operation by operation, below.
if(NOT conformance_of_baseline)
  add_test(NAME conformance_f32 COMMAND conformance --type f32 --except opencl --require cpu ${conformance_extent})
  set_tests_properties(conformance_f32 PROPERTIES TIMEOUT 600)
endif()
add_test(NAME conformance_f64 COMMAND conformance --type f64 ${conformance_devices} ${conformance_extent})
foreach(type f32 f64)
  add_test(NAME conformance_plans_${type} COMMAND conformance --plans --quick --type ${type} --device opencl --require opencl)
endforeach()
# Large problems add ways of cutting X, which do not depend on the instruction set.
add_test(NAME conformance_baseline COMMAND conformance --device cpu --threads 1 --quick ${conformance_of_baseline})
add_test(NAME conformance_avx2 COMMAND conformance --device cpu --threads 3 --quick ${conformance_of_avx2})
# Threads share the work of both types alike; f64 has the machine's number of threads above, and three and one in these. Address
# sanitizers have no other run of f64 on the CPU with all instruction sets.
set(conformance_of_threads --type f32)
if(KILN_SANITIZE AND NOT KILN_SANITIZE STREQUAL thread)
  set(conformance_of_threads "")
endif()
add_test(NAME conformance_threads COMMAND conformance --device cpu --threads 7 ${conformance_of_threads} ${conformance_extent})
# Limits so low that small problems take every way: 64-bit indices, and all that is derived from a sparse X. Neither depends on
# the element type: one is enough for the devices that build kernels slowly, and large problems take no further way.
add_test(NAME conformance_low_limits COMMAND conformance --low-limits --quick --type f64 ${conformance_devices})
add_test(NAME conformance_low_limits_f32 COMMAND conformance --low-limits --device cpu --type f32 --quick)
# X in as many slices as there are members, more of them at times than rows; on OpenCL what moves between members does.
# Members share rows of both types alike: two and three take one each, and so do seven under address sanitizers.
set(type_in_2 --type f32)
set(type_in_3 --type f64)
set(type_in_7 ${conformance_of_avx2})
foreach(members 2 3 7)
  add_test(NAME conformance_cpu_${members} COMMAND conformance --device cpu*${members} --quick ${type_in_${members}})
  set_tests_properties(conformance_cpu_${members} PROPERTIES TIMEOUT 600)
endforeach()
set(split_in_2 loss_gradient narrow assign sddmm sddmm_multiply ranks_step guttman)
set(split_in_3 ${split_in_2} factor_solve gram gram_diagonal column_sums batch_reduce)
# A processor, which has a memory of its own there, beside OpenCL: an operation of each kind of operands.
foreach(op loss_gradient assign sddmm ranks_step guttman batch_scale)
  add_test(NAME conformance_unlike_${op} COMMAND conformance --device cpu@2,opencl:0.0@1 --op ${op} --type f32 --quick)
  set_tests_properties(conformance_unlike_${op} PROPERTIES TIMEOUT 600)
endforeach()
set(split_in_7 sddmm gram gram_diagonal column_sums batch_scale)
foreach(members 2 3 7)
  foreach(op IN LISTS split_in_${members})
    add_test(NAME conformance_opencl_${members}_${op}
      COMMAND conformance --device opencl*${members} --require opencl*${members} --op ${op} --type f32 --quick)
    set_tests_properties(conformance_opencl_${members}_${op} PROPERTIES TIMEOUT 600)
  endforeach()
endforeach()
# Halves, which f64 does not have.
add_test(NAME conformance_halves COMMAND conformance --device opencl --require opencl --op halves --type f32 --quick)
set_tests_properties(conformance_halves PROPERTIES TIMEOUT 600)
# Every operation and check in f32 with kernels as PoCL compiles them for users, optimised and for the size of their groups: the
# tests above are spared that (tests/CMakeLists.txt), and in f64 take the same text. ./test.sh long alone runs them, but for one with
# few kernels. Apart, so that two of them compile at once.
file(GLOB case_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cases/*.c)
set(optimised "")
foreach(file IN LISTS case_files)
  get_filename_component(op ${file} NAME_WE)
  list(APPEND optimised ${op})
endforeach()
foreach(file IN LISTS check_files)
  file(STRINGS ${file} only_cpu REGEX "[.]only_cpu")
  if(only_cpu)
    continue()
  endif()
  file(STRINGS ${file} op REGEX "[.]name = \"[a-z_]+\"" LIMIT_COUNT 1)
  string(REGEX REPLACE ".*[.]name = \"([a-z_]+)\".*" "\\1" op "${op}")
  list(APPEND optimised ${op})
endforeach()
foreach(op IN LISTS optimised)
  add_test(NAME optimised_${op} COMMAND conformance --device opencl --require opencl --op ${op} --type f32 --quick)
  set_tests_properties(optimised_${op} PROPERTIES TIMEOUT 600)
  if(NOT op STREQUAL batch_scale)
    set_tests_properties(optimised_${op} PROPERTIES LABELS long)
  endif()
endforeach()
set_tests_properties(conformance_baseline PROPERTIES ENVIRONMENT KILN_ISA=baseline)
set_tests_properties(conformance_avx2 PROPERTIES ENVIRONMENT KILN_ISA=avx2)
if(conformance_of_baseline)
  set_tests_properties(conformance_low_limits_f32 PROPERTIES ENVIRONMENT KILN_ISA=baseline)
endif()
set_tests_properties(conformance_f64 conformance_baseline conformance_avx2 conformance_threads
  conformance_plans_f32 conformance_plans_f64
  conformance_low_limits conformance_low_limits_f32
  PROPERTIES TIMEOUT 600)
