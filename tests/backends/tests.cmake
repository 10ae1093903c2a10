# Stub libraries by the vendors' file names, each in a folder of its own for LD_LIBRARY_PATH.
function(backends_stub folder name soname)
  set(target stub_${folder}_${name})
  add_library(${target} SHARED ${CMAKE_CURRENT_LIST_DIR}/stub_${name}.c)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE kiln_flags)
  target_compile_definitions(${target} PRIVATE ${ARGN})
  string(REGEX MATCH "^lib([a-zA-Z]+)(.*)$" parts ${soname})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET default OUTPUT_NAME ${CMAKE_MATCH_1}
    SUFFIX ${CMAKE_MATCH_2} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/stubs/${folder})
endfunction()
set(stubs ${CMAKE_CURRENT_BINARY_DIR}/stubs)
backends_stub(whole cuda libcuda.so.1)
backends_stub(whole nvrtc libnvrtc.so.13)
backends_stub(whole nccl libnccl.so.2)
backends_stub(old_driver cuda libcuda.so.1 STUB_INCOMPLETE)
backends_stub(old_compiler cuda libcuda.so.1)
backends_stub(old_compiler nvrtc libnvrtc.so.13 STUB_INCOMPLETE)

kiln_test(backends_cuda_faults ${CMAKE_CURRENT_LIST_DIR}/cuda_faults.c)
kiln_test(backends_cuda_memory ${CMAKE_CURRENT_LIST_DIR}/cuda_memory.c)
kiln_test(backends_cuda_choose ${CMAKE_CURRENT_LIST_DIR}/cuda_choose.c)
kiln_test(backends_cuda_pack ${CMAKE_CURRENT_LIST_DIR}/cuda_pack.c)
set_tests_properties(backends_cuda_faults backends_cuda_memory backends_cuda_choose backends_cuda_pack PROPERTIES
  ENVIRONMENT "LD_LIBRARY_PATH=${stubs}/whole;KILN_NVRTC_PATH=")
add_dependencies(backends_cuda_faults stub_whole_cuda stub_whole_nvrtc)
add_dependencies(backends_cuda_memory stub_whole_cuda stub_whole_nvrtc)
add_dependencies(backends_cuda_choose stub_whole_cuda stub_whole_nvrtc)
add_dependencies(backends_cuda_pack stub_whole_cuda stub_whole_nvrtc)

