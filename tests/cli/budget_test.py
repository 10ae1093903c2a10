"""Every verb that takes X by panels on an X far above the byte budget: each run is a process of its own, so
that X is cold, and none may need X whole. Objective, clusters and ranks are those of a CPU with plenty.

usage: budget_test.py KILN DEVICE[/WAY...] ...
A WAY is one of dense and sparse, f32 and f64, read and map; or short: one case of each verb. Without any, all
are tried. Prints a line for each case, and ends with 1 where one fails.
"""

import array
import itertools
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

ROWS, COLUMNS, WIDE, PART = 4000, 24, 200, 0.12
BUDGET = 0.5  # of X
CLUSTERS, MEMBERS = 3, 4000  # K-Means: rows
LONG, OWN, FILLED = 200, 60, 50  # columns of dense X; of a cluster in sparse X, and entries of a row
VERTICES, LINKS = 1500, 200  # PageRank: links of a vertex
POINTS, LONG_POINTS = 800, 1000  # MDS: points, and their columns
USERS, ITEMS, RATINGS = 2400, 1600, 250  # ALS: ratings of a user
TENTH = 0.1


def npy(values, code, *shape):
    """The bytes of an .npy file."""
    kind = {"f": "<f4", "d": "<f8", "i": "<i4", "q": "<i8"}[code]
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H",
                                              len(text)) + text.encode() + array.array(code, values).tobytes()


def write(name, data):
    with open(name, "wb") as out:
        out.write(data)


def npz(name, data, columns, starts, code, width=WIDE):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_STORED) as out:
        out.writestr("indices.npy", npy(columns, "i", len(columns)))
        out.writestr("indptr.npy", npy(starts, "q", len(starts)))
        out.writestr("format.npy", npy_text(b"csr"))
        out.writestr("shape.npy", npy([len(starts) - 1, width], "q", 2))
        out.writestr("data.npy", npy(data, code, len(data)))


def make_clusters(folder):
    """Rows far from all centres but their own, which are the same for any order of additions."""
    dice = random.Random(8)
    home = [dice.randrange(CLUSTERS) for _ in range(MEMBERS)]
    centres = [[dice.gauss(0, 8) for _ in range(LONG)] for _ in range(CLUSTERS)]
    dense = [x + dice.gauss(0, 1) for h in home for x in centres[h]]
    columns, data, starts = [], [], [0]
    for h in home:
        columns += sorted(dice.sample(range(OWN * h, OWN * (h + 1)), FILLED))
        data += [1 + dice.random() for _ in range(FILLED)]
        starts.append(len(data))
    for code in "fd":
        write(os.path.join(folder, f"clusters-dense-{code}.npy"), npy(dense, code, MEMBERS, LONG))
        npz(os.path.join(folder, f"clusters-sparse-{code}.npz"), data, columns, starts, code, OWN * CLUSTERS)


def make_points(folder):
    """Points in many columns, and dissimilarities that are near distances in a plane."""
    dice = random.Random(11)
    centres = [[dice.gauss(0, 2) for _ in range(LONG_POINTS)] for _ in range(CLUSTERS)]
    points = [x + dice.gauss(0, 1) for i in range(POINTS) for x in centres[i % CLUSTERS]]
    plane = [complex(dice.gauss(0, 1), dice.gauss(0, 1)) for _ in range(POINTS)]
    apart = [[0.0] * POINTS for _ in range(POINTS)]
    for i, x in enumerate(plane):
        for j in range(i):
            apart[i][j] = apart[j][i] = 0.5 + abs(x - plane[j]) * (1 + 0.1 * dice.random())
    for code in "fd":
        write(os.path.join(folder, f"points-{code}.npy"), npy(points, code, POINTS, LONG_POINTS))
        write(os.path.join(folder, f"apart-{code}.npy"), npy(itertools.chain(*apart), code, POINTS, POINTS))


def make_graph(folder):
    """Links with weights; a few vertices have none. Two sets of seeds."""
    dice = random.Random(9)
    columns, starts = [], [0]
    for vertex in range(VERTICES):
        columns += sorted(dice.sample(range(VERTICES), LINKS if vertex % 100 else 0))
        starts.append(len(columns))
    data = [0.5 + dice.random() for _ in columns]
    for code in "fd":
        npz(os.path.join(folder, f"graph-{code}.npz"), data, columns, starts, code, VERTICES)
    write(os.path.join(folder, "seeds.txt"), b"3\n5 2\n\n1000\n17\n")


