"""Drives the verbs that train, rank and judge models: logreg, glm, svm, hits, predict, verify,
cross-validation.

usage: models_test.py KILN FLIGHTS.csv.gz [SECONDS], as cli_test.py
"""

import csv
import glob
import json
import math
import os
import random
import re
import signal
import statistics
import struct
import subprocess
import sys
import unittest
import zipfile
import xml.dom.minidom

from cli_test import KILN, Case, as_json, kiln

CPU = ["--device", "cpu", "--quiet"]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def points(count, seed=1):
    """Rows (a, b, noise) with an eta of their own."""
    source = random.Random(seed)
    rows = [(source.gauss(0, 1), source.gauss(1, 2), source.random()) for _ in range(count)]
    return [(a, b, u, 0.8 * a - 0.5 * b + 0.3) for a, b, u in rows]


class Models(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rows = points(300)

        def csv(name, target):
            with open(os.path.join(cls.folder, name), "w") as file:
                file.write("a,b,y\n")
                for row in rows:
                    file.write(f"{row[0]!r},{row[1]!r},{target(*row)}\n")

        csv("two.csv", lambda a, b, u, eta: "yes" if u < sigmoid(eta) else "no")
        csv("three.csv", lambda a, b, u, eta: ["low", "mid", "high"][(eta + u > 0) + (eta + u > 1.5)])
        csv("count.csv", lambda a, b, u, eta: int(math.exp(0.5 * eta) + 2 * u))
        csv("number.csv", lambda a, b, u, eta: eta + u)
        with open(os.path.join(cls.folder, "two.svm"), "w") as file:
            for a, b, u, eta in rows:
                file.write(f"{3 if u < sigmoid(eta) else -1} 1:{a!r} 2:{b!r}\n")

    def train(self, verb, data, *options, target=True):
        arguments = ["--target", "y"] if target else []
        return as_json(verb, self.path(data), *arguments, *CPU, *options)

    def lines(self, name):
        return self.read(name).decode().splitlines()

    def fit(self, verb, data, *options, target=True):
        """Trains into m.kiln, checks what must hold of any model, returns the JSON object."""
        model = self.path("m.kiln")
        result = self.train(verb, data, "-o", model, *options, target=target)
        self.assertTrue(result["converged"])
        self.assertEqual(result["algorithm"], verb)
        self.assertIn("inner", result["trace"][0])
        claims = as_json("verify", model, self.path(data), "--quiet", *self.columns(options))
        self.assertTrue(claims["holds"], claims)
        return result

    @staticmethod
    def columns(options):
        """The options that verify takes too."""
        kept = []
        for i, option in enumerate(options):
            if option in ("--weights-file", "--offset-file"):
                kept += [option, options[i + 1]]
        return kept


class Classifiers(Models):
    def test_names_of_classes(self):
        for verb in "logreg", "svm":
            result = self.fit(verb, "two.csv")
            table = result["metrics"]["confusion"]
            self.assertEqual(table["classes"], ["no", "yes"])
            self.assertEqual(sum(map(sum, table["rows"])), 300)
            out, error = kiln("predict", self.path("m.kiln"), self.path("two.csv"), "--device", "cpu")
            self.assertEqual(set(out.split()), {"yes", "no"})
            self.assertIn("true \\ predicted", error)
            right = (table["rows"][0][0] + table["rows"][1][1]) / 300
            again = as_json("predict", self.path("m.kiln"), self.path("two.csv"), *CPU)
            self.assertAlmostEqual(again["metrics"]["accuracy"], right)
            self.assertAlmostEqual(again["metrics"]["auc"], result["metrics"]["auc"])
            self.assertEqual(again["classes"], ["no", "yes"])
            self.assertEqual(again["predictions"], out.split())

    def test_numbers_as_classes(self):
        result = self.fit("logreg", "two.svm", target=False)
        self.assertEqual(result["metrics"]["confusion"]["classes"], ["-1", "3"])
        out, _ = kiln("predict", self.path("m.kiln"), self.path("two.svm"), *CPU)
        self.assertEqual(set(out.split()), {"-1", "3"})
        # the same data with other names of the classes
        self.assertAlmostEqual(result["objective"], self.fit("logreg", "two.csv")["objective"], 7)

    def test_auc_counts_pairs(self):
        self.fit("logreg", "two.csv")
        scores = [float(x) for x in kiln("predict", self.path("m.kiln"), self.path("two.csv"), "--decision",
                                         *CPU)[0].split()]
        labels = [line.strip().endswith("yes") for line in self.lines("two.csv")[1:]]
        pairs = [(p > n) + (p == n) / 2 for p, y in zip(scores, labels) if y for n, z in zip(scores, labels)
                 if not z]
        result = as_json("predict", self.path("m.kiln"), self.path("two.csv"), *CPU)
        self.assertAlmostEqual(result["metrics"]["auc"], sum(pairs) / len(pairs), 12)
        loss = sum(math.log1p(math.exp(-s if y else s)) for s, y in zip(scores, labels)) / 300
        self.assertAlmostEqual(result["metrics"]["log_loss"], loss, 12)

    def test_probabilities(self):
        self.fit("logreg", "three.csv")
        out, _ = kiln("predict", self.path("m.kiln"), self.path("three.csv"), "--probabilities", *CPU)
        rows = [[float(x) for x in line.split()] for line in out.splitlines()]
        self.assertTrue(all(len(row) == 3 and abs(sum(row) - 1) < 1e-12 for row in rows))
        labels = kiln("predict", self.path("m.kiln"), self.path("three.csv"), *CPU)[0].split()
        names = ["high", "low", "mid"]  # in the order of their bytes
        self.assertEqual(labels, [names[row.index(max(row))] for row in rows])
        self.fit("logreg", "two.csv")
        out, _ = kiln("predict", self.path("m.kiln"), self.path("two.csv"), "--probabilities", *CPU)
        self.assertEqual({len(line.split()) for line in out.splitlines()}, {2})
        self.fit("svm", "three.csv")
        kiln("predict", self.path("m.kiln"), self.path("three.csv"), "--probabilities", *CPU, code=2)
        kiln("predict", self.path("m.kiln"), self.path("three.csv"), "--probabilities", "--decision", *CPU,
             code=2)
        rows = kiln("predict", self.path("m.kiln"), self.path("three.csv"), "--decision",
                    *CPU)[0].splitlines()
        self.assertEqual({len(line.split()) for line in rows}, {3})

    def test_C_is_another_name(self):
        self.assertEqual(self.train("logreg", "two.csv", "--C", 0.25)["objective"],
                         self.train("logreg", "two.csv", "--l2", 4)["objective"])
        self.assertEqual(self.train("svm", "two.csv", "--C", 0.25)["objective"],
                         self.train("svm", "two.csv", "--l2", 2)["objective"])
        self.assertEqual(self.train("logreg", "two.csv")["options"]["l2"], 1)
        self.assertEqual(self.train("svm", "two.csv")["options"]["l2"], 0.5)
        kiln("logreg", self.path("two.csv"), "--target", "y", "--C", 1, "--l2", 1, code=2)
        kiln("linreg", self.path("number.csv"), "--target", "y", "--C", 1, code=2)

    def test_class_weights(self):
        plain = self.fit("logreg", "two.csv", "--class-weight", "yes=1,no=1")
        self.assertAlmostEqual(plain["objective"], self.train("logreg", "two.csv")["objective"], 10)
        rows = self.lines("two.csv")[1:]
        weights = self.write("w.txt", "".join("3\n" if row.endswith("yes") else "1\n" for row in rows))
        by_row = self.fit("svm", "two.csv", "--weights-file", weights)
        by_class = self.fit("svm", "two.csv", "--class-weight", "yes=3")
        self.assertAlmostEqual(by_row["objective"], by_class["objective"], 9)
        self.fit("logreg", "three.csv", "--class-weight", "balanced")
        for wrong in "yes", "perhaps=2", "yes=-1", "=2", "yes=x":
            error = kiln("logreg", self.path("two.csv"), "--target", "y", "--class-weight", wrong, *CPU,
                         code=2)[1]
            self.assertIn("LABEL=WEIGHT", error)

    def test_l1_makes_zeros(self):
        self.fit("logreg", "two.csv", "--l1", 60)
        info = as_json("info", self.path("m.kiln"))
        self.assertLess(len(info["top_coefficients"]), 2)
        self.assertEqual(info["metadata"]["options"]["l2"], 0)

    def test_warm_start_goes_on(self):
        model = self.path("part.kiln")
        part = self.train("logreg", "two.csv", "--max-iterations", 2, "-o", model)
        self.assertFalse(part["converged"])
        rest = self.train("logreg", "two.csv", "--warm-start", model)
        whole = self.train("logreg", "two.csv")
        self.assertAlmostEqual(rest["objective"], whole["objective"], 9)
        self.assertAlmostEqual(rest["trace"][0]["objective"], part["objective"], 9)

    def test_start_of_another_kind(self):
        """Coefficients of the same shape that mean something else are refused by name."""
        models = {}
        coin = self.write("coin.csv", "\n".join(self.lines("two.csv")).replace("yes", "1").replace("no", "0"))
        for verb, data, *options in (("linreg", "number.csv"), ("svm", "number.csv", "--regression"),
                                     ("glm", "number.csv", "--family", "gaussian"), ("logreg", coin),
                                     ("svm", coin), ("glm", "count.csv", "--family", "poisson")):
            name = " ".join((verb, *options))
            models[name] = self.path(name.replace(" ", "") + ".kiln")
            self.train(verb, data, *options, "-o", models[name])
        def start(verb, data, model, *options, code):
            return kiln(verb, self.path(data), "--target", "y", *options, "--warm-start", models[model], *CPU,
                        code=code)[1]
        for first in "linreg", "svm --regression", "glm --family gaussian":
            start("linreg", "number.csv", first, code=0)
            start("svm", "number.csv", first, "--regression", code=0)
            start("glm", "number.csv", first, code=0)
            for verb in "logreg", "svm":
                self.assertIn(f"than those of {verb}", start(verb, coin, first, code=7))
        start("glm", "count.csv", "glm --family poisson", "--family", "tweedie", "--variance-power", 1.5,
              code=0)
        error = start("glm", "count.csv", "linreg", "--family", "poisson", code=7)
        self.assertIn("coefficients of linreg mean something else than those of glm with the link log", error)
        self.assertIn("coefficients of svm mean something else", start("logreg", coin, "svm", code=7))
        self.assertIn("coefficients of logreg", start("linreg", "number.csv", "logreg", code=7))

    def test_start_without_an_objective(self):
        """Coefficients so large that no objective is finite: an error that says so, whatever stood on the
        stack."""
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
        import mutate

        model = self.path("wild.kiln")
        for verb, data in ("glm", "number.csv"), ("logreg", "two.csv"), ("svm", "two.csv"):
            self.train(verb, data, "-o", model)
            tensors, texts = mutate.read_model(self.read("wild.kiln"))
            kind, rows, cols, body = tensors["W"]
            tensors["W"] = kind, rows, cols, struct.pack("<d", 1e308) * (len(body) // 8)
            with open(model, "wb") as file:
                file.write(mutate.model_bytes(tensors, texts))
            error = kiln(verb, self.path(data), "--target", "y", "--warm-start", model, *CPU, code=3)[1]
            self.assertIn("the solver met NaN or infinity after 0 iterations", error)

    def test_start_of_other_classes(self):
        model = self.path("classes.kiln")
        lines = self.lines("two.svm")
        other = self.write("other.svm", "".join(line.replace("3 1:", "4 1:") + "\n" for line in lines))
        more = self.write("more.svm", "".join(f"{line}\n" for line in lines + ["7 1:2 2:3"]))
        for verb in "logreg", "svm":
            kiln(verb, self.path("two.svm"), "-o", model, *CPU)
            self.assertIn("its class 2 is '3', that of these data '4'",
                          kiln(verb, other, "--warm-start", model, *CPU, code=7)[1])
            self.assertIn("it tells 2 classes apart, these data have 3",
                          kiln(verb, more, "--warm-start", model, *CPU, code=7)[1])

    def test_converged_start_comes_back(self):
        for verb, data, *options in (("linreg", "number.csv"), ("logreg", "two.csv", "--standardize"),
                                     ("svm", "three.csv"), ("logreg", "three.csv", "--l1", 2),
                                     ("glm", "count.csv", "--family", "poisson"),
                                     ("glm", "count.csv", "--family", "poisson", "--l1", 20, "--l2", 1)):
            first, second = self.path("first.kiln"), self.path("second.kiln")
            self.train(verb, data, *options, "-o", first)
            again = self.train(verb, data, *options, "--warm-start", first, "-o", second)
            self.assertEqual((again["iterations"], again["converged"]), (0, True))
            predictions = [as_json("predict", model, self.path(data), "--decision", *CPU)["predictions"]
                           for model in (first, second)]
            self.assertEqual(*predictions)

    def test_l1_of_a_glm(self):
        model = self.path("sparse.kiln")
        result = self.train("glm", "count.csv", "--family", "poisson", "--cv", 3, "--l1", "1:1000:5", "-o",
                            model)
        nonzeros = [row["nonzeros"] for row in result["cross_validation"]["values"]]
        self.assertEqual(nonzeros, sorted(nonzeros))
        self.assertEqual(result["options"]["l1"], result["cross_validation"]["best"])
        self.assertTrue(as_json("verify", model, self.path("count.csv"))["holds"])

    def test_svm_regression(self):
        result = self.fit("svm", "number.csv", "--regression", "--epsilon", 0.1)
        self.assertLess(result["gap"], 1e-9)
        self.assertGreater(result["metrics"]["r2"], 0.9)
        out, _ = kiln("predict", self.path("m.kiln"), self.path("number.csv"), *CPU)
        self.assertEqual(len([float(x) for x in out.split()]), 300)
        kiln("svm", self.path("number.csv"), "--target", "y", "--regression", "--class-weight", "balanced",
             code=2)

    def test_one_class(self):
        path = self.write("one.csv", "x,y\n1,a\n2,a\n")
        for verb in "logreg", "svm":
            self.assertIn("one class", kiln(verb, path, "--target", "y", *CPU, code=3)[1])

    def test_any_label(self):
        """Whatever a label holds, CSV gives it back; plain lines quote it where it would be two of them."""
        names = ["New York", "Zürich", "a,b", '"quoted"', "two\nlines", "007", "NA", "x" * 30]
        path = self.path("labels.csv")
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "the class"])
            for i, (a, b, u, _) in enumerate(points(240)):
                writer.writerow([a + i % 8, b + (3 * i) % 8, names[i % 8]])
        model, out = self.path("m.kiln"), self.path("out.csv")
        result = as_json("logreg", path, "--target", "the class", "-o", model, *CPU)
        self.assertEqual(result["metrics"]["confusion"]["classes"], sorted(names, key=str.encode))
        predictions = as_json("predict", model, path, *CPU)["predictions"]
        kiln("predict", model, path, "-o", out, *CPU)
        with open(out, newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows, [["the class"]] + [[name] for name in predictions])
        plain, error = kiln("predict", model, path, *CPU[:2])
        self.assertEqual(plain, "".join((f'"{name}"' if "\n" in name else name) + "\n"
                                        for name in predictions))
        self.assertIn("two?lines", error)
        self.assertIn("x" * 9 + "~", error)
        kiln("predict", model, path, "--probabilities", "-o", out, *CPU)
        with open(out, newline="") as file:
            self.assertEqual(next(csv.reader(file)), sorted(names, key=str.encode))
        self.assertIn("of class New York", kiln("info", model, *CPU)[0])
        self.assertEqual({row["class"] for row in as_json("info", model)["top_coefficients"]}, set(names))

    def test_forms_of_predictions(self):
        """The ending of -o says the form; one that would be a lie is refused before the data are read."""
        model, out = self.path("m.kiln"), self.path("p.npy")
        self.fit("linreg", "number.csv")
        numbers = as_json("predict", model, self.path("number.csv"), *CPU)["predictions"]
        kiln("predict", model, self.path("number.csv"), "-o", out, *CPU)
        self.assertEqual(as_json("info", out, *CPU)["rows"], 300)
        self.assertEqual(self.read("p.npy")[:6], b"\x93NUMPY")
        self.assertEqual(list(struct.unpack("<300d", self.read("p.npy")[-2400:])), numbers)
        kiln("predict", model, self.path("number.csv"), "-o", self.path("p.csv"), *CPU)
        self.assertEqual([self.lines("p.csv")[0], float(self.lines("p.csv")[1])], ["y", numbers[0]])
        self.fit("svm", "two.svm", target=False)
        kiln("predict", model, self.path("two.svm"), "-o", out, *CPU)
        self.assertEqual(set(struct.unpack("<300d", self.read("p.npy")[-2400:])), {-1, 3})
        self.fit("svm", "two.csv")
        self.assertIn("labels are text", kiln("predict", model, self.path("absent"), "-o", out, *CPU,
                                              code=2)[1])
        self.assertIn(".gz", kiln("predict", model, self.path("absent"), "-o", out + ".gz", *CPU, code=2)[1])

    def test_optimality_gaps(self):
        """The report, the model's too, says how far the objective is above the optimum at most, and what
        follows from."""
        for verb, options, certificate in (("linreg", (), "normal equations"),
                                           ("linreg", ("--l2", 1), "duality gap"),
                                           ("linreg", ("--solver", "cg"), None),
                                           ("svm", ("--regression",), "duality gap"),
                                           ("glm", ("--l1", 1), "duality gap"),
                                           ("glm", ("--link", "log", "--l2", 1), None)):
            result = self.fit(verb, "number.csv", *options)
            self.assertEqual(result["certificate"], certificate, (verb, options))
            self.assertEqual(result["optimality_gap"] is None, certificate is None)
            if certificate:
                self.assertLess(result["optimality_gap"], 1e-6 * result["objective"])
            self.assertIn(f"({certificate})" if certificate else "no bound",
                          kiln(verb, self.path("number.csv"), "--target", "y", *options, *CPU)[0])
        ratings = self.write("ratings.mtx",
                             "%%MatrixMarket matrix coordinate real general\n4 3 6\n1 1 2\n1 2 3\n2 1 1\n"
                             "3 3 2\n4 2 5\n4 3 1\n")
        for verb, rank in ("als", "--factors"), ("sfa", "--factors"), ("gap",
                                                                       "--topics"), ("lda", "--topics"):
            result = as_json(verb, ratings, rank, 2, *CPU)
            self.assertEqual((result["optimality_gap"], result["certificate"], result["setbacks"]),
                             (None, None, 0), verb)

    def test_small_weights_leave_the_parameters(self):
        """Akaike's criterion is twice these and hardly more, of which rounding is most."""
        for i in range(12):
            rows = f"1,{125 + i},0.003\n2,0,0.003\n4,0,0.001\n"
            self.write("small.csv", "a,y,w\n" + rows)
            self.fit("glm", "small.csv", "--family", "negative-binomial", "--alpha", 0.1, "--l2", 0.001,
                     "--weights", "w")

    def test_no_gap_without_penalty(self):
        self.assertNotIn("gap", kiln("svm", self.path("two.csv"), "--target", "y", "--l2", 0, *CPU)[0])

    def test_rows_without_a_score(self):
        self.fit("svm", "two.csv")
        holes = self.write("holes.csv", "a,b\n1,2\n,1\n")
        predict = ["predict", self.path("m.kiln"), holes, *CPU]
        self.assertIn("row 2", kiln(*predict, "--allow-nonfinite")[1])
        self.assertIn("holes.csv:3:1", kiln(*predict, code=3)[1])

    def test_unknown_class_is_wrong(self):
        self.fit("logreg", "two.csv")
        other = self.write("other.csv", "a,b,y\n1,2,yes\n1,2,maybe\n")
        metrics = as_json("predict", self.path("m.kiln"), other, *CPU)["metrics"]
        self.assertIn(metrics["accuracy"], (0, 0.5))
        self.assertEqual(sum(map(sum, metrics["confusion"]["rows"])), 1)

    def test_more_columns_than_rows(self):
        """By the Gram matrix of the rows, a solver that has no name among the options."""
        source = random.Random(5)
        rows = [[source.gauss(0, 1) for _ in range(41)] for _ in range(5)]
        lines = [",".join([*(f"x{j}" for j in range(40)), "y"]), *(",".join(map(repr, row)) for row in rows)]
        with open(self.path("wide.csv"), "w", encoding="ascii") as file:
            file.write("\n".join(lines))
        result = self.fit("linreg", "wide.csv", "--l2", 0.5, "--solver", "cholesky")
        self.assertEqual(result["solver"], "cholesky-rows")

    def test_linreg_wants_numbers(self):
        self.assertIn("logreg", kiln("linreg", self.path("two.csv"), "--target", "y", *CPU, code=3)[1])


