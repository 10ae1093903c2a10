"""Draws data that hurt: columns far from zero, tiny, huge, constant, dependent; weights of 0; equal rows.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib

import numpy as np
import scipy.sparse


class Rng(np.random.Generator):
    """Random numbers of one problem. Sizes, verbs and types come from `sizes`: problems that share it have
    one shape, and a device compiles kernels for each shape once."""

    def __init__(self, seed: list[int], shape: list[int] | None = None) -> None:
        super().__init__(np.random.PCG64(seed))
        self.sizes = self if shape is None else np.random.default_rng(shape)


# A kind of column: its name and how n values are drawn.
COLUMNS = {
    "normal": lambda r, n: r.normal(size=n),
    "counts": lambda r, n: r.poisson(2, n).astype(float),
    "binary": lambda r, n: r.integers(0, 2, n).astype(float),
    "sparse": lambda r, n: r.normal(size=n) * (r.random(n) < 0.2),
    "years": lambda r, n: r.integers(1900, 2026, n).astype(float),
    "unix seconds": lambda r, n: 1.7e9 + np.floor(r.random(n) * 3e7),
    "unix milliseconds": lambda r, n: 1.7e12 + np.floor(r.random(n) * 3e10),
    "julian days": lambda r, n: 2460000.5 + r.integers(0, 3650, n),
    "shifted": lambda r, n: 1 + 1e-7 * r.normal(size=n),
    "an ulp": lambda r, n: np.where(r.random(n) < 0.5, 0.1, np.nextafter(0.1, 1)),
    "tiny": lambda r, n: 1e-155 * r.normal(size=n),
    "huge": lambda r, n: 1e20 * r.normal(size=n),
    "outlier": lambda r, n: np.where(np.arange(n) == r.integers(n), 1e12, r.normal(size=n)),
    "equal": lambda r, n: np.full(n, float(r.integers(-3, 4))),
    "zero": lambda r, n: np.zeros(n),
}
TAME = ("normal", "counts", "binary", "sparse", "years", "equal", "zero")
# Kinds of which all columns are now and then, because such an X is stored in fewer bytes: patterns, integers.
FEW_BYTES = (("binary",), ("counts", "binary", "zero"), ("counts", "years"))


def columns(
    rng: Rng, rows: int, count: int, hostile: float = 0.35, kinds: tuple[str, ...] = ()
) -> tuple[np.ndarray, list[str]]:
    """rows x count numbers and the kinds of their columns; a column may repeat others or add them up, and
    some that lie side by side may be the levels of one category."""
    X, drawn = np.zeros((rows, count)), []
    if not kinds and rng.random() < 0.15:
        kinds = FEW_BYTES[rng.integers(len(FEW_BYTES))]
    levels = int(rng.integers(2, count + 1)) if count > 1 and rng.random() < 0.2 else 0
    begin = int(rng.integers(count - levels + 1))
    for j in range(count):
        choice = rng.random()
        if j > 0 and choice < 0.06:
            X[:, j] = X[:, rng.integers(j)]
            drawn.append("copy")
        elif j > 1 and choice < 0.1:
            X[:, j] = X[:, 0] + X[:, 1]
            drawn.append("sum")
        else:
            kind = str(rng.choice(kinds or (list(COLUMNS) if rng.random() < hostile else TAME)))
            X[:, j] = COLUMNS[kind](rng, rows)
            drawn.append(kind)
    if levels:
        X[:, begin : begin + levels] = np.eye(levels)[rng.integers(levels, size=rows)]
        drawn[begin : begin + levels] = ["binary"] * levels
    if rows > 1 and rng.random() < 0.2:
        X[rng.integers(rows)] = X[rng.integers(rows)]
    return X, drawn


def unit(X: np.ndarray) -> np.ndarray:
    """Columns about 0 and of length 1 a row, as long double; constant ones become 0."""
    Z = X.astype(np.longdouble)
    Z = Z - Z.mean(axis=0)
    largest = np.abs(Z).max(axis=0, initial=0)
    Z = Z / np.where(largest > 0, largest, 1)
    size = np.sqrt((Z * Z).mean(axis=0))
    return (Z / np.where(size > 1e-6, size, 1)).astype(float)


def weights(rng: Rng, rows: int) -> np.ndarray | None:
    kind = rng.integers(5)
    if kind < 2:
        return None
    drawn = rng.random(rows) if kind == 2 else rng.integers(0, 4, rows).astype(float)
    drawn[:2] = np.where((drawn > 0).sum() < 2, 1, drawn[:2])
    return drawn * (1e-3 if kind == 4 else 1)


def categories(X: np.ndarray) -> list[tuple[int, int]]:
    """First column and number of columns of each category in X: of 0 and 1, and in each row is one 1."""
    flags = ((X == 0) | (X == 1)).all(axis=0) & (X == 1).any(axis=0)
    found, j = [], 0
    while j < X.shape[1]:
        ends = range(j + 2, X.shape[1] + 1)
        end = next((e for e in ends if flags[j:e].all() and (X[:, j:e].sum(axis=1) == 1).all()), j)
        if end > j:
            found.append((j, end - j))
        j = max(end, j + 1)
    return found


def write_table(rng: Rng, path: pathlib.Path, X: np.ndarray) -> None:
    """X as CSV. Categories are a column of text, whose levels become X's columns again, sorted by name."""
    named = dict(categories(X)) if rng.random() < 0.7 else {}
    fields, names, j = [], [], 0
    while j < X.shape[1]:
        size = named.get(j, 0)
        levels = [f"level{np.argmax(row):02d}" for row in X[:, j : j + size]] if size else None
        fields.append(levels or list(map(repr, map(float, X[:, j]))))
        names.append(f"x{j}")
        j += max(size, 1)
    path.write_text("\n".join(map(",".join, [names, *zip(*fields)])) + "\n")


def narrowest(X: np.ndarray) -> np.ndarray:
    """X in the first of some narrow types that loses nothing, or as it is."""
    for kind in (np.uint8, np.int8, np.int16, np.float16, np.float32):
        with np.errstate(all="ignore"):
            if np.array_equal(X, X.astype(kind)):
                return X.astype(kind)
    return X


def write_matrix(rng: Rng, folder: pathlib.Path, X: np.ndarray) -> str:
    """X in one of the formats that keep every bit and need no target; returns the file's name."""
    kind = rng.choice(["npy", "csv", "npz", "mtx"])
    if kind == "npy":
        np.save(folder / "X.npy", narrowest(X) if rng.random() < 0.5 else X)
    elif kind == "csv":
        write_table(rng, folder / "X.csv", X)
    elif kind == "npz":
        scipy.sparse.save_npz(folder / "X.npz", scipy.sparse.csr_matrix(X), compressed=bool(rng.integers(2)))
    else:
        i, j = np.nonzero(X)
        lines = [f"{a + 1} {b + 1} {float(X[a, b])!r}" for a, b in zip(i, j)]
        head = ["%%MatrixMarket matrix coordinate real general", f"{X.shape[0]} {X.shape[1]} {len(i)}"]
        (folder / "X.mtx").write_text("\n".join([*head, *lines]) + "\n")
    return f"X.{kind}"


def options(rng: Rng, device: str) -> tuple[list[str], type]:
    """Options of every verb: device, type, threads; and the type of the numbers that the data become."""
    single = rng.sizes.random() < 0.35
    drawn = ["--device", device, "--type", "f32" if single else "f64"]
    if rng.random() < 0.3:
        drawn += ["--threads", str(rng.integers(1, 4))]
    if rng.random() < 0.2:
        drawn += ["--deterministic"]
    return drawn, np.float32 if single else np.float64
