#!/bin/sh
# Installs what the tests need, builds Kiln in every way that is promised, and runs all tests.
#   ./test.sh          what CI runs: gcc, sanitizers, Python, format, lint
#   ./test.sh quick    one gcc build, the warnings of clang, and the tests
#   ./test.sh long     what takes long and seldom finds something: clang's optimiser, kernels as PoCL optimises them for users,
#                      a hundred runs of what once failed in a few, a minute of each fuzz target, deep lint, and an audit of
#                      many problems; writes bench/results/long.json and determinism.json
set -eu
cd "$(dirname "$0")"
. ./scripts/install.sh

need_packages "$BUILD_PACKAGES $TEST_PACKAGES"

# The wheel consists of what gcc's build compiles, too: the compiler runs once for both.
export CCACHE_DIR="$PWD/build-ccache" CCACHE_BASEDIR="$PWD"

# Threads of NumPy and scikit-learn, which wait by spinning, would take the processors from what runs beside them.
export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1

# build FOLDER TARGET cmake-arguments...
build() {
    folder=$1
    target=$2
    shift 2
    say "building $folder"
    run_quietly cmake -S . -B "$folder" -G Ninja -DKILN_WERROR=ON "$@"
    run_quietly cmake --build "$folder" --target "$target"
}

# attempt command...: goes on after a failure, so that one run names all that fails.
failed=0
attempt() {
    "$@" || {
        say "FAILED: $*"
        failed=1
    }
}

# bounded SECONDS command...: what hangs is ended, and says where, so that the rest runs and its own output is seen.
export PYTHONFAULTHANDLER=1
bounded() {
    attempt timeout --signal=ABRT --kill-after=30 "$@"
}

# run_tests FOLDER ctest-arguments... Three at a time on CI's two processors, as the tests of drivers that hang and of MPI mostly wait.
run_tests() {
    folder=$1
    shift
    attempt ctest --test-dir "$folder" --output-on-failure --no-tests=error -j 3 "$@"
    passed=$((${passed:-0} + $(grep -c '^Test Passed' "$folder/Testing/Temporary/LastTest.log" || :)))
}