class Generalised(Models):
    def test_families(self):
        for options in (["poisson"], ["negative-binomial", "--alpha", 0.5],
                        ["tweedie", "--variance-power", 1.5], ["gaussian"]):
            result = self.fit("glm", "count.csv", "--family", *options)
            metrics = result["metrics"]
            self.assertLess(metrics["deviance"], metrics["null_deviance"])
            again = as_json("predict", self.path("m.kiln"), self.path("count.csv"), *CPU)["metrics"]
            self.assertAlmostEqual(again["deviance"], metrics["deviance"], 8)

    def test_gaussian_is_least_squares(self):
        glm, linreg = self.fit("glm", "number.csv"), self.fit("linreg", "number.csv")
        self.assertAlmostEqual(glm["metrics"]["rss"], linreg["metrics"]["rss"], 8)

    def test_offset(self):
        offset = self.write("offset.txt", "".join(f"{0.01 * i}\n" for i in range(300)))
        result = self.fit("glm", "count.csv", "--family", "poisson", "--offset-file", offset)
        predict = ["predict", self.path("m.kiln"), self.path("count.csv")]
        again = as_json(*predict, "--offset-file", offset, *CPU)
        self.assertAlmostEqual(again["metrics"]["deviance"], result["metrics"]["deviance"], 8)
        without = as_json(*predict, *CPU)["predictions"]
        for i in (0, 17, 299):
            self.assertAlmostEqual(again["predictions"][i] / without[i], math.exp(0.01 * i), 9)
        etas = as_json(*predict, "--offset-file", offset, "--decision", *CPU)["predictions"]
        self.assertAlmostEqual(math.exp(etas[5]), again["predictions"][5], 9)
        kiln("verify", self.path("m.kiln"), self.path("count.csv"), code=2)  # without the offset
        self.assertIn("offset 0", kiln("predict", self.path("m.kiln"), self.path("count.csv"), *CPU[:2])[1])

    def test_columns_beside_the_features(self):
        """Columns of the data do what files with the same numbers do, and stay the model's own."""
        offsets, weights = [0.01 * i for i in range(300)], [1 + i % 3 for i in range(300)]
        files = ["--offset-file", self.write("o.txt", "".join(f"{x}\n" for x in offsets)),
                 "--weights-file", self.write("w.txt", "".join(f"{x}\n" for x in weights))]
        by_file = self.fit("glm", "count.csv", "--family", "poisson", *files)
        lines = self.lines("count.csv")
        self.write("more.csv", "\n".join([f"w,{lines[0]},exposure"] + [
            f"{w},{line},{o}" for w, line, o in zip(weights, lines[1:], offsets)]) + "\n")
        columns = ["--offset", "exposure", "--weights", "w"]
        by_column = self.fit("glm", "more.csv", "--family", "poisson", *columns)
        self.assertEqual(by_column["columns"], by_file["columns"])
        self.assertEqual(by_column["objective"], by_file["objective"])
        predict = ["predict", self.path("m.kiln"), self.path("more.csv"), *CPU]
        predictions = as_json(*predict)["predictions"]  # the offset's column goes without saying
        self.assertEqual(predictions, as_json(*predict, "--offset", "exposure")["predictions"])
        self.assertEqual(predictions, as_json(*predict, "--offset-file", files[1])["predictions"])
        missing = kiln("predict", self.path("m.kiln"), self.path("count.csv"), *CPU, code=7)[1]
        self.assertIn("offset 'exposure' is not a column of the file, and the model was trained with it",
                      missing)
        self.assertIn("--offset-file", missing)
        kiln("predict", self.path("m.kiln"), self.path("more.csv"), "--offset", "nothing", *CPU, code=2)
        train = ["glm", self.path("more.csv"), "--target", "y", "--family", "poisson"]
        self.assertIn("did you mean 'exposure'", kiln(*train, "--offset", "exposures", code=2)[1])
        self.assertIn("both target and weights", kiln(*train, "--weights", "y", code=2)[1])
        self.assertIn("together", kiln(*train, *columns, *files, code=2)[1])
        self.assertIn("no column names", kiln("logreg", self.path("two.svm"), "--weights", "w", code=2)[1])
        bad = self.write("bad.csv", "y,x,w\n1,2,3\n4,5,heavy\n")
        self.assertIn("bad.csv:3:5", kiln("linreg", bad, "--target", "y", "--weights", "w", code=3)[1])

    def test_a_column_without_a_standard_error(self):
        lines = self.lines("number.csv")
        twice = self.write("twice.csv",
                           "\n".join(["c," + lines[0]] + [f"{line.split(',')[0]},{line}"
                                                          for line in lines[1:]]) + "\n")
        result = self.fit("glm", "twice.csv", "--standard-errors")
        rows = {row["name"]: row for row in result["coefficients"]}
        self.assertIsNone(rows["a"]["standard_error"])
        self.assertGreater(rows["c"]["standard_error"], 0)
        self.assertEqual(rows["a"]["value"], 0)
        alone = self.fit("glm", "number.csv", "--standard-errors")["coefficients"]
        for name, row in zip(("c", "b", "(intercept)"), alone):
            for key in "value", "standard_error", "z":
                self.assertAlmostEqual(rows[name][key] / row[key], 1, 8)
        self.assertIn("depends on columns before it", kiln("glm", twice, "--target", "y", "--standard-errors",
                                                           *CPU)[0])

    def test_levels_beside_an_intercept(self):
        """The last indicator column of a text column depends on the others: what is left are
        differences from it."""
        rows = [("abc"[i % 3], i % 3 + (i * i % 7) / 10) for i in range(60)]
        data = self.write("levels.csv", "group,y\n" + "".join(f"{g},{y}\n" for g, y in rows))
        table = as_json("glm", data, "--target", "y", "--standard-errors", *CPU)["coefficients"]
        means = {g: sum(y for h, y in rows if h == g) / 20 for g in "abc"}
        variance = sum((y - means[g]) ** 2 for g, y in rows) / 57
        for row, want in zip(table, (means["a"] - means["c"], means["b"] - means["c"], 0, means["c"])):
            self.assertAlmostEqual(row["value"], want, 10)
        for row, want in zip(table, (variance / 10, variance / 10, None, variance / 20)):
            self.assertEqual(row["standard_error"] is None, want is None)
            self.assertAlmostEqual(row["standard_error"] or 0, math.sqrt(want or 0), 10)

    def test_what_a_family_has_no_place_for(self):
        """File, line and column, also of targets on a file of their own; nothing is written."""
        bad = self.write("bad.csv", "x,y,w\n1,2,1\n\n2,-1,1\n3,0,-1\n")
        labels = self.write("bad.svm", "1 1:2\n# none\n-3 1:4\n")
        matrix = self.write("x.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n2\n")
        targets = self.write("y.txt", "1\n-1\n")
        model = self.path("never.kiln")
        train = ["-o", model, *CPU]
        for family, place in (("poisson", "bad.csv:4:3"), ("gamma", "bad.csv:4:3"),
                              ("binomial", "bad.csv:2:3")):
            self.assertIn(place, kiln("glm", bad, "--target", "y", "--family", family, *train, code=3)[1])
        self.assertIn("bad.svm:3:1", kiln("glm", labels, "--family", "poisson", *train, code=3)[1])
        self.assertIn("y.txt:2:1", kiln("glm", matrix, "--target-file", targets, "--family", "poisson",
                                        *train, code=3)[1])
        for verb in "linreg", "logreg", "svm", "glm":
            self.assertIn("bad.csv:5:5", kiln(verb, bad, "--target", "y", "--weights", "w", *train,
                                              code=3)[1])
            self.assertIn("y.txt: number 2",
                          kiln(verb, matrix, "--target-file", self.write("l.txt", "1\n2\n"),
                               "--weights-file", targets, *train, code=3)[1])
        self.assertFalse(os.path.exists(model))
        self.fit("glm", "count.csv", "--family", "poisson")
        odd = self.write("odd.csv", "a,b,y\n1,2,3\n1,2,-3\n")
        result = as_json("predict", self.path("m.kiln"), odd, *CPU)
        self.assertEqual((len(result["predictions"]), result["metrics"]["deviance"]), (2, None))
        self.assertIn("odd.csv:3:5", kiln("verify", self.path("m.kiln"), odd, code=3)[1])

    def test_coefficients(self):
        result = self.fit("glm", "count.csv", "--family", "poisson", "--standard-errors")
        rows = result["coefficients"]
        self.assertEqual([row["name"] for row in rows], ["a", "b", "(intercept)"])
        for row in rows:
            self.assertAlmostEqual(row["z"], row["value"] / row["standard_error"], 9)
            self.assertAlmostEqual(row["p"], math.erfc(abs(row["z"]) / math.sqrt(2)), 12)
        out, _ = kiln("glm", self.path("count.csv"), "--target", "y", "--family", "poisson",
                      "--standard-errors", *CPU)
        self.assertIn("std. error", out)

    def test_parameters_that_are_none(self):
        train = "glm", self.path("count.csv"), "--target", "y", "--family"
        error = kiln(*train, "tweedie", "--variance-power", 2, *CPU, code=2)[1]
        self.assertIn("--variance-power is 2", error)
        kiln("glm", self.path("count.csv"), "--target", "y", "--link", "power", *CPU, code=2)
        shares = self.write("shares.csv", "x,y\n1,0.2\n2,0.4\n3,0.5\n")
        error = kiln("glm", shares, "--target", "y", "--link", "log", "--family", "beta", "--precision", 5,
                     *CPU, code=2)[1]
        self.assertIn("the beta family has no link log, but logit, probit, cloglog and cauchit", error)
        kiln("glm", self.path("count.csv"), "--target", "y", "--family", "cauchy", code=2)
        kiln("glm", self.path("number.csv"), "--target", "y", "--family", "poisson", *CPU, code=3)


