#!/bin/sh
# clang-format and clang-tidy over our C; $1 is a build folder with compile_commands.json.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh

format() {
    find include src cli tests bench examples -name '*.[ch]' ! -path src/dialect/cuda.h ! -path src/dialect/opencl.h \
        ! -path src/dialect/group_sum.h -print0 | xargs -0 clang-format-14 --dry-run -Werror
}

tidy() {
    find src cli "$1/bodies" -name '*.c' -print0 | xargs -0 -P 2 -n 1 clang-tidy-14 -p "$1" --quiet --warnings-as-errors='*'
}

run_quietly format
run_quietly tidy "$1"
