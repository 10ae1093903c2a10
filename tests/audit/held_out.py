"""Claims of factor models about entries held out: which these are, and the model's error and ranking
there.

Entry e of the data, row by row, is held out if the e-th number of the seed's stream is below the fraction:
the first word of Philox4x32-10 (Salmon et al., SC 2011) of counter (e, stream) and key seed, times 2^-32.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from problems import near, refused
from runs import Tool

L = np.longdouble
FRACTION, TOP, STREAM = 0.3, 10, 0x5713
WORD = (1 << 32) - 1


def philox(seed: int, stream: int, index: int) -> int:
    """The first of its four words."""
    c = [index & WORD, index >> 32, stream & WORD, stream >> 32]
    key = [seed & WORD, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ key[0], b & WORD, (a >> 32) ^ c[3] ^ key[1], a & WORD]
        key = [(key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD]
    return c[0]


def split(stored: np.ndarray, seed: int) -> np.ndarray:
    """Which of the stored entries are held out."""
    rows, columns = np.nonzero(stored)
    held = np.zeros_like(stored)
    drawn = [philox(seed, STREAM, e) * 2.0**-32 < FRACTION for e in range(len(rows))]
    held[rows[drawn], columns[drawn]] = True
    return held


def ranking(
    scores: np.ndarray, seen: np.ndarray, held: np.ndarray, digits: float
) -> tuple[float, float, float, float] | None:
    """Recall, precision, NDCG and MAP of the best columns of each row; None where rounding decides which
    these are."""
    recall, gain, average, hits, room, rows = 0.0, 0.0, 0.0, 0, 0, 0
    for own, without, wanted in zip(scores, seen, held):
        if not wanted.any():
            continue
        free = np.nonzero(~without)[0]
        order = free[np.argsort(-own[free], kind="stable")]
        gaps = np.diff(own[order[: TOP + 1]])
        if len(gaps) and np.abs(gaps).min() <= digits * np.abs(own).max():
            return None
        hit = wanted[order[:TOP]]
        possible = min(TOP, int(wanted.sum()))
        places = 1 / np.log2(np.arange(TOP) + 2)
        recall += hit.sum() / possible
        gain += places[: len(hit)][hit].sum() / places[:possible].sum()
        average += (hit * np.cumsum(hit) / (np.arange(len(hit)) + 1)).sum() / possible
        hits, room, rows = hits + int(hit.sum()), room + possible, rows + 1
    return (recall / rows, hits / room, gain / rows, average / rows) if rows else None


def judge(tool: Tool, verb: str, X: np.ndarray, arguments: list[object], kind: type, seed: int) -> list[str]:
    """The same fit with entries held out."""
    found: list[str] = []
    if not tool.holds_out:
        return found
    run = tool.run(verb, "X.npz", *arguments, "--test-fraction", FRACTION, "-o", "held.kiln")
    if refused(run, found):
        return found
    stored = ~np.isnan(X)
    held = split(stored, seed)
    if run.out["test_entries"] != held.sum():
        return [
            f"{verb}: {run.out['test_entries']} entries are held out, the seed's stream says "
            f"{int(held.sum())}"
        ]
    model = tool.model("held.kiln")
    A, B, mean = (
        model.tensors["A"].astype(L),
        model.tensors["B"].astype(L),
        L(model.tensors["settings"][0, 0]),
    )
    biases = verb == "sfa" or model.tensors["settings"][0, 3] != 0
    predicted = mean + A @ B.T if not biases else mean + A[:, :-1] @ B[:, :-1].T + A[:, -1:] + B[:, -1]
    metrics, digits = run.out["metrics"], 1e-7 if kind is np.float64 else 2e-3
    if "--implicit" not in arguments:
        if held.any():
            error = np.where(held, X.astype(kind).astype(L) - predicted, 0)
            found += near(
                f"{verb} test_rmse", metrics.get("test_rmse"), np.sqrt((error**2).sum() / held.sum()), digits
            )
        return found
    own = ranking(predicted, stored & ~held, held, 1e-9 if kind is np.float64 else 1e-4)
    for name, true in zip(("recall_at_10", "precision_at_10", "ndcg_at_10", "map_at_10"), own or ()):
        if metrics.get(name) is None or abs(metrics[name] - true) > 1e-12:
            found.append(f"{verb}: {name} is {metrics.get(name)}, the model's own ranking gives {true:.12g}")
    return found