class Defaults(Models):
    def test_help_tells_the_verb_s_own(self):
        edges = self.write("links.edges", "a b\nb c\nc a\na c\n")
        for verb, *data in (("linreg", "number.csv", "--target", "y"), ("logreg", "two.csv", "--target", "y"),
                            ("glm", "count.csv", "--target", "y"), ("svm", "two.csv", "--target", "y"),
                            ("hits", edges)):
            text = " ".join(kiln(verb, "--help")[0].split())
            for kind in ("f64", "f32"):
                result = as_json(verb, self.path(data[0]), *data[1:], "--type", kind, *CPU)
                told = re.search(r"--tolerance NUMBER .*?\[([-\de]+), of f32 ([-\de]+)\]", text)
                self.assertEqual(float(told[1 if kind == "f64" else 2]), result["tolerance"])
                for option, shown in (("l2", r"--l2 NUMBER .*?\[([\d.]+)\]"),
                                      ("max_iterations", r"--max-iterations N .*?\[(\d+)")):
                    if option in result["options"]:
                        self.assertEqual(float(re.search(shown, text)[1]), result["options"][option],
                                         (verb, option))


class Validation(Models):
    def test_best_value_is_kept(self):
        plot, model = self.path("cv.svg"), self.path("best.kiln")
        result = self.train("logreg", "two.csv", "--cv", 4, "--l2", "1e-2:1e4:7", "--plot", plot, "-o", model)
        table = result["cross_validation"]
        values = [row["l2"] for row in table["values"]]
        self.assertEqual((values[0], values[-1]), (1e4, 1e-2))
        self.assertTrue(all(abs(a / b - 10) < 1e-9 for a, b in zip(values, values[1:])))
        best = min(table["values"], key=lambda row: row["mean"])
        self.assertEqual(table["best"], best["l2"])
        self.assertEqual(result["options"]["l2"], best["l2"])
        for row in table["values"]:
            mean = sum(row["folds"]) / 4
            self.assertAlmostEqual(row["mean"], mean, 12)
            error = math.sqrt(sum((x - mean) ** 2 for x in row["folds"]) / 3 / 4)
            self.assertAlmostEqual(row["standard_error"], error, 12)
        near = [row["l2"] for row in table["values"] if row["mean"] <= best["mean"] + best["standard_error"]]
        self.assertEqual(table["one_standard_error"], max(near))
        self.assertEqual(xml.dom.minidom.parse(plot).documentElement.tagName, "svg")
        plain = self.train("logreg", "two.csv", "--l2", best["l2"])
        self.assertAlmostEqual(plain["objective"], result["objective"], 7)
        self.assertTrue(as_json("verify", model, self.path("two.csv"))["holds"])

    def test_rule_and_seed(self):
        options = ["--cv", 5, "--l2", "1e-2:1e4:7"]
        one = self.train("svm", "three.csv", *options, "--select", "one-se")
        self.assertEqual(one["options"]["l2"], one["cross_validation"]["one_standard_error"])
        same, other = (self.train("svm", "three.csv", *options, "--seed", seed) for seed in (0, 1))
        self.assertEqual(one["cross_validation"]["values"], same["cross_validation"]["values"])
        self.assertNotEqual(one["cross_validation"]["values"], other["cross_validation"]["values"])

    def test_fold_is_a_file_without_its_rows(self):
        """The score of each fold, from models trained on files and judged on files."""
        told = self.path("told.csv")
        folds = self.train("linreg", "number.csv", "--cv", 2, "--l2", 3, "--held-out",
                           told)["cross_validation"]["values"][0]["folds"]
        lines = self.lines("number.csv")
        with open(told, newline="") as file:
            fold_of = [int(row["fold"]) - 1 for row in csv.DictReader(file)]
        for fold in range(2):
            held = {row for row in range(300) if fold_of[row] == fold}
            self.assertEqual(len(held), 150)
            parts = {name: self.write(name,
                                      "\n".join(lines[:1] + [lines[i + 1] for i in range(300) if (i in held)
                                                             == want]) + "\n")
                     for name, want in (("train.csv", False), ("test.csv", True))}
            as_json("linreg", parts["train.csv"], "--target", "y", "--l2", 3, *CPU, "-o",
                    self.path("fold.kiln"))
            metrics = as_json("predict", self.path("fold.kiln"), parts["test.csv"], *CPU)["metrics"]
            self.assertAlmostEqual(metrics["rmse"], folds[fold], 9)

    def test_path_without_folds(self):
        result = self.train("glm", "count.csv", "--family", "poisson", "--l2", "1:1000:4")
        self.assertEqual(result["schema"], "kiln.path/1")
        norms = [row["norm"] for row in result["path"]["values"]]
        self.assertEqual(norms, sorted(norms))
        self.assertIsNone(result["path"]["best"])
        out, _ = kiln("glm", self.path("count.csv"), "--target", "y", "--l2", "1:1000:4", *CPU)
        self.assertEqual(len(out.splitlines()), 6)

    def test_path_over_l1(self):
        """Each value gives what it would give alone, from the strongest to the weakest."""
        plot = self.path("l1.svg")
        path = self.train("logreg", "two.csv", "--l1", "0.5:200:6", "--plot", plot)["path"]
        rows = path["values"]
        self.assertEqual(path["penalty"], "l1")
        self.assertEqual((rows[0]["l1"], rows[-1]["l1"]), (200, 0.5))
        self.assertEqual([row["l2"] for row in rows], [0] * 6)
        self.assertEqual((rows[0]["nonzeros"], rows[-1]["nonzeros"]), (0, 2))
        norms = [row["norm"] for row in rows]
        self.assertEqual(norms, sorted(norms))
        for row in rows:
            self.assertTrue(row["converged"])
            alone = self.train("logreg", "two.csv", "--l1", repr(row["l1"]))
            self.assertAlmostEqual(row["objective"] / alone["objective"], 1, 9)
        texts = xml.dom.minidom.parse(plot).getElementsByTagName("text")
        self.assertIn("l1", [text.firstChild.data for text in texts])
        out, _ = kiln("logreg", self.path("two.csv"), "--target", "y", "--l1", "0.5:200:6", "--l2", 0.5, *CPU)
        self.assertEqual(len(out.splitlines()), 8)
        self.assertIn("; l2 0.5", out)

    def test_list_of_values(self):
        table = self.train("linreg", "number.csv", "--cv", 3, "--l2", "0,10,0.5", "--metric",
                           "mae")["cross_validation"]
        self.assertEqual([row["l2"] for row in table["values"]], [10, 0.5, 0])
        self.assertIn(table["best"], (0, 0.5, 10))
        path = self.train("linreg", "number.csv", "--l2", "0,0.5,10")["path"]
        for row in path["values"]:
            alone = self.train("linreg", "number.csv", "--l2", row["l2"])
            self.assertAlmostEqual(row["objective"] / alone["objective"], 1, 9)
        values = self.train("svm", "two.csv", "--C", "1,4", "--cv", 2)["cross_validation"]["values"]
        self.assertEqual([row["l2"] for row in values], [0.5, 0.125])

    def test_pictures(self):
        """Ticks are round, labels lie inside, and a path over l1 shows the coefficients and their number."""
        plot = self.path("paths.svg")
        for verb, data, options in (("logreg", "three.csv", ["--l1", "0,0.5,3,200"]),
                                    ("linreg", "number.csv", ["--l2", "1e-3:1e7:9"]),
                                    ("linreg", "number.csv", ["--cv", 3, "--l2", "1e-3:1e7:9"]),
                                    ("svm", "two.csv", ["--cv", 2])):
            self.train(verb, data, *options, "--plot", plot)
            root = xml.dom.minidom.parse(plot).documentElement
            _, _, width, height = map(float, root.getAttribute("viewBox").split())
            texts = [(text.firstChild.data if text.firstChild else "", text)
                     for text in root.getElementsByTagName("text")]
            for words, text in texts:
                room = 7.5 * len(words) * {"start": 0, "middle": 0.5,
                                           "end": 1}[text.getAttribute("text-anchor")]
                self.assertTrue(0 <= float(text.getAttribute("x")) - room, words)
                self.assertTrue(float(text.getAttribute("x")) - room + 7.5 * len(words) <= width, words)
                self.assertTrue(0 < float(text.getAttribute("y")) < height, words)
            ticks = [words for words, _ in texts if re.fullmatch(r"-?[\d.]+(e[-+]\d+)?", words)]
            self.assertGreater(len(ticks), 6)
            for tick in ticks:
                # two digits
                self.assertLessEqual(len(f"{float(tick):.12e}".split("e")[0].rstrip("0")), 4, tick)
            self.assertNotIn("-0", ticks)
            words = [words for words, _ in texts]
            if verb == "logreg":
                for name in ("coefficients", "coefficients that are not 0", "log_loss", "l1", "a (high)",
                             "b (mid)", "0"):
                    self.assertIn(name, words)
            if "--cv" in options:
                self.assertIn("one standard error", words)

    def test_pictures_in_png(self):
        if not any(glob.glob(folder + "/librsvg-2.so.2") for folder in ("/usr/lib", "/usr/lib64",
                                                                        "/usr/lib/*-linux-gnu*")):
            print("models: no librsvg here: PNG is not tested", file=sys.stderr)
            return
        plot = self.path("cv.png")
        self.train("svm", "two.csv", "--cv", 2, "--l2", "0.1,1,10", "--plot", plot)
        with open(plot, "rb") as file:
            head = file.read(24)
        self.assertEqual((head[:8], head[12:16]), (b"\x89PNG\r\n\x1a\n", b"IHDR"))
        self.assertGreater(int.from_bytes(head[16:20], "big"), 600)
        os.remove(plot)
        data = ["svm", self.path("two.csv"), "--target", "y", "--cv", 2]
        broken = self.path("broken")
        os.makedirs(broken)
        with open(os.path.join(broken, "librsvg-2.so.2"), "w") as file:
            file.write("none")
        error = kiln(*data, "--plot", plot, environment={"LD_LIBRARY_PATH": broken}, code=2)[1]
        self.assertIn("apt install librsvg2-2", error)
        for ending in (".pdf", ".xyz", ".svg.gz"):
            error = kiln(*data, "--plot", self.path("cv" + ending), code=2)[1]
            self.assertIn(f"pictures are not written as .{ending.split('.')[-1]}", error)
        self.assertFalse(os.path.exists(plot))

    def test_best_l1_is_kept(self):
        model = self.path("best.kiln")
        for more in ([], ["--C", 2]):
            result = self.train("logreg", "three.csv", "--cv", 4, "--l1", "0.1:300:5", *more, "-o", model)
            table, options = result["cross_validation"], result["options"]
            best = min(table["values"], key=lambda row: row["mean"])
            self.assertEqual(table["best"], best["l1"])
            self.assertEqual((options["l1"], options["l2"]), (best["l1"], 0.5 if more else 0))
            self.assertTrue(as_json("verify", model, self.path("three.csv"))["holds"])
        cautious = self.train("logreg", "three.csv", "--cv", 4, "--l1", "0.1:300:5", "--select", "one-se")
        self.assertEqual(cautious["options"]["l1"], cautious["cross_validation"]["one_standard_error"])
        single = self.train("logreg", "three.csv", "--cv", 4, "--l1", 3)["cross_validation"]
        self.assertEqual((single["penalty"], single["best"]), ("l1", 3))

    def test_refusals(self):
        data = [self.path("two.csv"), "--target", "y"]
        for options in (["--cv", 1], ["--cv", 301, *CPU], ["--l2", "1:2"], ["--l2", "0:1:3"], ["--l2", "-1"],
                        ["--l2", "1,1"], ["--l2", "1,"], ["--l2", "-1,1"], ["--l2", "1,x"], ["--C", "0,1"],
                        ["--l2", "1:10:3", "-o", self.path("x.kiln")],
                        ["--l1", "1:10:3", "-o", self.path("x.kiln")], ["--l1", "1:10:3", "--l2", "1:10:3"],
                        ["--l1", "1:10:3", "--C", "1:10:3"], ["--select", "one-se"],
                        ["--plot", self.path("x.svg")]):
            kiln("logreg", *data, *options, code=2)
        self.assertFalse(os.path.exists(self.path("x.kiln")))

    def test_idle_options(self):
        absent = self.path("absent.csv")  # refused before any data are read
        for verb, *options in (("glm", "--alpha", 1), ("glm", "--variance-power", 1.5),
                               ("glm", "--link-power", 2), ("glm", "--standard-errors", "--l2", 1),
                               ("glm", "--standard-errors", "--l1", 1),
                               ("glm", "--family", "tweedie", "--alpha", 2),
                               ("svm", "--epsilon", 0.1), ("svm", "--regression", "--class-weight",
                                                           "balanced")):
            kiln(verb, absent, "--target", "y", *options, code=2)

    def test_idle_options_of_als(self):
        data = self.write("plays.csv", "user,item,plays\nann,x,2\nbob,x,3\nann,y,1\n")
        for options, said in ((["--confidence", "log"], "belongs to --implicit"),
                              (["--alpha", 2], "belongs to --implicit"),
                              (["--implicit", "--epsilon", 2], "belongs to --confidence log")):
            self.assertIn(said, kiln("als", data, "--factors", 1, *options, *CPU, code=2)[1])

    def test_text_in_a_file_of_targets(self):
        matrix = self.write("x.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n2\n")
        labels = self.write("names.txt", "cat\ndog\n")
        error = kiln("logreg", matrix, "--target-file", labels, *CPU, code=3)[1]
        self.assertIn("names.txt:1:1", error)
        self.assertIn("column of a CSV file", error)

    def test_class_weights(self):
        data = self.write("labels.csv", 'x,y\n1,"a, b"\n2,"a, b"\n3,c=d\n4,c=d\n2.5,c=d\n')
        named = as_json("logreg", data, "--target", "y", "--class-weight", "a, b=3,c=d=0.5", *CPU)
        twice = self.write("weights.csv", 'x,w,y\n1,3,"a, b"\n2,3,"a, b"\n3,.5,c=d\n4,.5,c=d\n2.5,.5,c=d\n')
        by_rows = as_json("logreg", twice, "--target", "y", "--weights", "w", *CPU)
        self.assertAlmostEqual(named["objective"], by_rows["objective"], 12)
        for text, part in (("a=1", "no label 'a'"), ("c=d=-1", "not negative"), ("c=d", "no label 'c'"),
                           ("c", "LABEL=WEIGHT"), ("a, b=1x", "LABEL=WEIGHT")):
            self.assertIn(part, kiln("logreg", data, "--target", "y", "--class-weight", text, *CPU,
                                     code=2)[1])

    def test_separated(self):
        data = self.write("apart.csv", "x,y\n1,a\n2,a\n3,b\n4,b\n")
        warning = "classes can be separated"
        self.assertIn(warning, kiln("logreg", data, "--target", "y", "--l2", 0, *CPU)[1])
        self.assertNotIn(warning, kiln("logreg", data, "--target", "y", *CPU)[1])
        self.assertNotIn(warning, kiln("logreg", self.path("two.csv"), "--target", "y", "--l2", 0, *CPU)[1])
        shares = self.write("shares.csv", "x,y,s\n1,0,.2\n2,0,.4\n3,1,.7\n")
        binomial = ["glm", shares, "--family", "binomial", *CPU, "--target"]
        self.assertIn(warning, kiln(*binomial, "y")[1])
        self.assertNotIn(warning, kiln(*binomial, "y", "--l2", 1)[1])
        self.assertNotIn(warning, kiln(*binomial, "s")[1])
        none = self.write("none.csv", "x,y\n1,0\n2,0\n3,0\n")
        self.assertIn("all targets are 0", kiln("glm", none, "--family", "poisson", "--target", "y", *CPU)[1])
        counts = self.write("met.csv", "y,x\n" + "".join(f"{int(i > 5)},{int(i > 5)}\n" for i in range(12)))
        for more, warned in (((), True), (("--l2", 1), False)):
            message = kiln("glm", counts, "--family", "poisson", "--target", "y", *more, *CPU)[1]
            self.assertEqual("have the target 0" in message, warned, message)
        self.assertNotIn("all targets", kiln("glm", shares, "--family", "poisson", "--target", "y", *CPU)[1])

    def test_warnings_of_a_result(self):
        """Groups that settle their rows, and columns that depend on each other: but for levels of text, which
        always do."""
        def fit(name, rows, *arguments):
            data = self.write(name, rows)
            result, error = kiln(*arguments[:1], data, "--target", "y", *arguments[1:], "--json", *CPU)
            return [warning["name"] for warning in json.loads(result)["warnings"]], error

        turns = [(i % 7 - 3, i % 11 == 0, i % 5 % 2) for i in range(110)]
        groups = "x,g,y\n" + "".join(f"{x},{'ab'[g]},{int(g or y)}\n" for x, g, y in turns)
        for arguments in (("logreg", "--l2", 0), ("glm", "--family", "binomial")):
            names, error = fit("groups.csv", groups, *arguments)
            self.assertEqual(names, ["quasi-separated", "rank"])
            self.assertNotIn("depend on each other", error)
            self.assertIn("10 of 110 rows are told apart", error)
            self.assertIn("hint: a penalty (--l2)", error)
        zeros = "x,g,y\n" + "".join(f"{x},{'ab'[g]},{0 if g else y}\n" for x, g, y in turns)
        self.assertEqual(fit("zeros.csv", zeros, "glm", "--family", "poisson")[0], ["zeros", "rank"])
        self.assertEqual(fit("groups.csv", groups, "glm", "--family", "binomial", "--l2", 0.1)[0], [])
        self.assertNotIn("depend on each other", fit("groups.csv", groups, "linreg")[1])
        twice = "x,z,g,y\n" + "".join(f"{x},{2 * x},{'ab'[g]},{y}\n" for x, g, y in turns)
        for verb, *more in (("linreg",), ("glm",), ("logreg", "--l2", 0), ("svm", "--l2", 0)):
            self.assertIn("2 of 4 say all", fit("twice.csv", twice, verb, *more)[1])


