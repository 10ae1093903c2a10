#!/bin/sh
# Installs what the tests need, builds Kiln in every way that is promised, and runs all tests.
#   ./test.sh          everything: gcc, clang, sanitizers, format, lint, all tests (under 20 minutes on 2 cores)
#   ./test.sh quick    one gcc build and its tests
set -eu
cd "$(dirname "$0")"
. ./scripts/install.sh

need_packages "$BUILD_PACKAGES $TEST_PACKAGES"

# build FOLDER cmake-arguments...
build() {
    folder=$1
    shift
    say "building $folder"
    run_quietly cmake -S . -B "$folder" -G Ninja "$@"
    run_quietly cmake --build "$folder"
}

build build-gcc -DCMAKE_C_COMPILER=gcc -DKILN_WERROR=ON
if [ "${1:-all}" = quick ]; then
    ctest --test-dir build-gcc --output-on-failure
    exit
fi

say "checking the tree: layers, format, lint"
./scripts/check_tree.py
./scripts/lint.sh build-gcc

# With clang the offsets at which kernels change to 64-bit indices are lowered, so that both paths are walked.
build build-clang -DCMAKE_C_COMPILER=clang-14 -DKILN_WERROR=ON -DKILN_INDEX32_LIMIT=4096
build build-sanitize -DCMAKE_C_COMPILER=clang-14 -DKILN_WERROR=ON -DKILN_SANITIZE=ON -DKILN_FUZZ=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo

say "tests with clang and lowered index limit"
ctest --test-dir build-clang --output-on-failure
say "tests with address and undefined behaviour sanitizers, fuzz smoke"
ctest --test-dir build-sanitize --output-on-failure
say "tests with gcc"
ctest --test-dir build-gcc --output-on-failure
