"""The memory that a process holds while its data lie in a file ten times as large as its budget: looked at
from outside, in /proc, and compared with what the tool says of itself; in a control group that gives it no
more, where one can be made; --strict ends in an error where the budget is too small.

usage: held_test.py KILN
"""

import array
import filecmp
import json
import os
import random
import subprocess
import sys
import tempfile
import time

from budget_test import npy, npz, write

ROWS, COLUMNS, REPEATED = 100_000, 200, 50  # dense: 160 MB
VERTICES, LINKS, LISTS = 13_000, 1_000, 100  # sparse: 156 MB, as many different rows
POINTS = 4_000  # dissimilarities: 128 MB
READERS = 4e6  # what docs/large-data.md says that readers and threads take beside a budget
TENTH, OVER, ALIKE = 0.1, 1.05, 0.95  # the tool looks before it prints, and the test a little before the end
VERBS = (
    ("linreg", "dense.npy", "--target-file", "number.npy"),
    ("logreg", "dense.npy", "--target-file", "class.npy", "--l2", "1"),
    ("svm", "dense.npy", "--target-file", "class.npy", "--max-iterations", "3"),
    ("linreg", "dense.kiln-data"),
    ("kmeans", "dense.npy", "-k", "4", "--init", "random", "--max-iterations", "4"),
    ("kmeans", "dense.npy", "-k", "4", "--algorithm", "bounds", "--init", "random", "--max-iterations", "4"),
    ("mds", "apart.npy", "--dissimilarities", "--dimensions", "1", "--max-iterations", "2"),
    ("pagerank", "links.npz", "--max-iterations", "4"),
    ("hits", "links.npz", "--max-iterations", "4"),
    ("hits", "links.npz", "--unweighted", "--max-iterations", "4"),
    ("kmeans", "links.npz", "--spherical", "-k", "2", "--init", "random", "--max-iterations", "2"),
    ("sfa", "links.npz", "--factors", "2", "--max-iterations", "1"),
    ("als", "links.npz", "--factors", "3", "--max-iterations", "2"),
    ("gap", "links.npz", "--topics", "3", "--max-iterations", "2"),
    ("lda", "links.npz", "--topics", "3", "--max-iterations", "2"),
)
# Verbs and options that write temporary files: under a limit of version 1 the system ends a process whose
# disk is slow, as it counts pages that wait for the disk.
WRITE = {"mds", "sfa", "als", "--unweighted", "--spherical"}