class PageRank(Models):
    GRAPH = "ann\tbob\nann\tcid\ndan\tcid\ncid\tann\ncid\tann\n"  # bob dangles; a link stands twice

    def reference(self, links, damping=0.85, teleport=None, dangling=None):
        names = sorted({name for link in links for name in link[:2]})
        t = {name: (teleport or {}).get(name, 0) if teleport else 1 for name in names}
        g = {name: dangling.get(name, 0) for name in names} if dangling else t
        p = {name: 1 / len(names) for name in names}
        out = {name: sum(link[2] for link in links if link[0] == name) for name in names}
        for _ in range(500):
            mass = sum(p[name] for name in names if not out[name])
            p = {name: (1 - damping) * t[name] / sum(t.values()) + damping * mass * g[name] / sum(g.values())
                 + damping * sum(w * p[a] / out[a] for a, b, w in links if b == name) for name in names}
        return p

    def ranks(self, *arguments, code=0):
        scores = self.path("ranks.tsv")
        result = as_json("pagerank", *arguments, "--tolerance", 1e-14, "--scores", scores, *CPU, code=code)
        rows = [line.split("\t") for line in self.lines("ranks.tsv")]
        return result, {row[0]: [float(number) for number in row[1:]] for row in rows}

    def same(self, got, want, column=0):
        self.assertEqual(sorted(got), sorted(want))
        for name in want:
            self.assertAlmostEqual(got[name][column], want[name], 12)

    def test_links_and_weights(self):
        graph = self.write("pr.txt", self.GRAPH)
        once = [("ann", "bob", 1), ("ann", "cid", 1), ("dan", "cid", 1), ("cid", "ann", 1)]
        result, got = self.ranks(graph)
        self.assertTrue(result["weighted"])  # by the lines that stand twice
        self.same(got, self.reference(once))
        self.assertFalse(self.ranks(self.write("once.txt", "a b\nb c\n"))[0]["weighted"])
        self.assertFalse(self.ranks(graph, "--unweighted")[0]["weighted"])
        self.assertAlmostEqual(sum(row["value"] for row in result["ranks"]), 1)
        self.assertLessEqual(result["error_bound"], 0.85 / 0.15 * 1e-14 + 5e-12)  # what rounding may do
        self.same(self.ranks(graph, "--damping", 0.5)[1], self.reference(once, 0.5))
        # a to b: 4; b to itself; c dangles
        heavy = self.write("heavy.txt", "a b 3\na c 1\nb a 2\nb b 1\na b 1\n")
        links = [("a", "b", 4), ("a", "c", 1), ("b", "a", 2), ("b", "b", 1)]
        self.same(self.ranks(heavy)[1], self.reference(links))
        self.same(self.ranks(heavy, "--unweighted")[1], self.reference([(u, v, 1) for u, v, _ in links]))

    def test_seeds(self):
        graph = self.write("pr.txt", self.GRAPH)
        once = [("ann", "bob", 1), ("ann", "cid", 1), ("dan", "cid", 1), ("cid", "ann", 1)]
        seeds = self.write("seeds.txt", "# two sets\nann 3\nbob\n\ndan # alone\n")
        result, got = self.ranks(graph, "--personalize", seeds)
        self.assertEqual(result["sets"], 2)
        self.same(got, self.reference(once, teleport={"ann": 3, "bob": 1}), 0)
        self.same(got, self.reference(once, teleport={"dan": 1}), 1)
        sink = self.write("sink.txt", "cid\n")
        self.same(self.ranks(graph, "--dangling-to", sink)[1], self.reference(once, dangling={"cid": 1}))
        everyone = {name: 1 for name in ("ann", "bob", "cid", "dan")}
        self.same(self.ranks(graph, "--personalize", sink, "--dangling", "uniform")[1],
                  self.reference(once, teleport={"cid": 1}, dangling=everyone))
        for text, part in (("eve\n", "seeds.txt:1: the graph has no vertex eve"), ("ann x\n", "not x"),
                           ("ann 1 2\n", "two words"), ("# none\n", "names no vertex"),
                           ("ann 0\n", "set 1 are 0"), ("ann -1\n", "not -1")):
            self.assertIn(part, kiln("pagerank", graph, "--personalize", self.write("seeds.txt", text), *CPU,
                                     code=3)[1])
        matrix = self.write("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n")
        self.assertIn("numbered from 1", kiln("pagerank", matrix, "--device", "cpu")[1])
        self.assertNotIn("numbered", kiln("pagerank", graph, "--device", "cpu")[1])

    def test_model(self):
        graph, seeds = self.write("pr.txt", self.GRAPH), self.write("seeds.txt", "ann\n\nbob\n")
        model = self.path("pr.kiln")
        result = as_json("pagerank", graph, "--personalize", seeds, "-o", model, *CPU)
        again = as_json("pagerank", graph, "--personalize", seeds, "--warm-start", model, *CPU)
        self.assertLess(again["iterations"], result["iterations"])
        self.assertEqual(as_json("info", model)["algorithm"], "pagerank")
        claims = as_json("verify", model, graph, "--quiet")
        self.assertTrue(claims["holds"])
        self.assertEqual([claim["name"] for claim in claims["claims"]], ["residual", "sum", "dangling_mass"])
        both = self.path("both.npz")
        kiln("pagerank", graph, "--undirected", "-o", self.path("both.kiln"), *CPU)
        kiln("convert", graph, both, "--undirected")
        for links in (graph, both):
            self.assertTrue(as_json("verify", self.path("both.kiln"), links, "--quiet")["holds"])
        more = self.write("more.txt", self.GRAPH + "ann dan\n")
        self.assertFalse(as_json("verify", model, more, "--quiet", code=4)["holds"])
        kiln("pagerank", graph, "--warm-start", model, *CPU, code=7)  # another number of sets
        self.assertIn("predicts nothing", kiln("predict", model, graph, *CPU, code=7)[1])
        other = self.write("other.txt", "x y\n")
        kiln("pagerank", other, "--warm-start", model, *CPU, code=7)
        kiln("verify", model, other, code=7)

    def test_stops_and_plot(self):
        graph, plot = self.write("pr.txt", self.GRAPH), self.path("ranks.svg")
        fixed = as_json("pagerank", graph, "--iterations", 3, "--plot", plot, *CPU)
        self.assertEqual((fixed["iterations"], fixed["converged"], fixed["tolerance"]), (3, True, None))
        ranks = self.read("ranks.svg").decode()
        self.assertIn("</svg>", ranks)
        self.assertNotIn("log10", ranks)
        ticks = [float(tick) for tick in re.findall(r'text-anchor="end">([-\d.e]+)</text>', ranks)]
        self.assertGreater(len(ticks), 0)
        self.assertTrue(all(0 < tick <= 1 for tick in ticks), ticks)
        short = as_json("pagerank", graph, "--max-iterations", 3, *CPU)
        self.assertEqual((short["iterations"], short["converged"]), (3, False))
        self.assertEqual(short["residual"], fixed["residual"])
        self.assertAlmostEqual(short["error_bound"], short["residual"] * 0.85 / 0.15)
        self.assertIn("same vertices",
                      kiln("pagerank",
                           self.write("r.mtx",
                                      "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 2\n"),
                                     *CPU, code=3)[1])
        negative = self.write("n.txt", "a b -1\n")
        error = kiln("pagerank", negative, *CPU, code=3)[1]
        self.assertIn("negative", error)
        self.assertIn("--unweighted", error)
        kiln("pagerank", negative, "--unweighted", *CPU)


