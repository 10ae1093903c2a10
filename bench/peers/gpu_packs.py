#!/usr/bin/env python3
"""Whole commands on a GPU as on a new machine: with empty caches (Kiln's and the driver's), with what the
first run has kept, and with empty caches and a pack: of the kernels that all of them have built, with NVRTC and
without, and of the usual kernels, which know nothing of these shapes. Of each: seconds from start to end, kernels that were built, seconds of building or loading
them. The census counts programs, and those that differ between shapes of one command.

usage: gpu_packs.py --build FOLDER [--device cuda] [--arch sm_90] [--shrink N] [--json FILE] [--commit TEXT]
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np


def made(folder, shrink):
    """The data's files, in shapes of a few tenths of a second."""
    rng, million = np.random.default_rng(1), 1_000_000 // shrink
    for columns in (28, 100):
        X = rng.standard_normal((million, columns), np.float32)
        np.save(folder / f"X{columns}.npy", X)
    np.save(folder / "y.npy", (X[:, 0] + rng.standard_normal(len(X)) > 0).astype(np.float32))
    np.save(folder / "points.npy", rng.standard_normal((10_000 // shrink, 20)).astype(np.float32))
    T = np.c_[rng.standard_normal((million // 10, 30)), rng.integers(0, 9, million // 10)]
    header = ",".join([*(f"x{j}" for j in range(30)), "n", "city", "street", "late"])
    with open(folder / "t.csv", "w", encoding="ascii") as file:
        file.write(header + "\n")
        for row in T:
            file.write(",".join(f"{v:.6g}" for v in row)
                       + f",c{int(row[30]) % 40},s{int(abs(row[0]) * 1000)},{int(row[1] > 0)}\n")
    users, items = rng.integers(0, 100_000, million), rng.integers(0, 20_000, million)
    np.savetxt(folder / "ratings.tsv", np.c_[users, items, rng.integers(1, 6, len(users))], "%d", "\t")
    np.savetxt(folder / "edges.txt", rng.integers(0, 200_000, (2 * million, 2)), "%d")
    pairs = np.unique(np.c_[rng.integers(1, 20_001, million), rng.integers(1, 10_001, million)], axis=0)
    with open(folder / "docword.txt", "w", encoding="ascii") as file:
        file.write(f"20000\n10000\n{len(pairs)}\n")
        np.savetxt(file, np.c_[pairs, rng.integers(1, 5, len(pairs))], "%d")


TABLE = "t.csv --target late --type f32"
COMMANDS = {
    "linreg csv": "linreg t.csv --target n --type f32", "logreg csv": f"logreg {TABLE}",
    "glm poisson csv": "glm t.csv --target n --family poisson --type f32", "svm csv": f"svm {TABLE}",
    "logreg npy": "logreg X28.npy --target-file y.npy --type f32",
    "linreg npy": "linreg X28.npy --target-file y.npy --type f32",
    "kmeans npy": "kmeans X28.npy --clusters 50 --type f32 --max-iterations 20",
    "als": "als ratings.tsv --format ratings --implicit --factors 64 --type f32",
    "lda": "lda docword.txt --format docword --topics 50 --max-iterations 20 --type f32",
    "gap": "gap docword.txt --format docword --topics 50 --max-iterations 20 --type f32",
    "pagerank": "pagerank edges.txt --type f32", "hits": "hits edges.txt --type f32",
    "mds": "mds points.npy --max-iterations 20 --type f32",
    "logreg f64": "logreg X28.npy --target-file y.npy --type f64",
}
# The same command on another shape: which of its programs are others.
OTHER = {"logreg npy": "logreg X100.npy --target-file y.npy --type f32",
         "linreg npy": "linreg X100.npy --target-file y.npy --type f32",
         "kmeans npy": "kmeans X100.npy --clusters 20 --type f32 --max-iterations 20",
         "als": "als ratings.tsv --format ratings --implicit --factors 32 --type f32"}


def run(tool, folder, device, command, cache, **more):
    environment = {**os.environ, "KILN_CACHE_DIR": str(cache), "CUDA_CACHE_PATH": f"{cache}/driver", **more}
    start = time.perf_counter()
    done = subprocess.run([tool, *command.split(), "--device", device, "--json", "-o", "m.kiln"], cwd=folder,
                          env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    found = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return {"seconds": seconds, "code": done.returncode, "error": done.stderr[-300:] if done.returncode
            not in (0, 3) else None,
            "build_seconds": found.get("seconds", {}).get("build"), "kept": len(programs(tool, cache))}


def programs(tool, cache):
    """The kernels built and kept so far."""
    return subprocess.run([tool, "kernels", "list"], env={**os.environ, "KILN_CACHE_DIR": str(cache)},
                          capture_output=True, text=True, check=True).stdout.splitlines()


def census(tool, folder, device, name, caches):
    first = set(programs(tool, caches[name]))
    run(tool, folder, device, OTHER[name], folder / "other")
    other = set(programs(tool, folder / "other"))
    subprocess.run(["rm", "-rf", folder / "other"], check=True)
    return {"programs": len(first), "of the other shape": len(other), "shared": len(first & other),
            "only the other's": sorted(other - first)}


def packed(tool, pack, arch, more):
    start = time.perf_counter()
    subprocess.run([tool, "kernels", "build", *more, "--arch", arch, "-o", pack], check=True)
    return {"seconds": time.perf_counter() - start, "bytes": pack.stat().st_size}, pack


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--shrink", type=int, default=1, help="rows divided by this, to try it")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    tool, rows = os.path.abspath(f"{options.build}/kiln"), []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        made(folder, options.shrink)
        caches = {name: folder / f"cache{i}" for i, name in enumerate(COMMANDS)}
        for name, command in COMMANDS.items():
            rows.append({"command": name, "empty": run(tool, folder, options.device, command, caches[name]),
                         "kept": run(tool, folder, options.device, command, caches[name]),
                         "programs": len(programs(tool, caches[name]))})
        every = sorted({line for cache in caches.values() for line in programs(tool, cache)})
        (folder / "programs.txt").write_text("\n".join(every) + "\n", encoding="ascii")
        (packing, pack), (usual, usual_pack) = (
            packed(tool, folder / name, options.arch, more)
            for name, more in (("all.pack", ["--programs", folder / "programs.txt"]), ("usual.pack", [])))
        packing |= {"programs": len(every), "list": every}
        for i, row in enumerate(rows):
            command = COMMANDS[row["command"]]
            row["packed"] = run(tool, folder, options.device, command, folder / f"new{i}",
                                KILN_KERNEL_PACK=str(pack))
            row["without NVRTC"] = run(tool, folder, options.device, command, folder / f"bare{i}",
                                       KILN_KERNEL_PACK=str(pack), KILN_NVRTC_PATH="/nowhere/libnvrtc.so.13")
            row["usual"] = run(tool, folder, options.device, command, folder / f"usual{i}",
                               KILN_KERNEL_PACK=str(usual_pack))
            print("{command:16} empty {empty[seconds]:6.2f} s ({programs} programs), kept "
                  "{kept[seconds]:6.2f}, packed {packed[seconds]:6.2f} "
                  "({packed[kept]} built), without NVRTC {bare:6.2f}, the usual pack "
                  "{usual[seconds]:6.2f} ({usual[kept]} built)".format(bare=row["without NVRTC"]["seconds"], **row),
                  flush=True)
        shapes = {name: census(tool, folder, options.device, name, caches) for name in OTHER}
    for name, row in shapes.items():
        print(f"{name}: {row['programs']} programs, {row['of the other shape']} of another shape, "
              f"{row['shared']} of them the same")
    print("pack: {programs} programs in {seconds:.1f} s, {bytes} bytes".format(**packing))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "kernels built ahead", "device": options.device,
                       "date": datetime.date.today().isoformat(), "commit": options.commit, "commands": rows,
                       "pack": packing, "usual pack": usual, "shapes": shapes}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
