#!/bin/sh
# clang-format and clang-tidy over our C; $1 is a build folder with compile_commands.json. With "warnings" behind it: only what clang
# itself warns of, in seconds, as the build with sanitizers refuses it. With "deep": the analyser walks further, which takes several
# times as long.
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh

format() {
    find include src cli tests bench examples -name '*.[ch]' ! -path src/dialect/cuda.h ! -path src/dialect/opencl.h \
        ! -path src/dialect/group_sum.h -print0 | xargs -0 clang-format-14 --dry-run -Werror
}

# clang-tidy reads a file once for each of its commands. CPU bodies have one for each instruction set: the last, the widest, is kept.
commands() {
    mkdir -p "$1/lint"
    python3 -c 'import json, sys
json.dump(list({command["file"]: command for command in json.load(sys.stdin)}.values()), sys.stdout)' \
        <"$1/compile_commands.json" >"$1/lint/compile_commands.json"
}

# Nine tenths of its time go into the analyser's walk through a function's paths. It stops at so many states of a function, not at the
# usual 225,000, so a defect deep in a long function may escape it.
tidy() {
    find src cli "$1/bodies" -name '*.c' ! -name '*_macos.c' -print0 | xargs -0 -P 2 -n 1 clang-tidy-14 -p "$1/lint" \
        --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes="$nodes" --quiet --warnings-as-errors='*'
}

# Clang's warnings of every file that the folder compiles, as CMakeLists.txt asks clang for them: a twentieth of a second a file.
warnings() {
    python3 -c 'import json, re, shlex, sys
for command in json.load(sys.stdin):
    own = re.search("kiln_(objects|tool)[.]dir", command["command"])
    told = " -fsyntax-only -Werror " + ("-Wconditional-uninitialized " if own else "")
    flags = re.sub(r" -o \S+ -c ", told, command["command"])
    print("cd", shlex.quote(command["directory"]), "&&", re.sub(r"^(\S*ccache )?\S+", "clang-14", flags))' \
        <"$1/lint/compile_commands.json" | xargs -P 2 -d '\n' -n 1 sh -c
}

commands "$1"
if [ "${2:-all}" = warnings ]; then
    run_quietly warnings "$1"
    exit
fi
nodes=8000
[ "${2:-all}" != deep ] || nodes=75000
run_quietly format
run_quietly tidy "$1"
