"""Passes over 60,000 x 784 bytes, MNIST's shape, kept as bytes and in f32 or f64, in turns.

    PYTHONPATH=python KILN_LIBRARY=... python bench/studies/narrow.py --json FILE --commit TEXT

The time is the processor's, of one thread, as neighbours disturb that least: the median of `--repeat` turns.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import time

import kiln
import numpy as np


def turns(call, matrices: dict[str, kiln.Matrix], repeat: int) -> dict[str, float]:
    """Milliseconds of a call with each matrix, whose results have the same bits."""
    times: dict[str, list[float]] = {name: [] for name in matrices}
    for _ in range(repeat + 1):
        results = []
        for name, X in matrices.items():
            begin = time.process_time()
            results.append(call(X))
            times[name].append(1000 * (time.process_time() - begin))
        assert np.array_equal(*results)
    return {name: round(statistics.median(of[1:]), 2) for name, of in times.items()}


def parse(doc: str, repeat: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--repeat", type=int, default=repeat)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown")
    return parser.parse_args()


def keep(arguments: argparse.Namespace, doc: str, device: kiln.Device, rows: list[dict]) -> None:
    """Writes the rows to the file that was asked for, a line each, with what they are and where from."""
    if not arguments.json:
        return
    head = {"what": " ".join(doc.split("\n\n")[0].split()) + " Processor time of one thread in turns; results "
                    "have the same bits",
            "device": device.description, "date": datetime.date.today().isoformat(), "commit": arguments.commit}
    lines = ",\n".join(json.dumps(row) for row in rows)
    arguments.json.write_text(json.dumps(head)[:-1] + ', "rows": [\n' + lines + "\n]}\n")


def main() -> None:
    arguments = parse(__doc__, 21)
    device, random = kiln.Device("cpu", threads=1), np.random.default_rng(1)
    pixels, rows = random.integers(0, 256, (60000, 784)).astype(np.uint8), []
    for dtype in (np.float32, np.float64):
        kept = {"u8_ms": kiln.matrix(pixels, device, dtype=dtype),
                "wide_ms": kiln.matrix(pixels.astype(dtype), device)}
        one, ten = (random.standard_normal((784, k)).astype(dtype) for k in (1, 10))
        calls = {"multiply": lambda X, y=one: kiln.multiply(X, y),
                 "mmchain": lambda X, y=one: kiln.mmchain(X, y),
                 "mmchain of 10 columns": lambda X, y=ten: kiln.mmchain(X, y)}
        for name, call in calls.items():
            times = turns(call, kept, arguments.repeat)
            rows.append({"pass": name, "type": np.dtype(dtype).name, **times,
                         "ratio": round(times["wide_ms"] / times["u8_ms"], 2)})
            print(rows[-1])
    keep(arguments, __doc__, device, rows)


if __name__ == "__main__":
    main()
