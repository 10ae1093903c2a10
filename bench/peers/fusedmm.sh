#!/bin/sh
# Builds FusedMM's kernels for sddmm.py --fusedmm: fusedmm.sh CLONE OUT.so [MACHINE FLAGS]
# CLONE is a clone of https://github.com/HipGraph/FusedMM (measured at commit bc3178b). Its generator writes kernels for vectors of 16
# numbers and keeps as much of all three factors in registers as fits (its default); threads get equal shares of the entries.
set -eu
clone=$1
out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/a/b" "$work/simd"
cp "$clone/kernels/simd/simd.h" "$work/simd"
gcc -O2 -w -o "$work/extract" "$clone/kernels/codegen/extract.c"
for k in 32 128; do
    "$work/extract" -b "$clone/kernels/codegen/genkern.base" -langC -def DIM $k pre=s rblk=bacrb -def VLEN 16 rout=sigmoid \
        -def kruntime 0 -o "$work/a/b/K$k.c"
done
gcc -O3 -w ${3:--march=native} -fopenmp -fPIC -shared -DBLC_ARCH -DBLC_X86 -DBLC_AVXZ -DVALUETYPE=float -DINDEXTYPE=int32_t -DBETA0 -DPTTIME -DLDB \
    -DNTHREADS="${THREADS:-2}" -I"$work/a/b" -o "$out" "$(dirname "$0")/fusedmm.c"
