#!/bin/sh
# Installs what is missing, builds Kiln, and trains on the real data set in data/.
# Says what it does before it does it. Debian 12 and its relatives; elsewhere install what it names by hand.
set -eu
cd "$(dirname "$0")"
. ./scripts/install.sh

need_packages "$BUILD_PACKAGES"
say "building into build/ (a minute or two)"
run_quietly cmake -S . -B build -G Ninja -DKILN_TESTS=OFF
run_quietly cmake --build build

say "training: arrival delay of flights from departure delay, carrier, origin, destination, hour, distance, month"
./build/kiln linreg data/flights.csv.gz --target arr_delay -o build/flights.kiln
say "predicting flights that the model has not seen"
./build/kiln predict build/flights.kiln data/flights_test.csv.gz -o build/predictions.txt

cat <<'TEXT'

Kiln works. Next:
  ./build/kiln doctor                          what this machine offers, and what would make it faster
  ./build/kiln info build/flights.kiln         what the model holds
  ./build/kiln linreg --help                   your own data: LIBSVM, Matrix Market, CSV, npy, npz, also as .gz
  ./test.sh                                    every test
TEXT
