"""kiln explain, kiln tune, and what --device auto says.

usage: explain_test.py KILN FLIGHTS.csv.gz
"""

import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from cli_test import FLIGHTS, as_json, kiln

SHAPE = ["--rows", "3000", "--columns", "40"]
SPARSE = SHAPE + ["--nnz", "20000"]
CPU = ["--device", "cpu", "--threads", "2"]


class Explain(unittest.TestCase):
    def test_scaling(self):
        shape = ["--rows", 10 ** 9, "--columns", 28, "--type", "f32", "--gpus", 8, "--nodes", 3]
        rows = as_json("explain", "logreg", *shape)["scaling"]
        self.assertEqual([(row["gpus"], row["nodes"]) for row in rows],
                         [(1, 1), (2, 1), (4, 1), (8, 1), (16, 2), (24, 3)])
        self.assertEqual(rows[0]["times"], 1)
        self.assertTrue(7 < rows[3]["times"] < 8)
        for row in rows:
            parts = sum(row[part + "_seconds"] for part in ("read", "beside", "sum", "alone"))
            self.assertAlmostEqual(row["pass_seconds"] / parts, 1)
        for name, nnz, least in (("pagerank", 268 * 10 ** 6, 1.6), ("als", 10 ** 9, 1.2), ("mds", 0, 1.5)):
            square = ["--rows", 10 ** 6 if name == "als" else 30000 if name == "mds" else 2 ** 24, "--type",
                      "f32", "--gpus", 2]
            square += (["--columns", square[1]] + (["--nnz", nnz] if nnz else [])
                       + (["--k", 64] if name == "als" else []))
            self.assertTrue(least < as_json("explain", name, *square)["scaling"][1]["times"] < 2)
        text = kiln("explain", "linreg", FLIGHTS, "--target", "arr_delay", "--gpus", 4)[0]
        self.assertIn("on H200s, milliseconds of a pass", text)
        found = as_json("explain", "linreg", FLIGHTS, "--target", "arr_delay", "--gpus", 4)
        self.assertEqual([row["gpus"] for row in found["scaling"]], [1, 2, 4])
        self.assertIn("takes no --gpus", kiln("explain", "mmchain", *SHAPE, "--gpus", 2, code=2)[1])
        self.assertIn("needs DATA or a shape", kiln("explain", "logreg", "--gpus", 2, code=2)[1])

    def test_plans(self):
        for shape, form, nnz in ((SHAPE, "dense", 120000), (SPARSE, "csr", 20000)):
            result = as_json("explain", "mmchain", *shape, *CPU)
            self.assertEqual((result["schema"], result["format"], result["nnz"]),
                             ("kiln.explain/1", form, nnz))
            plans = result["plans"]
            self.assertEqual([plan["BS"] for plan in plans if plan["chosen"]], [2])
            self.assertEqual(sorted(plan["BS"] for plan in plans), [1, 2])
            predicted = [plan["predicted_seconds"] for plan in plans]
            self.assertEqual(predicted, sorted(predicted))
            self.assertGreater(predicted[0], 0)
        text = kiln("explain", "mmchain", *SPARSE, *CPU)[0]
        self.assertIn("the choice, out of 2 plans", text)
        self.assertIn("3,000 x 40, 20,000 entries, sparse f64", text)
        # of a device's parameters those that it has, each of them explained
        head = text.splitlines()[3].split()
        self.assertEqual(head, ["VARIANT", "BS", "C", "BYTES", "PREDICTED", "LIMIT"])
        self.assertIn("BS: threads in a work-group (CPU: in all)", text)
        self.assertNotIn("ST:", text)

    def test_type_and_columns_of_y(self):
        half = as_json("explain", "mmchain", *SHAPE, *CPU, "--type", "f32", "--k", 3)
        full = as_json("explain", "mmchain", *SHAPE, *CPU)
        self.assertEqual((half["type"], half["k"], full["k"]), ("f32", 3, 1))
        self.assertEqual(half["plans"][0]["bytes"] * 2, full["plans"][0]["bytes"])

    def test_sampled_products(self):
        result = as_json("explain", "sddmm", *SPARSE, *CPU, "--type", "f32", "--k", 16)
        self.assertEqual((result["operation"], result["format"], result["nnz"], result["k"]),
                         ("sddmm", "csr", 20000, 16))
        self.assertEqual([plan["variant"] for plan in result["plans"] if plan["chosen"]], ["cpu"])
        self.assertIn("P = (A B^T) at the entries of S, S 3,000 x 40",
                      kiln("explain", "sddmm", *SPARSE, *CPU)[0])
        self.assertIn("--nnz", kiln("explain", "sddmm", *SHAPE, *CPU, code=2)[1])
        kiln("explain", "sddmm", *SPARSE, *CPU, "--k", 4097, code=2)
        tuned = as_json("tune", "sddmm", *SPARSE, *CPU, "--k", 16, "--exhaustive")
        self.assertEqual((tuned["rank"], tuned["loss"], tuned["plans_in_all"]), (1, 0, 1))
        self.assertGreater(tuned["plans"][0]["seconds"], 0)

    def test_wrong_shapes(self):
        self.assertIn("--rows", kiln("explain", "mmchain", *CPU, code=2)[1])
        kiln("explain", "mmchain", "--rows", 10, "--columns", 10, "--nnz", 101, *CPU, code=2)
        kiln("explain", "mmchain", "--rows", 0, "--columns", 10, *CPU, code=2)
        kiln("explain", "mmchain", "--rows", 10, "--columns", 10, "--k", 65537, *CPU, code=2)
        kiln("explain", "everything", code=2)
        kiln("tune", "linreg", *SHAPE, *CPU, code=2)
        kiln("linreg", FLIGHTS, "--rows", 10, code=2)

    def test_ratings_are_read_as_training_reads_them(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("user,item,rating\nann,tea,5\nbob,tea,3\nann,cocoa,4\n")
            file.flush()
            for verb in ("als", "sfa"):
                result = as_json("explain", verb, file.name, "--quiet")
                self.assertEqual((result["rows"], result["columns"], result["nnz"]), (2, 2, 3))

    def test_training(self):
        self.assertIn("DATA", kiln("explain", "linreg", code=2)[1])
        result = as_json("explain", "linreg", FLIGHTS, "--target", "arr_delay")
        self.assertEqual((result["algorithm"], result["passes"], result["rows"]), ("linreg", 45, 65470))
        host = result["estimates"][0]
        self.assertEqual((host["device"], host["considered"], host["measured"]), ("cpu", True, True))
        passes = result["passes"] * (host["pass_seconds"] + host["overhead_seconds"])
        self.assertAlmostEqual(host["seconds"], host["start_seconds"] + host["move_seconds"] + passes)
        self.assertEqual(sum(estimate["chosen"] for estimate in result["estimates"]), 1)
        self.assertEqual((result["solver"], result["max_iterations"]), ("cholesky", 10 * result["columns"]))
        self.assertIn("passes over X", result["why"])
        text = kiln("explain", "linreg", FLIGHTS, "--target", "arr_delay", "--max-iterations", 3)[0]
        self.assertIn("solver      cholesky: a factor", text)
        self.assertIn("iterations  3 at most", text)
        self.assertIn("8 passes expected", text)
        self.assertIn("--device auto would take this one", text)
        self.assertIn("leave out --device", kiln("explain", "linreg", FLIGHTS, "--target", "arr_delay",
                                                 "--device", "cpu", code=2)[1])

    def test_measuring_is_told_in_one_line_once(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        fresh = {"KILN_CACHE_DIR": folder.name}
        explain = ["explain", "linreg", FLIGHTS, "--ignore", "carrier,origin,dest", "--target", "arr_delay",
                   "--type", "f32"]
        lines = [line for line in kiln(*explain, environment=fresh)[1].splitlines()
                 if not line.endswith("s so far")]
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[1], "^measuring this machine, once, .*: some seconds$")
        self.assertNotIn("measuring", kiln(*explain, environment=fresh)[1])
        profile = os.path.join(folder.name, "profile")
        with open(profile, encoding="utf-8") as file:
            figures = file.read()
        self.assertRegex(figures, "(?m)^dense until f32 cpu ")
        # what was measured is too old, as on a busy machine an hour later
        with open(profile, "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^(dense until .*)\t.*$", r"\1\t1*2^0", figures))
        self.assertIn("measuring", kiln(*explain, environment=fresh)[1])
        self.assertNotIn("measuring", kiln(*explain, environment=fresh)[1])

    def test_factors_and_starts_count(self):
        """The time that a run is expected to take grows with its factors and dimensions, and is repeated for
        each start."""
        with tempfile.TemporaryDirectory() as folder:
            ratings, points = os.path.join(folder, "r.csv"), os.path.join(folder, "p.csv")
            with open(ratings, "w", encoding="utf-8") as file:
                file.write("user,item,rating\n" + "".join(f"u{i % 997},i{i * 31 % 89},{i % 5 + 1}\n"
                                                          for i in range(20000)))
            with open(points, "w", encoding="utf-8") as file:
                file.write("x,y\n" + "".join(f"{i * i % 97},{i * 7 % 83}\n" for i in range(3000)))
            few, many, usual = (as_json("explain", "als", ratings, "--quiet", *more)
                                for more in (["--factors", 8], ["--factors", 200], []))
            self.assertEqual([result["k"] for result in (few, many, usual)], [8, 200, 32])
            self.assertGreater(many["estimates"][0]["pass_seconds"], 3 * few["estimates"][0]["pass_seconds"])
            flat, deep, again = (as_json("explain", "mds", points, *more)
                                 for more in (["--dimensions", 2], ["--dimensions", 20],
                                              ["--restarts", 4, "--max-iterations", 30]))
            # measured on a busy machine, small trials may take as long as larger ones
            self.assertGreaterEqual(deep["estimates"][0]["pass_seconds"],
                                    flat["estimates"][0]["pass_seconds"])
            self.assertEqual((flat["k"], deep["k"], again["passes"]), (2, 20, 120))
            self.assertIn("solver, metric and batches", kiln("explain", "mds", points)[0])
            usual, slow = (as_json("explain", "lda", ratings, "--quiet", *more)
                           for more in ([], ["--steps", 40]))
            self.assertGreater(slow["estimates"][0]["pass_seconds"],
                               3 * usual["estimates"][0]["pass_seconds"])

    def test_training_as_training_would_begin(self):
        """Classes by name, each a column of y or a problem of its own, and the options that decide how often
        it trains."""
        result = as_json("explain", "logreg", FLIGHTS, "--target", "origin")
        self.assertEqual((result["passes"], result["k"], result["columns"]), (70, 3, 124))
        self.assertIn("with 3 columns of y each", kiln("explain", "logreg", FLIGHTS, "--target", "origin")[0])
        result = as_json("explain", "svm", FLIGHTS, "--target", "origin")
        self.assertEqual((result["passes"], result["k"]), (3 * 70, 1))
        result = as_json("explain", "logreg", FLIGHTS, "--target", "origin", "--cv", 5, "--l2", "1e-2:1e2:4")
        self.assertEqual(result["passes"], (4 * 5 + 1) * 70)
        result = as_json("explain", "svm", FLIGHTS, "--target", "arr_delay", "--regression")
        self.assertEqual((result["passes"], result["k"]), (70, 1))
        for more, solver, why in ((("svm", "--solver", "dual"), "dual", "as asked for"),
                                  (("svm",), "newton", "not expected to be faster"),
                                  (("logreg", "--l1", 1), "newton", "the dual is for")):
            told = as_json("explain", more[0], FLIGHTS, "--target", "origin", *more[1:])
            self.assertEqual((told["solver"], told["max_iterations"]), (solver, 100))
            self.assertIn(why, told["why"])
        kiln("explain", "logreg", FLIGHTS, "--target", "origin", "--solver", "dual", "--l1", 1, code=2)
        self.assertIn("--l1", kiln("explain", "linreg", FLIGHTS, "--target", "arr_delay", "--l1", 1,
                                   code=2)[1])
        self.assertIn("no targets", kiln("explain", "linreg", FLIGHTS, code=3)[1])
        kiln("explain", "mmchain", *SHAPE, "--cv", 5, code=2)


