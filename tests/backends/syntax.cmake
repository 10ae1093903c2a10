# Checks every kernel below SOURCE, in each variant that its lines "// build" name, as OpenCL C 1.2 and as CUDA C++ (through the stand-ins of
# the header CUDA) with the compiler CLANG. f32 kernels are checked as for a device without f64. Kernels with instructions of
# NVIDIA's are checked as its OpenCL sees them, too, down to the operands of its PTX, whose text is the same as CUDA's.
if(NOT CLANG)
  message(FATAL_ERROR "clang is needed to check the kernels: apt install clang-14")
endif()
file(MAKE_DIRECTORY ${WORK})
file(GLOB_RECURSE kernels ${SOURCE}/*.cl)
set(failures 0)
set(checks 0)

# source_of(variable dialect kernel type): the parts in the order of core/kernels/kernel_source.c.
function(source_of variable dialect kernel type)
  set(text "#define REAL_${type} 1\n")
  set(parts types.h ${dialect}.h scalar_math.h real_math.h losses.h group_sum.h arguments.h chain_arguments.h wide_loads.h pass.h bulk.h
    tensor.h halves.h screen.h tile.h exchange.h gathered.h)
  list(TRANSFORM parts PREPEND ${SOURCE}/dialect/)
  foreach(part ${parts} ${kernel})
    file(READ ${part} content)
    string(APPEND text "#line 1 \"${part}\"\n${content}\n")
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

macro(check language file type options)
  execute_process(COMMAND ${CLANG} ${ARGN} ${options} -fsyntax-only
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  math(EXPR checks "${checks} + 1")
  if(NOT result EQUAL 0)
    math(EXPR failures "${failures} + 1")
    message("${file} (${type}, ${options}) is not valid ${language}:\n${output}")
  endif()
endmacro()

foreach(kernel IN LISTS kernels)
  get_filename_component(file ${kernel} NAME_WE)
  file(STRINGS ${kernel} variants REGEX "^// build( |$)")
  if(NOT variants)
    message(FATAL_ERROR "${file}.cl has no line \"// build OPTION ...\"")
  endif()
  foreach(type F32 F64)
    source_of(opencl opencl ${kernel} ${type})
    source_of(cuda cuda ${kernel} ${type})
    file(WRITE ${WORK}/${file}_${type}.cl "${opencl}")
    file(WRITE ${WORK}/${file}_${type}.cpp "${cuda}")
    set(without "")
    if(type STREQUAL F32)
      set(without -DNO_F64 -Xclang -cl-ext=-cl_khr_fp64,-cl_khr_int64_base_atomics)
    endif()
    foreach(variant IN LISTS variants)
      string(REGEX REPLACE "^// build ?" "" options "${variant}")
      string(REGEX REPLACE "([^ ]+) ?" "-D\\1;" options "${options}")
      check("OpenCL C" ${file} ${type} "${options}" -x cl -cl-std=CL1.2 -target spir64-unknown-unknown
        -Xclang -finclude-default-header ${without} ${WORK}/${file}_${type}.cl)
      check("CUDA C++" ${file} ${type} "${options}" -x c++ -std=c++17 -include ${CUDA}
        ${WORK}/${file}_${type}.cpp)
      if(file MATCHES "^(ring|team|tile|gram)")
        check("NVIDIA's OpenCL C" ${file} ${type} "${options}" -x cl -cl-std=CL1.2 -target nvptx64-unknown-unknown
          -Xclang -finclude-default-header -Xclang -cl-ext=+cl_khr_fp64,+cl_khr_int64_base_atomics -DKILN_NVIDIA=90
          ${WORK}/${file}_${type}.cl)
      endif()
    endforeach()
  endforeach()
endforeach()
if(failures)
  message(FATAL_ERROR "${failures} of ${checks} checks failed")
endif()
message("${checks} checks passed")
