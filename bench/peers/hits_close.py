"""HITS where the two largest singular values are 0.9994 of each other: two random blocks of 50,000 x 50,000
and 750,000 links each, the second scaled to that, and ten links between them. kiln.hits against SciPy's svds
(ARPACK); `error` is the distance of the hubs from those of svds for two vectors, both of norm 1.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/hits_close.py --threads 2 --json FILE
"""
import argparse
import datetime
import json
import time

import kiln_c
import numpy as np
import scipy.sparse
from scipy.sparse.linalg import svds

import kiln

SIZE, LINKS, RATIO = 50_000, 750_000, 0.9994


def block(rng):
    A = scipy.sparse.csr_matrix((np.ones(LINKS),
                                 (rng.integers(0, SIZE, LINKS), rng.integers(0, SIZE, LINKS))), (SIZE, SIZE))
    A.sum_duplicates()
    return A, svds(A, k=1, return_singular_vectors=False)[0]


def graph():
    rng = np.random.default_rng(1)
    (A, a), (B, b) = block(rng), block(rng)
    ends = rng.integers(0, 2 * SIZE, (2, 10))
    return (scipy.sparse.block_diag([A, B * (a / b * RATIO)])
            + scipy.sparse.csr_matrix((np.full(10, 1e-3), ends), (2 * SIZE, 2 * SIZE))).tocsr()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    M, device = graph(), kiln_c.Device("cpu", threads=arguments.threads)
    A = kiln.Matrix(M, device=device)
    solvers = {"kiln": (lambda tol: np.asarray(kiln.hits(A, tol=tol, norm=2, device=device).hubs).ravel(),
                        (1e-6, 1e-8, 1e-10)),
               "svds": (lambda tol: svds(M, k=1, tol=tol)[0][:, 0], (1e-6, 0))}
    vectors, values, _ = svds(M, k=2)
    best, rows = np.abs(vectors[:, values.argmax()]), []
    for name, (solve, tolerances) in solvers.items():
        for tolerance in tolerances:
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                hubs = np.abs(solve(tolerance))
                seconds.append(time.perf_counter() - start)
            rows.append({"solver": name, "tolerance": tolerance, "ms": 1e3 * min(seconds),
                         "error": float(np.linalg.norm(hubs - best))})
            print("{solver} {tolerance:6g} {ms:8.1f} ms  error {error:.1e}".format(**rows[-1]), flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"kiln": kiln.__version__, "commit": arguments.commit,
                       "date": datetime.date.today().isoformat(), "ratio": float(values.min() / values.max()),
                       "device": [device.name, device.description], "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
