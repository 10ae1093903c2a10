#!/bin/sh
# clang-format and clang-tidy over our C; $1 is a build folder with compile_commands.json.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh

format() {
    find include src cli tests bench examples -name '*.[ch]' ! -path src/dialect/cuda.h ! -path src/dialect/opencl.h \
        ! -path src/dialect/group_sum.h -print0 | xargs -0 clang-format-14 --dry-run -Werror
}

# clang-tidy reads a file once for each of its commands. CPU bodies have one for each instruction set: the last, the widest, is kept.
# Most of its time goes into the analyser's walk through a function's paths. It stops at 25,000 states of a function, not the usual
# 225,000, so a defect deep in a long function may escape it: at 75,000 states all of lint took two and a half times as long.
tidy() {
    mkdir -p "$1/lint"
    python3 -c 'import json, sys
json.dump(list({command["file"]: command for command in json.load(sys.stdin)}.values()), sys.stdout)' \
        <"$1/compile_commands.json" >"$1/lint/compile_commands.json"
    find src cli "$1/bodies" -name '*.c' -print0 | xargs -0 -P 2 -n 1 clang-tidy-14 -p "$1/lint" \
        --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=25000 --quiet --warnings-as-errors='*'
}

run_quietly format
run_quietly tidy "$1"
