#!/bin/sh
# Everything that a machine with an NVIDIA GPU can prove, from a finished build folder.
#   bench/gpu.sh BUILD OUT STEP...      steps: doctor conformance sanitize planted linreg iteration stream
#                                           plans auto end-to-end dense sparse newton
# Results (JSON, logs) go to the folder OUT. COMMIT names what was built.
set -u
build=$1
out=$2
shift 2
here=$(dirname "$0")
commit=${COMMIT:-unknown}
failed=0
export LD_LIBRARY_PATH="$build/lib:$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export KILN_LIBRARY="$build/libkiln.so" PYTHONUNBUFFERED=1 PYTHONPATH="$here/peers"

# step NAME command...: runs it, keeps its output, shows the end.
step() {
    name=$1
    shift
    began=$(date +%s)
    if "$@" >"$out/$name.log" 2>&1; then result=ok; else result="FAILED ($?)"; failed=1; fi
    took=$(($(date +%s) - began))
    echo "== $name: $result, $took s"
    last=$(tail -n 1 "$out/$name.log" | tr -d '\\"' | cut -c1-120)
    printf '{"step": "%s", "result": "%s", "seconds": %d, "last_line": "%s", "date": "%s", "commit": "%s"}\n' "$name" \
        "$result" "$took" "$last" "$(date +%F)" "$commit" >>"$out/h200-checks.jsonl"
    tail -n "${TAIL:-12}" "$out/$name.log"
}

for wanted in "$@"; do
    case $wanted in
    doctor) TAIL=45 step doctor "$build/kiln" doctor ;;
    conformance)
        for device in ${DEVICES:-cuda:0 opencl:0.0 opencl:1.0 cpu}; do
            step "conformance-$(echo "$device" | tr : -)" timeout 500 "$build/tests/conformance" --device "$device"
        done ;;
    planted) # a store past the end, which memcheck must find: proof that the sanitizer sees our kernels
        mkdir -p "$out/kernels"
        cp "$here"/../src/ops/*.cl "$here"/../src/dialect/*.h "$out/kernels/"
        sed -i 's/FOR_EACH(i, count) W\[i\] = value/FOR_EACH(i, count + 4096) W[i] = value/' "$out/kernels/elementwise.cl"
        TAIL=3 step planted sh -c "! KILN_KERNEL_DIR='$out/kernels' compute-sanitizer --error-exitcode 9 \
            '$build/tests/conformance' --device cuda:0 --quick --op fill"
        rm -r "$out/kernels" ;;
    sanitize)
        for tool in memcheck racecheck synccheck initcheck; do
            step "sanitize-$tool" timeout 400 compute-sanitizer --tool "$tool" --error-exitcode 9 \
                "$build/tests/conformance" --device cuda:0 --quick
        done ;;
    linreg)
        TAIL=40 step linreg python3 "$here/peers/gpu_linreg.py" --json "$out/h200-linreg.json" --commit "$commit" ;;
    iteration)
        TAIL=8 step iteration python3 "$here/peers/gpu_iteration.py" --json "$out/h200-iteration.json" --commit "$commit" ;;
    dense)
        TAIL=60 step dense python3 "$here/peers/gpu_dense.py" --json "$out/h200-dense-cuda.json" --commit "$commit" ;;
    sparse)
        TAIL=30 step sparse python3 "$here/peers/gpu_sparse.py" --json "$out/h200-sparse.json" --commit "$commit" ;;
    newton)
        TAIL=10 step newton python3 "$here/peers/gpu_newton.py" --json "$out/h200-newton.json" --commit "$commit" ;;
    stream)
        TAIL=8 step stream python3 "$here/peers/gpu_stream.py" --kiln "$build/kiln" --folder /dev/shm \
            --json "$out/h200-stream.json" --commit "$commit" ;;
    plans)
        TAIL=50 step plans python3 "$here/peers/plans.py" --kiln "$build/kiln" --json "$out/h200-plans.json" --commit "$commit" ;;
    auto)
        TAIL=45 step auto python3 "$here/peers/auto_choice.py" --build "$build" --json "$out/h200-auto.json" --commit "$commit" ;;
    end-to-end)
        TAIL=30 step end-to-end python3 "$here/peers/end_to_end.py" --build "$build" --json "$out/h200-end-to-end.json" \
            --commit "$commit" ;;
    *) echo "no step is called $wanted" >&2; exit 2 ;;
    esac
done
exit $failed
