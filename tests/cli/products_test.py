"""kiln mmchain and kiln sddmm: products of files, against plain loops, and what they refuse.

usage: products_test.py KILN FLIGHTS.csv.gz
"""

import math
import os
import random
import sys
import tempfile
import unittest

from cli_test import as_json, kiln

CPU = ["--device", "cpu", "--threads", "2"]
M, N, K = 13, 7, 3
KINDS = {"times": (lambda s, d: s * d, lambda s, d: s * d * d),
         "product": (lambda s, d: d, lambda s, d: d * d),
         "quotient": (lambda s, d: s / d, lambda s, d: s * math.log(d)),
         "residual": (lambda s, d: s - d, lambda s, d: (s - d) ** 2)}


def draw(dice, rows, cols):
    """Positive, so that a product has a logarithm."""
    return [[dice.uniform(0.5, 2) for _ in range(cols)] for _ in range(rows)]


def table(rows):
    return "\n".join([",".join(f"x{j}" for j in range(len(rows[0])))]
                     + [",".join(map(repr, row)) for row in rows]) + "\n"


def coordinates(rows):
    entries = [(i + 1, j + 1, x) for i, row in enumerate(rows) for j, x in enumerate(row) if x]
    return (f"%%MatrixMarket matrix coordinate real general\n{len(rows)} {len(rows[0])} {len(entries)}\n"
            + "".join(f"{i} {j} {x!r}\n" for i, j, x in entries))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


