#!/bin/sh
# Everything that a machine with an NVIDIA GPU can prove, from a finished build folder, each step in less than ten minutes.
#   bench/gpu.sh BUILD OUT STEP...
# Steps, with the seconds that they take on an H200 with 16 cores (* reckoned, not yet measured):
#   doctor 5    conformance 102 a GPU   plans-agree 15 a device   cli 60*   budgets 200*   planted 40*   sanitize 162 (memcheck; the others take longer*)
#   batch 60*   kmeans 48   dense 60    dense-opencl 90    sparse 150   sddmm 80*   factors 100   codes 120*   narrow 50*   newton 60   models 200*   mds 40*    svd 200*    pagerank 80*    overheads 120*    first-call 50    linreg 40   iteration 20
#   stream 60   end-to-end 150    audit 460* (four seeds from SEED on, beside each other)    recommend 120* (the package implicit beside it)    streaming 100*
#   papers 450* (STEPS chooses among its steps, as bench/papers names them)
#   plans 250*  auto 500*          cores 150*         scale 120*    rows 150* (two GPUs or more; GPUS says how many)
# DEVICES chooses among the devices of conformance, OPERATIONS among its operations, TOOLS among compute-sanitizer's, TURNS among what gpu_rings.py does. EXTENT is
# how much of each operation they see (--quick). Results (JSON, logs) go to the folder
# OUT: logs.tar.gz holds all logs. COMMIT names what was built, RODE the library that peers/rode.sh has built. Scripts of peers go
# through the Python package: they want cffi, and python/kiln/_binding.py, which python/binding.py writes, or the package installed.
set -u
build=$1
out=$2
shift 2
here=$(dirname "$0")
commit=${COMMIT:-unknown}
failed=0
cores=$(nproc)
export LD_LIBRARY_PATH="$build/lib:$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export KILN_LIBRARY="$build/libkiln.so" PYTHONUNBUFFERED=1 PYTHONPATH="$here/peers:$here/../python"
mkdir -p "$out/logs"

# step NAME command...: runs it, keeps its output, shows the end.
step() {
    name=$1
    shift
    began=$(date +%s)
    if "$@" >"$out/logs/$name.log" 2>&1; then result=ok; else result="FAILED ($?)"; failed=1; fi
    took=$(($(date +%s) - began))
    echo "== $name: $result, $took s"
    last=$(tail -n 1 "$out/logs/$name.log" | sed "s|$out|OUT|g" | tr -d '\\"' | cut -c1-120)
    printf '{"step": "%s", "result": "%s", "seconds": %d, "last_line": "%s", "date": "%s", "commit": "%s"}\n' "$name" \
        "$result" "$took" "$last" "$(date +%F)" "$commit" >>"$out/gpu-checks.jsonl"
    tail -n "${TAIL:-12}" "$out/logs/$name.log"
}

# peer NAME FILE script arguments...: one of bench/peers, its results into OUT.
peer() {
    name=$1 file=$2 script=$3
    shift 3
    TAIL=${TAIL:-40} step "$name" timeout 580 python3 "$here/peers/$script" "$@" --json "$out/$file" --commit "$commit"
}

# The suite's operations and checks, as it names them where it is asked for one that there is not.
operations() {
    echo "${OPERATIONS:-$("$build/tests/conformance" --op - 2>&1 | sed -n 's/.*there are //p')}"
}

