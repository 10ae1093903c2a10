"""python3 processes.py BUILD OUT: 1, 2, 4 and 8 processes of Open MPI with two threads each on one machine,
beside one process with as many threads. OUT/processes.json gets the least seconds of solving and of reading
in the rounds that fit into KILN_TRY_SECONDS (70)."""
import datetime, json, os, shutil, subprocess, sys, tempfile, time
import numpy as np

BUILD, OUT = map(os.path.abspath, sys.argv[1:3])
SMALL = int(os.environ.get("KILN_TRY_SMALL", "1"))  # divides the sizes, to try this script
SECONDS = float(os.environ.get("KILN_TRY_SECONDS", "70"))
COUNTS = [int(n) for n in os.environ.get("KILN_TRY_PROCESSES", "1,2,4,8").split(",")]
THREADS = 2
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
           KILN_MPI_PATH=f"{BUILD}/libkiln-openmpi.so")
ROWS, COLUMNS, PAGES, LINKS = 4_000_000 // SMALL, 28, 2_000_000 // SMALL, 16


def make(folder):
    """A dense table with targets of both kinds, and a graph whose first vertices have the most links."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    score = X @ rng.standard_normal(COLUMNS, dtype=np.float32)
    np.save(f"{folder}/x.npy", X)
    np.save(f"{folder}/y.npy", score + rng.standard_normal(ROWS, dtype=np.float32))
    np.save(f"{folder}/c.npy",
            (score + 2 * rng.standard_normal(ROWS, dtype=np.float32) > 0).astype(np.float32))
    first = ((PAGES - LINKS) * rng.random((PAGES, LINKS), dtype=np.float32) ** 2).astype(np.int32)
    first.sort(1)
    first += np.arange(LINKS, dtype=np.int32)  # so that none stands twice
    np.savez(f"{folder}/links.npz", indices=first.ravel(), indptr=np.arange(0, first.size + 1, LINKS,
                                                                            dtype=np.int32),
             format=np.array(b"csr"), shape=np.array([PAGES, PAGES]), data=np.ones(first.size, np.float32))


def works(folder):
    x, f32 = f"{folder}/x.npy", ["--type", "f32"]
    return {"linreg": ["linreg", x, "--target-file", f"{folder}/y.npy", "--l2", "1", "--solver", "cg", *f32],
            "logreg": ["logreg", x, "--target-file", f"{folder}/c.npy", "--l2", "1", *f32],
            "kmeans": ["kmeans", x, "-k", "50", "--seed", "1", "--max-iterations", "5", *f32],
            "pagerank": ["pagerank", f"{folder}/links.npz", "--iterations", "30", *f32]}


def run(work, processes, threads):
    """The report of one run, or why there is none."""
    start = ["mpirun", "-n", str(processes), "--bind-to", "none"] if processes else []
    command = [*start, f"{BUILD}/kiln", *work, "--threads", str(threads), "--device", "cpu", "--json", "-q"]
    began = time.monotonic()
    try:
        done = subprocess.run(command + (["--mpi"] if processes else []), env=ENV, capture_output=True,
                              text=True, timeout=30)
    except subprocess.TimeoutExpired:
        return {"failed": "did not end within 30 s"}
    if done.returncode:
        return {"failed": f"exit code {done.returncode}: {done.stderr[-300:]}"}
    report = json.loads(done.stdout)
    figures = {k: report[k] for k in ("iterations", "objective", "inertia") if report.get(k) is not None}
    return {"solve": report["seconds"]["solve"], "read": report["seconds"].get("read"),
            "wall": round(time.monotonic() - began, 3), **figures}


def main():
    rows = {}
    folder = tempfile.mkdtemp()
    os.makedirs(OUT, exist_ok=True)
    try:
        began = time.monotonic()
        make(folder)
        print(f"made in {time.monotonic() - began:.1f} s", flush=True)
        todo = [(name, n, THREADS) for name in works(folder) for n in COUNTS]
        todo += [(name, 0, n * THREADS) for name in works(folder) for n in COUNTS]
        turn, slowest = 0, 0.0
        while turn < len(todo) or time.monotonic() - began + slowest < SECONDS:
            if time.monotonic() - began > SECONDS: break
            key = todo[turn % len(todo)]
            started = time.monotonic()
            row = run(works(folder)[key[0]], *key[1:])
            slowest = max(slowest, time.monotonic() - started)
            old = rows.get(key, {})
            if "failed" in row or "failed" in old: row = old if "failed" in old else row
            elif old: row.update({k: min(old[k], row[k]) for k in ("solve", "read", "wall")})
            rows[key] = dict(row, runs=old.get("runs", 0) + 1)
            print(*key, json.dumps(rows[key]), flush=True)
            turn += 1
    finally:
        shutil.rmtree(folder)
    told = {"benchmark": f"kiln VERB --mpi by 0 (no mpirun), 1, 2, 4 and 8 processes of Open MPI on one "
                         "machine, f32: "
                         f"dense {ROWS:,} x {COLUMNS}, graph of {PAGES:,} vertices with {LINKS} links each; "
                         "the least of the runs",
            "device": f"CPU, {os.cpu_count()} cores", "date": str(datetime.date.today()),
            "commit": os.environ.get("COMMIT", "unknown"),
            "rows": [{"work": k[0], "processes": k[1], "threads_each": k[2], **row}
                     for k, row in rows.items()]}
    with open(f"{OUT}/processes.json", "w") as file: json.dump(told, file, indent=1)


main()
