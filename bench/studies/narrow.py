"""Passes over X as it is kept, narrow or wide, in turns: MNIST's pixels as bytes, f32 and f64, and sparse
patterns with values and without.

    PYTHONPATH=python KILN_LIBRARY=... python bench/studies/narrow.py ../shared/data --json FILE

The time is the processor's, of one thread, as neighbours disturb that least; the median of `--repeat` turns.
"""
import argparse
import gzip
import json
import pathlib
import statistics
import time

import kiln
import numpy as np
import scipy.sparse


def images(folder: pathlib.Path) -> np.ndarray:
    with gzip.open(folder / "dense" / "mnist-train-images-idx3-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784).copy()


def pattern(path: pathlib.Path) -> scipy.sparse.csr_matrix:
    """The entries of a LIBSVM file, all 1, ten times over so that the rows leave the caches."""
    rows = [[int(part.split(":")[0]) for part in line.split()[1:]] for line in gzip.open(path, "rt")]
    starts, columns = np.cumsum([0] + [len(row) for row in rows]), np.concatenate(rows)
    X = scipy.sparse.csr_matrix((np.ones(len(columns)), columns, starts))
    return scipy.sparse.vstack([X] * 10, format="csr")


def sparse(device: kiln.Device, X: scipy.sparse.csr_matrix, dtype: type, ones: bool) -> kiln.Matrix:
    """With values, or as kiln_matrix_csr keeps it without."""
    from kiln._arrays import Matrix
    from kiln._library import ffi, lib

    made, starts, columns = ffi.new("kiln_matrix **"), X.indptr.astype(np.int64), X.indices.astype(np.int32)
    values = ffi.NULL if ones else ffi.from_buffer(X.data.astype(dtype))
    kind = lib.KILN_F32 if dtype == np.float32 else lib.KILN_F64
    device.call(lib.kiln_matrix_csr, made, device.pointer, kind, *X.shape,
                ffi.from_buffer("int64_t[]", starts), ffi.from_buffer("int32_t[]", columns), values)
    return Matrix.adopt(made[0], device)


def turns(matrices: dict[str, kiln.Matrix], repeat: int) -> dict[str, float]:
    """Seconds of a fused pass over each."""
    seconds: dict[str, list[float]] = {name: [] for name in matrices}
    y = {name: np.linspace(-1, 1, X.shape[1]).astype(X.dtype) for name, X in matrices.items()}
    for _ in range(repeat + 1):
        for name, X in matrices.items():
            begin = time.process_time()
            kiln.mmchain(X, y[name])
            seconds[name].append(time.process_time() - begin)
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    device = kiln.Device("cpu", threads=1)
    pixels, results = images(arguments.data), []
    for dtype in (np.float32, np.float64):
        kept = {"u8": kiln.matrix(pixels, device, dtype), "wide": kiln.matrix(pixels.astype(dtype), device)}
        results.append({"case": "mnist", "type": np.dtype(dtype).name, **turns(kept, arguments.repeat)})
        for name in ("a9a", "agaricus.txt.train"):
            X = pattern(arguments.data / "libsvm" / f"{name}.gz")
            kept = {"ones": sparse(device, X, dtype, True), "wide": sparse(device, X, dtype, False)}
            results.append({"case": name, "type": np.dtype(dtype).name, **turns(kept, arguments.repeat)})
    for row in results:
        row["times"] = row["wide"] / row.get("u8", row.get("ones"))
        print(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