def make_ratings(folder):
    """A few users have rated nothing."""
    dice = random.Random(10)
    taste = [[dice.gauss(0, 1) for _ in range(3)] for _ in range(USERS + ITEMS)]
    columns, data, starts = [], [], [0]
    for user in range(USERS):
        row = sorted(dice.sample(range(ITEMS), RATINGS if user % 50 else 0))
        columns += row
        liking = [sum(x * y for x, y in zip(taste[user], taste[USERS + i])) for i in row]
        data += [3 + x + dice.gauss(0, 0.3) for x in liking]
        starts.append(len(columns))
    counts = [float(1 + int(abs(x))) for x in data]
    for code in "fd":
        npz(os.path.join(folder, f"ratings-{code}.npz"), data, columns, starts, code, ITEMS)
        npz(os.path.join(folder, f"counts-{code}.npz"), counts, columns, starts, code, ITEMS)


def tensors(name, *wanted):
    """Matrices of an .npz file, each as a flat list."""
    with zipfile.ZipFile(name) as members:
        found = {}
        for tensor in wanted:
            data = members.read(f"{tensor}.npy")
            begin = 10 + struct.unpack("<H", data[8:10])[0]
            found[tensor] = array.array("f" if b"<f4" in data[:begin] else "d", data[begin:])
        return found


def model_tensors(name):
    """Tensors of a model, each as a flat list."""
    data = read(name, "rb")
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    found = {}
    for key, row in json.loads(data[8:begin]).items():
        if key != "__metadata__":
            first, end = row["data_offsets"]
            found[key] = array.array("f" if row["dtype"] == "F32" else "d", data[begin + first:begin + end])
    return found


def npy_text(text):
    header = f"{{'descr': '|S{len(text)}', 'fortran_order': False, 'shape': (), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + text