kiln_test(backends_nccl ${CMAKE_CURRENT_LIST_DIR}/nccl.c)
set_tests_properties(backends_nccl PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${stubs}/whole;KILN_NVRTC_PATH=")
add_dependencies(backends_nccl stub_whole_cuda stub_whole_nvrtc stub_whole_nccl)

kiln_test(backends_cpu_memory ${CMAKE_CURRENT_LIST_DIR}/cpu_memory.c)
kiln_test(backends_cpu_isa ${CMAKE_CURRENT_LIST_DIR}/cpu_isa.c)
list(JOIN options_of_avx2 " " avx2)
list(JOIN options_of_avx512 " " avx512)
target_compile_definitions(backends_cpu_isa PRIVATE "OPTIONS_OF_AVX2=\"${avx2}\"" "OPTIONS_OF_AVX512=\"${avx512}\"")

kiln_test(backends_opencl ${CMAKE_CURRENT_LIST_DIR}/opencl.c)
kiln_test(backends_opencl_teams ${CMAKE_CURRENT_LIST_DIR}/opencl_teams.c)
kiln_test(backends_threads ${CMAKE_CURRENT_LIST_DIR}/threads.c)
# Its children begin threads, which ThreadSanitizer can follow but thinks unwise.
set_tests_properties(backends_threads PROPERTIES
  ENVIRONMENT "LD_LIBRARY_PATH=${stubs}/whole;KILN_NVRTC_PATH=;TSAN_OPTIONS=die_after_fork=0")
add_dependencies(backends_threads stub_whole_cuda stub_whole_nvrtc)
kiln_test(backends_plans ${CMAKE_CURRENT_LIST_DIR}/plans.c)
kiln_test(backends_pace ${CMAKE_CURRENT_LIST_DIR}/pace.c)
kiln_test(backends_dialect ${CMAKE_CURRENT_LIST_DIR}/dialect.c)

# Files that are there but are no libraries.
file(WRITE ${stubs}/broken/libcuda.so.1 "not a library\n")
file(WRITE ${stubs}/broken/libOpenCL.so.1 "not a library\n")
file(WRITE ${stubs}/broken/libOpenCL.so "not a library\n")

add_executable(backends_missing ${CMAKE_CURRENT_LIST_DIR}/missing.c)
target_include_directories(backends_missing PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(backends_missing PRIVATE kiln_flags kiln_static ${CMOCKA_LIBRARY})
# missing(case environment device message hint)
function(backends_missing_test case environment device message hint)
  add_test(NAME backends_missing_${case} COMMAND backends_missing ${device} ${message} ${hint})
  set_tests_properties(backends_missing_${case} PROPERTIES ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77 TIMEOUT 60)
endfunction()
backends_missing_test(driver "KILN_NVRTC_PATH=" cuda "not found" "--device auto")
backends_missing_test(driver_broken "LD_LIBRARY_PATH=${stubs}/broken" cuda "does not load" "driver")
backends_missing_test(driver_old "LD_LIBRARY_PATH=${stubs}/old_driver" cuda "has no cuLaunchKernel" "driver")
backends_missing_test(nvrtc "LD_LIBRARY_PATH=${stubs}/whole;KILN_NVRTC_PATH=/nowhere/libnvrtc.so.13" cuda
  "KILN_NVRTC_PATH" "pip install nvidia-cuda-nvrtc")
backends_missing_test(nvrtc_relative "LD_LIBRARY_PATH=${stubs}/whole;KILN_NVRTC_PATH=libnvrtc.so.13" cuda
  "absolute path" "pip install nvidia-cuda-nvrtc")
backends_missing_test(nvrtc_old "LD_LIBRARY_PATH=${stubs}/old_compiler;KILN_NVRTC_PATH=" cuda
  "has no nvrtcGetProgramLog" "pip install nvidia-cuda-nvrtc")
backends_missing_test(opencl_broken "LD_LIBRARY_PATH=${stubs}/broken" opencl "does not load"
  "pocl-opencl-icd ocl-icd-libopencl1")
backends_missing_test(opencl_platforms "OCL_ICD_VENDORS=/nowhere" opencl "no driver in /etc/OpenCL/vendors" "opencl")

# Every kernel is valid in both languages, on a machine without a GPU.
find_program(KILN_SYNTAX_CLANG NAMES clang-14 clang clang-15 clang-16)
add_test(NAME backends_syntax COMMAND ${CMAKE_COMMAND} -DCLANG=${KILN_SYNTAX_CLANG} -DSOURCE=${CMAKE_SOURCE_DIR}/src
  -DCUDA=${CMAKE_CURRENT_LIST_DIR}/cuda_syntax.h
  -DWORK=${CMAKE_CURRENT_BINARY_DIR}/syntax -P ${CMAKE_CURRENT_LIST_DIR}/syntax.cmake)
set_tests_properties(backends_syntax PROPERTIES TIMEOUT 600)

# An NVRTC, which needs no GPU, compiles them too, if there is one.
kiln_test(backends_nvrtc ${CMAKE_CURRENT_LIST_DIR}/nvrtc.c)
set_tests_properties(backends_nvrtc PROPERTIES SKIP_RETURN_CODE 77)

# No test: what the cost model says of a GPU that is not here, for bench/studies/fit_dense.py and fit_batch.py.
add_executable(kiln_dense_plans ${CMAKE_CURRENT_LIST_DIR}/dense_plans.c)
target_include_directories(kiln_dense_plans PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(kiln_dense_plans PRIVATE kiln_flags kiln_static m)
add_executable(kiln_batch_plans ${CMAKE_CURRENT_LIST_DIR}/batch_plans.c)
target_include_directories(kiln_batch_plans PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(kiln_batch_plans PRIVATE kiln_flags kiln_static m)
