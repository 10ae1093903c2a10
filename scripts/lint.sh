#!/bin/sh
# clang-format and clang-tidy over our C; $1 is a build folder with compile_commands.json.
set -eu
cd "$(dirname "$0")/.."
sources=$(git ls-files '*.c' '*.h' | grep -v '^src/dialect/\(cuda\|opencl\|group_sum\)\.h$')
# shellcheck disable=SC2086
clang-format-14 --dry-run -Werror $sources
git ls-files 'src/*.c' 'cli/*.c' | xargs -P 2 -n 4 clang-tidy-14 -p "$1" --quiet --warnings-as-errors='*'
