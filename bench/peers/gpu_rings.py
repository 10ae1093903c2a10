#!/usr/bin/env python3
"""Dense passes of few rows, but enough for several turns of each kernel that keeps a ring of tiles: small enough to run under
compute-sanitizer. Each result is compared with NumPy's in fp64.

usage: gpu_rings.py [--device cuda] [--part I/N]    (one of N processes that share the work, I from 0)
"""
import argparse
import sys

import numpy as np

import kiln_c as kiln
from gpu_common import relative_error

# rows, columns, columns of y
SHAPES = [(9001, 8, 1), (9001, 28, 1), (9001, 100, 1), (3001, 256, 1), (1501, 1000, 1), (801, 6000, 1), (301, 8192, 1),
          (701, 9000, 1), (701, 12001, 1), (501, 17001, 1), (301, 20000, 1), (151, 50000, 1), (151, 50002, 1), (99, 100000, 1),
          (9001, 28, 8), (9001, 28, 3), (3001, 256, 8), (1501, 1024, 4), (801, 4096, 8), (301, 6000, 8), (301, 12000, 8),
          (151, 20000, 4), (151, 20000, 8), (1501, 20000, 8), (403, 50000, 8), (404, 50000, 2), (99, 100000, 8)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", default="0/1")
    args = parser.parse_args()
    device = kiln.Device(args.device)
    part, parts = map(int, args.part.split("/"))
    failed = 0
    for rows, cols, k in SHAPES[part::parts]:
        for dtype, limit in ((np.float64, 1e-12), (np.float32, 1e-5)):
            X, v = device.dense(rows, cols, dtype).fill_random(3, 0), device.dense(rows, 1, dtype).fill_random(1, 1, normal=False)
            y, w = device.dense(cols, k, dtype).fill_random(1, 2), device.dense(cols, k, dtype)
            kiln.mmchain(w, 1.0, X, v, y)
            x, q = X.numpy().astype(np.float64), y.numpy().astype(np.float64)
            wrong = relative_error(w.numpy(), x.T @ (v.numpy() * (x @ q)))
            failed += not wrong < limit
            print(f"{rows} x {cols} k {k} {dtype.__name__}: {wrong:.1e}{'' if wrong < limit else '  WRONG'}", flush=True)
            for m in (X, v, y, w):
                m.free()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
