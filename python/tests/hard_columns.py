"""Columns that numerical code gets wrong: far from zero beside their spread, all but constant, at both ends
of a type's range."""
import numpy as np


def hard_columns(m: int, seed: int = 0, *, flat: bool = False, wild: bool = False) -> dict[str, np.ndarray]:
    """Named columns of m numbers. flat: those, too, that are constant in effect. wild: those whose squares
    float32 has no room for."""
    rng = np.random.default_rng(seed)
    columns = {
        "years": rng.integers(1900, 2026, m).astype(float),
        "unix seconds": np.floor(rng.uniform(1.6e9, 1.75e9, m)),
        "unix milliseconds": np.floor(rng.uniform(1.6e12, 1.75e12, m)),
        "julian days": 2451544.5 + rng.integers(0, 9000, m),
        "outlier": np.where(np.arange(m) == m // 3, 1e6, rng.standard_normal(m)),
        "small": 1e-12 * rng.standard_normal(m),
        "large": 1e12 * rng.standard_normal(m),
        "ordinary": rng.standard_normal(m),
        "sparse": rng.standard_normal(m) * (rng.random(m) < 0.1),
    }
    if flat:
        columns["constant"] = np.full(m, 0.1)
        columns["constant but for an ulp"] = np.where(np.arange(m) == m // 2, np.nextafter(1.0, 2.0), 1.0)
    if wild:
        columns["1e-140"] = 1e-140 * rng.standard_normal(m)
        columns["1e20"] = 1e20 * rng.standard_normal(m)
        columns["1 + 1e-7 N"] = 1 + 1e-7 * rng.standard_normal(m)
    return columns


def table(columns: dict[str, np.ndarray], dtype: type = np.float64) -> np.ndarray:
    return np.stack(list(columns.values()), 1).astype(dtype)
