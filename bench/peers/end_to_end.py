#!/usr/bin/env python3
"""`kiln linreg` end to end against the same conjugate gradient composed of library calls, as in Tables 4 and
5 of the fused-kernels paper: reading, moving and computing apart.

Composed, in a process of its own on the same files: on a GPU cuBLAS gemv + gemv (PyTorch) for dense X,
cuSPARSE SpMV + transposed SpMV or a stored transpose (CuPy) for sparse X; on the CPU, and beside OpenCL, NumPy and SciPy. Scalars
stay on the device there too. Both run the paper's listing 1 (no preconditioner, no intercept) for the same
number of iterations; the weights are compared.

usage: end_to_end.py --build BUILD [--device cuda|cpu] [--set higgs|kdd2010] [--scale S] [--condition C] [--alone] [--folder DIR] [--json FILE]
"""
import argparse
import datetime
import glob
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

L2 = 1.0


# ------------------------------------------------------------------------------- composed, in its own process

def conjugate_gradient(apply, right_side, zeros, iterations):
    """Listing 1 of the paper: (X^T X + l2 I) w = X^T y; apply(p) = X^T (X p)."""
    w, r = zeros, right_side
    p, rho = r.copy() if hasattr(r, "copy") else r.clone(), r @ r
    for _ in range(iterations):
        q = apply(p) + L2 * p
        alpha = rho / (p @ q)
        w = w + alpha * p
        r = r - alpha * q
        new = r @ r
        p = r + (new / rho) * p
        rho = new
    return w


def composed_worker(job):
    """Prints seconds of each phase; writes the weights."""
    import numpy as np
    seconds, start = {}, time.perf_counter()

    def lap(name):
        nonlocal start
        now = time.perf_counter()
        seconds[name], start = now - start, now

    gpu, sparse = job["device"] == "cuda", job["x"].endswith(".npz")
    if gpu and sparse:
        import cupy
        import cupyx.cusparse
        import cupyx.scipy.sparse
        cupy.zeros(1).sum().item()
    elif gpu:
        import torch
        torch.zeros(1, device="cuda").sum().item()
    if sparse:
        import scipy.sparse as sp
    lap("start")
    X = sp.load_npz(job["x"]) if sparse else np.load(job["x"])
    y = np.load(job["y"]).reshape(-1)
    lap("read")
    sync = lambda: None
    if gpu and sparse:
        X, y = cupyx.scipy.sparse.csr_matrix(X), cupy.asarray(y)
        sync = cupy.cuda.Device().synchronize
    elif gpu:
        X, y = torch.from_numpy(X).cuda(), torch.from_numpy(y).cuda()
        sync = torch.cuda.synchronize
    sync()
    lap("move")
    if gpu and sparse:
        spmv = cupyx.cusparse.spmv
        if job["stored"]:
            T = X.T.tocsr()
            transposed = lambda q: spmv(T, q)
        else:
            transposed = lambda q: spmv(X, q, transa=True)
        apply, zeros = lambda p: transposed(spmv(X, p)), cupy.zeros(X.shape[1], X.dtype)
    elif gpu:
        transposed = lambda q: torch.mv(X.t(), q)
        apply, zeros = (lambda p: transposed(torch.mv(X, p)),
                        torch.zeros(X.shape[1], dtype=X.dtype, device="cuda"))
    else:
        T = X.T
        transposed = lambda q: T @ q
        apply, zeros = lambda p: transposed(X @ p), np.zeros(X.shape[1], X.dtype)
    w = conjugate_gradient(apply, transposed(y), zeros, job["iterations"])
    sync()
    lap("compute")
    host = w.get() if gpu and sparse else w.cpu().numpy() if gpu else w
    np.save(job["weights"], host)
    seconds["total"] = sum(seconds.values())
    print(json.dumps(seconds))


def composed(job, stored):
    job = dict(job, stored=stored)
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--worker", json.dumps(job)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise SystemExit(f"the composed run failed with exit code {done.returncode}")
    return json.loads(done.stdout.strip().split("\n")[-1])


# ------------------------------------------------------------------------------------------------------ fused

def model_weights(path):
    """Tensor W of a safetensors file."""
    import numpy as np
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        begin = file.tell()
        entry = header["W"]
        file.seek(begin + entry["data_offsets"][0])
        dtype = {"F64": np.float64, "F32": np.float32}[entry["dtype"]]
        return np.frombuffer(file.read(entry["data_offsets"][1] - entry["data_offsets"][0]), dtype)