class Ranking(Models):
    def test_edges(self):
        graph = self.write("graph.txt", "# a comment\nann\tbob\nann\tcid\ndan\tcid\n")
        result = as_json("hits", graph, *CPU)
        self.assertEqual(result["authorities"][0]["vertex"], "cid")
        self.assertEqual(result["hubs"][0]["vertex"], "ann")
        self.assertEqual(result["solver"], "power")
        self.assertEqual(as_json("hits", graph, "--solver", "lobpcg", *CPU)["solver"], "lobpcg")
        self.assertAlmostEqual(sum(row["value"] for row in result["authorities"]), 1)
        # A^T A = [[1 1], [1 2]]: the golden ratio
        self.assertAlmostEqual(result["eigenvalue"], (3 + math.sqrt(5)) / 2, 9)
        self.assertAlmostEqual(result["authorities"][0]["value"] / result["authorities"][1]["value"],
                               (1 + math.sqrt(5)) / 2, 9)
        out, _ = kiln("hits", graph, "--top", 1, *CPU)
        self.assertEqual(out.split("authorities\n")[1].split()[1], "cid")

    def test_scores_and_model(self):
        graph = self.write("weights.edges", "a b 2\nb c 1\na c 1\na b 1\n")
        scores, model = self.path("scores.tsv"), self.path("rank.kiln")
        result = as_json("hits", graph, "--norm", 2, "--scores", scores, "-o", model, *CPU)
        rows = [line.split("\t") for line in self.lines("scores.tsv")]
        self.assertEqual([row[0] for row in rows], ["a", "b", "c"])
        self.assertAlmostEqual(sum(float(row[2]) ** 2 for row in rows), 1)
        self.assertAlmostEqual(float(rows[1][2]), result["authorities"][0]["value"])
        self.assertEqual(as_json("info", model)["algorithm"], "hits")
        kiln("hits", graph, "--scores", self.path("scores.csv"), *CPU)
        self.assertEqual(self.lines("scores.csv")[0], "vertex,hub,authority")
        again = as_json("hits", graph, "--norm", 2, "--warm-start", model, *CPU)
        self.assertLess(again["iterations"], result["iterations"])
        other = self.write("other.edges", "b a\nc b\n")
        kiln("hits", other, "--warm-start", model, *CPU, code=7)
        self.assertIn("predicts nothing", kiln("predict", model, graph, *CPU, code=7)[1])
        claims = as_json("verify", model, graph, "--quiet")
        self.assertTrue(claims["holds"])
        self.assertEqual([claim["name"] for claim in claims["claims"]], ["eigenvalue", "authorities", "hubs"])
        self.assertAlmostEqual(claims["claims"][0]["found"], result["eigenvalue"])
        more = self.write("more.edges", self.read("weights.edges").decode() + "c b 1\n")
        self.assertFalse(as_json("verify", model, more, "--quiet", code=4)["holds"])
        kiln("verify", model, other, code=7)

    def test_unweighted(self):
        heavy = self.write("heavy.edges", "a b 5\nb c 1\na c 1\n")
        light = self.write("light.edges", "a b\nb c\na c\n")
        one, two = as_json("hits", heavy, "--unweighted", *CPU), as_json("hits", light, *CPU)
        self.assertEqual(one["authorities"], two["authorities"])
        self.assertNotEqual(as_json("hits", heavy, *CPU)["authorities"], two["authorities"])

    def test_links_in_a_file(self):
        for name, last in (("ones.edges", "1"), ("weights.edges", "2.5")):
            links = self.write(name, f"a b 1\nb c 1\na c 1\nc a {last}\n")
            mapped = self.path(name + ".npz")
            kiln("convert", links, mapped)
            found, wanted = (as_json("hits", path, *more, *CPU) for path, more in ((mapped, ["--map"]),
                                                                                   (links, [])))
            self.assertEqual((found["weighted"], found["eigenvalue"]), (last != "1", wanted["eigenvalue"]))

    def test_matrix_market_and_standard_input(self):
        matrix = self.write("g.mtx",
                            "%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 2\n2 3\n1 3\n")
        light = "1 2\n2 3\n1 3\n"
        by_matrix = as_json("hits", matrix, *CPU)
        by_edges = as_json("hits", "-", "--format", "edges", *CPU, stdin=light.encode())
        self.assertEqual(by_matrix["authorities"], by_edges["authorities"])

    def test_names(self):
        graph = self.write("names.txt", "http://a.b/c\thttp://d.e\nhttp://d.e\tx:y\n")
        self.assertEqual(as_json("hits", graph, *CPU)["rows"], 3)
        self.assertEqual(as_json("hits", self.write("comma.txt", "a,b c\nb,d c\n"), *CPU)["rows"], 4)
        self.assertIn(":2:", kiln("hits", self.write("bad.txt", "a b 1\nc d\n"), *CPU, code=3)[1])

    def test_tables_of_links(self):
        links = [("a", "b", 2), ("b", "c d", 1), ("c d", "a", 3), ("a", "c d", 1), ("a", "b", 1)]
        table = self.write("t.csv", "Source,Target,Weight\n" + "".join(f'"{u}",{v},{w}\n'
                                                                       for u, v, w in links))
        plain = self.write("t.edges", "".join(f"{u.replace(' ', '_')} {v.replace(' ', '_')} {w}\n"
                                              for u, v, w in links))
        for verb, options, key in (("pagerank", [], "ranks"), ("pagerank", ["--unweighted"], "ranks"),
                                   ("hits", [], "authorities")):
            one, two = (as_json(verb, graph, *options, *CPU)[key] for graph in (table, plain))
            self.assertEqual([row["value"] for row in one], [row["value"] for row in two])
            self.assertEqual([row["vertex"].replace(" ", "_") for row in one], [row["vertex"] for row in two])
        self.assertIn("repeat a link: 1", kiln("pagerank", table, "--device", "cpu")[1])
        for verb in ("pagerank", "hits"):  # a third column is the same to both
            self.assertIn("by weight", kiln(verb, table, *CPU)[0])
            self.assertIn("each counts 1", kiln(verb, table, "--unweighted", *CPU)[0])
            self.assertIn("each counts 1", kiln(verb, self.write("u.csv", "source,target\na,b\nb,c\n"),
                                                *CPU)[0])
            self.assertEqual([as_json(verb, table, *more, *CPU)["weighted"]
                              for more in ([], ["--unweighted"])], [True, False])
        for verb, header in (("pagerank", "vertex,rank"), ("hits", "vertex,hub,authority")):
            self.assertIn("--weight and --unweighted together",
                          kiln(verb, table, "--unweighted", "--weight", "Weight", *CPU, code=2)[1])
            kiln(verb, self.write("q.csv", 'source,target\n"a, b",c\nc,"a, b"\n'), "--scores",
                 self.path("s.csv"), *CPU)
            lines = self.read("s.csv").decode().split("\n")
            self.assertEqual(lines[0], header)
            self.assertTrue(lines[1].startswith('"a, b",'))
        kiln("convert", table, self.path("t.mtx"))
        self.assertEqual(as_json("info", self.path("t.mtx"))["rows"], 3)

    def test_bad_graphs(self):
        for text, part in (("a b\nc\n", ":2:"), ("a b 1\nb c x\n", ":2:5"), ("a b 0\n", "0"),
                           ("a b -1\na c -2\n", "negative")):
            self.assertIn(part, kiln("hits", self.write("bad.edges", text), *CPU, code=3)[1])
        error = kiln("hits", self.write("bad.edges", "a b\na b\n"), "--strict", *CPU, code=3)[1]
        self.assertRegex(error, "bad.edges:2: the link from 'a' to 'b' stands twice, first in .*bad.edges:1")
        self.assertIn("standard input", kiln("hits", "-", *CPU, stdin=b"1 2:1\n", code=3)[1])
        self.assertIn("b", kiln("hits", "-", *CPU, stdin=b"a b\n")[0])


