#!/bin/sh
# Builds RoDe's sampled product for gpu_sddmm.py --rode: rode.sh CLONE OUT.so [ARCHITECTURE]
# CLONE is a clone of https://github.com/CRAFT-THU/RoDe (measured at commit f446e29). Its headers name a generator of random numbers
# from Abseil, which the sampled product does not use: an empty stand-in saves building that.
set -eu
clone=$1
out=$2
stand_in=$(mktemp -d)
trap 'rm -rf "$stand_in"' EXIT
mkdir -p "$stand_in/absl/random"
echo 'namespace absl { class BitGen {}; }' >"$stand_in/absl/random/random.h"
nvcc -O3 --use_fast_math -std=c++17 -w -arch="${3:-sm_90}" -shared -Xcompiler -fPIC -I"$stand_in" -I"$clone" -I"$clone/utils" \
    -o "$out" "$(dirname "$0")/rode.cu"
