"""Models are judged here: by linear predictors, with offsets, by unknown classes, in folds that fail.

usage: judged_test.py KILN FLIGHTS.csv.gz, as cli_test.py
"""

import math
import random
import unittest

from cli_test import Case, as_json, kiln

CPU = ["--device", "cpu", "--quiet"]


class Judged(Case):
    def metrics(self, model, data, *more):
        return as_json("evaluate", model, data, *CPU, *more)["metrics"]

    def separable(self):
        source = random.Random(3)
        rows = [(source.gauss(0, 1), source.gauss(0, 1)) for _ in range(300)]
        return self.write("sat.csv", "x,z,y\n" + "".join(
            f"{x},{z},{int(x + 0.05 * z + 0.02 * source.gauss(0, 1) > 0)}\n" for x, z in rows))

    def test_saturated_predictions(self):
        """-log p = log(1 + e^-margin) = -margin far out, though p is 1 or 0 in doubles."""
        data = self.separable()
        far = self.write("far.csv", "x,z,y\n500,0,0\n-500,0,1\n1,1,1\n-1,1,0\n")
        found = []
        for verb in (["logreg"], ["glm", "--family", "binomial"]):
            kiln(*verb, data, "--target", "y", "--l2", "1e-6", "-o", self.path("m.kiln"), *CPU)
            eta = [float(value) for value in kiln("predict", self.path("m.kiln"), far, "--decision",
                                                  *CPU)[0].split()]
            lost = [math.log1p(math.exp(-abs(e))) + max(0.0, -e if y else e)
                    for e, y in zip(eta, [0, 1, 1, 0])]
            metrics = self.metrics(self.path("m.kiln"), far)
            self.assertAlmostEqual(metrics["log_loss"] / (sum(lost) / 4), 1, delta=1e-12)
            found.append(metrics["log_loss"])
            if "deviance" in metrics:
                self.assertAlmostEqual(metrics["deviance"] / (2 * sum(lost)), 1, delta=1e-12)
        self.assertAlmostEqual(found[0] / found[1], 1, delta=1e-6)

    def test_equal_targets_have_no_spread(self):
        """Their weighted mean is a little off in doubles: what that leaves is no spread to explain."""
        source = random.Random(5)
        rows = [(source.gauss(0, 1), source.random()) for _ in range(20)]
        data = self.write("d.csv", "x,w,y\n" + "".join(f"{x},{w},{x + source.random()}\n" for x, w in rows))
        same = self.write("same.csv", "x,w,y\n" + "3,0,7\n" + "".join(f"{x},{w},0.1\n" for x, w in rows))
        for verb in (["linreg"], ["glm", "--family", "gaussian"], ["svm", "--regression"]):
            kiln(*verb, data, "--target", "y", "--weights", "w", "-o", self.path("m.kiln"), *CPU)
            metrics = self.metrics(self.path("m.kiln"), same, "--weights", "w")
            self.assertIsNone(metrics["r2"])
            self.assertIsNone(metrics.get("d2"))

    def test_both_choose_the_same_penalty(self):
        data, values = self.separable(), "1e-8,1e-6,1e-4,1e-2,1"
        tables = [as_json(*verb, data, "--target", "y", "--cv", "5", "--l2", values, *CPU)["cross_validation"]
                  for verb in (["logreg"], ["glm", "--family", "binomial", "--metric", "log_loss"],
                               ["glm", "--family", "binomial"])]
        self.assertEqual(tables[0]["best"], tables[1]["best"])
        self.assertEqual(tables[0]["best"], tables[2]["best"])
        for a, b in zip(tables[0]["values"], tables[1]["values"]):
            self.assertAlmostEqual(a["mean"] / b["mean"], 1, delta=1e-4)

    def test_unknown_classes_count(self):
        """Two of six rows are of no class that the model knows; the others are right."""
        for labels in (["a", "b", "c"], ["1", "2", "3"]):
            data = self.write("abc.csv", "x,z,y\n" + "".join(
                f"{(i % 3 == 0) * 5 + i / 99},{(i % 3 == 1) * 5 - i / 99},{labels[i % 3]}\n"
                for i in range(60)))
            new = self.write("new.csv",
                             "x,z,y\n"
                             + f"5,0,{labels[0]}\n0,5,{labels[1]}\n0,0,{labels[2]}\n5,0,{labels[0]}\n"
                             + "5,0,7\n0,5,7\n")
            for verb in "logreg", "svm":
                kiln(verb, data, "--target", "y", "-o", self.path("m.kiln"), *CPU)
                metrics = self.metrics(self.path("m.kiln"), new)
                self.assertAlmostEqual(metrics["accuracy"], 4 / 6)
                self.assertAlmostEqual(metrics["balanced_accuracy"], 3 / 4)
                # precisions 2/3, 1/2, 1 with recalls of 1; the unknown class has none
                self.assertAlmostEqual(metrics["macro_f1"], (0.8 + 2 / 3 + 1 + 0) / 4)
                self.assertEqual(metrics["unknown"], 2)
                self.assertEqual(metrics["confusion"]["unknown"], [1, 1, 0])
                if verb == "logreg":
                    self.assertIsNone(metrics["log_loss"])  # -log 0
                    self.assertGreater(metrics["brier"], 2 / 6 * 1.5)
                out, error = kiln("evaluate", self.path("m.kiln"), new, "--device", "cpu")
                self.assertIn("(unknown)", out)
                self.assertIn("count as wrong", error)

    def test_explained_deviance_with_an_offset(self):
        source = random.Random(5)
        rows = []
        for _ in range(200):
            exposure, x = source.uniform(0.1, 50), source.gauss(0, 1)
            rows.append((x, math.log(exposure), round(exposure * math.exp(0.3 * x) + source.uniform(0, 1))))
        data = self.write("rate.csv", "x,o,y\n" + "".join(f"{x},{o},{y}\n" for x, o, y in rows))
        kiln("glm", "--family", "poisson", data, "--target", "y", "--offset", "o", "-o", self.path("m.kiln"),
             *CPU)
        metrics = self.metrics(self.path("m.kiln"), data)
        level = sum(y for _, _, y in rows) / sum(math.exp(o) for _, o, _ in rows)  # the best rate alone
        null = 2 * sum((y * math.log(y / (level * math.exp(o))) if y else 0) - y + level * math.exp(o)
                       for _, o, y in rows)
        self.assertAlmostEqual(metrics["d2"], 1 - metrics["deviance"] / null, delta=1e-9)

    def test_inverse_gaussian_stays_inside(self):
        source = random.Random(6)
        rows = [(x, math.exp(0.5 * x) * source.uniform(0.5, 1.5))
                for x in (source.uniform(-3, 3) for _ in range(200))]
        data = self.write("ig.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
        kiln("glm", "--family", "inverse-gaussian", data, "--target", "y", "-o", self.path("m.kiln"), *CPU)
        self.assertIn("log", kiln("info", self.path("m.kiln"))[0])
        far = self.write("far.csv", "x,y\n" + "".join(f"{x},1\n" for x in (-50, 0, 50)))
        self.assertTrue(all(float(value) > 0 for value in kiln("predict", self.path("m.kiln"), far,
                                                               *CPU)[0].split()))
        kiln("glm", "--family", "inverse-gaussian", "--link", "inverse-squared", data, "--target", "y", "-o",
             self.path("s.kiln"), *CPU)
        error = kiln("evaluate", self.path("s.kiln"), far, *CPU)[1]
        self.assertIn("gives 1 row a mean", error)
        self.assertIn("not known", error)

    def test_few_rows_go_by_students_t(self):
        """Both tails in closed form: with s = t / sqrt(v), 1 - 2/pi atan s (v = 1), 1 - t / sqrt(2 + t^2)
        (2), 1 - 2/pi (atan s + s / (1 + s^2)) (3)."""
        tails = {1: lambda t: 1 - 2 / math.pi * math.atan(t), 2: lambda t: 1 - t / math.sqrt(2 + t * t),
                 3: lambda t: 1 - 2 / math.pi * (math.atan(t / math.sqrt(3)) + t / math.sqrt(3)
                                                 / (1 + t * t / 3))}
        for degrees, tail in tails.items():
            rows = list(zip(range(5), (1.0, 2.1, 2.9, 4.2, 4.9)))[:degrees + 2]
            data = self.write("few.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
            found = as_json("glm", data, "--target", "y", "--standard-errors", "-o", self.path("few.kiln"),
                            *CPU)
            self.assertEqual(found["metrics"]["residual_degrees"], degrees)
            self.assertIn("  standard_errors 2 x 1, f64\n", kiln("info", self.path("few.kiln"))[0])
            for row in found["coefficients"] + as_json("coefficients", self.path("few.kiln"))["coefficients"]:
                self.assertAlmostEqual(row["p"] / tail(abs(row["z"])), 1, delta=1e-9)
                self.assertAlmostEqual(tail((row["high"] - row["value"]) / row["standard_error"]), 0.05,
                                       delta=1e-12)

    def test_folds_that_fail(self):
        """A mean beyond the family's range has no deviance: the value is not chosen, and where none is left
        there is no best."""
        source = random.Random(7)
        rows = [(x, 1 - 0.2 * x + source.uniform(0, 0.1))
                for x in (source.uniform(0, 1) for _ in range(60))] + [(-500, 9.0)]
        data = self.write("out.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
        family = ["glm", "--family", "gamma", "--link", "inverse", data, "--target", "y", *CPU]
        table = as_json(*family, "--cv", "4", "--l2", "1e-9,1e9")
        failed = [value for value in table["cross_validation"]["values"] if None in value["folds"]]
        self.assertTrue(failed)
        self.assertTrue(all(value["mean"] is None for value in failed))
        self.assertNotIn(table["cross_validation"]["best"], [value["l2"] for value in failed])
        self.assertIn("cannot be chosen", kiln(*family, "--cv", "4", "--l2", "1e-9,1e9")[1])
        self.assertIn("in every fold", kiln(*family, "--cv", "4", "--l2", "1e-9", code=3)[1])


if __name__ == "__main__":
    unittest.main(argv=["judged_test"])