# As its users get it: the wheel, in an environment of its own. What it needs is compiled where a test imports it.
install_package() {
    rm -rf build-wheel
    CC=gcc CMAKE_C_COMPILER_LAUNCHER=ccache SKBUILD_CMAKE_DEFINE=KILN_WERROR=ON ./scripts/package.sh wheel build-wheel
    python3 -m venv build-python
    run_quietly build-python/bin/pip install --disable-pip-version-check --force-reinstall --no-deps build-wheel/*.whl
    run_quietly build-python/bin/pip install --disable-pip-version-check --no-compile "kiln-ml[test,docs] @ file://$(echo "$PWD"/build-wheel/*.whl)"
}

# Much of these waits for a network or keeps one processor busy: they run beside the tests with sanitizers.
beside_sanitizers() {
    say "checking the tree: layers, figures, format, lint"
    attempt ./scripts/check_tree.py
    attempt python3 bench/plot.py --check
    bounded 1800 ./scripts/lint.sh build-gcc

    say "tests of the Python package"
    install_package
    bounded 600 build-python/bin/mypy
    # Kernels as PoCL compiles them for users. Two processes, as many of these tests wait for others that they begin.
    # A process that dies fails its test and is not replaced: with loadfile, pytest-xdist 3.8 waits for ever for the one in its place.
    . build-gcc/tests/kernels.sh
    bounded 3000 env KILN_TOOL="$PWD/build-gcc/kiln" build-python/bin/python -m pytest -q -n 2 --dist loadfile --max-worker-restart 0 \
        --durations 8
    # At most a minute; more problems and other seeds by hand. On OpenCL three shapes, so that few kernels are built.
    say "an audit that shares nothing with what it audits: problems drawn at random, through the tool and the package"
    bounded 300 build-python/bin/python tests/audit build-gcc/kiln --entrances tool,package --devices 'cpu,cpu,cpu*2' \
        --seed 41 --problems 500 --seconds 40
    bounded 300 build-python/bin/python tests/audit --entrances package \
        --devices opencl --shapes 3 --seed 3 --problems 12 --seconds 20
    say "real tables from end to end"
    timeout 600 build-python/bin/python tests/cli/real_tables.py build-gcc/kiln --fetch || attempt test $? = 77
    say "the documentation site"
    bounded 600 ./scripts/docs.sh build-python/bin/python
    return "$failed"
}

# Kernels that the first tests built are taken from their cache: a compiler under sanitizers takes minutes.
cache=$PWD/build-gcc/test-cache

run_long() {
    began=$(date +%s)
    seed=$(date +%y%m%d)
    say "every operation in f32 with kernels as PoCL compiles them for users"
    run_tests build-gcc -L long
    say "a hundred times, beside each other: what memory and threads of others once made fail in a few runs"
    run_tests build-gcc -R '^(cli_safety|conformance_opencl_[37]_.*)$' --repeat until-fail:100
    say "the same bits in 20 runs, on each number of threads"
    KILN_CACHE_DIR=$cache/optimised python3 tests/cli/determinism_test.py build-gcc/kiln --devices 'cpu,cpu*2,opencl' --runs 20 \
        --json bench/results/determinism.json
    build build-clang compiler_tests -DCMAKE_C_COMPILER=clang-14 -DKILN_TEST_QUICK=ON -DKILN_TEST_CACHE="$cache"
    say "what depends on a compiler, with clang's optimiser"
    run_tests build-clang -L compilers
    # Apart, because checksums always agree in a fuzz build: the tests of bad checksums would fail.
    build build-fuzz fuzz_targets -DCMAKE_C_COMPILER=clang-14 -DCMAKE_BUILD_TYPE=RelWithDebInfo -DKILN_SANITIZE=ON \
        -DKILN_FUZZ=ON -DKILN_FUZZ_SECONDS=60
    say "fuzz targets, a minute each"
    run_tests build-fuzz -L fuzz -E '^fuzz_mutate$'
    say "a hundred times under sanitizers: factors that fail"
    build build-sanitize linreg -DCMAKE_C_COMPILER=clang-14 -DCMAKE_BUILD_TYPE=RelWithDebInfo -DKILN_SANITIZE=ON \
        -DKILN_TEST_QUICK=ON -DKILN_TEST_CACHE="$cache"
    run_tests build-sanitize -R '^linreg(_avx2|_avx512)?$' --repeat until-fail:100
    say "clang-tidy, with a deep walk through the paths of each function"
    ./scripts/lint.sh build-gcc deep
    say "an audit of many problems, seed $seed"
    install_package
    build-python/bin/python tests/audit build-gcc/kiln --entrances tool,package --devices 'cpu,cpu,cpu*2' \
        --seed "$seed" --problems 10000 --seconds 900
    say "packages, installed, used and removed in machines as they come"
    for kind in sdist deb; do
        ./scripts/package.sh "$kind" "build-packages/$kind"
    done
    ./scripts/wheels.sh build-packages x86_64-linux-gnu.2.28 aarch64-macos.11.0
    cp build-packages/deb/*.deb build-packages
    ./scripts/fresh.sh "${KILN_ROOTS:-/var/tmp/kiln-roots}" build-packages
    [ "$failed" = 0 ] || return 0
    printf '{"date": "%s", "commit": "%s", "tests": %d, "audit_seed": %d, "seconds": %d}\n' "$(date +%F)" \
        "$(git rev-parse --short HEAD)" "$passed" "$seed" "$(($(date +%s) - began))" >bench/results/long.json
    cat bench/results/long.json
}

build build-gcc all -DCMAKE_C_COMPILER=gcc -DCMAKE_C_COMPILER_LAUNCHER=ccache
if [ "${1:-all}" = long ]; then
    run_long
    exit "$failed"
fi
if [ "${1:-all}" = quick ]; then # all of it compiles with clang for the sanitizers
    say "warnings of clang"
    ./scripts/lint.sh build-gcc warnings
fi
say "tests with gcc"
run_tests build-gcc -LE long
[ "${1:-all}" != quick ] || exit "$failed"

say "beside what follows: the tree, lint, and the Python package"
beside_log=$PWD/build-gcc/beside.log
(beside_sanitizers) >"$beside_log" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null || :' EXIT

# What only hands the kernels' source to other compilers has done so by now.
kernel_compilers='^backends_(nvrtc|syntax)$'

build build-sanitize all -DCMAKE_C_COMPILER=clang-14 -DCMAKE_BUILD_TYPE=RelWithDebInfo -DKILN_SANITIZE=ON \
    -DKILN_TEST_QUICK=ON -DKILN_TEST_CACHE="$cache"
say "tests with address and undefined behaviour sanitizers"
# More members than rows go through one of conformance's tests of groups. That results are the same bits, and the same on a budget, gcc's
# build has shown through the tool; the code is that of other tests.
run_tests build-sanitize -LE long -E "^(conformance_(cpu_2|cpu_3|opencl_[37]_.*)|cli_budgets|cli_determinism)\$|$kernel_compilers"

build build-thread thread_tests -DCMAKE_C_COMPILER=clang-14 -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DKILN_SANITIZE=thread -DKILN_TEST_QUICK=ON
say "tests of what runs on several threads, with the thread sanitizer"
run_tests build-thread -L threads

say "what ran beside:"
attempt wait "$beside"
trap - EXIT
cat "$beside_log"
[ "$failed" = 0 ] || { say "FAILED: see the lines above that begin so"; exit 1; }
say "$passed tests passed, and those of the Python package above"
