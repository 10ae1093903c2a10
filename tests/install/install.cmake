# cmake -DBUILD= -DSOURCE= -DWORK= -DCC= -DPKG_CONFIG= -DLIBDIR= -DBINDIR= -DGENERATOR= -DLINK_FLAGS= -DVERSION= -P install.cmake
# A program of ten lines, built as a user would build it: with pkg-config (shared and static) and with find_package.
set(prefix ${WORK}/prefix)
set(expected "y = 1.96 x + 1.10\n")
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/outside)
file(COPY ${SOURCE}/examples/00_first.c DESTINATION ${WORK}/outside)

function(run result)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK}/outside RESULT_VARIABLE code OUTPUT_VARIABLE output
    ERROR_VARIABLE errors)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${code}\n${output}${errors}")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

function(expect program)
  run(output ${program})
  if(NOT output STREQUAL expected)
    message(FATAL_ERROR "${program} printed '${output}', but '${expected}' was expected")
  endif()
endfunction()

run(ignored ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# pkg-config, from the installed file alone; moving the prefix must not matter.
file(RENAME ${prefix} ${WORK}/moved)
set(prefix ${WORK}/moved)
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
run(flags ${PKG_CONFIG} --cflags --libs kiln)
separate_arguments(flags UNIX_COMMAND "${flags}")
separate_arguments(extra UNIX_COMMAND "${LINK_FLAGS}")
run(ignored ${CC} 00_first.c -o with_pkg_config ${flags} -Wl,-rpath,${prefix}/${LIBDIR} ${extra})
expect(./with_pkg_config)

run(flags ${PKG_CONFIG} --cflags --libs --static kiln)
string(REPLACE "-lkiln " "-l:libkiln.a " flags "${flags} ")
separate_arguments(flags UNIX_COMMAND "${flags}")
run(ignored ${CC} 00_first.c -o with_static ${flags} ${extra})
expect(./with_static)

# The CMake package.
file(WRITE ${WORK}/outside/CMakeLists.txt "cmake_minimum_required(VERSION 3.18)
project(outside C)
find_package(kiln ${VERSION} REQUIRED)
add_executable(with_cmake 00_first.c)
target_link_libraries(with_cmake PRIVATE kiln::kiln ${LINK_FLAGS})
")
run(ignored ${CMAKE_COMMAND} -G ${GENERATOR} -S . -B build -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_COMPILER=${CC})
run(ignored ${CMAKE_COMMAND} --build build)
expect(build/with_cmake)

# The tool runs from where it was installed, and the library and the header agree on the version.
run(version ${prefix}/${BINDIR}/kiln --version)
run(package ${PKG_CONFIG} --modversion kiln)
string(STRIP "${package}" package)
if(NOT version MATCHES "${package}")
  message(FATAL_ERROR "the tool says '${version}', pkg-config says '${package}'")
endif()

# Pages and completions came along, and are not empty.
foreach(name kiln.1.gz kiln-linreg.1.gz kiln-predict.1.gz completions/kiln _kiln kiln.fish)
  file(GLOB_RECURSE found ${prefix}/share/*/${name})
  set(size 0)
  if(found)
    file(SIZE ${found} size)
  endif()
  if(size LESS 100)
    message(FATAL_ERROR "${name} was not installed below ${prefix}/share, or is empty")
  endif()
endforeach()
