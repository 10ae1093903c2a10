"""Reading files: Kiln against what people read them with, on the same bytes.

Writes a file of each kind from a seed to a temporary folder and reads each several times, every time in a
process of its own, the readers taking turns; prints the least wall and processor seconds, and with --json
FILE keeps them. A reading of Kiln's is one call of kiln_data_read, which makes X, y and names; a peer's is
that of its own arrays or columns. To pyarrow and polars a line of LIBSVM is a field of words. With --before
LIBRARY an earlier libkiln takes its turn as well.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/readers.py --megabytes 60 --threads 2 [--only 'KIND; ...']
"""
import argparse
import datetime
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

# ------------------------------------------------------------------------------------------------------ files


def write_lines(path, head, line, block, size):
    """The head, then lines of the table of numbers or words that block() makes, until there are `size`
    bytes."""
    with open(path, "w", encoding="ascii") as file:
        file.write(head)
        while file.tell() < size:
            file.write("".join(line % row for row in zip(*[column.tolist() for column in block()])))


def normal_columns(rng, count, rows=20000):
    return [rng.standard_normal(rows) for _ in range(count)]


def csv_numbers(path, size, rng):
    write_lines(path, ",".join(f"x{j}" for j in range(20)) + "\n", ",".join(["%.4f"] * 20) + "\n",
                lambda: normal_columns(rng, 20), size)


def csv_texts(path, size, rng):
    """Numbers, a text of 40 levels, one of 1,000, and one in quotes with a comma."""
    def block():
        return normal_columns(rng, 10) + [rng.integers(0, most, 20000) for most in (40, 1000, 200)]
    head = ",".join([f"x{j}" for j in range(10)] + ["carrier", "city", "place"]) + "\n"
    write_lines(path, head, ",".join(["%.4f"] * 10 + ["c%d", "city%d", '"Place, %d"']) + "\n", block, size)


def libsvm(path, size, rng):
    """Rows of 5 to 60 entries out of 100,000 columns."""
    lines = []
    for _ in range(20000):
        count = rng.integers(5, 60)
        col, value = np.sort(rng.choice(100000, count, replace=False)) + 1, rng.standard_normal(count)
        entries = " ".join(f"{j}:{x:.6g}" for j, x in zip(col, value))
        lines.append(f"{rng.standard_normal():.6g} {entries}\n")
    text = "".join(lines)
    with open(path, "w", encoding="ascii") as file:
        while file.tell() < size:
            file.write(text)


def links(rng, rows=50000, vertices=100000):
    return [rng.integers(0, vertices, rows), (vertices ** rng.random(rows)).astype(int)]


def edges(path, size, rng):
    write_lines(path, "", "%d\t%d\n", lambda: links(rng), size)


def named_edges(path, size, rng):
    write_lines(path, "", "user%d\tpage%d\n", lambda: links(rng), size)


def ratings(path, size, rng):
    write_lines(path, "user\titem\trating\n", "%d\t%d\t%d\n",
                lambda: links(rng, vertices=20000) + [rng.integers(1, 6, 50000)], size)


def docword(path, size, rng):
    documents, lines, total, made = 0, [], 0, 0
    while total < size:
        for _ in range(1000):
            documents += 1
            words = np.unique((10000 ** rng.random(80)).astype(int))
            lines += [f"{documents} {word} {count}\n" for word, count
                      in zip(words.tolist(), rng.integers(1, 5, len(words)).tolist())]
            made += len(words)
        total = sum(map(len, lines[:1000])) * len(lines) // 1000
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{documents}\n10000\n{made}\n" + "".join(lines))


def matrix_market(path, size, rng):
    """A sparse matrix with 20,000 columns, its entries in order of their rows."""
    rows, entries = size // (19 * 200), []
    for i in range(1, rows + 1):
        col, value = np.sort(rng.choice(20000, 200, replace=False)) + 1, rng.standard_normal(200)
        entries.append("".join(f"{i} {j} {x:.6g}\n" for j, x in zip(col, value)))
    with open(path, "w", encoding="ascii") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{rows} 20000 {rows * 200}\n")
        file.write("".join(entries))