def make(folder):
    dice = random.Random(6)
    block = array.array("d", [dice.gauss(0, 1) for _ in range(ROWS // REPEATED * COLUMNS)])
    with open(os.path.join(folder, "dense.npy"), "wb") as out:
        out.write(npy([], "d", ROWS, COLUMNS))
        for _ in range(REPEATED):
            block.tofile(out)
    sums = [sum(block[i:i + 20]) for i in range(0, len(block), COLUMNS)] * REPEATED
    write(os.path.join(folder, "number.npy"), npy([x + dice.gauss(0, 1) for x in sums], "d", ROWS))
    write(os.path.join(folder, "class.npy"), npy([float(x + dice.gauss(0, 1) > 0) for x in sums], "d", ROWS))
    line = array.array("d", [float(abs(i)) for i in range(-POINTS, POINTS)])
    with open(os.path.join(folder, "apart.npy"), "wb") as out:
        out.write(npy([], "d", POINTS, POINTS))
        for i in range(POINTS):
            line[POINTS - i:2 * POINTS - i].tofile(out)
    lists = [sorted(dice.sample(range(VERTICES), LINKS)) for _ in range(LISTS)]
    columns = array.array("i")
    for i in range(VERTICES):
        columns.extend(lists[i % LISTS])
    values = array.array("d", [1.0, 2.0, 3.0, 4.0]) * (len(columns) // 4)
    npz(os.path.join(folder, "links.npz"), values, columns, range(0, len(columns) + 1, LINKS), "d", VERTICES)


class Group:
    """A control group of either version, whose memory is limited; where none can be made it is false, and
    processes run outside."""

    def __init__(self):
        self.folder, self.limit, self.most = "", "", ""
        self.runs = 0
        with open("/proc/self/cgroup", encoding="ascii") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
        for number, names, path in groups:
            if "memory" in names.split(","):
                self.make("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.max_usage_in_bytes")
            elif number == "0":
                self.make("/sys/fs/cgroup", path, "memory.max", "memory.peak")

    def make(self, root, path, limit, most):
        for parent in (root + path, root):
            folder = os.path.join(parent, f"kiln-{os.getpid()}")
            try:
                if not self.folder and os.path.ismount(root):
                    os.mkdir(folder)
                    if os.access(os.path.join(folder, limit), os.W_OK):
                        self.folder, self.limit, self.most = folder, limit, most
                    else:
                        os.rmdir(folder)
            except OSError:
                pass

    def __bool__(self):
        return bool(self.folder)

    def inside(self, command, limit):
        """The command, run in the group within so many bytes, if the limit is one of memory alone."""
        if not self or (self.limit != "memory.max" and WRITE.intersection(command)):
            return command
        self.runs += 1
        write(os.path.join(self.folder, self.limit), str(limit).encode())
        members = os.path.join(self.folder, "cgroup.procs")
        return ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', members, *command]

    def peak(self):
        with open(os.path.join(self.folder, self.most), encoding="ascii") as file:
            return int(file.read())

    def close(self):
        if self:
            os.rmdir(self.folder)


def peak_of(process):
    """Bytes that a running process has held at most so far; 0 where it has ended."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
            return max((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:")), default=0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


def run(*command):
    """The exit code, output and errors, and the peak as seen from outside."""
    peak = 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=out, stderr=errors) as process:
            while process.poll() is None:
                peak = max(peak, peak_of(process))
                time.sleep(0.002)
        out.seek(0)
        errors.seek(0)
        return process.returncode, out.read(), errors.read(), peak


def check(kiln, group, folder, verb, name, *options):
    options = [os.path.join(folder, word) if word.endswith(".npy") else word for word in options]
    data = os.path.join(folder, name)
    budget = int(TENTH * os.path.getsize(data))
    command = [kiln, verb, data, *options, "--map", "--device", "cpu", "--threads", "2", "--json"]
    limit = int(OVER * budget + READERS) // 4096 * 4096  # the system's own tables of the process count, too
    code, out, errors, peak = run(*group.inside([*command, "--memory", str(budget)], limit))
    assert code == 0, f"exit {code}, the group {group.folder or 'none'}: {errors[-300:]}"
    assert "stays in its file and goes by in panels" in errors, f"nothing said of X: {errors[:300]}"
    memory = json.loads(out)["memory"]
    told = memory["process_peak"]
    assert 0 < peak <= OVER * budget and told <= OVER * budget, f"{peak}, told {told}, budget {budget}"
    assert told >= ALIKE * peak, f"{peak} seen, {told} told"
    assert memory["peak"] <= memory["budget"] == budget and memory["panels"] > 10, f"{memory}"
    print(f"pass {verb}: {peak / 1e6:.1f} MB, {told / 1e6:.1f} told, of {budget / 1e6:.1f}")


def check_default(kiln, group, folder):
    """The limit of the group is the budget that a run has by itself."""
    limit = 24 << 20
    data, target = os.path.join(folder, "dense.npy"), os.path.join(folder, "number.npy")
    code, out, errors, _ = run(*group.inside(
        [kiln, "linreg", data, "--target-file", target, "--map", "--device", "cpu", "--threads",
         "2", "--json"], limit))
    assert code == 0, f"exit {code}: {errors[-300:]}"
    told = json.loads(out)["memory"]
    assert 0 < told["budget"] <= limit and told["process_peak"] <= limit, told
    assert 0 < group.peak() <= limit, f"{group.peak()} bytes"
    print(f"pass {told['budget'] / 1e6:.1f} MB by itself in {group.folder}")


def check_convert(kiln, folder):
    """Text becomes an array or a packed file, and an array one of another type, by windows: the bytes that a
    conversion in memory writes."""
    dice = random.Random(7)
    rows = ["".join(f"{dice.gauss(0, 1):.6f}," for _ in range(COLUMNS - 1)) + "1\n" for _ in range(2000)]
    kinds = ["".join(f"{dice.randrange(99)}," for _ in range(COLUMNS // 2 - 1)) + f"kind{i % 77}\n"
             for i in range(2000)]
    text, table = os.path.join(folder, "text.csv"), os.path.join(folder, "kinds.csv")
    for name, lines in ((text, rows), (table, kinds)):
        with open(name, "w", encoding="ascii") as out:
            out.write(",".join(f"x{j}" for j in range(lines[0].count(",") + 1)) + "\n")
            for _ in range(10):
                out.writelines(lines)
    dense = os.path.join(folder, "dense.npy")
    for data, ending, *options in ((text, "npy", "--type", "f64"), (dense, "npy", "--type", "f32"),
                                   (text, "kiln-data"), (table, "kiln-data", "--target", "x0")):
        found, wanted = (os.path.join(folder, f"{name}.{ending}") for name in ("found", "wanted"))
        code, _, errors, peak = run(kiln, "convert", data, found, *options, "--map", "--memory", "10000000",
                                    "--threads", "1" if data == table else "2")
        assert code == 0 and "lie in a temporary file" in errors, f"exit {code}: {errors[-300:]}"
        assert 0 < peak <= OVER * 10e6 + READERS * (data == table), f"{peak} bytes"
        subprocess.run([kiln, "convert", "-q", data, wanted, *options], check=True)
        assert filecmp.cmp(found, wanted, shallow=False), "other bytes"
        print(f"pass convert {os.path.basename(data)} to {ending}: {peak / 1e6:.1f} MB")


def check_strict(kiln, folder):
    """A process is larger than a budget of 4 MB, if not by much: a warning, with --strict an error that JSON
    has beside the results."""
    data, target = os.path.join(folder, "dense.npy"), os.path.join(folder, "number.npy")
    command = [kiln, "linreg", data, "--target-file", target, "--map", "--threads", "2"]
    for budget, strict, wanted, device in (("4M", False, 0, "cpu"), ("4M", True, 6, "cpu"),
                                           ("16M", True, 0, "cpu"),
                                           ("16M", True, 0, "auto")):  # which looks at drivers
        code, out, errors, _ = run(*command, "-q", "--json", "--memory", budget, "--device", device,
                                   *(["--strict"] if strict else []))
        told, over = json.loads(out), budget == "4M"
        assert code == wanted, f"{budget}, strict {strict}: exit {code}, {errors[-300:]}"
        assert ("more than 5 % over the budget of 4" in errors) == over, errors
        assert ("kiln: warning: the process held" in errors) == (over and not strict), errors
        assert told["memory"]["over_budget"] == over and told["converged"], told
        assert ("error" in told) == (wanted == 6), told
        assert told["memory"]["process_held"] <= told["memory"]["process_peak"], told
        assert wanted == 0 or told["error"]["code"] == "KILN_ERR_NOMEM", told["error"]
    print("pass --strict")


def main(kiln):
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        dense = os.path.join(folder, "dense.npy")
        subprocess.run([kiln, "convert", "-q", dense, dense.replace("npy", "kiln-data"), "--target-file",
                        os.path.join(folder, "number.npy")], check=True)
        group = Group()
        if not group:
            print("skip the limits: no control group can be made here")
        try:
            for case in VERBS:
                check(kiln, group, folder, *case)
            if group:
                check_default(kiln, group, folder)
                assert group.runs > 10, f"{group.runs} runs in a control group"
        finally:
            group.close()
        check_strict(kiln, folder)
        check_convert(kiln, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
