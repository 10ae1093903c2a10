"""Several processes: kiln ... --mpi under mpirun. Any number of them finds what one finds, whatever they read
and however.

usage: processes_test.py KILN FLIGHTS UNITED STUBS
"""

import csv
import glob
import gzip
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

SKIPPED = 77
KILN, FLIGHTS, UNITED, STUBS = map(os.path.abspath, sys.argv[1:])
SANITIZED = "UBSAN_OPTIONS" in os.environ
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                   OMPI_MCA_orte_abort_print_stack="0",
                   # an MPI keeps what it has until the end
                   ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
ROWS, COLUMNS = 3000, 40


def launchers():
    """The mpirun of each plug-in beside the tool; under sanitizers, which see the same plug-in's source in
    each, of the first."""
    for plugin in sorted(glob.glob(os.path.join(os.path.dirname(KILN),
                                                "libkiln-*.so")))[:1 if SANITIZED else None]:
        name = os.path.basename(plugin)[len("libkiln-"):-len(".so")]
        mpirun = shutil.which(f"mpirun.{name}") or shutil.which("mpirun")
        if mpirun:
            yield name, mpirun, dict(ENVIRONMENT, KILN_MPI_PATH=plugin)


def starts(name, mpirun, environment):
    there = run([mpirun, "-n", "2", "true"], environment).returncode == 0
    if not there:
        print(f"{name}: {mpirun} starts nothing here")
    return there


def run(command, environment=None):
    return subprocess.run(command, env=environment or ENVIRONMENT, capture_output=True, text=True,
                          timeout=120)


def answer(result):
    assert result.returncode in (0, 10), (result.returncode, result.stderr)
    found = json.loads(result.stdout)
    objective = next(found[name] for name in ("inertia", "squares", "objective") if name in found)
    return found["rows"], found["columns"], objective


def agree(a, b):
    return a[:2] == b[:2] and math.isclose(a[2], b[2], rel_tol=1e-9)


def npy(kind, values, shape):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    code = {"<f8": "d", "<i4": "i", "<i8": "q", "|S3": "3s"}[kind]
    form = code if code == "3s" else f"<{len(values)}{code}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(form, *values)


def write_npz(path, rows, method=zipfile.ZIP_STORED, descends=False):
    """As scipy.sparse.save_npz writes a CSR matrix; ZIP_DEFLATED is its standard. descends: of wide indices,
    in any order, some twice."""
    start, columns, entries = [0], [], []
    for _, row in rows:
        there = [(j, value) for j, value in enumerate(row) if value]
        if descends:
            there = [(j, value / 2) for j, value in reversed(there)] * 2
        columns += [j for j, _ in there]
        entries += [value for _, value in there]
        start.append(len(entries))
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in (("indices", npy("<i8" if descends else "<i4", columns, f"({len(columns)},)")),
                           ("indptr", npy("<i4", start, f"({len(start)},)")),
                           ("format", npy("|S3", [b"csr"], "()")),
                           ("shape", npy("<i8", [len(rows), COLUMNS], "(2,)")),
                           ("data", npy("<f8", entries, f"({len(entries)},)"))):
            archive.writestr(f"{name}.npy", data)


