#!/usr/bin/env python3
"""Lists of the N best items for many users, without what they have, beside the package implicit's on all
processors: users a second of a whole call of recommend, ids and scores back in NumPy's arrays.

Factors are random, as the time does not depend on them. Both get the same ones; the scores that Kiln tells
are compared with the products in f64, and the lists with implicit's: the share of equal ids is told.

usage: recommend.py [--json FILE] [--commit TEXT] [--device NAME] [--turns N]
"""
import argparse
import os
import sys
import time

import numpy as np
import scipy.sparse as sp

import kiln
from gpu_common import keep

CASES = [(20_000, 3_000, 64), (162_541, 59_047, 64), (162_541, 59_047, 128), (50_000, 300_000, 64)]
LIKED, N = 100, 10


def best(call, turns):
    """The first call's seconds, the least of `turns` more, and what the last gave."""
    times = []
    for _ in range(turns + 1):
        began = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - began)
    return times[0], min(times[1:]), found


def likes(users, items, rng):
    """LIKED different items each: one in each of as many strips."""
    width = items // LIKED
    col = np.arange(LIKED) * width + rng.integers(0, width, (users, LIKED))
    return sp.csr_matrix((np.ones(users * LIKED, np.float32), col.ravel().astype(np.int32),
                          np.arange(0, users * LIKED + 1, LIKED)), shape=(users, items))


def measure(users, items, factors, options):
    rng = np.random.default_rng(0)
    liked = likes(users, items, rng)
    model = kiln.ALS(factors, implicit=True, max_iter=1, random_state=0, device=options.device).fit(liked)
    model.row_factors_ = rng.standard_normal((users, factors)).astype(np.float32)
    model.column_factors_ = rng.standard_normal((items, factors)).astype(np.float32)
    who = np.arange(users)
    first, seconds, (ids, scores) = best(lambda: model.recommend(who, liked, N), options.turns)
    some = rng.choice(users, 200, replace=False)
    told = (model.row_factors_[some, None].astype(float) * model.column_factors_[ids[some]]).sum(2)
    error = float(np.abs(told - scores[some]).max() / np.abs(told).max())
    assert error < 1e-5, error
    assert not any(np.isin(ids[user], liked.indices[user * LIKED:(user + 1) * LIKED]).any() for user in some)
    row = {"users": users, "items": items, "factors": factors, "n": N, "device": options.device,
           "seconds": seconds, "first_seconds": first, "users_per_second": users / seconds, "error": error}
    try:
        from implicit.cpu.als import AlternatingLeastSquares
    except ImportError:
        return row
    peer = AlternatingLeastSquares(factors, num_threads=0)
    peer.user_factors, peer.item_factors = model.row_factors_, model.column_factors_
    peer_first, peer_seconds, (peer_ids, _) = best(lambda: peer.recommend(who, liked, N), 1)
    row |= {"implicit_seconds": min(peer_first, peer_seconds), "ratio": min(peer_first, peer_seconds) / seconds,
            "same_ids": float((ids == peer_ids).mean())}
    assert row["same_ids"] > 0.999, row
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for case in CASES:
        rows.append(measure(*case, options))
        print(rows[-1], flush=True)
        keep(options.json, f"lists for many users, implicit on {os.cpu_count()} processors",
             kiln.Device(options.device).description, options.commit, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
