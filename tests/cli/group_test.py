"""Training, predicting and verifying on a group of devices: the answers of one device.

usage: group_test.py KILN FLIGHTS.csv.gz
"""

import array
import os
import sys
import tempfile
import unittest

from budget_test import npy, write
from checkpoint_test import tensors
from cli_test import FLIGHTS, as_json, kiln

GROUPS = ("cpu*2", "cpu*7")  # three members have the tests of bits, and conformance


class Groups(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def same(self, *command, figure="objective", digits=9):
        """The figure on one device and on groups, relative to its size."""
        one = as_json(*command, "--device", "cpu")
        for group in GROUPS:
            result = as_json(*command, "--device", group)
            self.assertEqual(result["device"], group)
            self.assertEqual((result["rows"], result["nnz"]), (one["rows"], one["nnz"]))
            self.assertTrue(result["converged"])
            self.assertAlmostEqual(result[figure] / one[figure], 1, digits)
        return one

    def test_linear_models(self):
        model = self.path("m.kiln")
        self.same("linreg", FLIGHTS, "--target", "arr_delay", "-o", model)
        self.same("linreg", FLIGHTS, "--target", "arr_delay", "--solver", "cg", "--standardize", "-o", model)
        self.same("logreg", FLIGHTS, "--target", "origin", "-o", model)

    def test_glm_and_svm(self):
        table = self.path("t.csv")
        with open(table, "w") as out:
            out.write("count,x,group,label\n")
            for i in range(400):
                out.write(f"{(i * 7) % 5 + i % 3},{(i * 37) % 101 / 10},{'abc'[i % 3]},"
                          f"{'yn'[(i * 37) % 101 > 40]}\n")
        model = self.path("m.kiln")
        self.same("glm", table, "--target", "count", "--ignore", "label", "--family", "poisson",
                  "--standard-errors", "-o", model)
        self.same("logreg", table, "--target", "label", "--l1", "1", "-o", model, digits=7)
        self.same("svm", table, "--target", "label", "-o", model, digits=7)

    def test_hits(self):
        graph = self.graph()
        one = as_json("hits", graph, "--top", 3, "--device", "cpu")
        for group in GROUPS:
            result = as_json("hits", graph, "--top", 3, "--device", group)
            self.assertAlmostEqual(result["eigenvalue"] / one["eigenvalue"], 1, 9)
            self.assertEqual([row["vertex"] for row in result["authorities"]],
                             [row["vertex"] for row in one["authorities"]])

    def test_predict_and_verify(self):
        model = self.path("m.kiln")
        as_json("linreg", FLIGHTS, "--target", "arr_delay", "-o", model, "--device", "cpu*3")
        texts = []
        for device in ("cpu", *GROUPS):
            out = self.path("p.txt")
            as_json("predict", model, FLIGHTS, "-o", out, "--device", device)
            with open(out) as file:
                texts.append([float(line.split(",")[0]) for line in file.read().split()[1:100]])
            kiln("verify", model, FLIGHTS, "--device", device)
        for other in texts[1:]:
            for a, b in zip(texts[0], other):
                self.assertAlmostEqual(a, b, 6)

    def test_same_bits(self):
        """For the same number of members."""
        models = []
        for name in ("a.kiln", "b.kiln"):
            kiln("logreg", FLIGHTS, "--target", "origin", "--deterministic", "--device", "cpu*3", "-o",
                 self.path(name))
            with open(self.path(name), "rb") as file:
                models.append(file.read())
        self.assertEqual(models[0], models[1])

    def points(self):
        path = self.path("points.csv")
        with open(path, "w") as out:
            out.write("x,y,z\n" + "".join(f"{i % 7},{i * i % 5},{i % 3 + (i > 50) * 9}\n"
                                          for i in range(100)))
        return path

    def test_points(self):
        model = self.path("m.kiln")
        self.same("kmeans", self.points(), "-k", 3, "--seed", 1, "-o", model, figure="inertia")
        kiln("verify", model, self.points(), "--device", "cpu*3")
        self.same("kmeans", self.points(), "-k", 3, "--seed", 1, "--spherical", "-o", model, figure="inertia")
        layout = self.path("layout.kiln")
        self.same("mds", self.points(), "--seed", 1, "-o", layout, figure="stress", digits=4)
        kiln("verify", layout, self.points(), "--device", "cpu*3")
        self.same("mds", self.points(), "--metric", "interval", "--seed", 1, "-o", layout, figure="stress",
                  digits=3)

    def test_triples(self):
        model = self.path("s.kiln")
        for verb, options in (("svd", ()), ("svd", ("--center", "--scale")), ("pca", ("--solver", "krylov"))):
            self.same(verb, self.points(), "-k", 2, *options, "-o", model, figure="squares")
            kiln("verify", model, self.points(), "--device", "cpu*3")

    def graph(self):
        graph = self.path("graph.txt")
        with open(graph, "w") as out:
            out.writelines(f"{i % 50} {(i * i + 3) % 61}\n" for i in range(400))
        return graph

    def test_vertices(self):
        graph, model = self.graph(), self.path("e.kiln")
        self.same("spectral", graph, "-k", 3, "-o", model, figure="squares")
        kiln("verify", model, graph, "--device", "cpu*3")

    def test_pagerank(self):
        graph = self.graph()
        model, again = self.path("ranks.kiln"), self.path("again.kiln")
        for counted in ((), ("--unweighted",)):
            self.same("pagerank", graph, "--top", 3, *counted, figure="residual", digits=3)
            for name in (model, again):
                kiln("pagerank", graph, *counted, "--deterministic", "--device", "cpu*3", "-o", name)
            with open(model, "rb") as one, open(again, "rb") as other:
                self.assertEqual(one.read(), other.read())
            kiln("verify", model, graph, "--device", "cpu*2")

    def test_factors(self):
        ratings = self.path("ratings.csv")
        with open(ratings, "w") as out:
            out.writelines(f"{i * 7 % 40},{i * i % 31},{i % 5 + 1}\n" for i in range(300))
        self.same("als", ratings, "--factors", 3, "--seed", 1, "-o", self.path("m.kiln"))

    def mapped(self):
        """A table of 30,000 x 8 and its targets, in files that --map takes."""
        rows, numbers = 30_000, array.array("d")
        for i in range(rows):
            numbers.extend(((i * (j + 3) * 7919) % 1009) / 1009 for j in range(8))
        targets = array.array("d", (sum(numbers[8 * i + j] * j for j in range(8)) + i % 3
                                    for i in range(rows)))
        for name, columns, values in (("X.npy", 8, numbers), ("y.npy", 1, targets)):
            header = (
                f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".encode().ljust(
                    117
                )
                + b"\n"
            )
            with open(self.path(name), "wb") as out:
                out.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
                          + values.tobytes())
        return "linreg", self.path("X.npy"), "--target-file", self.path("y.npy"), "-o", self.path("m.kiln")

    def test_rows_stay_in_the_file(self):
        """Each member reads its own rows, within a budget of its own."""
        command = self.mapped()
        self.same(*command, "--map", "--solver", "cg", "--memory", "4M")

    def test_points_stay_in_the_file(self):
        """Their pairs are more than the budget has room for."""
        points = self.path("points.npy")
        write(points, npy([(i * i * 7919) % 1009 / 1009 for i in range(300 * 4)], "d", 300, 4))
        command = ("mds", points, "--map", "--memory", "500K", "--max-iterations", "20")
        one, group = (as_json(*command, "--device", device) for device in ("cpu", "cpu*3"))
        self.assertAlmostEqual(group["stress"] / one["stress"], 1, 9)

    def test_unlike(self):
        """A processor and OpenCL's device: rows from memory and from a file, one after the other's end, and
        what one of them has begun alone."""
        unlike = ("--device", "cpu@2,opencl:0.0@1", "--deterministic")
        command = [*self.mapped(), "--solver", "cg", "--tolerance", "1e-10"]
        one = as_json(*command, "--device", "cpu")
        for options in (), ("--map", "--memory", "4M"):
            result = as_json(*command, *options, *unlike)
            self.assertEqual(result["device"], unlike[1])
            self.assertAlmostEqual(result["objective"] / one["objective"], 1, 9)
        models = [self.path("whole.kiln"), self.path("resumed.kiln")]
        points, state = self.points(), self.path("state")
        fit = ("kmeans", points, "-k", 3, "--seed", 1, *unlike)
        whole = as_json(*fit, "-o", models[0])
        self.assertAlmostEqual(whole["inertia"] / as_json(*fit[:6], "-o", models[1])["inertia"], 1, 9)
        kiln(*fit, "--max-iterations", 1, "--checkpoint", state, "-o", models[1])
        as_json(*fit, "--resume", state, "-o", models[1])
        self.assertEqual(*(tensors(model) for model in models))
        kiln("verify", models[1], points, *unlike[:2])

    def test_refusals(self):
        points = self.points()
        self.assertIn("no list of devices", kiln("hits", points, "--device", "cpu*0", code=2)[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
