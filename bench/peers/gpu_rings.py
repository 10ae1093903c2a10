#!/usr/bin/env python3
"""Dense passes, Gram matrices and nearest centres of few rows, but enough for several turns of each kernel
that goes through its rows in turns: small enough to run under compute-sanitizer. Each result is compared with
NumPy's in fp64.

usage: gpu_rings.py [--device cuda] [--what passes,grams,centres] [--part I/N]    (one of N processes that share the work, I from 0)
"""
import argparse
import sys

import numpy as np

import kiln_c as kiln
from gpu_common import relative_error

# rows, columns, columns of y
SHAPES = [(9001, 8, 1), (9001, 28, 1), (9001, 100, 1), (3001, 256, 1), (1501, 1000, 1), (801, 6000, 1),
          (301, 8192, 1), (701, 9000, 1), (701, 12001, 1), (501, 17001, 1), (301, 20000, 1), (151, 50000, 1),
          (151, 50002, 1), (99, 100000, 1), (9001, 28, 8), (9001, 28, 3), (3001, 256, 8), (1501, 1024, 4),
          (801, 4096, 8), (301, 6000, 8), (301, 12000, 8), (151, 20000, 4), (151, 20000, 8), (1501, 20000, 8),
          (403, 50000, 8), (404, 50000, 2), (99, 100000, 8)]

# Rows, columns, targets: a group of gram_narrow.cl has 512 rows a turn, and an H200 some 400 to 1,000 groups
# at once.
GRAMS = [(230_001, 28, 0), (230_001, 31, 0), (230_017, 24, 3), (600_003, 5, 0)]
# Rows, columns, centres, for assign_split.cl (up to 4 columns), assign_slim.cl (9 to 64), assign_wide.cl (up
# to 128) and assign_screen.cl.
CENTRES = [(250_001, 4, 40), (250_001, 3, 300), (250_001, 1, 33), (110_003, 32, 100), (110_001, 13, 36),
           (36_001, 100, 130), (40_001, 140, 70)]


def one_pass(device, rows, cols, k, dtype):
    X, v = (device.dense(rows, cols, dtype).fill_random(3, 0),
            device.dense(rows, 1, dtype).fill_random(1, 1, normal=False))
    y, w = device.dense(cols, k, dtype).fill_random(1, 2), device.dense(cols, k, dtype)
    kiln.mmchain(w, 1.0, X, v, y)
    x, q = X.numpy().astype(np.float64), y.numpy().astype(np.float64)
    wrong = relative_error(w.numpy(), x.T @ (v.numpy() * (x @ q)))
    for m in (X, v, y, w):
        m.free()
    return wrong


def gram(device, rows, cols, targets, dtype):
    """Makes the Gram matrix of weighted rows about a shift; with targets, what least squares makes of one walk over both."""
    rng = np.random.default_rng(rows + cols)
    x, v, c = rng.standard_normal((rows, cols)), rng.random((rows, 1)), rng.standard_normal((cols, 1))
    x, v, c = (part.astype(dtype) for part in (x, v, c))
    X, wide = device.dense(rows, cols, dtype, x), x.astype(np.float64)
    if targets:
        y = (x @ rng.standard_normal((cols, targets)) + rng.standard_normal((rows, targets))).astype(dtype)
        Y, W, b = (device.dense(rows, targets, dtype, y), device.dense(cols, targets, dtype),
                   device.dense(1, targets, dtype))
        kiln.fit("linreg", W, b, X, Y)
        found, made = W.numpy(), (X, Y, W, b)
        want = np.linalg.lstsq(wide - wide.mean(0), y - y.mean(0, dtype=np.float64), rcond=None)[0]
    else:
        V, C, G = (device.dense(rows, 1, dtype, v), device.dense(cols, 1, dtype, c),
                   device.dense(cols, cols, dtype))
        kiln.call("gram", G, None, X, V, C)
        found, made = G.numpy(), (X, V, C, G)
        want = (wide - c.T).T @ (v * (wide - c.T))
        kiln.call("gram", G, None, X, None, None)
        found, want = np.stack([found, G.numpy()]), np.stack([want, wide.T @ wide])
    for m in made:
        m.free()
    return relative_error(found, want)


def nearest(x, C):
    return np.concatenate([((C * C).sum(1) / 2 - part @ C.T).argmin(1)
                           for part in np.array_split(x, len(x) // 4096 + 1)])


def centres(device, rows, cols, k, dtype):
    """Labels, and sums after a centre has moved: corrected ones where there are bounds. A wrong label counts
    as an error of 1."""
    rng = np.random.default_rng(rows + cols)
    C = rng.standard_normal((k, cols)).astype(dtype)
    x = (C[rng.integers(0, k, rows)] + rng.standard_normal((rows, cols))).astype(dtype)
    moved = C.copy()
    moved[k // 2] += 0.01
    X, A, B, sums, labels = (device.dense(*part.shape, dtype, part) for part in (x, C, moved, C, x[:, :1]))
    bounds = kiln.ffi.new("kiln_bounds **")
    kiln.call("bounds_new", bounds, X, k)
    to = kiln.struct("assignment", sums=sums, totals=np.empty((k, 2)), bounds=bounds[0])
    for centre in (A, A, B):
        kiln.call("assign", to, X, centre, None)
    kiln.call("assign", kiln.struct("assignment", labels=labels), X, B, None)
    kiln.lib.kiln_bounds_free(bounds[0])
    found, want = labels.numpy()[:, 0], nearest(x.astype(np.float64), moved.astype(np.float64))
    added = np.zeros((k, cols))
    np.add.at(added, want, x.astype(np.float64))
    wrong = max(relative_error(sums.numpy(), added), float((found != want).any()))
    for m in (X, A, B, sums, labels):
        m.free()
    return wrong


# The work, its shapes, and how far a result may be off in f64 and f32.
KINDS = {"passes": (one_pass, SHAPES, 1e-12, 1e-5), "grams": (gram, GRAMS, 1e-11, 1e-5),
         "centres": (centres, CENTRES, 1e-12, 1e-5)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--what", default=",".join(KINDS))
    parser.add_argument("--part", default="0/1")
    args = parser.parse_args()
    device = kiln.Device(args.device)
    part, parts = map(int, args.part.split("/"))
    failed = 0
    for what in args.what.split(","):
        call, shapes, *limits = KINDS[what]
        for shape in shapes[part::parts]:
            for dtype, limit in zip((np.float64, np.float32), limits):
                wrong = call(device, *shape, dtype)
                failed += not wrong < limit
                print(f"{what} {' x '.join(map(str, shape))} {dtype.__name__}: "
                      f"{wrong:.1e}{'' if wrong < limit else '  WRONG'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