class Verifying(Models):
    def test_a_false_claim_is_found(self):
        """Trained to another penalty than the data of the claims: the gradient gives it away."""
        self.fit("logreg", "two.csv")
        rows = self.lines("two.csv")
        rows[7] = rows[7].replace("yes", "?").replace("no", "yes").replace("?", "no")
        changed = self.write("changed.csv", "\n".join(rows) + "\n")
        out, _ = kiln("verify", self.path("m.kiln"), changed, "--quiet", code=4)
        self.assertIn("DOES NOT HOLD", out)
        self.assertFalse(as_json("verify", self.path("m.kiln"), changed, "--quiet", code=4)["holds"])

    def test_data_with_holes_prove_nothing(self):
        self.fit("logreg", "two.csv")
        holes = self.write("holes.csv", "a,b,y\n1,2,yes\n,1,no\n")
        claims = as_json("verify", self.path("m.kiln"), holes, "--allow-nonfinite", "--quiet",
                         code=4)["claims"]
        self.assertEqual([(claim["name"], claim["holds"]) for claim in claims[:3]],
                         [("objective", False), ("residual", None), ("gradient", None)])
        self.assertFalse([claim for claim in claims if claim["holds"]])

    def test_a_loss_of_nothing_but_rounding(self):
        """Squares of margins that are off by one bit: the objective is 1e-32, and no digit of it is sure."""
        data = self.write("huge.csv", "y,a\n1,1e150\n0,-1e150\n1,1e149\n0,-1e140\n")
        as_json("svm", data, "--target", "y", "-o", self.path("m.kiln"), *CPU)
        self.assertTrue(as_json("verify", self.path("m.kiln"), data, "--quiet")["holds"])

    def test_f32_and_no_intercept(self):
        for verb, data in (("logreg", "two.csv"), ("svm", "three.csv"), ("linreg", "number.csv")):
            self.fit(verb, data, "--type", "f32")
            self.fit(verb, data, "--no-intercept")
            self.fit(verb, data, "--standardize")

    def test_layouts_of_every_kind(self):
        """Points on a grid, of whose distances many are equal but for rounding, with a column of text that
        takes no part."""
        rows = [f"{i % 7 / 10},{i // 7 / 10},{i * i % 5 / 10},{'abc'[i % 3]}" for i in range(42)]
        data, model = self.write("grid.csv", "x,y,z,kind\n" + "\n".join(rows)
                                 + "\n"), self.path("layout.kiln")
        for kind in (["--color", "kind"], ["--ignore", "kind", "--metric", "interval"],
                     ["--ignore", "kind", "--metric", "ordinal"],
                     ["--color", "kind", "--metric", "ordinal", "--ties", "secondary"],
                     ["--ignore", "kind", "--metric", "ordinal", "--type", "f32"]):
            kiln("mds", data, "-o", model, *kind, *CPU)
            claims = as_json("verify", model, data, "--quiet")["claims"]
            self.assertEqual([claim["holds"] for claim in claims], [True, True, True], kind)
        self.assertIn("leave out columns of text", kiln("mds", data, code=3)[1])

    def test_other_data(self):
        """A layout or ranking is told from other data, of fewer rows and vertices, too."""
        rows, model = ["x,y", "1,2", "3,4", "5,1", "2,2", "7,3"], self.path("other.kiln")
        links = ["a b", "b c", "c a", "a c"]
        for verb, kind, lines, short in [("mds", "csv", rows, 3), ("hits", "edges", links, 1),
                                         ("pagerank", "edges", links, 1)]:
            all_of_it = self.write(f"all.{kind}", "\n".join(lines) + "\n")
            kiln(verb, all_of_it, "-o", model, *CPU)
            kiln("verify", model, all_of_it)  # the layout's stress is rounding alone
            part = self.write(f"part.{kind}", "\n".join(lines[:short]) + "\n")
            self.assertIn("that it was made from", kiln("verify", model, part, code=7)[1])