class Ranks(unittest.TestCase):
    def test_layouts_of_links(self):
        with tempfile.TemporaryDirectory() as folder:
            graph = os.path.join(folder, "star.edges")
            with open(graph, "w", encoding="utf-8") as file:
                file.writelines(f"{i} 0\n0 {i}\n" for i in range(1, 3000))
            result = as_json("explain", "pagerank", graph)
            layouts = {row["layout"]: row for row in result["layouts"]}
            self.assertEqual(set(layouts), {"csr", "hybrid", "balanced"})
            self.assertEqual([row["layout"] for row in result["layouts"] if row["chosen"]],
                             [result["layouts"][0]["layout"]])
            self.assertEqual(layouts["balanced"]["limit"], "gathers and rows")
            self.assertEqual(result["sizes"], [])  # nothing to compare with where there is no GPU
            forced = as_json("explain", "pagerank", graph, "--layout", "csr")["layouts"]
            self.assertEqual([row["layout"] for row in forced if row["chosen"]], ["csr"])
            ranks = [as_json("pagerank", graph, "--layout", name, *CPU)["ranks"] for name in layouts]
            for other in ranks[1:]:
                self.assertAlmostEqual(other[0]["value"], ranks[0][0]["value"], places=10)

    def test_work_of_scaling_is_its_pairs(self):
        with tempfile.TemporaryDirectory() as folder:
            points, pairs = os.path.join(folder, "points.csv"), os.path.join(folder, "pairs.csv")
            with open(points, "w", encoding="utf-8") as file:
                file.write("x,y,z\n" + "".join(f"{i},{i * i % 17},{i * 7 % 5}\n" for i in range(40)))
            result = as_json("explain", "mds", points)
            self.assertEqual((result["rows"], result["columns"]), (40, 3))
            estimate = result["estimates"][0]
            self.assertTrue(estimate["measured"] and estimate["prepare_seconds"] > 0)
            whole = estimate["start_seconds"] + estimate["prepare_seconds"]
            whole += result["passes"] * (estimate["pass_seconds"] + estimate["overhead_seconds"])
            self.assertAlmostEqual(whole, estimate["seconds"])
            stress = as_json("mds", points, "--shepard", pairs, *CPU)["stress"]
            with open(pairs, encoding="utf-8") as file:
                rows = [[float(cell) for cell in line.split(",")] for line in file.readlines()[1:]]
            self.assertEqual(len(rows), 40 * 39 // 2)
            self.assertEqual([row[2] for row in rows], sorted(row[2] for row in rows))
            self.assertAlmostEqual(sum((row[2] - row[3]) ** 2 for row in rows) / stress, 1, places=6)
            picture = os.path.join(folder, "pairs.svg")
            kiln("mds", points, "--shepard", picture, *CPU)
            xml.etree.ElementTree.parse(picture)


class Auto(unittest.TestCase):
    def test_small_data_stay_on_the_processor(self):
        result = as_json("linreg", FLIGHTS, "--target", "arr_delay")
        self.assertEqual(result["device"], "cpu")
        choice = result["choice"]
        self.assertEqual([e["device"] for e in choice["estimates"] if e["chosen"]], ["cpu"])
        self.assertFalse(choice["estimates"][1]["considered"])
        self.assertGreater(choice["predicted_seconds"], 0)
        self.assertGreater(choice["actual_seconds"], 0)
        self.assertEqual(result["memory"]["layout_bytes"] > 0, result["memory"]["layout_seconds"] > 0)
        self.assertRegex(kiln("linreg", FLIGHTS, "--target", "arr_delay")[1], "device cpu: .* s expected")

    def test_starting_a_device(self):
        result = as_json("devices", "--start", *CPU)
        self.assertEqual((result["schema"], result["device"]), ("kiln.devices/1", "cpu"))
        self.assertGreater(result["start_seconds"], 0)
        self.assertRegex(kiln("devices", "--start", *CPU)[0], "^cpu: started in .* s\n$")
        self.assertIn("cuda", kiln("devices", "--start", "--device", "cuda:999", code=5)[1])

    def test_named_devices_are_not_chosen(self):
        self.assertNotIn("choice", as_json("linreg", FLIGHTS, "--target", "arr_delay", *CPU))


class Tune(unittest.TestCase):
    def test_ranks(self):
        for extra in ([], ["--exhaustive"]):
            for shape in (SHAPE, SPARSE + ["--skew", "zipf"]):
                result = as_json("tune", "mmchain", *shape, *CPU, *extra)
                seconds = [plan["seconds"] for plan in result["plans"]]
                self.assertEqual(seconds, sorted(seconds))
                self.assertEqual(len(seconds), 2)
                rank = result["rank"]
                self.assertTrue(result["plans"][rank - 1]["chosen"])
                self.assertAlmostEqual(result["loss"], seconds[rank - 1] / seconds[0] - 1)

    def test_plot(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plans.svg")
            text = kiln("tune", "mmchain", *SHAPE, *CPU, "--plot", path)[0]
            self.assertRegex(text, "the model's choice: rank [12] of 2 measured")
            root = xml.etree.ElementTree.parse(path).getroot()
            self.assertTrue(root.tag.endswith("svg"))
            self.assertIn("the choice: rank", "".join(root.itertext()))
            kiln("tune", "mmchain", *SHAPE, *CPU, "--plot", os.path.join(folder, "none", "plans.svg"), code=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