# suite NAME COMMAND...: a process for each operation and type, side by side, for building the kernels takes the most time.
# COMMAND is what goes before the suite's own options.
suite() {
    parts="$out/logs/$1"
    shift
    mkdir -p "$parts"
    rm -f "$parts"/*
    for op in $(operations); do
        for type in f32 f64; do echo "$op $type"; done
    done | PARTS="$parts" COMMAND="$*" xargs -P "$jobs" -L 1 sh -c '
        timeout 540 $COMMAND --op "$0" --type "$1" >"$PARTS/$0.$1" 2>&1
        code=$?
        if [ $code -ne 0 ] && [ $code -ne 77 ]; then echo "FAILED ($code) $0 $1" >>"$PARTS/failed"; fi'
    # The head of what went wrong, the table, the sum.
    grep -h -E -A 12 '^FAIL|========= (Error|Invalid|Uninit|Barrier)|is lost' "$parts"/*.f?? | head -n 300
    grep -h -E '^(cuda|opencl|cpu)[:.0-9]* +[a-z_]+ +f(32|64) ' "$parts"/*.f?? | sort
    awk '/ passed, .* failed, / { p += $1; f += $3; s += $5 } /ERROR SUMMARY|RACECHECK SUMMARY/ { reports++ }
        END { print p " passed, " f " failed, " s " skipped, " reports + 0 " reports of a sanitizer" }' "$parts"/*.f??
    if [ -e "$parts/failed" ]; then
        cat "$parts/failed"
        return 1
    fi
}

# agree DEVICE: conformance --plans, 8 parts a type side by side.
agree() {
    parts="$out/logs/plans-$(echo "$1" | tr : -).d"
    mkdir -p "$parts"
    rm -f "$parts"/*
    for type in f32 f64; do for part in 0 1 2 3 4 5 6 7; do echo "$type $part"; done; done |
        PARTS="$parts" COMMAND="$build/tests/conformance --plans --device $1 --each ${EACH:-6}" xargs -P "$cores" -L 1 sh -c '
            timeout 540 $COMMAND --type "$0" --part "$1/8" >"$PARTS/$0.$1" 2>&1 || echo "FAILED ($?) $0 $1" >>"$PARTS/failed"'
    grep -h "^FAIL" "$parts"/f??.? | cut -c1-300 | head -n 40
    awk '/ passed, .* failed, / { p += $1; f += $3 } END { print p " plans agree, " f " do not" }' "$parts"/f??.?
    if [ -e "$parts/failed" ]; then
        cat "$parts/failed"
        return 1
    fi
}

# sanitize TOOL: small problems of every operation, and of some kernels so many rows that they go through them in several turns.
sanitize() {
    tool="compute-sanitizer --tool $1 --print-limit 20 --error-exitcode 9"
    result=0
    suite "sanitize-$1.d" $tool "$build/tests/conformance" --device cuda:0 ${EXTENT:---quick} || result=1
    echo "== rings"
    rings="$out/logs/sanitize-$1.d/rings"
    seq 0 7 | TOOL="$tool" RINGS="$rings" xargs -P 8 -I PART sh -c '
        timeout 300 $TOOL python3 '"$here"'/peers/gpu_rings.py --part PART/8 --what '"${TURNS:-passes,grams,centres}"' >"$RINGS.PART" 2>&1' || result=1
    grep -h -A 12 -E '^[a-z].*WRONG|========= ' "$rings".[0-9] | head -n 100
    echo "$(cat "$rings".[0-9] | grep -c '^[a-z].* float[0-9]*: ') results of several turns"
    return $result
}

# plant TOOL REPORT FILE CHANGE COMMAND...: of the error that sed's CHANGE makes in FILE.cl, COMMAND under TOOL must get that REPORT: proof that the
# tool sees our kernels, and that COMMAND walks this one.
plant() {
    tool=$1 report=$2 file=$3 change=$4
    shift 4
    mkdir -p "$out/kernels"
    find "$here"/../src -name "*.cl" -exec cp {} "$out/kernels/" \;
    cp "$here"/../src/dialect/*.h "$out/kernels/"
    sed -i "$change" "$out/kernels/$file.cl"
    KILN_KERNEL_DIR="$out/kernels" timeout 300 compute-sanitizer --tool "$tool" --print-limit 5 "$@" >"$out/logs/planted-$tool-$file.all" 2>&1
    rm -r "$out/kernels"
    found=$(grep -c "$report" "$out/logs/planted-$tool-$file.all")
    echo "$tool reports the error planted in $file.cl $found times"
    [ "$found" -gt 0 ]
}

# follow FILE CHANGE COMMAND...: with sed's CHANGE made in FILE.cl, racecheck has no hazard to report of COMMAND, whose results are right.
follow() {
    file=$1 change=$2
    shift 2
    mkdir -p "$out/kernels"
    find "$here"/../src -name "*.cl" -exec cp {} "$out/kernels/" \;
    cp "$here"/../src/dialect/*.h "$out/kernels/"
    sed -i "$change" "$out/kernels/$file.cl"
    cmp -s "$out/kernels/$file.cl" "$(find "$here/../src" -name "$file.cl")" && return 1
    KILN_KERNEL_DIR="$out/kernels" timeout 300 compute-sanitizer --tool racecheck --print-limit 5 --error-exitcode 9 "$@"
    code=$?
    rm -r "$out/kernels"
    return $code
}

# audits: four seeds beside each other, problems of 40 shapes through the Python package.
audits() {
    seq 0 3 | xargs -P 4 -I PART sh -c 'python3 '"$here"'/../tests/audit --entrances package --devices '"${DEVICES:-cuda:0}"' --shapes 40 \
        --seed $(('"${SEED:-$(date +%y%m%d)}"' + PART)) --seconds 420 --json '"$out"'/audit-PART.json >'"$out"'/logs/audit-PART.log 2>&1'
    result=$?
    tail -n 15 "$out"/logs/audit-?.log
    return $result
}

for wanted in "$@"; do
    jobs=$cores
    case $wanted in
    doctor) TAIL=45 step doctor "$build/kiln" doctor ;;
    conformance)
        for device in ${DEVICES:-cuda:0 opencl:0.0 opencl:1.0 cpu}; do
            if [ "$device" = cpu ]; then jobs=2; else jobs=$cores; fi
            name="conformance-$(echo "$device" | tr : -)"
            TAIL=50 step "$name" suite "$name.d" "$build/tests/conformance" --device "$device"
        done ;;
    plans-agree) # every plan of the dense passes, chosen or not; EACH bounds how many of a variant and shape
        for device in ${DEVICES:-cuda:0 opencl:1.0}; do
            TAIL=20 step "plans-$(echo "$device" | tr : -)" agree "$device"
        done ;;
    planted)
        turns="python3 $here/peers/gpu_rings.py --what"
        step planted-map plant memcheck 'Invalid __global__ ' elementwise \
            's/FOR_EACH(i, count) W\[i\] = map_value/FOR_EACH(i, count + 4096) W[i] = map_value/' \
            "$build/tests/conformance" --device cuda:0 --quick --op map
        step planted-gram plant memcheck 'Invalid __global__ write' gram_narrow 's/ to\[e\] = sum;/ to[e + (1 << 28)] = sum;/' $turns grams --part 0/4
        step planted-race plant racecheck 'Race reported' gram_narrow '/^    barrier(CLK_LOCAL_MEM_FENCE);/d' $turns grams --part 0/4
        step planted-centres plant memcheck 'Invalid __global__ write' assign_split 's/found\[row\] = label;/found[row + (1 << 28)] = label;/' \
            $turns centres --part 0/7
        # Where some 400 groups have bulk copies under way, racecheck loses a few slices' tickets and calls each byte of them a hazard
        # ("invalid async operation synchronization", a thread's own copy before its own read). Of the same code in 8 groups it loses none.
        step followed-gram follow gram_narrow 's/of.first < slices ?/get_group_id(0) < 8 \&\& of.first < slices ?/; s/of.apart = .*/of.apart = 8 * WARPS;/' \
            $turns grams --part 1/4 ;;
    sanitize)
        for tool in ${TOOLS:-memcheck racecheck synccheck initcheck}; do
            jobs=$((cores / 2 + 1))
            TAIL=120 step "sanitize-$tool" sanitize "$tool"
        done ;;
    budgets) # linear models on an X above the budget; a line for each case, "pass" or "FAIL"
        TAIL=${TAIL:-170} step budgets timeout 580 python3 "$here/../tests/cli/budget_test.py" "$build/kiln" \
            ${DEVICES:-cuda:0 opencl:0.0/short cuda:0*2/short} ;;
    cli) TAIL=20 step cli timeout 300 python3 "$here/peers/gpu_cli.py" --kiln "$build/kiln" ;;
    audit) TAIL=80 step audit audits ;;
    streaming) step streaming timeout 580 "$build/tests/streaming_budgets" cuda:0 ;;
    batch) TAIL=20 peer batch h200-batch.json gpu_batch.py ;;
    linreg) peer linreg h200-linreg.json gpu_linreg.py ;;
    iteration) peer iteration h200-iteration.json gpu_iteration.py ;;
    dense) TAIL=70 peer dense h200-dense-cuda.json gpu_dense.py ;;
    dense-opencl) TAIL=70 peer dense-opencl h200-dense-opencl.json gpu_dense.py --device opencl ;;
    sparse) peer sparse h200-sparse.json gpu_sparse.py ;;
    sddmm) peer sddmm h200-sddmm.json gpu_sddmm.py --halves ${RODE:+--rode "$RODE"} ;;
    factors) peer factors h200-factors.json gpu_factors.py ;; # als needs the package implicit
    models) TAIL=20 peer models h200-python.json gpu_models.py ;;
    kmeans) TAIL=20 peer kmeans h200-kmeans.json gpu_kmeans.py ;;
    mds) TAIL=20 peer mds h200-mds.json gpu_mds.py ;;
    svd) TAIL=40 peer svd h200-svd.json gpu_svd.py ;;
    recommend) TAIL=20 peer recommend h200-recommend.json recommend.py ;;
    pagerank) TAIL=20 peer pagerank h200-pagerank.json gpu_pagerank.py ;;
    scale) TAIL=30 peer scale h200-scale.json gpu_scale.py --gpus "${GPUS:-1,2}" --kiln "$build/kiln" ;; # on several GPUs
    rows) peer rows h200x2-rows.json gpu_rows.py --build "$build" ;; # whole runs on two GPUs, by two processes
    packs) peer packs h200-packs.json gpu_packs.py --build "$build" ;;
    first-call) peer first-call h200-first-call.json gpu_first_call.py --cases million-zipf,kdd,kdd-shuffled ;;
    overheads) peer overheads h200-overheads.json gpu_overheads.py --build "$build" --folder /dev/shm ;;
    codes) TAIL=20 peer codes h200-codes.json blocks.py --device cuda:0 --rows 10000000 --fits ;;
    narrow) TAIL=20 peer narrow h200-narrow.json gpu_narrow.py ;;
    newton) peer newton h200-newton.json gpu_newton.py ;;
    stream) peer stream h200-stream.json gpu_stream.py --kiln "$build/kiln" --folder /dev/shm ;;
    papers) TAIL=200 step papers timeout 580 python3 "$here/papers" ${STEPS:---all} --device cuda --build "$build" --out "$out" --folder /dev/shm \
        --pictures "$out/pictures" --commit "$commit" ;;
    plans) TAIL=50 peer plans h200-plans.json plans.py --kiln "$build/kiln" --jobs "$cores" ;;
    auto) TAIL=45 peer auto h200-auto.json auto_choice.py --build "$build" --folder /dev/shm ;;
    cores) TAIL=60 peer cores "cpu$cores-mmchain.json" cpu_mmchain.py ;;
    end-to-end) peer end-to-end h200-end-to-end.json end_to_end.py --build "$build" --folder /dev/shm ;;
    *) echo "no step is called $wanted" >&2; exit 2 ;;
    esac
done
tar -C "$out" -czf "$out/logs.tar.gz" logs
exit $failed
