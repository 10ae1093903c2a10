#!/usr/bin/env python3
"""kiln kmeans: the same clusters as scikit-learn from the same start, and what a user can ask for.

Usage: kmeans_test.py KILN FLIGHTS
"""
import os
import re
import signal
import unittest
import xml.dom.minidom

from cli_test import Case, FLIGHTS, as_json, kiln

CPU = ("--device", "cpu", "--quiet")
COLUMNS = ("--features", "dep_delay,hour,distance,month")
# Eight flights, and what sklearn.cluster.KMeans(8, init=START, n_init=1, tol=0) of scikit-learn 1.9.1 makes
# of them.
START = """dep_delay,hour,distance,month
2,5,1400,1
-1,19,541,1
64,12,213,1
-5,9,1726,1
14,9,719,1
-6,9,1726,1
-8,17,184,10
-4,9,2402,10
"""
INERTIA = 1279975834.9507613
SIZES = [14654, 9476, 3665, 7112, 12303, 2674, 7462, 8124]


class KMeans(Case):
    def weights(self, result):
        return [cluster["weight"] for cluster in result["clusters"]]

    def flights(self, *options, code=0):
        return as_json("kmeans", FLIGHTS, *COLUMNS, *CPU, *options, code=code)

    def test_scikit_learn_from_the_same_start(self):
        start = self.write("start.csv", START)
        for type, digits in (("f64", 13), ("f32", 6)):
            with self.subTest(type=type):
                model, labels = self.path("m.kiln"), self.path("labels.txt")
                result = self.flights("--init", start, "--tolerance", "1e-300", "--type", type, "-o", model,
                                      "--labels", labels)
                self.assertTrue(result["converged"])
                self.assertAlmostEqual(result["inertia"] / INERTIA, 1, digits)
                self.assertEqual(self.weights(result), SIZES)
                numbers = [int(line) for line in self.read("labels.txt").split()]
                self.assertEqual([numbers.count(c) for c in range(8)], SIZES)
                self.assertTrue(as_json("verify", model, FLIGHTS, "--quiet")["holds"])
                predicted = as_json("predict", model, FLIGHTS, *CPU)["predictions"]
                self.assertEqual([row[0] for row in predicted], numbers)
                radii = [max(row[1] for row in predicted if row[0] == c) for c in range(8)]
                for cluster, radius in zip(result["clusters"], radii):
                    self.assertAlmostEqual(cluster["radius"] / radius, 1, 5)

    def test_bounds_find_what_all_distances_find(self):
        rows = [[(i % 5) * (j % 3) + (i * (j + 7)) % 11 / 11 for j in range(20)] for i in range(300)]
        data = self.write("wide.csv", ",".join(f"x{j}" for j in range(20)) + "\n"
                          + "".join(",".join(f"{x:.3f}" for x in row) + "\n" for row in rows))
        found = {}
        for algorithm in ("lloyd", "bounds", None):
            options = ("--algorithm", algorithm) if algorithm else ()
            model = self.path(f"{algorithm}.kiln")
            result = as_json("kmeans", data, "-k", "9", *options, "-o", model, "--labels",
                             self.path("labels.txt"), *CPU)
            found[algorithm] = self.read("labels.txt"), result
            self.assertTrue(as_json("verify", model, data, "--quiet")["holds"])
        self.assertEqual(found["lloyd"][0], found["bounds"][0])
        self.assertEqual(found["lloyd"][1]["inertia"], found[None][1]["inertia"])  # few columns and clusters
        self.assertIsNone(found["lloyd"][1]["skipped"])
        self.assertGreater(found["bounds"][1]["skipped"], 0.1)
        self.assertIn("of the distances skipped", kiln("kmeans", data, "-k", "9", "--algorithm", "bounds",
                                                       *CPU)[0])
        errors = kiln("kmeans", FLIGHTS, *COLUMNS, "-k", "3", "--algorithm", "bounds", *CPU, code=3)[1]
        self.assertIn("hint: bounds are for", errors)

    def test_weights_are_rows_so_many_times(self):
        rows = [(i % 7, (i * i) % 11, 1 + i % 3) for i in range(60)]
        few = self.write("few.csv", "a,b,w\n" + "".join(f"{a},{b},{w}\n" for a, b, w in rows))
        many = self.write("many.csv", "a,b\n" + "".join(f"{a},{b}\n" * w for a, b, w in rows))
        start = self.write("three.csv", "a,b\n0,0\n5,5\n3,9\n")
        model = self.path("w.kiln")
        weighted = as_json("kmeans", few, "--weights", "w", "--init", start, "-o", model, *CPU)
        repeated = as_json("kmeans", many, "--init", start, *CPU)
        self.assertEqual(self.weights(weighted), self.weights(repeated))
        self.assertAlmostEqual(weighted["inertia"], repeated["inertia"], 9)
        self.assertTrue(as_json("verify", model, few, "--quiet")["holds"])
        changed = self.write("changed.csv", self.read("few.csv").decode().replace("3,9,1", "3,90,1", 1))
        self.assertFalse(as_json("verify", model, changed, "--quiet", code=4)["holds"])
        self.assertTrue(self.read("changed.csv") != self.read("few.csv"))

    def test_picture_says_what_it_shows(self):
        """Axes with names and ticks, and how many rows are drawn where these are not all."""
        picture = self.path("k.svg")
        for columns, rows, axes in ((2, 40, ("left", "right")),
                                    (3, 40, ("direction in which the centres differ most",)),
                                    (1, 40, ("left",)), (2, 10001, ("left", "right"))):
            names = ["left", "right", "up"][:columns]
            lines = "\n".join(",".join(str((i * (j + 3)) % 17) for j in range(columns)) for i in range(rows))
            data = self.write("k.csv", ",".join(names) + "\n" + lines + "\n")
            kiln("kmeans", data, "-k", "2", "--seed", "1", "--plot", picture, *CPU)
            texts = [text.firstChild.data
                     for text in xml.dom.minidom.parse(picture).getElementsByTagName("text")]
            for axis in axes:
                self.assertIn(axis, texts)
            self.assertGreater(sum(text.lstrip("-").replace(".", "").isdigit() for text in texts), 4)
            self.assertEqual("drawn: 10,000 of them" in " ".join(texts), rows > 10000, texts)

    def test_warm_start_predict_and_picture(self):
        model, picture, out = self.path("k.kiln"), self.path("k.svg"), self.path("p.csv")
        first = self.flights("-k", "5", "--restarts", "2", "--seed", "3", "-o", model, "--plot", picture)
        self.assertEqual(first["options"]["seed"], 3)
        xml.dom.minidom.parse(picture)
        again = self.flights("--warm-start", model)
        self.assertEqual((again["iterations"], again["inertia"]), (0, first["inertia"]))
        more = self.flights("--warm-start", model, "--batch", "500", "--max-iterations", "20")
        self.assertLess(abs(more["inertia"] / first["inertia"] - 1), 0.05)
        kiln("predict", model, FLIGHTS, "-o", out, *CPU)
        self.assertEqual(self.read("p.csv").splitlines()[0], b"cluster,distance")
        explained = as_json("explain", "kmeans", FLIGHTS, *COLUMNS, "-k", "50", "--quiet")
        self.assertEqual(explained["k"], 50)
        self.assertTrue(explained["estimates"])

    def test_spherical(self):
        text = "".join(f"{r} 1:{r} 2:{r * 0.1}\n{r} 3:{r}\n" for r in range(1, 20))
        data, model = self.write("docs.svm", text), self.path("s.kiln")
        result = as_json("kmeans", data, "-k", "2", "--spherical", "-o", model, *CPU)
        self.assertEqual(self.weights(result), [19, 19])
        self.assertLess(result["inertia"], 1e-12)
        self.assertTrue(as_json("verify", model, data, "--quiet")["holds"])
        labels = [row[0] for row in as_json("predict", model, data, *CPU)["predictions"]]
        self.assertEqual(len(set(labels[::2])) + len(set(labels[1::2])), 2)

    def test_more_centres_than_different_rows(self):
        data = self.write("same.csv", "a\n" + "1\n2\n" * 5)
        out, error = kiln("kmeans", data, "-k", "4", "--device", "cpu", "--quiet")
        self.assertIn("number of distinct clusters (2) found smaller than the number wanted (4): the data "
                      "have 2 different rows", error)
        self.assertNotIn("nan", "".join(kiln("kmeans", data, "-k", "4", "--device", "cpu", "--verbose")))
        far = self.write("far.csv", "a,b,c\n" + "1700000123,1e6,3\n1700000777,2e6,5\n1700003333,1e6,4\n" * 33)
        for kind in ([], ["--spherical"], ["--init", "random"]):
            result = as_json("kmeans", far, "-k", "7", "--type", "f32", "--tolerance", "1e-12", *kind, *CPU)
            self.assertTrue(result["converged"], kind)

    def test_what_is_refused(self):
        data = self.write("small.csv", "a,b\n1,2\n3,4\n5,7\n")
        one, two = self.write("one.csv", "a\n1\n"), self.write("two.csv", "a,b\n1,2\n3,4\n5,7\n")
        for options, code, part in (
            ((), 2, "-k, is missing"),
            (("-k", "4"), 3, "4 centres are wanted of an X with 3 rows"),
            (("-k", "2", "--init", "nothing"), 2, "neither a way to begin nor a file"),
            (("-k", "2", "--init", two), 3, "3 rows and 2 columns"),
            (("--init", one), 3, "needs a column 'b', which the file lacks"),
            (("-k", "2", "--warm-start", one), 7, ""),
        ):
            with self.subTest(options=options):
                self.assertIn(part, kiln("kmeans", data, *options, "--device", "cpu", code=code)[1])

    def test_starts_go_on_behind_the_limit_of_iterations(self):
        rows = "".join(f"{i * i % 101},{i * 7 % 13},{i % 17}\n" for i in range(120))
        data = self.write("rows.csv", "a,b,c\n" + rows)
        for verb, options in (("kmeans", ("-k", "9", "--tolerance", "1e-12")), ("mds", ("--init", "random"))):
            with self.subTest(verb=verb):
                common = (verb, data, *options, "--restarts", "3", "--seed", "3", *CPU, "-o")
                models = [self.path("m1.kiln"), self.path("m2.kiln"), self.path("m3.kiln")]
                kept = self.path(verb + ".checkpoint")
                whole = as_json(*common, models[0])
                self.assertFalse(as_json(*common, models[1], "--max-iterations", "2", "--checkpoint",
                                         kept)["converged"])
                again = as_json(*common, models[2], "--max-iterations", "1000", "--resume", kept)
                for key in ("iterations", "converged", "inertia" if verb == "kmeans" else "stress"):
                    self.assertEqual(again[key], whole[key])

    def test_an_interrupted_run_keeps_its_result(self):
        model = self.path("i.kiln")
        process = self.start("kmeans", FLIGHTS, *COLUMNS, "-k", "200", "--restarts", "100000", "--device",
                             "cpu", "-o", model)
        while "iteration 4" not in process.stderr.readline().decode():
            pass
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, 130, error)
        self.assertTrue(os.path.exists(model))
        self.assertFalse(re.search(r"Traceback|internal", error))


if __name__ == "__main__":
    unittest.main(argv=["kmeans_test.py"])
