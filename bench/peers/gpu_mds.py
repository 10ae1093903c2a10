#!/usr/bin/env python3
"""A step of SMACOF (kiln_guttman_step: stress and the next layout) on a GPU against PyTorch's, which forms
the distances with cdist, and as a fraction of the floor: the dissimilarities right of the diagonal read once
at the measured bandwidth.

usage: gpu_mds.py [--json FILE] [--commit TEXT] [--device NAME]
"""
import argparse
import datetime
import json
import sys

import kiln_c as kiln
from gpu_common import median_time


SHAPES = [(4_096, 2, "float32"), (16_384, 3, "float32"), (20_000, 3, "float32"), (32_768, 2, "float32"),
          (32_768, 3, "float32"), (65_536, 3, "float32"), (32_768, 3, "float64")]


def torch_step(n, p, kind):
    """Milliseconds of PyTorch's step, or None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    dtype = getattr(torch, kind)
    X = torch.randn(n, p, device="cuda", dtype=dtype)
    D, Y = torch.cdist(X, X), torch.randn(n, p, device="cuda", dtype=dtype)

    def step():
        d = torch.cdist(Y, Y)
        stress = ((D - d) ** 2).sum() / 2
        B = torch.where(d > 0, -D / d, 0)
        B.diagonal().sub_(B.sum(1))
        return stress, B @ Y / n

    seconds = median_time(step, torch.cuda.synchronize)
    del X, D, Y
    torch.cuda.empty_cache()
    return 1e3 * seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = kiln.Device(options.device)
    roof, rows = device.bandwidth(), []
    for n, p, kind in SHAPES:
        peer = torch_step(n, p, kind) if n <= 32_768 else None
        X, Y = (device.dense(n, p, kind).fill_random(1, stream) for stream in (0, 1))
        D, R, sums = device.dense(n, n, kind), device.dense(n, p, kind), device.dense(1, 4, "float64")
        kiln.call("distances", D, X, X)
        step = kiln.struct("guttman", R=R, sums=sums, Y=Y, D=D)
        seconds = median_time(lambda: kiln.call("guttman_step", step), device.synchronize)
        points = kiln.struct("guttman", R=R, sums=sums, Y=Y, X=X)
        of_points = median_time(lambda: kiln.call("guttman_step", points), device.synchronize)
        floor = n * (n - 1) / 2 * (4 if kind == "float32" else 8) / roof
        row = {"n": n, "p": p, "type": kind, "kiln_ms": 1e3 * seconds, "floor_ms": 1e3 * floor,
               "fraction_of_floor": floor / seconds, "from_points_ms": 1e3 * of_points}
        if peer:
            row.update(torch_ms=peer, ratio=peer / row["kiln_ms"])
        rows.append(row)
        print(f"{n:6} x {p} {kind}: {row['kiln_ms']:8.3f} ms, {100 * row['fraction_of_floor']:3.0f} % of the "
              "floor; from points "
              f"{row['from_points_ms']:8.3f} ms" + (f"; PyTorch {peer:8.1f} ms, {row['ratio']:.0f}x" if peer
                                                    else ""), flush=True)
        for matrix in (X, Y, D, R, sums):
            matrix.free()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "a step of SMACOF", "device": device.description,
                       "date": datetime.date.today().isoformat(), "commit": options.commit,
                       "read_bandwidth_gb_s": roof / 1e9, "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