def targets(folder, name, sums, dice):
    """The targets that each loss is about, from the rows' sums."""
    spread = max(abs(s) for s in sums)
    noisy = [s + dice.gauss(0, 0.2 * spread) for s in sums]
    order = sorted(noisy)
    kinds = {
        "number": noisy,
        "class": [float(s > order[ROWS // 2]) for s in noisy],
        "classes": [float((s > order[ROWS // 3]) + (s > order[2 * ROWS // 3])) for s in noisy],
        "count": [float(int(3 * 2 ** (s / spread) * dice.random() + 0.5)) for s in noisy],
    }
    for kind, values in kinds.items():
        for code in "fd":
            write(os.path.join(folder, f"{name}-{kind}-{code}.npy"), npy(values, code, ROWS))


def make(folder):
    dice = random.Random(7)
    slope = [dice.gauss(0, 1) for _ in range(WIDE)]
    X = [[dice.gauss(3.0 * (j % 3), 1) for j in range(COLUMNS)] for _ in range(ROWS)]
    for code in "fd":
        write(os.path.join(folder, f"dense-{code}.npy"), npy(itertools.chain(*X), code, ROWS, COLUMNS))
    targets(folder, "dense", [sum((x - 3.0 * (j % 3)) * slope[j] for j, x in enumerate(row)) for row in X],
            dice)
    columns, data, starts, sums = [], [], [0], []
    for _ in range(ROWS):
        row = sorted(dice.sample(range(WIDE), int(PART * WIDE)))
        numbers = [dice.gauss(0, 1) for _ in row]
        columns += row
        data += numbers
        starts.append(len(data))
        sums.append(sum(slope[j] * x for j, x in zip(row, numbers)))
    for code in "fd":
        npz(os.path.join(folder, f"sparse-{code}.npz"), data, columns, starts, code)
    targets(folder, "sparse", sums, dice)
    return {"dense": ROWS * COLUMNS, "sparse": len(data)}


CASES = (
    ("linreg", "number"),
    ("linreg", "number", "--solver", "cg", "--standardize", "--l2", "1"),
    ("linreg", "number", "--solver", "cholesky", "--no-intercept"),
    ("linreg", "number", "--cv", "2", "--l2", "1,10"),  # a fold is as large as the budget
    ("logreg", "class", "--l2", "1"),
    ("logreg", "class", "--l1", "5"),
    ("logreg", "classes", "--l2", "1"),
    ("logreg", "class", "--cv", "3", "--l2", "1,10"),
    ("glm", "count", "--family", "poisson", "--standard-errors"),
    ("svm", "class"),
)


KMEANS = (
    ("--init", "k-means++"),
    ("--init", "k-means-parallel"),
    ("--batch", "50", "--max-iterations", "40"),
    ("--spherical", "--init", "random"),
    ("--algorithm", "bounds"),  # of a dense X
)
SVD = (("svd",), ("pca", "--scale"), ("svd", "--center", "--solver", "krylov"))
GRAPH = ("spectral",)
TRIPLES = 2
PAGERANK = ((), ("--unweighted",), ("--personalize", "seeds.txt"))

FACTORS = (
    ("als", "ratings"),
    ("als", "ratings", "--counted", "--solver", "cholesky", "--test-fraction", "0.2"),
    ("als", "counts", "--implicit"),
    ("als", "counts", "--implicit", "--confidence", "log"),
    ("sfa", "ratings"),
    ("sfa", "ratings", "--test-fraction", "0.2"),
)

TOPICS = (
    ("gap", ),
    ("gap", "--prior", "none", "--test-fraction", "0.2"),
    ("lda", ),
    ("lda", "--steps", "3"),
)

LAYOUTS = (
    ("points",),
    ("apart", "--dissimilarities"),
    ("apart", "--dissimilarities", "--metric", "interval"),
)

BRIEF = *(CASES[i] for i in (0, 4, 8, 9)), KMEANS[0], SVD[0], FACTORS[0], FACTORS[4], TOPICS[0], TOPICS[2]
BRIEF += LAYOUTS[:1]


class Runs:
    def __init__(self, kiln, folder):
        self.kiln, self.folder, self.failed, self.known = kiln, folder, 0, {}
        self.entries = make(folder)
        make_clusters(folder)
        make_points(folder)
        make_graph(folder)
        make_ratings(folder)

    def has(self, device):
        listed = subprocess.run([self.kiln, "devices", "--json"], capture_output=True, text=True,
                                check=True).stdout
        known = [row["name"] for row in json.loads(listed)["devices"] if row["usable"]]
        return any(name.startswith(device.split("*")[0]) for name in known)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *command):
        done = subprocess.run([self.kiln, *command, "--json", "-q"], capture_output=True, text=True,
                              timeout=600)
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stdout.strip()[:200]} "
                               f"{done.stderr.strip()[-200:]}")
        return json.loads(done.stdout)

    def command(self, case, shape, code):
        verb, kind, *options = case
        data = self.path(f"{shape}-{code}.{'npy' if shape == 'dense' else 'npz'}")
        target = self.path(f"{shape}-{kind}-{code}.npy")
        return [verb, data, "--target-file", target, "--type", "f32" if code == "f" else "f64", *options]

    def bytes_of(self, shape, code):
        one = {"f": 4, "d": 8}[code]
        return self.entries[shape] * (one + (4 if shape == "sparse" else 0))

    def plenty(self, case, shape, code):
        """The result of a CPU that holds X."""
        known = (case, shape, code)
        if known not in self.known:
            self.known[known] = self.run(*self.command(case, shape, code), "--device", "cpu")
        return self.known[known]

    def case(self, compare, device, case, shape, code, mapped):
        kind = "f32" if code == "f" else "f64"
        name = " ".join([device, compare.__name__, *case, shape, kind, "map" if mapped else ""])
        try:
            compare(device, case, shape, code, mapped)
            print("pass", name, flush=True)
        except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as error:
            self.failed += 1
            print("FAIL", name, error, flush=True)

    def budget(self, device, data, mapped, share=TENTH):
        return ["--device", device, "--memory",
                str(int(share * os.path.getsize(data))), *(["--map"] if mapped else [])]

    def compare_clusters(self, device, options, shape, code, mapped):
        data = self.path(f"clusters-{shape}-{code}.{'npy' if shape == 'dense' else 'npz'}")
        model, labels, digits = self.path("c.kiln"), self.path("labels.txt"), 1e-12 if code == "d" else 1e-5
        command = ["kmeans", data, "-k", str(CLUSTERS), "--seed", "3", *options, "--labels", labels]
        way = [*self.budget(device, data, mapped), "--type", "f32" if code == "f" else "f64"]
        want = self.run(*command, *way[-2:], "--device", "cpu")
        found = read(labels)
        got = self.run(*command, *way, "-o", model)
        assert read(labels) == found, "other labels"
        for key in ("inertia", "iterations", *(["skipped"] if "bounds" in options else [])):
            assert abs(got[key] - want[key]) <= digits * abs(want[key]), f"{key} {got[key]}, not {want[key]}"
        assert got["memory"]["panels"] > 10, "X was not streamed"
        members = 2 if "*" in device else 1  # of which each has the budget
        assert got["memory"]["peak"] <= members * int(way[3]), f"{got['memory']['peak']} bytes of {way[3]}"
        again = self.run(*command, *way)
        assert again["inertia"] == got["inertia"], "the same budget gave other bits"
        lines = subprocess.run([self.kiln, "predict", "-q", model, data, *way], capture_output=True,
                               text=True, check=True).stdout.split("\n")
        assert [line.split()[0] for line in lines if line] == found.split(), "predicted other labels"

    def compare_triples(self, device, case, shape, code, mapped):
        """Values differ by the squares of the residuals, which are measured on X, or by rounding."""
        graph = case == GRAPH
        kind = "npy" if shape == "dense" else "npz"
        data = self.path(f"graph-{code}.npz" if graph else f"clusters-{shape}-{code}.{kind}")
        command = [case[0], data, "-k", str(TRIPLES), *case[1:], "--type", "f32" if code == "f" else "f64"]
        # a CPU keeps what is as long as X: nothing leaves its memory; of this graph that is most of X
        share = 0.9 if graph else 0.2 if (device, shape) == ("cpu", "sparse") else TENTH
        way = self.budget(device, data, mapped, share)
        want, got = self.run(*command, "--device", "cpu"), self.run(*command, *way)
        assert got["converged"] and got["residual"] <= got["tolerance"], f"residual {got['residual']}"
        digits = 1e-12 if code == "d" else 1e-5
        rows, name = ("eigenvalues", "eigenvalue") if graph else ("triples", "value")
        for a, b in zip(want[rows], got[rows], strict=True):
            off = abs(a[name] - b[name])
            assert off <= digits * (2 if graph else a[name]), f"{b[name]}, not {a[name]}"
        assert got["memory"]["panels"] > 10, "X was not streamed"
        members = 2 if "*" in device else 1
        assert got["memory"]["peak"] <= members * int(way[3]), f"{got['memory']['peak']} bytes of {way[3]}"

    def compare_ranks(self, device, options, shape, code, mapped):
        """Both are within their bounds of the right ranks, which are of vertices in the same order."""
        data, scores = self.path(f"graph-{code}.npz"), self.path("ranks.tsv")
        options = [self.path(text) if text.endswith(".txt") else text for text in options]
        command = ["pagerank", data, *options, "--type", "f32" if code == "f" else "f64", "--scores", scores]
        want = self.run(*command, "--device", "cpu")
        right = [line.split("\t")[1:] for line in read(scores).splitlines()]
        way = self.budget(device, data, mapped)
        got = self.run(*command, *way)
        found = [line.split("\t")[1:] for line in read(scores).splitlines()]
        bound = want["error_bound"] + got["error_bound"]
        assert len(found) == len(right) == VERTICES, f"{len(found)} vertices"
        for column in range(len(right[0])):
            apart = sum(abs(float(x[column]) - float(y[column])) for x, y in zip(found, right))
            assert apart <= bound, f"ranks differ by {apart}, bound {bound}"
        assert bound <= (3e-9 if code == "d" else 1e-4), f"bound {bound}"
        assert got["memory"]["panels"] > 10, "links were not streamed"
        assert got["memory"]["peak"] <= int(way[3]), f"{got['memory']['peak']} bytes of {way[3]}"
        assert abs(got["dangling_mass"] - want["dangling_mass"]) <= bound, "dangling mass"

    def compare_factors(self, device, case, shape, code, mapped):
        """Few iterations, after which rounding has not grown."""
        data, out = self.path(f"{case[1]}-{code}.npz"), self.path("factors.npz")
        factors = "1" if case[0] == "sfa" else "3"  # sfa holds seven vectors for each
        command = [case[0], data, *case[2:], "--factors", factors, "--max-iterations", "2", "--seed", "5",
                   "--type", "f32" if code == "f" else "f64", "--factors-out", out]
        want = self.run(*command, "--device", device)
        right = tensors(out, "A", "B")
        way = self.budget(device, data, mapped)
        got = self.run(*command, *way)
        found = tensors(out, "A", "B")
        digits = 1e-8 if code == "d" else 1e-2  # ten times what f32 loses of f64's factors
        for key in ("objective", "mean"):
            apart = abs(got[key] - want[key])
            assert apart <= digits / 10 * abs(want[key]), f"{key} {got[key]}, not {want[key]}"
        assert want["memory"]["panels"] == 0, "ratings with room were streamed"
        compare_tensors(found, right, digits)
        assert got["memory"]["panels"] > 10, "ratings were not streamed"
        members = 2 if "*" in device else 1  # of which each has the budget
        assert got["memory"]["peak"] <= members * int(way[3]), f"{got['memory']['peak']} bytes of {way[3]}"
        way.append("--deterministic")
        self.run(*command, *way)
        once = tensors(out, "A", "B")
        self.run(*command, *way)
        assert tensors(out, "A", "B") == once, "the same budget gave other bits"

    def compare_topics(self, device, case, shape, code, mapped):
        """Few iterations, after which rounding has not grown."""
        data, model = self.path(f"counts-{code}.npz"), self.path("topics.kiln")
        command = [case[0], data, *case[1:], "--topics", "2", "--max-iterations", "2", "--seed", "5",
                   "--type", "f32" if code == "f" else "f64", "-o", model]
        want = self.run(*command, "--device", device)
        right = model_tensors(model)
        way = self.budget(device, data, mapped)
        got = self.run(*command, *way)
        digits = 1e-9 if code == "d" else 1e-3
        name = "objective" if "objective" in want else "bound"
        apart = abs(got[name] - want[name])
        assert apart <= digits * abs(want[name]), f"{name} {got[name]}, not {want[name]}"
        assert want["memory"]["panels"] == 0, "counts with room were streamed"
        compare_tensors(model_tensors(model), right, digits)
        assert got["memory"]["panels"] > 10, "counts were not streamed"
        members = 2 if "*" in device else 1  # of which each has the budget
        assert got["memory"]["peak"] <= members * int(way[3]), f"{got['memory']['peak']} bytes of {way[3]}"
        once = self.run(*command, *way, "--deterministic")
        right = model_tensors(model)
        again = self.run(*command, *way, "--deterministic")
        assert again[name] == once[name] and model_tensors(model) == right, "the same budget gave other bits"

    def compare_layouts(self, device, case, shape, code, mapped):
        """Few iterations from the same start, but that a dimension may be mirrored."""
        data, out = self.path(f"{case[0]}-{code}.npy"), self.path("layout.csv")
        command = ["mds", data, *case[1:], "--max-iterations", "3", "--coordinates", out, "--type",
                   "f32" if code == "f" else "f64"]
        want = self.run(*command, "--device", "cpu")
        right = coordinates(out)
        way = self.budget(device, data, mapped)
        got = self.run(*command, *way)
        found = read(out)
        digits = 1e-9 if code == "d" else 1e-3
        assert abs(got["stress"] - want["stress"]) <= digits * want["stress"], f"stress {got['stress']}"
        most = max(abs(x) for axis in right for x in axis)
        for axis, wanted in zip(coordinates(out), right, strict=True):
            sign = math.copysign(1, sum(x * y for x, y in zip(axis, wanted, strict=True)))
            apart = max(abs(sign * x - y) for x, y in zip(axis, wanted))
            assert apart <= digits * most, f"a dimension differs by {apart}"
        assert got["memory"]["panels"] > 10, "X was not streamed"
        assert got["memory"]["peak"] <= int(way[3]), f"{got['memory']['peak']} bytes of {way[3]}"
        self.run(*command, *way)
        assert read(out) == found, "the same budget gave other bits"

    def compare(self, device, case, shape, code, mapped):
        model = self.path("m.kiln")
        want = self.plenty(case, shape, code)
        command = self.command(case, shape, code)
        budget = ["--memory",
                  str(max(int(BUDGET * self.bytes_of(shape, code)), 2 << 20 if device.startswith("cpu")
                          else 0))]
        way = ["--device", device, *budget, *(["--map"] if mapped else [])]
        got = self.run(*command, *way, "-o", model)
        digits = 1e-9 if code == "d" else 3e-5
        if "--cv" not in case:
            assert got["converged"], "not converged"
        distance = abs(got["objective"] - want["objective"]) / abs(want["objective"])
        assert distance <= digits, f"objective {got['objective']}, not {want['objective']}"
        assert got["memory"]["panels"] > 0, "X was not streamed"
        seen = self.run("evaluate", model, *command[1:4], *command[4:6], *way)
        for metric, value in self.run("evaluate", model, *command[1:4], *command[4:6], "--device",
                                      "cpu").items():
            if isinstance(value, float) and "seconds" not in metric:
                assert abs(seen[metric]
                           - value) <= 100 * digits * abs(value), f"{metric} {seen[metric]}, not {value}"


def compare_tensors(found, right, digits):
    assert set(found) == set(right), f"tensors {set(found) ^ set(right)}"
    for name, values in right.items():
        most = max(abs(x) for x in values)
        apart = max(abs(x - y) for x, y in zip(values, found[name]))
        assert len(values) == len(found[name]) and apart <= digits * most, f"{name} differs by {apart}"


def read(name, how="r"):
    with open(name, how, encoding=None if "b" in how else "utf-8") as file:
        return file.read()


def coordinates(name):
    """A layout's dimensions, from a table with a title."""
    lines = read(name).split("\n")[1:-1]
    return list(zip(*([float(x) for x in line.split(",")] for line in lines), strict=True))


def cases(runs):
    """The comparisons, of which shapes of X."""
    yield from ((runs.compare, case, shape) for case in CASES for shape in ("dense", "sparse"))
    yield from ((runs.compare_clusters, case, shape) for case in KMEANS for shape in ("dense", "sparse"))
    yield from ((runs.compare_triples, case, shape) for case in SVD for shape in ("dense", "sparse"))
    yield runs.compare_triples, GRAPH, "sparse"
    yield from ((runs.compare_ranks, case, "sparse") for case in PAGERANK)
    yield from ((runs.compare_factors, case, "sparse") for case in FACTORS)
    yield from ((runs.compare_topics, case, "sparse") for case in TOPICS)
    yield from ((runs.compare_layouts, case, "dense") for case in LAYOUTS)


def main(kiln, *devices):
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(kiln, folder)
        for device, *ways in (text.split("/") for text in devices):
            if not runs.has(device):
                print("no device", device)
                continue
            for (compare, case, shape), code, mapped in itertools.product(cases(runs), "fd", (False, True)):
                if device.startswith("cpu") and not mapped:
                    continue  # a CPU holds what it has read
                if compare == runs.compare_triples and not device.startswith("cpu"):
                    continue
                if compare == runs.compare_layouts and not device.startswith("cpu"):
                    continue  # a GPU has all pairs, or all points
                if compare == runs.compare_ranks and "*" in device:
                    continue  # members gather by columns, which a budget below X has no room for
                if compare == runs.compare and "cholesky" in case and (shape, code) != ("dense", "d"):
                    continue  # for which a budget that is smaller than X has no room
                if "short" in ways and case not in BRIEF:
                    continue
                if "bounds" in case and (shape == "sparse" or device != "cpu"):
                    continue
                if "--spherical" in case and not mapped:
                    continue  # rows of length 1 have to fit
                named = {"short", shape, "f32" if code == "f" else "f64", "map" if mapped else "read"}
                if all(way in named for way in ways):
                    runs.case(compare, device, case, shape, code, mapped)
    print(f"{runs.failed} failed")
    return runs.failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
