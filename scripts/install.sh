# Sourced by quickstart.sh and test.sh: installs missing Debian packages, and runs long commands with their output
# kept for when they fail.

BUILD_PACKAGES="gcc libc6-dev cmake ninja-build zlib1g-dev libjansson-dev libzstd-dev"
TEST_PACKAGES="ccache libcmocka-dev clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 llvm-14 \
pocl-opencl-icd ocl-icd-libopencl1 python3 python3-venv pkg-config librsvg2-2 fonts-dejavu-core \
libopenmpi-dev openmpi-bin"

say() {
    printf '==> %s\n' "$*"
}

# need_packages "a b c": installs those that are missing, as root or through sudo.
need_packages() {
    if ! command -v dpkg-query >/dev/null; then
        say "this is no Debian system; needed are: $1"
        return
    fi
    missing=""
    for package in $1; do
        case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
        *" installed") ;;
        *) missing="$missing $package" ;;
        esac
    done
    [ -n "$missing" ] || return 0
    as_root=""
    [ "$(id -u)" = 0 ] || as_root=sudo
    say "installing:$missing"
    run_quietly $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086
    run_quietly $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

# run_quietly command...: shows the output only if the command fails.
run_quietly() {
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        rm -f "$log"
    else
        code=$?
        cat "$log" >&2
        rm -f "$log"
        say "failed: $*" >&2
        exit "$code"
    fi
}
