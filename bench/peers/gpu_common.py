"""Parts that the benchmarks on GPUs share: timing, sparse test data, comparing."""
import datetime
import json
import time

import numpy as np


def median_time(call, sync, least=0.15):
    call()
    sync()
    start = time.perf_counter()
    call()
    sync()
    once = max(time.perf_counter() - start, 1e-6)
    batch = max(1, int(0.01 / once))
    times = []
    begin = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < least:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        sync()
        times.append((time.perf_counter() - start) / batch)
    return sorted(times)[len(times) // 2]


def distinct_csr(rows, cols, per_row, dtype, seed, zipf=False):
    """Rows of a Poisson length about per_row, of distinct columns; zipf: column c with a weight of about
    1/(c+1)."""
    import scipy.sparse as sp
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(rows), rng.poisson(per_row, rows))
    if zipf:
        col = np.floor(np.exp(rng.random(len(row)) * np.log(cols + 1)) - 1).astype(np.int64).clip(0, cols - 1)
    else:
        col = rng.integers(0, cols, len(row))
    entry = row * cols + col
    entry.sort()
    entry = entry[np.concatenate([[True], entry[1:] != entry[:-1]])]
    start = np.concatenate([[0], np.cumsum(np.bincount(entry // cols, minlength=rows))])
    col = (entry % cols).astype(np.int32)
    return sp.csr_matrix((rng.standard_normal(len(col)).astype(dtype), col, start), shape=(rows, cols))


def keep(path, benchmark, device, commit, rows):
    """Writes what there is so far, if a path is given: a run that ends early leaves what it has."""
    if not path:
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"benchmark": benchmark, "device": device, "date": datetime.date.today().isoformat(),
                   "commit": commit, "rows": rows}, file, indent=1)
        file.write("\n")


def relative_error(got, want):
    return float(np.abs(got - want).max() / np.abs(want).max())
