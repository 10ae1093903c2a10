"""Reading text formats: Kiln against scikit-learn's load_svmlight_file and SciPy's mmread.

Writes two files from a seed to a temporary folder and reads each several times, every time in a process of
its own, the readers taking turns; prints the medians, and with --json FILE keeps them. SciPy's mmread became
a parallel one with 1.12: --scipy names the Python of an environment with another SciPy to be timed as well.

    KILN_LIBRARY=build/libkiln.so python3 bench/peers/readers.py --megabytes 150 --threads 2
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def write_libsvm(path, size, digits, rng):
    """Rows of 5 to 60 entries out of 100,000 columns."""
    import numpy as np
    lines = []
    for _ in range(20000):
        count = rng.integers(5, 60)
        col = np.sort(rng.choice(100000, count, replace=False)) + 1
        value = rng.standard_normal(count)
        entries = " ".join(f"{j}:{x:.{digits}g}" for j, x in zip(col, value))
        lines.append(f"{rng.standard_normal():.{digits}g} {entries}\n")
    text = "".join(lines).encode()
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(text)


def write_matrix_market(path, size, digits, rng):
    """A sparse matrix with 20,000 columns, its entries in order of their rows."""
    import numpy as np
    per_row, rows = 200, 1000
    line = 13 + digits
    blocks = size // (line * per_row * rows) + 1
    with open(path, "w") as file:
        total = blocks * rows
        file.write(f"%%MatrixMarket matrix coordinate real general\n{total} 20000 {total * per_row}\n")
        for block in range(blocks):
            for i in range(block * rows, (block + 1) * rows):
                col = np.sort(rng.choice(20000, per_row, replace=False)) + 1
                value = rng.standard_normal(per_row)
                file.write("".join(f"{i + 1} {j} {x:.{digits}g}\n" for j, x in zip(col, value)))


def read_kiln(path, threads):
    import kiln_c as kiln
    device, data = kiln.Device("cpu", threads=threads), kiln.ffi.new("kiln_data **")
    start = time.perf_counter()
    kiln.call("data_read", data, device, path.encode(), None)
    seconds = time.perf_counter() - start
    return seconds, kiln.lib.kiln_matrix_nnz(kiln.lib.kiln_data_X(data[0])), kiln.version


def read_sklearn(path, _threads):
    import sklearn
    from sklearn.datasets import load_svmlight_file
    start = time.perf_counter()
    X, _ = load_svmlight_file(path)
    return time.perf_counter() - start, X.nnz, sklearn.__version__


def read_scipy(path, _threads):
    import scipy
    from scipy.io import mmread
    start = time.perf_counter()
    X = mmread(path)
    return time.perf_counter() - start, X.nnz, scipy.__version__


READERS = {"kiln": read_kiln, "sklearn": read_sklearn, "scipy": read_scipy}


def in_process(python, reader, path, threads):
    command = [python, os.path.abspath(__file__), "--one", reader, path, "--threads", str(threads)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def measure(path, candidates, repeat, threads):
    """Medians over the repeats; the candidates take turns, so that a busy moment meets them all."""
    times, notes = {}, {}
    for _ in range(repeat):
        for python, reader in candidates:
            seconds, nnz, version = in_process(python, reader, path, threads)
            times.setdefault((python, reader), []).append(seconds)
            notes[(python, reader)] = (nnz, version)
    if len({nnz for nnz, _ in notes.values()}) != 1:
        raise SystemExit(f"the readers disagree about {path}: {notes}")
    megabytes = os.path.getsize(path) / 1e6
    kiln = statistics.median(times[candidates[0]])
    return [{"file": os.path.basename(path), "megabytes": round(megabytes, 1), "reader": candidate[1],
             "version": notes[candidate][1], "nnz": notes[candidate][0],
             "seconds": round(statistics.median(times[candidate]), 4),
             "megabytes_per_second": round(megabytes / statistics.median(times[candidate]), 1),
             "kiln_is_faster": round(statistics.median(times[candidate]) / kiln, 2)}
            for candidate in candidates]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, default=150)
    parser.add_argument("--digits", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scipy", action="append", default=[], metavar="PYTHON")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--one", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(READERS[options.one[0]](options.one[1], options.threads)))
        return
    import numpy as np
    rng = np.random.default_rng(options.seed)
    here = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        libsvm, matrix_market = os.path.join(folder, "sparse.svm"), os.path.join(folder, "sparse.mtx")
        write_libsvm(libsvm, options.megabytes * 10**6, options.digits, rng)
        write_matrix_market(matrix_market, options.megabytes * 10**6, options.digits, rng)
        rows = measure(libsvm, [(here, "kiln"), (here, "sklearn")], options.repeat, options.threads)
        peers = [(here, "kiln"), (here, "scipy")] + [(python, "scipy") for python in options.scipy]
        rows += measure(matrix_market, peers, options.repeat, options.threads)
    print(f"{'file':12} {'MB':>7} {'reader':>8} {'version':>8} {'seconds':>8} {'MB/s':>7} {'kiln is':>8}")
    for row in rows:
        print(f"{row['file']:12} {row['megabytes']:7.1f} {row['reader']:>8} {row['version']:>8} "
              f"{row['seconds']:8.3f} "
              f"{row['megabytes_per_second']:7.1f} {row['kiln_is_faster']:7.2f}x")
    if options.json:
        from cpu_mmchain import processor
        result = {"benchmark": "readers against scikit-learn and SciPy", "device": processor(),
                  "date": datetime.date.today().isoformat(), "commit": options.commit,
                  "threads": options.threads, "repeat": options.repeat, "seed": options.seed,
                  "digits": options.digits, "load_average": os.getloadavg()[0], "rows": rows}
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