def npy(kind, order):
    def write(path, size, rng):
        width = np.dtype(kind).itemsize
        np.save(path, np.asarray(rng.standard_normal((size // width // 30, 30)), dtype=kind, order=order))
    return write


def npz(compressed):
    def write(path, size, rng):
        import scipy.sparse as sp
        rows = size // (12 * 100)
        X = sp.csr_matrix((rng.integers(-9, 10, rows * 100) / 8, np.sort(
            rng.integers(0, 100, (rows, 100)) + 100 * np.arange(100), axis=1).astype(np.int32).ravel(),
            np.arange(rows + 1) * 100), shape=(rows, 10000))
        sp.save_npz(path, X, compressed=compressed)
    return write


def packed(compress, pieces):
    """The CSV file of numbers in so many members or frames."""
    def write(path, size, rng):
        csv_numbers(path, size, rng)
        with open(path, "rb") as file:
            text = file.read()
        each = -(-len(text) // pieces)
        with open(path, "wb") as file:
            for begin in range(0, len(text), each):
                file.write(compress(text[begin:begin + each]))
    return write


def gzip_member(text):
    return gzip.compress(text, 6, mtime=0)


def zstd_frame(text):
    import pyarrow
    return pyarrow.Codec("zstd", 3).compress(text, asbytes=True)


# ---------------------------------------------------------------------------------------------------- readers
# Each is given the file and what there is to say of it, and returns seconds and what it counted.


def read_kiln(path, kind, threads):
    import kiln_c as kiln
    device, data = kiln.Device("cpu", threads=threads), kiln.ffi.new("kiln_data **")
    made = kiln.struct("read_options", format=getattr(kiln.lib, "KILN_FILE_" + kind["format"]),
                       type=kiln.lib.KILN_F32 if kind.get("f32") else kiln.lib.KILN_F64)
    yield
    kiln.call("data_read", data, device, path.encode(), made)
    X = kiln.lib.kiln_data_X(data[0])
    counts = {"rows": kiln.lib.kiln_matrix_rows, "nnz": kiln.lib.kiln_matrix_nnz}
    yield counts[kind.get("counts", "rows")](X), kiln.version


def read_pyarrow(path, kind, threads):
    import pyarrow
    import pyarrow.csv as pc
    pyarrow.set_cpu_count(threads)
    head = pc.ReadOptions(skip_rows=kind.get("skip", 0), autogenerate_column_names=not kind.get("header"))
    form = pc.ParseOptions(delimiter=kind["separator"])
    yield
    source = pyarrow.input_stream(path, compression="zstd") if path.endswith(".zst") else path
    yield pc.read_csv(source, head, form).num_rows, pyarrow.__version__


def read_polars(path, kind, _threads):
    import polars
    yield
    yield len(polars.read_csv(path, has_header=bool(kind.get("header")), separator=kind["separator"],
                              skip_rows=kind.get("skip", 0))), polars.__version__


def read_pandas(path, kind, _threads):
    import pandas
    yield
    yield len(pandas.read_csv(path, header=0 if kind.get("header") else None, sep=kind["separator"],
                              skiprows=kind.get("skip", 0))), pandas.__version__


def read_sklearn(path, _kind, _threads):
    import sklearn
    from sklearn.datasets import load_svmlight_file
    yield
    yield load_svmlight_file(path)[0].shape[0], sklearn.__version__


def read_scipy(path, _kind, _threads):
    import scipy
    from scipy.io import mmread
    yield
    yield mmread(path).nnz, scipy.__version__


def read_load_npz(path, _kind, _threads):
    import scipy
    from scipy.sparse import load_npz
    yield
    yield load_npz(path).shape[0], scipy.__version__


def read_numpy(path, _kind, _threads):
    yield
    yield len(np.load(path)), np.__version__


READERS = {"kiln": read_kiln, "before": read_kiln, "pyarrow": read_pyarrow, "polars": read_polars,
           "pandas": read_pandas, "scikit-learn": read_sklearn, "scipy": read_scipy,
           "load_npz": read_load_npz, "numpy": read_numpy}
FRAMES = ["pyarrow", "polars", "pandas"]
CSV = {"format": "CSV", "separator": ",", "header": True, "peers": FRAMES}
LINES = {"separator": "\t", "peers": FRAMES, "counts": "rows"}
NPY = {"format": "NPY", "peers": ["numpy"]}
KINDS = {
    "csv": dict(CSV, file="n.csv", write=csv_numbers),
    "csv, texts and quotes": dict(CSV, file="t.csv", write=csv_texts),
    "libsvm": {"file": "x.svm", "write": libsvm, "format": "LIBSVM", "separator": "\x01",
               "peers": ["pyarrow", "polars", "scikit-learn"]},
    "edges": dict(LINES, file="e.txt", write=edges, format="EDGES", alike=False),
    "edges, named": dict(LINES, file="s.txt", write=named_edges, format="EDGES", alike=False),
    "ratings": dict(LINES, file="r.tsv", write=ratings, format="RATINGS", alike=False, header=True),
    "docword": dict(LINES, file="docword.txt", write=docword, format="BAG_OF_WORDS", separator=" ", skip=3,
                    counts="nnz"),
    "matrix market": {"file": "x.mtx", "write": matrix_market, "format": "MATRIX_MARKET", "separator": " ",
                      "skip": 2, "counts": "nnz", "peers": ["pyarrow", "polars", "scipy"]},
    "npy f64": dict(NPY, file="f64.npy", write=npy("f8", "C")),
    "npy f64, by columns": dict(NPY, file="f64f.npy", write=npy("f8", "F")),
    "npy f32": dict(NPY, file="f32.npy", write=npy("f4", "C"), f32=True),
    "npy f32, by columns": dict(NPY, file="f32f.npy", write=npy("f4", "F"), f32=True),
    "npz, stored": {"file": "s.npz", "write": npz(False), "format": "NPZ", "peers": ["load_npz"]},
    "npz, deflated": {"file": "d.npz", "write": npz(True), "format": "NPZ", "peers": ["load_npz"]},
    "csv.gz": dict(CSV, file="1.csv.gz", write=packed(gzip_member, 1)),
    "csv.gz, 64 members": dict(CSV, file="64.csv.gz", write=packed(gzip_member, 64)),
    "csv.zst": dict(CSV, file="1.csv.zst", write=packed(zstd_frame, 1), peers=["pyarrow", "polars"]),
    "csv.zst, 64 frames": dict(CSV, file="64.csv.zst", write=packed(zstd_frame, 64),
                               peers=["pyarrow", "polars"]),
}

# -------------------------------------------------------------------------------------------------- measuring


def used():
    import resource
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def read_once(reader, path, kind, threads):
    steps = READERS[reader](path, KINDS[kind], threads)
    next(steps)
    wall, cpu = time.perf_counter(), used()
    count, version = next(steps)
    return {"wall": time.perf_counter() - wall, "cpu": used() - cpu, "count": count, "version": version}


def in_process(reader, path, kind, options):
    """The answer of read_once; a reader that fails says with its last line why."""
    command = [sys.executable, os.path.abspath(__file__), "--one", reader, path, kind,
               "--threads", str(options.threads)]
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS")}
    library = {"KILN_LIBRARY": os.path.abspath(options.before)} if reader == "before" else {}
    done = subprocess.run(command, env={**os.environ, **threads, **library}, check=False, capture_output=True,
                          text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    return {"fails": done.stderr.strip().splitlines()[-1][:200]}


def measure(name, folder, options):
    kind, path = KINDS[name], os.path.join(folder, KINDS[name]["file"])
    try:
        kind["write"](path, options.megabytes * 10**6, np.random.default_rng(options.seed))
    except ModuleNotFoundError as missing:
        print(f"{name}: skipped, as {missing}")
        return []
    readers = ["kiln"] + ["before"] * bool(options.before) + kind["peers"] * (not options.alone)
    told, fails = {}, {}
    for _ in range(options.repeat):
        for reader in [reader for reader in readers if reader not in fails]:
            one = in_process(reader, path, name, options)
            if "fails" in one:
                fails[reader] = one["fails"]
                continue
            best = told.setdefault(reader, one)
            best.update(wall=min(best["wall"], one["wall"]), cpu=min(best["cpu"], one["cpu"]))
    if "kiln" not in told or kind.get("alike", True) and len({one["count"] for one in told.values()}) > 1:
        raise SystemExit(f"{name}: the readers disagree: {told}, {fails}")
    megabytes = os.path.getsize(path) / 1e6
    os.remove(path)
    rows = []
    for reader, one in told.items():
        rows.append({"kind": name, "megabytes": round(megabytes, 1), "reader": reader,
                     "version": one["version"], "count": one["count"], "seconds": round(one["wall"], 4),
                     "cpu_seconds": round(one["cpu"], 4),
                     "megabytes_per_second": round(megabytes / one["wall"], 1),
                     "kiln_is_faster": round(one["wall"] / told["kiln"]["wall"], 2)})
        print(f"{name:22} {megabytes:7.1f} {reader:>12} {one['wall']:8.3f} {one['cpu']:8.3f} "
              f"{megabytes / one['wall']:8.1f} {one['wall'] / told['kiln']['wall']:7.2f}x", flush=True)
    for reader, why in fails.items():
        print(f"{name:22} {reader} fails: {why}", flush=True)
    return rows + [{"kind": name, "reader": reader, "fails": why} for reader, why in fails.items()]


def keep(options, rows):
    """The measurements so far."""
    from cpu_mmchain import processor
    result = {"benchmark": "reading files", "device": processor(), "date": datetime.date.today().isoformat(),
              "commit": options.commit, "threads": options.threads, "repeat": options.repeat,
              "seed": options.seed, "load_average": os.getloadavg()[0], "rows": rows}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help=f"kinds, separated by semicolons: {'; '.join(KINDS)}")
    parser.add_argument("--before", metavar="LIBRARY", help="an earlier libkiln.so, to be timed as well")
    parser.add_argument("--alone", action="store_true", help="no peers")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--one", nargs=3, metavar=("READER", "FILE", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(read_once(*options.one, options.threads)))
        return
    print(f"{'kind':22} {'MB':>7} {'reader':>12} {'seconds':>8} {'cpu s':>8} {'MB/s':>8} {'kiln is':>8}")
    kinds = [kind.strip() for kind in options.only.split(";")] if options.only else KINDS
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            rows += measure(kind, folder, options)
            if options.json:
                keep(options, rows)


if __name__ == "__main__":
    main()
