#!/bin/sh
# Builds the program of the SDDMM paper (Nisa et al., HiPC 2018) for gpu_sddmm.py --nisa: nisa.sh CLONE OUT [ARCHITECTURE]
# CLONE is a clone of https://github.com/isratnisa/SDDMM_GPU (measured at commit 07da198). Two things are changed: exchanges name the
# threads that take part, without which no GPU since Volta compiles them, and the kernels run eleven times, of which the last ten are
# timed, as the others are.
set -eu
clone=$1
out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$clone"/HiPC18/src/*.h "$clone"/HiPC18/src/sddmm.cu "$work"
sed -i 's/__shfl_xor(/__shfl_xor_sync(__activemask(), /' "$work/kernel.h"
# the loop over tiles becomes a loop over runs around it, the clock starting with the second
sed -i -e 's|^    checkCuda(cudaEventRecord(start), __LINE__);|    for (int run = 0; run < 11; ++run) { sum = 0; if (run == 1) checkCuda(cudaEventRecord(start), __LINE__);|' \
    -e 's|^    checkCuda(cudaEventRecord(stop), __LINE__);|    } checkCuda(cudaEventRecord(stop), __LINE__);|' \
    -e 's|" : " << mili << " ms"|" : " << mili / 10 << " ms"|' "$work/sddmm.cu"
nvcc -O3 -w -std=c++17 -arch="${3:-sm_90}" -Xcompiler -fopenmp -o "$out" "$work/sddmm.cu"
