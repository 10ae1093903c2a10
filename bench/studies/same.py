"""Passes over a sparse X of ones, kept as one number and with values, in turns.

    PYTHONPATH=python KILN_LIBRARY=... python bench/studies/same.py --json FILE --commit TEXT

The time is the processor's, of one thread, as neighbours disturb that least: the median of `--repeat` turns.
"""
import kiln
import numpy as np
import scipy.sparse
from kiln._arrays import Matrix
from kiln._library import ffi, lib
from narrow import keep, parse, turns


def with_values(S: scipy.sparse.csr_matrix, device: kiln.Device) -> kiln.Matrix:
    """A copy, whose values the library does not look at."""
    pointer = ffi.new("kiln_matrix **")
    parts = S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data
    device.call(lib.kiln_matrix_csr, pointer, device.pointer,
                lib.KILN_F32 if S.dtype == np.float32 else lib.KILN_F64, *S.shape,
                ffi.from_buffer("int64_t[]", parts[0]), ffi.from_buffer("int32_t[]", parts[1]),
                ffi.from_buffer(parts[2]))
    return Matrix.adopt(pointer[0], device)


def ones(random: np.random.Generator, rows: int, cols: int, count: int, skew: float) -> scipy.sparse.csr_matrix:
    """`count` entries a row, each in one of as many ranges of columns; a range's first are the more frequent,
    the larger skew is."""
    width = cols // count
    within = (width * random.random((rows, count)) ** skew).astype(np.int32)
    columns = within + width * np.arange(count, dtype=np.int32)
    return scipy.sparse.csr_matrix((np.ones(rows * count), columns.ravel(), np.arange(rows + 1) * count),
                                   (rows, cols))


SHAPES = (("a9a's shape, 32,561 x 123, 14 a row", 32561, 126, 14, 2.0),
          ("1,000,000 x 123, 14 a row", 1000000, 126, 14, 2.0),
          ("500,000 x 30,000, 30 a row, skewed", 500000, 30000, 30, 4.0),
          ("500,000 x 1,200,000, 30 a row, skewed", 500000, 1200000, 30, 4.0))


def main() -> None:
    arguments = parse(__doc__, 7)
    device, random, rows = kiln.Device("cpu", threads=1), np.random.default_rng(1), []
    for shape, m, n, count, skew in SHAPES:
        made = ones(random, m, n, count, skew)
        for dtype in (np.float32, np.float64):
            S = made.astype(dtype)
            kept = {"one_ms": kiln.matrix(S, device), "values_ms": with_values(S, device)}
            y, p = random.standard_normal((n, 1)).astype(dtype), random.standard_normal((m, 1)).astype(dtype)
            ten = random.standard_normal((n, 10)).astype(dtype)
            calls = {"multiply": lambda X, y=y: kiln.multiply(X, y),
                     "multiply by X^T": lambda X, p=p: kiln.multiply(X, p, transposed=True),
                     "mmchain": lambda X, y=y: kiln.mmchain(X, y),
                     "mmchain of 10 columns": lambda X, y=ten: kiln.mmchain(X, y)}
            for name, call in calls.items():
                if name.endswith("columns") and n > 100000:
                    continue
                times = turns(call, kept, arguments.repeat)
                rows.append({"shape": shape, "pass": name, "type": np.dtype(dtype).name, **times,
                             "ratio": round(times["values_ms"] / times["one_ms"], 2)})
                print(rows[-1], flush=True)
    keep(arguments, __doc__, device, rows)


if __name__ == "__main__":
    main()