class Products(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, dice = folder.name, random.Random(4)
        self.S = [[x if dice.random() < 0.4 else 0 for x in row] for row in draw(dice, M, N)]
        self.S[4], self.S[0][N - 1] = [0] * N, 1.5  # an empty row, and a last column that is there
        self.A, self.B = draw(dice, M, K), draw(dice, N, K)
        self.v, self.wide, self.z = draw(dice, M, 1), draw(dice, M, K), draw(dice, N, K)
        for name in ("A", "B", "v", "wide", "z"):
            self.write(name + ".csv", table(getattr(self, name)))
        self.write("S.mtx", coordinates(self.S))
        self.write("S.csv", table(self.S))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def chain(self, v, alpha=1, beta=0):
        """alpha X^T (v .* (X y)) + beta z of plain loops; v: a row of K for each of X's."""
        columns = [[row[k] for row in self.B] for k in range(K)]
        q = [[v[i][k] * dot(self.S[i], columns[k]) for k in range(K)] for i in range(M)]
        return [[alpha * sum(self.S[i][j] * q[i][k] for i in range(M)) + beta * self.z[j][k]
                 for k in range(K)] for j in range(N)]

    def near(self, got, want, relative):
        self.assertEqual((len(got), len(got[0])), (len(want), len(want[0])))
        for a, b in zip(sum(got, []), sum(want, [])):
            self.assertLessEqual(abs(a - b), relative * max(abs(b), 1))

    def test_mmchain(self):
        ones, v = [[1] * K] * M, [[x] * K for [x] in self.v]
        for X in ("S.mtx", "S.csv"):
            for device in (CPU, ["--device", "cpu*2"]):
                for words, want in (([], self.chain(ones)),
                                    (["--v", self.path("v.csv")], self.chain(v)),
                                    (["--v", self.path("wide.csv")], self.chain(self.wide)),
                                    (["--z", self.path("z.csv")], self.chain(ones, beta=1)),
                                    (["--v", self.path("v.csv"), "--z", self.path("z.csv"), "--alpha", "-2",
                                      "--beta", "0.5"], self.chain(v, -2, 0.5)),
                                    (["--z", self.path("z.csv"), "--beta", "0"], self.chain(ones))):
                    kiln("mmchain", self.path(X), self.path("B.csv"), *words, *device, "-o",
                         self.path("w.csv"))
                    rows = [[float(x) for x in line.split(",")]
                            for line in self.read("w.csv").split("\n")[1:-1]]
                    self.near(rows, want, 1e-13)

    def test_sddmm(self):
        for kind, (entry, summed) in KINDS.items():
            for precision, relative in (("f64", 1e-13), ("f32", 1e-5)):
                found = as_json("sddmm", self.path("S.mtx"), self.path("A.csv"), self.path("B.csv"), "--kind",
                                kind, "--alpha", "3", "--type", precision, *CPU, "-o", self.path("P.mtx"))
                want, total = [], 0
                for i, row in enumerate(self.S):
                    for j, s in enumerate(row):
                        d = dot(self.A[i], self.B[j])
                        if s:
                            want.append([i + 1, j + 1, 3 * entry(s, d)])
                            total += summed(s, d)
                lines = [line.split() for line in self.read("P.mtx").split("\n")[2:-1]]
                self.assertEqual([[int(i), int(j)] for i, j, _ in lines], [row[:2] for row in want])
                self.near([[float(x)] for _, _, x in lines], [[x] for _, _, x in want], relative)
                self.assertAlmostEqual(found["sum"] / total, 1, 12 if precision == "f64" else 5)
                self.assertEqual((found["k"], found["nnz"], found["kind"]), (K, len(want), kind))

    def test_the_kind_is_product(self):
        words = [self.path(name) for name in ("S.mtx", "A.csv", "B.csv")]
        found = as_json("sddmm", *words, *CPU)
        named = as_json("sddmm", *words, *CPU, "--kind", "product")
        self.assertEqual((found["kind"], found["sum"], found["output"]), ("product", named["sum"], None))

    def test_refused(self):
        S, X, A, B, v, z, wide = (self.path(name) for name in ("S.mtx", "S.csv", "A.csv", "B.csv", "v.csv",
                                                               "z.csv", "wide.csv"))
        self.write("narrow.csv", table([row[:2] for row in self.B]))
        narrow, out = self.path("narrow.csv"), self.path("out.csv")
        for words, code, said in ((["mmchain", S, A], 3, "13 rows, and .*S.mtx 7 columns"),
                                  (["mmchain", S, B, "--v", z], 3, "7 rows, and .*S.mtx 13 rows"),
                                  (["mmchain", S, B, "--z", wide], 3, "13 rows, and .*S.mtx 7 columns"),
                                  (["mmchain", S, B, "--z", narrow], 3, "2 columns, and .*B.csv 3"),
                                  (["mmchain", S, S], 3, "must be dense"),
                                  (["mmchain", S, B, "--beta", "2"], 2, "--beta needs --z"),
                                  (["mmchain", S, B, "--zero-based"], 2, "no LIBSVM file"),
                                  (["mmchain", S], 2, "kiln: ."),
                                  (["mmchain", S, B, "--alpha", "nan"], 2, "--alpha.*\n.*a finite number"),
                                  (["mmchain", S, B, "-o", B], 2, "kiln: ."),
                                  (["mmchain", S, B, "--v", v, "-o", v], 2, "kiln: ."),
                                  (["sddmm", X, A, B], 3, "S must be sparse"),
                                  (["sddmm", S, B, A], 3, "7 rows, and .*S.mtx 13 rows"),
                                  (["sddmm", S, A, A], 3, "13 rows, and .*S.mtx 7 columns"),
                                  (["sddmm", S, A, narrow], 3, "2 columns, and .*A.csv 3"),
                                  (["sddmm", S, A, B, "--floor", "1"], 2, "--kind quotient"),
                                  (["sddmm", S, A, B, "--kind", "sum"], 2, "--kind"),
                                  (["sddmm", S, A, B, "-o", self.path("P.xyz")], 2, "kiln: ."),
                                  (["sddmm", S, A, self.path("none.csv")], 3, "none.csv")):
            with self.subTest(words=words):
                self.assertRegex(kiln(*words, *CPU, code=code)[1], said)
        self.assertFalse(os.path.exists(out))
        self.assertEqual(self.read("B.csv"), table(self.B))

    def test_a_floor(self):
        for row in self.B:
            row[:] = [-x for x in row]
        self.write("B.csv", table(self.B))
        found = as_json("sddmm", self.path("S.mtx"), self.path("A.csv"), self.path("B.csv"), "--kind",
                        "quotient", "--floor", "0.25", *CPU)
        self.assertAlmostEqual(found["sum"] / (math.log(0.25) * sum(map(sum, self.S))), 1, 12)

    def test_the_format_is_the_first_files(self):
        """LIBSVM whose columns count from 0, beside operands that are CSV."""
        rows = [" ".join(["0"] + [f"{j}:{x!r}" for j, x in enumerate(row) if x]) for row in self.S]
        self.write("S.txt", "\n".join(rows) + "\n")
        words = [self.path("A.csv"), self.path("B.csv"), *CPU]
        found = as_json("sddmm", self.path("S.txt"), *words, "--format", "libsvm", "--zero-based")
        self.assertEqual(found["sum"], as_json("sddmm", self.path("S.mtx"), *words)["sum"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