def fused(options, job, model):
    command = [f"{options.build}/kiln", "linreg", job["x"], "--target-file", job["y"], "--device",
               options.device, "--type", options.type, "--no-intercept", "--no-preconditioner", "--l2",
               str(L2), "--tolerance", str(options.tolerance), "--max-iterations", str(options.iterations),
               "--json", "--quiet", "-o", model]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    result, wall = json.loads(done.stdout), time.perf_counter() - start
    inner = result["seconds"]
    seconds = {"read": inner["read"], "move": inner["transfer"], "build": inner["build"],
               "compute": inner["solve"], "write": inner["write"], "total": wall}
    seconds["start"] = max(wall - sum(seconds[key] for key in ("read", "move", "build", "compute", "write")),
                           0)
    return seconds, result


# ------------------------------------------------------------------------------------------------------- main

def run_set(options, name, folder):
    """On data that are made for it, and removed."""
    prefix = os.path.join(folder, name)
    began = time.perf_counter()
    subprocess.run([f"{options.build}/bench/kiln_generate", name, prefix, "--scale", str(options.scale),
                    "--type", options.type, "--condition", str(options.condition)], check=True)
    print(f"{name}: made in {time.perf_counter() - began:.1f} s", flush=True)
    row = {"scale": options.scale, **run_files(options, name, prefix, folder)}
    for path in glob.glob(prefix + ".*"):
        os.remove(path)
    return row


def run_files(options, name, prefix, folder):
    """On the files of kiln_generate that begin so. Where kernels have to be built a run before does it, which
    also fills the file cache."""
    import numpy as np
    suffix = "npy" if name == "higgs" else "npz"
    job = {"device": options.device, "x": f"{prefix}.{suffix}", "y": f"{prefix}.y.npy",
           "weights": os.path.join(folder, "weights.npy")}
    model = os.path.join(folder, "model.kiln")
    if options.device != "cpu":
        fused(options, job, model)
    seconds, result = fused(options, job, model)
    job["iterations"] = result["iterations"]
    row = {"set": name, "type": options.type, "device": result["device"],
           "description": result["device_description"], "rows": result["rows"], "columns": result["columns"],
           "nnz": result["nnz"], "iterations": result["iterations"], "fused": seconds}
    row["fused_ms_an_iteration"] = 1e3 * seconds["compute"] / max(result["iterations"], 1)
    ours = model_weights(model)
    for kind, stored in (("composed", False), ("composed_stored_transpose", True)):
        if options.alone or stored and (options.device != "cuda" or name == "higgs"):
            continue
        row[kind] = composed(job, stored)
        theirs = np.load(job["weights"])
        row[kind]["difference"] = float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))
        useful = ("read", "move", "compute")
        row[kind]["ratio_compute"] = row[kind]["compute"] / seconds["compute"]
        row[kind]["ratio_move_and_compute"] = (row[kind]["move"]
                                               + row[kind]["compute"]) / (seconds["move"]
                                                                          + seconds["compute"])
        row[kind]["ratio_end_to_end"] = sum(row[kind][k] for k in useful) / sum(seconds[k] for k in useful)
        same = seconds["read"] + seconds["move"]  # as if the composed passes ran in our program
        row[kind]["ratio_same_reading_and_moving"] = (same
                                                      + row[kind]["compute"]) / (same + seconds["compute"])
        print(f"  {kind}: compute {row[kind]['compute']:.3f} s against {seconds['compute']:.3f} s, "
              f"{row[kind]['ratio_compute']:.2f}x; "
              f"with moving {row[kind]['ratio_move_and_compute']:.2f}x; with reading "
              f"{row[kind]['ratio_end_to_end']:.2f}x; "
              f"with our reading and moving {row[kind]['ratio_same_reading_and_moving']:.2f}x; "
              f"weights differ by {row[kind]['difference']:.1e}", flush=True)
    print("  fused: " + ", ".join(f"{key} {value:.3f} s" for key, value in seconds.items()) +
          f"; {result['iterations']} iterations", flush=True)
    for path in (job["weights"], model):
        if os.path.exists(path):
            os.remove(path)
    return row


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--worker":
        composed_worker(json.loads(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True, help="the build folder, with kiln and bench/kiln_generate")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu", "opencl"])
    parser.add_argument("--set", choices=["higgs", "kdd2010"], help="only this one")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--condition", type=float, default=1, help="of X^T X of the HIGGS-shaped data")
    parser.add_argument("--type", default="f64", choices=["f32", "f64"])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("--alone", action="store_true", help="without what it is compared with")
    parser.add_argument("--folder", help="where the data go; default: a temporary folder")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = [run_set(options, name, folder) for name in ("higgs", "kdd2010")
                if options.set in (None, name)]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "linear regression end to end, fused against composed",
                       "python": platform.python_version(), "date": datetime.date.today().isoformat(),
                       "commit": options.commit, "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