class Interrupting(Models):
    def test_the_model_so_far_is_kept(self):
        source = random.Random(3)
        with open(self.path("big.svm"), "w") as file:
            for _ in range(4000):
                columns = sorted(source.sample(range(1, 3000), 60))
                file.write(f"{source.randrange(2)} " + " ".join(f"{j}:{source.random():.4f}" for j in columns)
                           + "\n")
        model = self.path("some.kiln")
        process = subprocess.Popen(
            [KILN, "logreg", self.path("big.svm"), "--l2", "1e-9", "--tolerance", "1e-300",
             "--max-iterations", "1000000", "--device", "cpu", "--verbose", "-o", model],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:
            if line.startswith(b"iteration"):
                process.send_signal(signal.SIGINT)
                break
        out, error = process.communicate(timeout=120)
        if process.returncode == 0:
            self.skipTest("ended before the signal came")
        self.assertEqual(process.returncode, 130, error)
        self.assertEqual(as_json("info", model)["metadata"]["report"]["stopped_by"], "cancelled")


class Factors(Models):
    def ratings(self):
        lines = [(u, i, 1 + (u * i) % 5) for u in range(1, 41) for i in range(1, 31) if (u * 7 + i * 3) % 4]
        head = f"%%MatrixMarket matrix coordinate real general\n40 30 {len(lines)}\n"
        return self.write("ratings.mtx",
                          head + "".join(f"{u} {i} {r}\n" for u, i, r in lines)), {(u, i)
                                                                                   for u, i, _ in lines}

    def test_explicit(self):
        data, there = self.ratings()
        model, best = self.path("ratings.kiln"), self.path("best.tsv")
        result = as_json("als", data, "--factors", 5, "--biases", "--l2", 1, "--test-fraction", 0.2,
                         "--max-iterations", 500, "-o", model, *CPU)
        self.assertGreater(result["metrics"]["test_rmse"], 0)
        self.assertEqual(result["factors"], 5)
        objectives = [row["objective"] for row in result["trace"]]
        self.assertEqual(objectives, sorted(objectives, reverse=True))
        self.assertEqual(as_json("info", model)["algorithm"], "als")
        again = as_json("als", data, "--factors", 5, "--biases", "--l2", 1, "--test-fraction", 0.2,
                        "--warm-start", model, *CPU)
        self.assertLessEqual(again["objective"], result["objective"] * (1 + 1e-9))
        kiln("als", data, "--factors", 4, "--warm-start", model, *CPU, code=7)
        kiln("als", data, "--factors", 5, "--recommendations", best, "--top", 3, *CPU)
        rows = [line.split("\t") for line in self.lines("best.tsv")]
        self.assertEqual(len(rows), 120)
        self.assertFalse({(int(u), int(i)) for u, i, _ in rows} & there)

    def test_start_that_grows(self):
        """Users and items are found again by name, in any order; those that the model does not know are
        new."""
        _, there = self.ratings()
        lines = [f"user {u},item {i},{1 + (u * i) % 5}" for u, i in sorted(there)]
        head = "user,item,rating\n"
        old, turned, more = (self.write(name, head + "\n".join(some) + "\n") for name, some in (
            ("old.csv", lines[:-60]), ("turned.csv", lines[:-60][::-1]), ("more.csv", lines[::-1])))
        model, options = self.path("old.kiln"), ["--factors", 3, "--biases", "--l2", 1, "--tolerance", 1e-6,
                                                 *CPU]
        first = as_json("als", old, "-o", model, *options)
        again = as_json("als", turned, "--warm-start", model, *options)
        self.assertLessEqual(again["iterations"], 3)
        self.assertLess(abs(again["objective"] / first["objective"] - 1), 1e-4)
        _, error = kiln("als", more, "--warm-start", model, *[word for word in options if word != "--quiet"])
        self.assertIn("38 of 40 rows and 30 of 30 columns are the model's", error)
        warm, cold = (as_json("als", more, "--max-iterations", 2, *start, *options)
                      for start in (["--warm-start", model], []))
        self.assertLess(warm["objective"], cold["objective"])
        self.assertIn("names", kiln("als", self.path("ratings.mtx"), "--warm-start", model, *options,
                                    code=7)[1])
        self.assertIn("none", kiln("als", self.write("strangers.csv", "1,2,3\n4,5,6\n"), "--warm-start",
                                   model, *options, code=7)[1])
        kiln("sfa", more, "--factors", 3, "-o", model, *CPU)
        kiln("sfa", old, "--factors", 3, "--warm-start", model, *CPU)

    def test_names(self):
        """The same ratings as a matrix and as a list with names: the same model, whose rows and columns have
        the names."""
        data, _ = self.ratings()
        lines = [line.split() for line in self.lines("ratings.mtx")[2:]]
        named = self.write("ratings.csv", "userId,movieId,rating,timestamp\n"
                           + "".join(f"u{u},\"i {i}\",{r},1\n" for u, i, r in lines))
        model, best = self.path("named.kiln"), self.path("named.tsv")
        plain = as_json("als", data, "--factors", 2, *CPU)
        result = as_json("als", named, "--factors", 2, "-o", model, "--recommendations", best, *CPU)
        self.assertEqual((result["rows"], result["columns"], result["nnz"]), (40, 30, len(lines)))
        self.assertAlmostEqual(result["objective"], plain["objective"], delta=1e-2 * plain["objective"])
        about = as_json("info", model)["metadata"]
        self.assertEqual(about["rows"], [f"u{u}" for u in range(1, 41)])
        self.assertEqual(sorted(about["columns"]), sorted(f"i {i}" for i in range(1, 31)))
        self.assertTrue(all(line.startswith("u") and "\ti " in line for line in self.lines("named.tsv")))
        self.assertIn(":3:", kiln("als", self.write("bad.csv", "1,2,3\n1,2,3\n1,2\n"), *CPU, code=3)[1])
        self.assertIn("the last one counts", kiln("als", self.write("twice.csv", "1,2,3\n1,2,4\n2,2,1\n"),
                                                  *CPU)[1])

    def test_solvers_and_verify(self):
        """All solvers of one objective reach it, and what a model claims is found again, also with entries
        held out."""
        data, _ = self.ratings()
        model, found = self.path("m.kiln"), {}
        for solver in ("cg", "cholesky", "ccd"):
            result = as_json("als", data, "--factors", 2, "--biases", "--l2", 3, "--solver", solver,
                             "--tolerance", 1e-9, "--max-iterations", 2000, "-o", model, *CPU)
            found[solver] = result["objective"]
            self.assertTrue(as_json("verify", model, data)["holds"])
        self.assertAlmostEqual(found["ccd"], found["cholesky"], delta=0.02 * found["cholesky"])
        kiln("als", data, "--solver", "ccd", "--implicit", *CPU, code=2)
        kiln("als", data, "--biases", "--no-biases", *CPU, code=2)
        for verb in ("als", "sfa"):
            result, error = kiln(verb, data, "--l2", 1000, "--json", *CPU)
            self.assertIs(json.loads(result)["zero_factors"], True)
            self.assertIn("all factors are about 0", error)
        for arguments in (["als", "--implicit"], ["als", "--counted", "--test-fraction", 0.2, "--seed", 5],
                          ["sfa", "--test-fraction", 0.2, "--type", "f32"]):
            result = as_json(arguments[0], data, *arguments[1:], "--factors", 3, "-o", model, *CPU)
            claim, *more = as_json("verify", model, data)["claims"]
            self.assertEqual([other["name"] for other in more], ["residual"] if result["converged"] else [])
            values = [float(line.split()[2]) for line in self.lines("ratings.mtx")[2:]]
            share = 1 if arguments[1] == "--implicit" else 0.8  # of the entries, which is trained on
            deviation = 1 if arguments[1] == "--implicit" else statistics.pstdev(values)
            penalty = 0.8 * deviation * ((share * len(values) / 40) ** 0.5
                                         + (share * len(values) / 30) ** 0.5)
            wanted = 0.1 * deviation if arguments[1] == "--counted" else penalty
            self.assertAlmostEqual(result["options"]["l2"], wanted, delta=1e-9 if share == 1
                                   else 0.05 * wanted)
            self.assertTrue(claim["holds"], claim)
        self.assertGreater(result["metrics"]["test_rmse"], 0)
        self.assertGreater(result["trace"][0]["test"], result["trace"][-1]["test"] * 0.5)
        changed = self.write("changed.mtx",
                             self.read("ratings.mtx").decode().replace("\n1 2 3\n", "\n1 2 5\n"))
        self.assertFalse(as_json("verify", model, changed, "--quiet", code=4)["holds"])
        self.assertIn("something else", kiln("verify", model, self.write("small.csv", "1,2,3\n"), code=7)[1])

    def test_recommend(self):
        ratings = self.write("likes.csv", "user,item,rating\n" + "".join(
            f"u{u},{kind}{i},{5 if (u % 2 == 0) == (kind == 'a') else 1}\n" for u in range(12)
            for kind in "ab" for i in range(6) if (u + i) % 3))
        model, out = self.path("likes.kiln"), self.path("best.tsv")
        for verb in ("als", "sfa"):
            kiln(verb, ratings, "--factors", 2, "--l2", 0.1, "--factors-out", self.path("f.npz"), "-o", model,
                 *CPU)
            result = as_json("recommend", model, "--user", "u4", "--top", 2)
            best, = result["recommendations"]
            self.assertEqual((result["schema"], result["score"], best["user"]),
                             ("kiln.recommendations/1", "prediction", "u4"))
            # what it likes and has not rated
            self.assertEqual({item["item"] for item in best["items"]}, {"a2", "a5"})
            seen, = as_json("recommend", model, "--user", "u4", "--top", 6,
                            "--include-seen")["recommendations"]
            self.assertEqual({item["item"] for item in seen["items"]}, {f"a{i}" for i in range(6)})
            like, = as_json("recommend", model, "--item", "b3", "--top", 5)["recommendations"]
            self.assertEqual({item["item"] for item in like["items"]}, {f"b{i}" for i in range(6)} - {"b3"})
            new = self.write("new.csv", "me,b1,5\nme,a1,1\nme,nothing,3\nyou,a3,5\nyou,b0,1\n")
            error = kiln("recommend", model, new, "-o", out, "--top", 3)[1]
            self.assertIn("does not know are left out: 1", error)
            rows = [line.split("\t") for line in self.lines("best.tsv")]
            self.assertEqual(rows[0], ["user", "item", "score"])
            self.assertEqual([row[0] for row in rows[1:]], ["me"] * 3 + ["you"] * 3)
            self.assertTrue(all(item[0] == {"me": "b", "you": "a"}[user] for user, item, _ in rows[1:]))
            kiln("recommend", model, new, "--extra-columns", "error", code=3)
            self.assertTrue(zipfile.is_zipfile(self.path("f.npz")))
            self.assertEqual(sorted(zipfile.ZipFile(self.path("f.npz")).namelist()),
                             ["A.npy", "B.npy", "columns.npy", "rows.npy", "settings.npy"])
        self.assertIn("best for u4", kiln("recommend", model, "--user", "u4")[0])
        self.assertIn("is it 'u4'?", kiln("recommend", model, "--user", "u44", code=2)[1])
        kiln("recommend", model, code=2)
        kiln("recommend", model, "--user", "u4", "--item", "a1", code=2)
        points = self.write("points.csv", "x,y\n1,2\n3,4\n5,7\n")
        kiln("kmeans", points, "--clusters", 2, "-o", model, *CPU)
        kiln("recommend", model, "--user", "1", code=7)

    def test_pairs_and_tests_of_known_users(self):
        ratings = self.write("likes.csv", "user,item,rating\n" + "".join(
            f"u{u},i{i},{1 + (u * i) % 5}\n" for u in range(12) for i in range(9) if (u + i) % 3))
        model, out, pairs = self.path("known.kiln"), self.path("pairs.tsv"), self.path("f.npz")
        test = [(f"u{u}", f"i{i}", 1 + (u + i) % 5) for u in (7, 2, 11) for i in (0, 4, 8)] + [("x", "i1", 3)]
        file = self.write("test.csv", "".join(f"{u},{i},{r}\n" for u, i, r in test))
        for options in (["--l2", 0.1], ["--l2", 0.1, "--implicit", "--confidence", "log", "--epsilon", 0.5]):
            result = as_json("als", ratings, "--factors", 2, *options, "-o", model, "--factors-out",
                             pairs, *CPU)
            holds = as_json("verify", model, ratings, "--quiet")["holds"]
            self.assertTrue(holds)
            error = kiln("recommend", model, file, "--pairs", "-o", out)[1]
            self.assertIn("does not know 1 user", error)
            rows = [line.split("\t") for line in self.lines("pairs.tsv")]
            self.assertEqual(rows[0], ["user", "item", "prediction"])
            known = {(u, i): float(p) for u, i, p in rows[1:]}
            self.assertEqual(set(known), {(u, i) for u, i, _ in test[:-1]})
            told = as_json("recommend", model, file, "--pairs")
            self.assertEqual({(p["user"], p["item"]): p["prediction"] for p in told["pairs"]}, known)
            ranked = as_json("recommend", model, file, "--test", "--top", 3)
            self.assertEqual((ranked["users"], ranked["ratings"], ranked["unknown_users"]), (3, 9, 1))
            if "--implicit" not in options:
                squares = [(known[u, i] - r) ** 2 for u, i, r in test[:-1]]
                self.assertAlmostEqual(told["metrics"]["rmse"], (sum(squares) / 9) ** 0.5, places=12)
                self.assertAlmostEqual(ranked["metrics"]["rmse"], told["metrics"]["rmse"], places=12)
            else:
                self.assertNotIn("rmse", ranked["metrics"])
            hits = 0
            for user in ("u7", "u2", "u11"):
                best, = as_json("recommend", model, "--user", user, "--top", 3)["recommendations"]
                for item in best["items"]:
                    hits += (user, item["item"]) in known
                    number = known.get((user, item["item"]))
                    self.assertTrue(number is None or abs(number - item["score"]) < 1e-12)
            self.assertAlmostEqual(ranked["metrics"]["precision"], hits / 9, places=12)
            best, = as_json("recommend", model, "--user", "u7", "--top", 9,
                            "--only", self.write("only", "i1\n\ni4\r\ni0"),
                            "--include-seen")["recommendations"]
            self.assertEqual({item["item"] for item in best["items"]}, {"i0", "i1", "i4"})
            less, = as_json("recommend", model, "--user", "u7", "--top", 9, "--exclude", self.path("only"),
                            "--include-seen")["recommendations"]
            self.assertEqual({item["item"] for item in less["items"]}, {f"i{i}" for i in (2, 3, 5, 6, 7, 8)})
        self.assertIn("only:1: the model has no item 'z'", kiln("recommend", model, "--user", "u7", "--only",
                                                               self.write("only", "z\n"), code=3)[1])
        for option, some, there in (("--exclude", "z\ni1\nu\n", set()), ("--exclude", "z\nu\n", {"i1"}),
                                    ("--only", "z\ni2\ni3\nu\n", {"i2", "i3"})):
            out, told = kiln("recommend", model, "--user", "u7", option, self.write("only", some), "--json",
                             "--quiet", "--top", 9, "--include-seen")
            self.assertIn("the model does not know 2 items, of which the first is 'z' in line 1", told)
            items = {item["item"] for item in json.loads(out)["recommendations"][0]["items"]}
            self.assertEqual(items & {"i1", "i2", "i3"} if "i2" in there else items & {"i1"}, there)
        for refused in (["--pairs"], ["--user", "u7", "--test"], [file, "--test", "--pairs"],
                        ["--user", "u7", "--only", file, "--exclude", file]):
            kiln("recommend", model, *refused, code=2)

    def test_implicit(self):
        data, _ = self.ratings()
        result = as_json("als", data, "--implicit", "--alpha", 2, "--factors", 3, "--test-fraction", 0.3,
                         *CPU)
        self.assertTrue(0 <= result["metrics"]["recall_at_10"] <= 1)
        out, _ = kiln("als", data, "--implicit", "--factors", 3, "--test-fraction", 0.3, *CPU)
        self.assertIn("NDCG@10", out)

    def test_refusals(self):
        data, _ = self.ratings()
        kiln("als", data, "--implicit", "--biases", *CPU, code=2)
        self.assertIn("dense", kiln("als", self.write("dense.csv", "a,b\n1,2\n3,4\n"), "--format", "csv",
                                    *CPU, code=3)[1])


class Topics(Models):
    """Documents about two things, whose words are named by the vocabulary beside the data."""

    def documents(self):
        words = ["bread", "oven", "yeast", "goal", "match", "team"]
        lines = [(d, 3 * (d % 2) + i, 1 + (d + i) % 3) for d in range(1, 31) for i in (1, 2, 3)]
        self.write("vocab.things.txt", "\n".join(words) + "\n")
        return self.write("docword.things.txt",
                          f"30\n6\n{len(lines)}\n" + "".join(f"{d} {w} {x}\n" for d, w, x in lines))

    def check_topics(self, verb, *options):
        data, model, table = self.documents(), self.path("t.kiln"), self.path("words.tsv")
        result = as_json(verb, data, "--topics", 2, "--top", 3, "--test-fraction", 0.2, "--seed", 1, "-o",
                         model, "--words", table, *options, *CPU)
        self.assertEqual(result["schema"], "kiln.topics/1")
        self.assertEqual({frozenset(word["word"] for word in topic["words"]) for topic in result["topics"]},
                         {frozenset(("bread", "oven", "yeast")), frozenset(("goal", "match", "team"))})
        self.assertAlmostEqual(sum(topic["share"] for topic in result["topics"]), 1)
        self.assertTrue(1 < result["metrics"]["test_perplexity"] < 6)
        rows = [line.split("\t") for line in self.lines("words.tsv")]
        self.assertEqual([row[1] for row in rows],
                         [word["word"] for topic in result["topics"] for word in topic["words"]])
        self.assertEqual(as_json("info", model)["metadata"]["columns"][0], "bread")
        claim, figure, *more = as_json("verify", model, data)["claims"]
        self.assertEqual([other["name"] for other in more], ["residual"] if result["converged"] else [])
        self.assertTrue(claim["holds"] and figure["holds"])
        self.assertEqual(claim["claimed"], result[claim["name"]])
        self.assertIn("holds", kiln("verify", model, data)[0])
        kiln("verify", model, self.write("docword.other.txt", "2\n6\n2\n1 1 3\n2 6 1\n"), code=7)
        out, _ = kiln(verb, data, "--topics", 2, "--warm-start", model, *options, *CPU)
        self.assertIn("yeast", out)
        kiln(verb, data, "--topics", 3, "--warm-start", model, *options, *CPU, code=7)
        shares = [[float(x) for x in line.split()] for line in kiln("predict", model, data,
                                                                    *CPU)[0].splitlines()]
        self.assertEqual(len(shares), 30)
        for d, share in enumerate(shares):
            self.assertAlmostEqual(sum(share), 1, places=6)
            self.assertGreater(share[0] if (d % 2 == 0) == (shares[0][0] > 0.5) else share[1], 0.5)
        return result

    def test_lda(self):
        result = self.check_topics("lda")
        bounds = [row["objective"] for row in result["trace"]]
        self.assertEqual(bounds, sorted(bounds))
        self.check_topics("lda", "--learn-alpha")
        self.check_topics("lda", "--online", "--batch", 10, "--type", "f32")
        self.assertIn("--learn-alpha", kiln("lda", self.documents(), "--online", "--learn-alpha", *CPU,
                                            code=2)[1])
        picture = self.path("topics.svg")
        kiln("lda", self.documents(), "-k", 3, "--plot", picture, *CPU)
        self.assertIn("yeast", xml.dom.minidom.parse(picture).toxml())

    def test_gap(self):
        result = self.check_topics("gap")
        objectives = [row["objective"] for row in result["trace"]]
        self.assertEqual(objectives, sorted(objectives, reverse=True))
        self.check_topics("gap", "--prior", "none", "--init", "nndsvda", "--type", "f64")
        self.assertIn("density", kiln("gap", self.documents(), "-k", 2, "--init", "nndsvd", *CPU, code=2)[1])
        model, factors = self.path("gap.kiln"), self.path("gap.npz")
        kiln("gap", self.documents(), "-k", 2, "--factors-out", factors, "-o", model, "--max-iterations", 3,
             *CPU)
        with zipfile.ZipFile(factors) as archive:
            self.assertEqual(sorted(archive.namelist()), ["A.npy", "B.npy", "columns.npy", "settings.npy"])
        other = self.write("docword.other.txt", "30\n6\n2\n1 1 3\n30 6 1\n")
        self.assertIn("DOES NOT HOLD", kiln("verify", model, other, code=4)[0])
        self.assertIn("Gamma-Poisson", kiln("gap", self.documents(), "-k", 2, *CPU)[0])
        self.assertIn("dense", kiln("gap", self.write("dense.csv", "a,b\n1,2\n3,4\n"), *CPU, code=3)[1])
        self.assertIn("--shape", kiln("gap", self.documents(), "--shape", 0.5, *CPU, code=2)[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
