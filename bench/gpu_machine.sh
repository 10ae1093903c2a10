#!/bin/sh
# Builds Kiln on a machine with a GPU that has a compiler, CMake and Python, but neither a network nor Debian's packages.
#   bench/gpu_machine.sh pack FOLDER     here, on Debian: what that machine lacks, and the source of the last commit
#   bench/gpu_machine.sh build FOLDER BUILD COMMAND...     there: builds into BUILD, and runs COMMAND with what it needs
# as in   bench/gpu_machine.sh build carried /tmp/b bench/gpu.sh /tmp/b OUT doctor conformance
# PYTHON_WHEELS names wheels to carry beside cffi (peers); PYTHON_VERSION is that machine's, without a point (312).
set -eu
here=$(dirname "$(realpath "$0")")
mode=$1
folder=$2
mkdir -p "$folder"
folder=$(realpath "$folder")

if [ "$mode" = pack ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    apt-get -q download libjansson-dev libjansson4 libcmocka-dev libcmocka0 zlib1g-dev zlib1g libzstd-dev libzstd1 >/dev/null
    for package in *.deb; do dpkg -x "$package" root; done
    if [ -d root/lib ] && [ ! -L root/lib ]; then cp -r root/lib root/usr && rm -r root/lib; fi
    rm -rf root/usr/share "$folder/usr" "$folder/wheels"
    find root -name '*.a' -delete
    cp -rL root/usr "$folder/usr" # without links, which do not travel everywhere
    # shellcheck disable=SC2086
    python3 -m pip download -q --disable-pip-version-check --only-binary :all: --python-version "${PYTHON_VERSION:-312}" \
        --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 -d "$folder/wheels" cffi ${PYTHON_WHEELS:-}
    cd "$here/.."
    git rev-parse --short=8 HEAD >"$folder/commit"
    git archive --format=tar HEAD | gzip -1 >"$folder/source.tgz"
    du -sh "$folder"
    exit
fi

build=$3
shift 3
lib=$folder/usr/lib/$(uname -m)-linux-gnu
export CPATH="$folder/usr/include${CPATH:+:$CPATH}" LIBRARY_PATH="$lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
export LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" CMAKE_PREFIX_PATH="$folder/usr" PKG_CONFIG_PATH="$lib/pkgconfig"
COMMIT=$(cat "$folder/commit")
export COMMIT
mkdir -p "$build/source" "$build/purelib"
tar xzf "$folder/source.tgz" -C "$build/source"
python3 -m pip install -q --disable-pip-version-check --no-index --no-deps --target "$build/purelib" "$folder"/wheels/*.whl
export PYTHONPATH="$build/purelib${PYTHONPATH:+:$PYTHONPATH}"
cd "$build/source"
cmake -S . -B "$build" >"$build/cmake.log" 2>&1 && cmake --build "$build" -j "$(nproc)" >"$build/build.log" 2>&1 || {
    tail -n 30 "$build/cmake.log" "$build/build.log"
    exit 1
}
python3 python/binding.py gcc include python/kiln/_binding.py
export KILN_LIBRARY="$build/libkiln.so" KILN_TOOL="$build/kiln" KILN_CACHE_DIR="$build/kernels"
exec "$@"
