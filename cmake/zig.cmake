# Cross compiles by Zig (scripts/wheels.sh): $KILN_TARGET is its name of the target, such as aarch64-linux-gnu.2.28 or aarch64-macos.11.0,
# $KILN_ZIG the folder with cc, ar and ranlib, $KILN_STATIC the one with the target's zlib, Jansson and zstd.
if("$ENV{KILN_TARGET}" MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_INSTALL_NAME_TOOL true) # CMake asks for one; nothing that is installed needs it
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "$ENV{KILN_TARGET}")
set(CMAKE_C_COMPILER $ENV{KILN_ZIG}/cc)
set(CMAKE_AR $ENV{KILN_ZIG}/ar)
set(CMAKE_RANLIB $ENV{KILN_ZIG}/ranlib)
# without symbols, as this machine's strip knows its own processor alone
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_EXE_LINKER_FLAGS_INIT -s)
set(CMAKE_FIND_ROOT_PATH $ENV{KILN_STATIC})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