def write_data(folder):
    """One set of rows as LIBSVM, CSV, .npy and .npz with targets apart, and LIBSVM in five files."""
    draw = random.Random(1)
    path = lambda name: os.path.join(folder, name)  # noqa: E731
    weights = [draw.gauss(0, 1) for _ in range(COLUMNS)]
    rows = []
    for _ in range(ROWS):
        row = [draw.gauss(0, 1) if draw.random() < 0.3 else 0.0 for _ in range(COLUMNS)]
        label = 1 if sum(a * b for a, b in zip(row, weights)) + draw.gauss(0, 1) > 0 else -1
        rows.append((label, row))
    lines = [f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value) + "\n"
             for label, row in rows]
    with open(path("all.svm"), "w") as file:
        file.writelines(lines)
    for part in range(5):
        with open(path(f"part-{part}.svm"), "w") as file:
            file.writelines(lines[part * ROWS // 5:(part + 1) * ROWS // 5])
    with open(path("all.csv"), "w") as file:
        file.write(",".join(f"x{j}" for j in range(COLUMNS)) + ",y\n")
        file.writelines(",".join(map(repr, row)) + f",{label}\n" for label, row in rows)
    for name, width, values in (("x.npy", COLUMNS, [value for _, row in rows for value in row]),
                                ("y.npy", 1, [label for label, _ in rows])):
        with open(path(name), "wb") as file:
            file.write(npy("<f8", values, f"({ROWS}, {width})"))
    write_npz(path("x.npz"), rows)
    write_npz(path("packed.npz"), rows, zipfile.ZIP_DEFLATED)
    write_npz(path("wide.npz"), rows, zipfile.ZIP_DEFLATED, descends=True)
    for part in range(3):
        write_npz(path(f"part-{part}.npz"), rows[part * ROWS // 3:(part + 1) * ROWS // 3])
    write_quoted(path("quoted.csv"), rows, draw)
    write_text(path, draw)
    write_market(path, rows, draw)
    with open(path("both.npy"), "wb") as file:  # more than what is read of a stream at once
        file.write(npy("<f8", [value for label, row in rows for value in [abs(label), *row, label]],
                       f"({ROWS}, {COLUMNS + 2})"))
    with open(path("one.npy"), "wb") as file:
        file.write(npy("<f8", [1, *rows[0][1], rows[0][0]], f"(1, {COLUMNS + 2})"))
    for name in ("all.svm", "all.csv", "quoted.csv", "text.csv", "x.mtx", "both.npy", "one.npy"):
        compress(path(name), 3)
    return path


def compress(path, members):
    """Behind gzip, in some members, as `cat` joins them, which need not end with a line."""
    with open(path, "rb") as file:
        data = file.read()
    with open(f"{path}.gz", "wb") as file:
        for member in range(members):
            file.write(gzip.compress(data[member * len(data) // members:(member + 1) * len(data) // members],
                                     1))


def write_quoted(path, rows, draw):
    """Names and notes in quotes, of which the notes hold ends of lines, commas and quotes; short and long, so
    that any byte may begin a part."""
    with open(path, "w") as file:
        file.write('"the\n""note""",' + ",".join(f'"x{j}"' for j in range(COLUMNS)) + ",y\n")
        for label, row in rows:
            note = "".join(draw.choice(["\n", ",", '""', "word "]) for _ in range(draw.randrange(120)))
            file.write(f'"{note}",' + ",".join(map(repr, row)) + f",{label}\n")


def write_text(path, draw):
    """Towns and classes, most of which stand in some parts alone; values that are missing; in one file, and
    in three."""
    head = "town,size,note,class\n"
    lines = []
    for i in range(900):
        town, size = (f"t{draw.randrange(i // 60, i // 60 + 30)}", "" if draw.random() < 0.05
                      else f"{draw.gauss(0, 1):.4f}")
        kind = "other" if i > 890 else draw.choice(("north", "south"))
        lines.append(f'{town},{size},"a ""note"",\n{i}",{kind}\n')
    with open(path("text.csv"), "w") as file:
        file.writelines([head, *lines])
    for part in range(3):
        with open(path(f"text-{part}.csv"), "w") as file:
            file.writelines([head, *lines[300 * part:300 * part + 300]])


def write_market(path, rows, draw):
    """Entries in any order, some twice; a triangle of X^T X; and an array."""
    entries = [(i + 1, j + 1, value) for i, (_, row) in enumerate(rows) for j, value in enumerate(row)
               if value]
    entries += [(i, j, 0.5) for i, j, _ in entries[::7]]
    draw.shuffle(entries)
    with open(path("x.mtx"), "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n% a comment\n\n"
                   f"{ROWS} {COLUMNS} {len(entries)}\n")
        file.writelines(f"{i} {j} {value!r}\n" for i, j, value in entries)
    square = [[sum(row[i] * row[j] for _, row in rows[:200]) for j in range(i + 1)] for i in range(COLUMNS)]
    with open(path("square.mtx"), "w") as file:
        file.write(f"%%MatrixMarket matrix array real symmetric\n{COLUMNS} {COLUMNS}\n")
        file.writelines(f"{square[i][j]!r}\n" for j in range(COLUMNS) for i in range(j, COLUMNS))
    with open(path("triangle.mtx"), "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate integer skew-symmetric\n"
                   f"{COLUMNS} {COLUMNS} {COLUMNS * (COLUMNS - 1) // 2}\n")
        file.writelines(f"{i + 1} {j + 1} {draw.randrange(-9, 9)}\n" for i in range(COLUMNS)
                        for j in range(i))
    with open(path("short.txt"), "w") as file:
        file.writelines(f"{draw.gauss(0, 1)!r}\n" for _ in range(COLUMNS))


def cases(path):
    """Whether each process reads a part, and the command."""
    parts = [path(f"part-{part}.svm") for part in range(5)]
    yield True, ["logreg", path("all.svm")]
    yield True, ["logreg", *parts]
    yield True, ["svm", path("all.svm")]
    yield True, ["linreg", path("all.csv"), "--target", "y", "--l2", "1"]
    yield True, ["glm", path("x.npy"), "--target-file", path("y.npy")]
    yield True, ["linreg", path("x.npz"), "--target-file", path("y.npy")]
    yield True, ["linreg", path("packed.npz"), "--target-file", path("y.npy")]
    yield True, ["kmeans", path("all.csv"), "-k", "3", "--seed", "1"]
    yield True, ["kmeans", path("all.svm"), "--format", "libsvm", "-k", "3", "--seed", "1", "--spherical"]
    yield True, ["kmeans", path("x.npz"), "-k", "3", "--seed", "1", "--spherical", "--batch", "64"]
    yield True, ["svd", path("x.npz"), "-k", "3", "--solver", "krylov"]
    yield True, ["pca", path("all.csv"), "-k", "3", "--scale"]
    yield False, ["spectral", path("graph.edges"), "-k", "3"]
    yield True, ["linreg", path("quoted.csv"), "--target", "y", "--ignore", 'the\n"note"']
    yield True, ["linreg", path("x.mtx"), "--target-file", path("y.npy")]
    yield True, ["linreg", path("square.mtx"), "--target-file", path("short.txt"), "--l2", "1"]
    yield True, ["linreg", path("triangle.mtx"), "--target-file", path("short.txt"), "--l2", "1"]
    yield True, ["logreg", "--parts", path("part-?.npz"), "--target-file", path("y.npy")]
    yield True, ["logreg", "--parts", path("part-*.npz"), "--target-file", path("y.npy")]
    yield True, ["logreg", path("part-0.svm"), path("part-1.svm")]
    yield True, ["linreg", path("wide.npz"), "--target-file", path("y.npy")]
    yield True, ["logreg", path("all.svm.gz")]
    yield True, ["linreg", path("all.csv.gz"), "--target", "y", "--l2", "1"]
    yield True, ["linreg", path("quoted.csv.gz"), "--target", "y", "--ignore", 'the\n"note"']
    yield True, ["linreg", path("x.mtx.gz"), "--target-file", path("y.npy")]
    yield True, ["logreg", path("all.svm.gz"), path("part-1.svm")]
    yield True, ["logreg", path("both.npy"), "--target", "-1", "--weights", "1"]
    yield True, ["logreg", path("both.npy.gz"), "--target", "-1", "--weights", "1"]
    # fewer rows than processes
    yield True, ["logreg", path("both.npy.gz"), path("one.npy.gz"), "--target", "-1", "--weights", "1"]
    yield True, ["als", path("all.svm"), "--format", "libsvm", "--factors", "4", "--max-iterations", "3",
                 "--test-fraction", "0.2"]
    yield True, ["sfa", path("all.svm"), "--format", "libsvm", "--factors", "3", "--max-iterations", "3",
                 "--test-fraction", "0.2"]
    yield True, ["linreg", FLIGHTS, "--target", "arr_delay"]
    yield True, ["logreg", path("text.csv"), "--target", "class", "--ignore", "note", "--missing", "drop",
                 "--reference", "town=t39"]
    yield True, ["logreg", "--parts", path("text-?.csv"), "--target", "class", "--ignore", "note",
                 "--missing", "drop"]
    yield True, ["logreg", path("text.csv"), "--target", "class", "--ignore", "note", "--missing", "mean"]
    yield True, ["logreg", "--parts", path("text-?.csv"), "--target", "class", "--features", "size",
                 "--missing", "indicator"]
    yield True, ["logreg", path("text.csv"), "--target", "class", "--ignore", "note", "--missing", "drop",
                 "--cv", "2", "--groups", "town"]


def in_turn(all_cases, turn):
    """Each MPI takes the first case, with one process to four, and those after it in turn, with two to four:
    what is read, sent and computed does not depend on the MPI, which only carries it."""
    mine, of = turn
    for number, case in enumerate(all_cases):
        if number == 0:
            yield (1, 2, 3, 4), case
        elif number % of == mine:
            yield (2 + number % 3,), case


def check_answers(path, mpirun, environment, turn):
    for counts, (parts, case) in in_turn(cases(path), turn):
        alone = answer(run([KILN, *case, "--device", "cpu", "--json", "-q"]))
        for count in counts:
            together = run([mpirun, "-n", str(count), KILN, *case, "--mpi", "--json"], environment)
            assert agree(answer(together), alone), (case, count, alone, together.stdout)
            assert together.stdout.count("kiln_version") == 1, together.stdout
            told = f"each of {count} processes has read a part" if parts else "process 1 reads all of it"
            assert told in together.stderr, (case, count, together.stderr)


def check_home(path, mpirun, environment):
    """Vectors as long as X's rows stay with the processes that have the rows: nothing of them comes home from
    a logistic regression, and from PageRank as much for one step as for forty."""
    none = ["logreg", path("x.npz"), "--target-file", path("y.npy")], ["logreg", path("all.svm")]
    for case in none:
        for more in ([], ["--deterministic"]):
            together = run([mpirun, "-n", "3", KILN, *case, *more, "--mpi", "--json", "-q"], environment)
            sharing = json.loads(together.stdout)["sharing"]
            assert sharing["operations"] > 5 and sharing["rows_home_bytes"] == 0, (case, sharing)
    case = ["pagerank", path("graph.edges"), "--iterations"]
    homes = []
    for count in ("1", "40"):
        together = run([mpirun, "-n", "3", KILN, *case, count, "--mpi", "--json", "-q"], environment)
        homes.append(json.loads(together.stdout)["sharing"]["rows_home_bytes"])
    assert homes[0] == homes[1] > 0, homes


def check_predictions(path, mpirun, environment, turn):
    """Tables for a model: levels that it has not seen, means that it remembers; predictions, and how many
    levels."""
    train = ["logreg", path("text-0.csv"), "--target", "class", "--ignore", "note", "-q", "-o",
             path("text.kiln"), "--missing"]
    missing = ("mean", "indicator")[turn[0] % 2]
    assert run([KILN, *train, missing]).returncode == 0
    assert run([KILN, "mds", path("points.csv"), "-q", "-o", path("layout.kiln")]).returncode == 0
    for model, name in (("text", "text.csv"), ("text", "text.csv.gz"), ("layout", "points.csv")):
        case = ["predict", path(f"{model}.kiln"), path(name), "-o"]
        alone = run([KILN, *case, path("alone.csv")])
        for count in (2, 4):
            together = run([mpirun, "-n", str(count), KILN, *case, path("together.csv"), "--mpi"],
                           environment)
            assert alone.returncode == together.returncode == 0, (alone.stderr, together.stderr)
            assert f"each of {count} processes has read a part" in together.stderr, together.stderr
            unseen = [re.findall(r"not seen in training: \d+", result.stderr) for result in (alone, together)]
            assert unseen[0] == unseen[1], unseen  # of all processes; the place of the first is known to one
            with open(path("alone.csv")) as one, open(path("together.csv")) as other:
                for a, b in zip(one.read().splitlines(), other.read().splitlines(), strict=True):
                    assert all(x == y or math.isclose(float(x), float(y), rel_tol=1e-9)
                               for x, y in zip(a.split(","), b.split(","), strict=True)), (a, b)


def check_folds(path, mpirun, environment, turn):
    """Missing values are filled in each fold by rows of all processes, and rows that are left out lose their
    weights."""
    case = ["logreg", path("text.csv"), "--target", "class", "--ignore", "note", "--cv", "3", "--missing",
            ("indicator", "mean")[turn[0] % 2], "--json"]
    with open(path("text.csv"), newline="") as file:
        rows = sum(1 for _ in csv.reader(file)) - 1
    with open(path("weights.txt"), "w") as file:  # of the rows that are left out, too
        file.writelines(f"{1 + i % 3}\n" for i in range(rows))
    drop = ["logreg", path("text.csv"), "--target", "class", "--ignore", "note", "--missing", "drop",
            "--weights-file", path("weights.txt"), "--json"]
    assert agree(answer(run([mpirun, "-n", "3", KILN, *drop, "--mpi"], environment)),
                 answer(run([KILN, *drop, "--device", "cpu", "-q"])))
    alone = json.loads(run([KILN, *case, "--device", "cpu",
                            "-q"]).stdout)["cross_validation"]["values"][0]["folds"]
    together = run([mpirun, "-n", "3", KILN, *case, "--mpi"], environment)
    assert "each of 3 processes has read a part" in together.stderr, together.stderr
    for a, b in zip(alone, json.loads(together.stdout)["cross_validation"]["values"][0]["folds"],
                    strict=True):
        assert math.isclose(a, b, rel_tol=1e-9), (a, b)


def tensors(path):
    """The tensors of a model, by name."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    head.pop("__metadata__", None)
    found = {}
    for name, told in head.items():
        begin, end = told["data_offsets"]
        code = {"F64": "d", "F32": "f"}[told["dtype"]]
        found[name] = struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}",
                                    data[8 + size + begin:8 + size + end])
    return found


def write_graph(path):
    draw = random.Random(2)
    with open(path("graph.edges"), "w") as file:
        file.writelines(f"{draw.randrange(400)} {int(400 * draw.random() ** 3)}\n" for _ in range(4000))
    with open(path("few.edges"), "w") as file:
        file.write("0 1\n1 0\n")
    with open(path("points.csv"), "w") as file:
        file.write("a,b,c\n")
        file.writelines(",".join(f"{draw.gauss(0, 1):.6f}" for _ in range(3)) + "\n" for _ in range(60))


def write_counts(path):
    draw = random.Random(3)
    with open(path("counts.svm"), "w") as file:
        for _ in range(200):
            columns = sorted(draw.sample(range(1, 60), draw.randrange(0, 12)))
            file.write("0 " + " ".join(f"{j}:{draw.randrange(1, 5)}" for j in columns) + "\n")


def models(path):
    """Commands whose models are told by all of their numbers."""
    yield ["pagerank", path("graph.edges"), "--tolerance", "1e-13"]
    yield ["pagerank", path("few.edges")]
    yield ["mds", path("points.csv"), "--seed", "1", "--max-iterations", "20"]
    counts = [path("counts.svm"), "--format", "libsvm", "--seed", "1", "--test-fraction", "0.2",
              "--max-iterations", "4"]
    yield ["als", *counts, "--factors", "3", "--biases"]
    yield ["als", *counts, "--factors", "3", "--solver", "ccd"]
    yield ["sfa", *counts, "--factors", "3"]
    yield ["lda", *counts, "--topics", "3"]
    yield ["gap", *counts, "--topics", "3"]


def check_models(path, mpirun, environment, turn):
    for counts, case in in_turn(models(path), turn):
        alone = run([KILN, *case, "--device", "cpu", "-q", "-o", path("alone.kiln")])
        assert alone.returncode in (0, 10), alone.stderr
        for count in counts:
            together = run([mpirun, "-n", str(count), KILN, *case, "--mpi", "--deterministic", "-q", "-o",
                            path("together.kiln")], environment)
            assert together.returncode == alone.returncode, together.stderr
            expected, found = tensors(path("alone.kiln")), tensors(path("together.kiln"))
            assert expected.keys() == found.keys()
            for name in expected:
                apart = max((abs(a - b) for a, b in zip(expected[name], found[name], strict=True)), default=0)
                assert apart <= 1e-9 * max(map(abs, expected[name]), default=0), (case, count, name, apart)


def check_evaluated(path, mpirun, environment, turn):
    """The metrics of data of which each process has read a part, by a model of some of them."""
    every = [(["logreg", path("part-0.svm")], [path("all.svm")]),
             (["logreg", path("part-1.svm")], [path("all.svm.gz")]),
             (["logreg", path("text-0.csv"), "--target", "class", "--ignore", "note", "--missing", "mean"],
              [path("text.csv")]),
             (["linreg", path("both.npy"), "--target", "-1", "--weights", "1"],
              [path("both.npy.gz"), "--target", "-1", "--weights", "1"]),
             (["glm", path("x.npz"), "--target-file", path("y.npy")],
              [path("packed.npz"), "--target-file", path("y.npy")])]
    for counts, (train, data) in in_turn(every, turn):
        trained = run([KILN, *train, "--device", "cpu", "-q", "-o", path("judged.kiln")])
        assert trained.returncode in (0, 10), (train, trained.stderr)
        command = ["evaluate", path("judged.kiln"), *data, "--json"]
        alone = run([KILN, *command, "-q"])
        assert alone.returncode == 0, (command, alone.stderr)
        expected = json.loads(alone.stdout)
        for count in counts:
            together = run([mpirun, "-n", str(count), KILN, *command, "--mpi"], environment)
            assert (together.returncode == 0
                    and f"each of {count} processes has read a part" in together.stderr), (command,
                                                                                           together.stderr)
            found = json.loads(together.stdout)
            assert expected["rows"] == found["rows"] and len(expected["metrics"]) > 1, (command, found)
            for name, value in expected["metrics"].items():
                same = value == found["metrics"][name]
                assert same or math.isclose(value, found["metrics"][name], rel_tol=1e-9,
                                            abs_tol=1e-12), (command, count, name, value,
                                                             found["metrics"][name])


def write_operands(path):
    """S of 41 x 12, sparse; X of 41 x 12, and what is multiplied with them, of 3 columns."""
    draw, m, n, k = random.Random(3), 41, 12, 3
    entries = [f"{i + 1} {j + 1} {draw.uniform(1, 2)!r}" for i in range(m) for j in range(n)
               if draw.random() < 0.3]
    with open(path("S.mtx"), "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{m} {n} {len(entries)}\n")
        file.writelines(f"{entry}\n" for entry in entries)
    for name, shape in (("X", (m, n)), ("A", (m, k)), ("B", (n, k)), ("v", (m, 1))):
        with open(path(f"{name}.npy"), "wb") as file:
            file.write(npy("<f8", [draw.uniform(-1, 1) for _ in range(shape[0] * shape[1])], shape))


def check_products(path, mpirun, environment, turn):
    """Products of files, whose first is shared, and the others lie in the first process."""
    write_operands(path)
    S, X, A, B, v = (path(name) for name in ("S.mtx", "X.npy", "A.npy", "B.npy", "v.npy"))
    every = [["sddmm", S, A, B, "--kind", "residual"], ["mmchain", X, B, "--v", v, "--z", B, "--beta", "2"],
             ["mmchain", S, B, "--v", v]]
    for counts, command in in_turn(every, turn):
        to = path("product.mtx" if command[0] == "sddmm" else "product.csv")
        assert run([KILN, *command, "-q", "-o", to]).returncode == 0
        with open(to) as file:
            expected = re.findall(r"-?\d[\d.e+-]*", file.read())
        for count in counts:
            together = run([mpirun, "-n", str(count), KILN, *command, "--mpi", "-o", to], environment)
            assert (together.returncode == 0
                    and f"each of {count} processes has read a part" in together.stderr), together.stderr
            with open(to) as file:
                found = re.findall(r"-?\d[\d.e+-]*", file.read())
            assert all(math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)
                       for a, b in zip(expected, found, strict=True)), (command, count)
    wrong = run([mpirun, "-n", "2", KILN, "sddmm", S, B, A, "--mpi"], environment)
    assert wrong.returncode == 3 and "B.npy has 12 rows, and" in wrong.stderr, wrong.stderr


def check_verified(path, mpirun, environment, turn):
    """Models verified with data of which each process has read a part: their claims are found again, as one
    process finds them."""
    data = [path("counts.svm"), "--format", "libsvm"]
    train = ["--seed", "1", "--max-iterations", "4"]
    every = [(["linreg", path("x.npz"), "--target-file", path("y.npy")], []),
             (["logreg", path("all.svm")], []),
             (["svm", path("text.csv"), "--target", "class", "--ignore", "note", "--missing", "drop"], []),
             (["kmeans", path("all.csv"), "-k", "3", "--seed", "1"], []),
             (["mds", path("points.csv")], train), (["hits", *data], []),
             (["als", *data, "--factors", "3", "--test-fraction", "0.2"], train),
             (["gap", *data, "--topics", "3"], train), (["lda", *data, "--topics", "3"], train)]
    for counts, (case, more) in in_turn(every, turn):
        trained = run([KILN, *case, *more, "--device", "cpu", "-q", "-o", path("claims.kiln")])
        assert trained.returncode in (0, 10), (case, trained.stderr)
        command = ["verify", path("claims.kiln"), *case[1:]]
        # which verify takes from the model
        for option in ("-k", "--seed", "--factors", "--topics", "--test-fraction", "--ignore", "--missing"):
            if option in command:
                at = command.index(option)
                del command[at:at + 2]
        claims = json.loads(run([KILN, *command, "--json", "-q"]).stdout)["claims"]
        assert claims and all(claim["holds"] is not False for claim in claims), (case, claims)
        for count in counts:
            together = run([mpirun, "-n", str(count), KILN, *command, "--mpi", "--json"], environment)
            assert (together.returncode == 0 and json.loads(together.stdout)["claims"]
                    == claims), (command, count, together.stdout, together.stderr)
            assert f"each of {count} processes has read a part" in together.stderr, (command, together.stderr)


def check_resumed(path, mpirun, environment):
    """Another number of processes goes on from a checkpoint."""
    for case in (["als", "--factors", "3", "--implicit"], ["als", "--factors", "3", "--solver", "ccd"]):
        case += [path("counts.svm"), "--format", "libsvm", "--seed", "1", "--tolerance", "1e-14", "--json",
                 "-q", "--max-iterations"]
        alone = answer(run([KILN, *case, "6", "--device", "cpu"]))
        answer(run([mpirun, "-n", "2", KILN, *case, "3", "--mpi", "--checkpoint", path("state")],
                   environment))
        found = answer(run([mpirun, "-n", "3", KILN, *case, "6", "--mpi", "--resume", path("state")],
                           environment))
        assert agree(found, alone), (case, alone, found)
        os.remove(path("state"))


def check_bits(path, mpirun, environment):
    """The same bits, with numbers that a sum in another order would change."""
    command = [mpirun, "-n", "4", KILN, "logreg", path("all.svm"), "--mpi", "--deterministic", "--json", "-q"]
    found = {answer(run(command, environment))[2] for _ in range(3)}
    assert len(found) == 1, found


def check_errors(path, mpirun, environment):
    """One message, with the place in the whole file, and the exit code of one process."""
    with open(path("all.svm")) as file:
        lines = file.readlines()
    lines[2500] = "1 3:x\n"
    with open(path("bad.svm"), "w") as file:
        file.writelines(lines)
    with open(path("x.mtx")) as file:
        lines = file.readlines()
    lines[30003] = "3 x 1\n"
    with open(path("bad.mtx"), "w") as file:
        file.writelines(lines)
    with open(path("lost.mtx"), "w") as file:
        file.writelines(lines[:30003])
    compress(path("bad.svm"), 1)
    with open(path("all.csv")) as file:
        lines_of_csv = file.readlines()
    lines_of_csv[2500] = "word" + lines_of_csv[2500]
    with open(path("bad.csv"), "w") as file:
        file.writelines(lines_of_csv)
    targets = ["--target-file", path("y.npy")]
    for case, message in ((["logreg", path("bad.svm")], "bad.svm:2501:"),
                          (["logreg", path("bad.svm.gz")], "bad.svm.gz:2501:"),
                          (["linreg", path("bad.csv"), "--target", "y"], "bad.csv:2501:"),
                          (["linreg", path("bad.mtx"), *targets], "bad.mtx:30004:3:"),
                          (["linreg", path("lost.mtx"), *targets], "the file ends after 29999 entries"),
                          (["linreg", path("x.mtx"), *targets, "--strict"], "stands twice, first in"),
                          (["linreg", "--parts", path("nothing-*")], "no file matches"),
                          (["logreg", path("none.svm")], "cannot open"),
                          (["logreg", path("all.svm"), "--bogus"], "unknown option")):
        alone = run([KILN, *case, "-q"])
        together = run([mpirun, "-n", "3", KILN, *case, "--mpi", "-q"], environment)
        assert (alone.returncode == together.returncode != 0), (case, alone.returncode, together.returncode,
                                                                together.stderr)
        assert together.stderr.count(message) == 1, (message, together.stderr)
    case = ["linreg", path("x.npz"), *targets, "--memory", "4K", "--device", "cpu", "-q"]
    alone, together = run([KILN, *case]), run([mpirun, "-n", "2", KILN, *case, "--mpi"], environment)
    assert "or --map" in alone.stderr and "--map" not in together.stderr, (alone.stderr, together.stderr)
    assert alone.returncode == together.returncode == 6, (alone, together)


def members(mark):
    """The processes of a run whose command line has `mark`, by their number."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline") as file:
                words = file.read().split("\0")
            with open(f"/proc/{process}/environ") as file:
                variables = dict(word.split("=", 1) for word in file.read().split("\0") if "=" in word)
        except OSError:  # it has ended, or is somebody else's
            continue
        if os.path.basename(words[0]) == "kiln" and mark in words:
            found[int(variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK", -1)))] = int(process)
    return found


def lose(path, mpirun, environment, signal_number, whose, silence):
    """Kills or stops one of three processes in the middle of a run; how long the others took to end, and
    their exit code."""
    state = path("state")
    work = ["als", path("all.svm"), "--format", "libsvm", "--factors", "8", "--max-iterations", "1000000",
            "--tolerance", "1e-15"]
    if os.path.exists(state):
        os.remove(state)
    run_of = subprocess.Popen([mpirun, "-n", "3", KILN, *work, "--mpi", "-q", "--checkpoint", state,
                               "--checkpoint-every", "0.1"],
                              env=dict(environment, KILN_MPI_SILENCE=str(silence)), stderr=subprocess.PIPE,
                              text=True)
    while not os.path.exists(state):
        assert run_of.poll() is None, run_of.stderr.read()
        time.sleep(0.05)
    there = members(state)
    assert sorted(there) == [0, 1, 2], there
    began = time.monotonic()
    os.kill(there[whose], signal_number)
    text = run_of.communicate(timeout=100)[1]
    seconds = time.monotonic() - began
    assert run_of.returncode not in (0, None), text
    time.sleep(0.2)
    assert not members(state), "processes are left"
    resumed = run([KILN, *work[:-4], "--max-iterations", "2", "--resume", state, "--json", "-q"])
    assert resumed.returncode in (0, 10), resumed.stderr
    return seconds, run_of.returncode, text


def check_losses(path, mpirun, environment):
    """A process that is killed, or stopped, ends all, and leaves a state that another run goes on from."""
    seconds, _, _ = lose(path, mpirun, environment, signal.SIGKILL, 2, 80)
    assert seconds < 60, seconds  # mpirun itself sees it, before the others miss the one that was lost
    seconds, code, text = lose(path, mpirun, environment, signal.SIGSTOP, 1, 2)
    assert seconds < 60 and code and text.count("has not been heard of") == 1, (seconds, code, text)


def check_other_files(path, mpirun, environment):
    """Processes that see files of another length, or of another beginning, under the same name: an error that
    names the first of them."""
    with open(path("all.svm")) as file:
        lines = file.readlines()
    for kept in (lines[:-1], lines[1:] + lines[:1]):
        for number in range(3):
            os.makedirs(path(f"of-{number}"), exist_ok=True)
            with open(path(f"of-{number}/rows.svm"), "w") as file:
                file.writelines(kept if number == 2 else lines)
        work = 'cd "$0-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$1" logreg rows.svm --mpi -q -o model'
        together = run([mpirun, "-n", "3", "sh", "-c", work, path("of"), KILN], environment)
        assert (together.returncode and together.stderr.count("process 3 of 3 sees another rows.svm")
                == 1), together
        assert not os.path.exists(path("of-0/model"))
    middle = [*lines[:2000], "1 3:x" + lines[2000][5:], *lines[2001:]]  # as long, with the same ends
    for whose in (1, 2):
        for number in range(3):
            with open(path(f"of-{number}/rows.svm"), "w") as file:
                file.writelines(middle if number == whose else lines)
        together = run([mpirun, "-n", "3", "sh", "-c", work, path("of"), KILN], environment)
        if whose == 1:  # whose part has that line
            assert together.returncode == 3 and together.stderr.count("process 2 of 3: ") == 1, together
        else:
            assert together.returncode == 0, together
    numbers = list(map(float, range(COLUMNS * 300)))
    for number in range(3):
        with open(path(f"of-{number}/x.npy"), "wb") as file:
            file.write(npy("<f8", [*numbers[:6010], math.nan, *numbers[6011:]] if number == 1 else numbers,
                           f"(300, {COLUMNS})"))
    work = work.replace("logreg rows.svm", "kmeans x.npy -k 2")
    together = run([mpirun, "-n", "3", "sh", "-c", work, path("of"), KILN], environment)
    # no byte: its part begins anew
    assert together.returncode == 3 and "x.npy: process 2 of 3: value nan" in together.stderr, together
    assert "counts from where that process's part begins" in together.stderr, together


def check_asked_to_end(path, mpirun, environment):
    """SIGTERM to all processes, as mpirun and Slurm send it: the model so far, and a checkpoint that goes
    on."""
    state, model = path("asked"), path("asked.kiln")
    work = ["als", path("all.svm"), "--format", "libsvm", "--factors", "8", "--max-iterations", "1000000",
            "--tolerance", "1e-15"]
    run_of = subprocess.Popen([mpirun, "-n", "3", KILN, *work, "--mpi", "-q", "--checkpoint", state,
                               "--checkpoint-every", "0.1", "-o", model],
                              env=environment, stderr=subprocess.PIPE, text=True)
    while not os.path.exists(state):
        assert run_of.poll() is None, run_of.stderr.read()
        time.sleep(0.05)
    os.remove(state)
    for process in members(state).values():
        os.kill(process, signal.SIGTERM)
    text = run_of.communicate(timeout=100)[1]
    assert "interrupted after" in text and os.path.exists(state) and os.path.exists(model), text
    for file in (state, model):
        os.remove(file)


def check_alone(path, mpirun, environment):
    """--mpi that finds one process says so."""
    alone = run([mpirun, "-n", "1", KILN, "logreg", path("all.svm"), "--mpi"], environment)
    assert alone.returncode == 0 and "finds one process" in alone.stderr, alone.stderr


def check_program(path, name, mpirun, environment):
    """A program of MPI's own, by kiln/mpi.h and the shared library, where that lies beside the tool."""
    build, here = os.path.dirname(KILN), os.path.dirname(os.path.abspath(__file__))
    compiler = shutil.which(f"mpicc.{name}") or shutil.which("mpicc")
    if not compiler or SANITIZED or not os.path.exists(os.path.join(build, "libkiln.so")):
        return
    built = run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I",
                 os.path.join(here, "..", "..", "include"), os.path.join(here, "program.c"), "-o",
                 path("program"), "-L", build, "-lkiln", f"-Wl,-rpath,{build}"])
    assert built.returncode == 0, built.stderr
    done = run([mpirun, "-n", "3", path("program"), path("product.csv")], environment)
    assert done.stdout.split() == ["210", "103", "32", "321", "210", "103", "32", "of",
                                   "3"], (done.stdout, done.stderr)
    with open(path("product.csv"), encoding="utf-8") as file:
        assert file.read().split()[-7:] == ["210", "103", "32", "321", "210", "103", "32"]


def check_united(mpirun, environment):
    """NCCL between processes, on the stubs of it and of CUDA."""
    environment = dict(environment, LD_LIBRARY_PATH=STUBS, KILN_NVRTC_PATH="")
    for count, case in ((1, "apart"), (2, "apart"), (3, "apart"), (3, "shared"), (2, "unconnected"),
                        (3, "broken")):
        done = run([mpirun, "-n", str(count), UNITED, case], environment)
        assert (done.returncode == 0) == (case
                                          != "broken") and "united.c" not in done.stderr, (count, case,
                                                                                           done.returncode,
                                                                                           done.stderr)


def check_missing(path):
    """Without the plug-in the tool says how to get it; under mpirun without --mpi, that it is alone."""
    missing = run([KILN, "logreg", path("all.svm"), "--mpi"],
                  dict(ENVIRONMENT, KILN_MPI_PATH="/nowhere/libkiln-openmpi.so"))
    assert missing.returncode == 5 and "mpicc" in missing.stderr, missing.stderr
    for rank, times in ("0", 1), ("1", 0):
        alone = run([KILN, "logreg", path("all.svm")], dict(ENVIRONMENT, PMI_RANK=rank, PMI_SIZE="2"))
        assert alone.returncode == 0 and alone.stderr.count("--mpi") == times, alone.stderr
    plain = run([KILN, "info", path("all.svm")], dict(ENVIRONMENT, PMI_RANK="0", PMI_SIZE="2"))
    assert plain.returncode == 0 and "--mpi" not in plain.stderr, plain.stderr  # which info does not take


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = write_data(folder)
        write_graph(path)
        write_counts(path)
        check_missing(path)
        found = [launcher for launcher in launchers() if starts(*launcher)]
        for number, (name, mpirun, environment) in enumerate(found):
            turn = number, len(found)
            check_answers(path, mpirun, environment, turn)
            check_home(path, mpirun, environment)
            check_predictions(path, mpirun, environment, turn)
            check_folds(path, mpirun, environment, turn)
            check_models(path, mpirun, environment, turn)
            check_evaluated(path, mpirun, environment, turn)
            check_products(path, mpirun, environment, turn)
            check_verified(path, mpirun, environment, turn)
            check_resumed(path, mpirun, environment)
            check_bits(path, mpirun, environment)
            check_errors(path, mpirun, environment)
            check_losses(path, mpirun, environment)
            check_other_files(path, mpirun, environment)
            check_asked_to_end(path, mpirun, environment)
            check_alone(path, mpirun, environment)
            check_program(path, name, mpirun, environment)
            check_united(mpirun, environment)
            print(f"{name}: passed")
    return 0 if found else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
