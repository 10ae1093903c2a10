"""Rows of a fold held out say nothing: missing values are filled, and levels known, by the rows that train.

usage: folds_test.py KILN FLIGHTS.csv.gz, as cli_test.py
"""

import csv
import json
import math
import random
import unittest

from cli_test import Case, as_json, kiln

CPU = ["--device", "cpu", "--quiet"]
VERBS = (["linreg", "--target", "y", "--l2", "1"], ["linreg", "--target", "y", "--l2", "0"],
         ["glm", "--family", "gaussian", "--target", "y", "--l1", "3"],
         ["logreg", "--target", "class", "--l2", "0.5"], ["logreg", "--target", "three", "--l2", "0.5"],
         ["svm", "--target", "class", "--l2", "0.5"], ["glm", "--family", "poisson", "--target", "count",
                                                       "--l2", "0.5"])


class Folds(Case):
    def setUp(self):
        """x is larger where y is, and missing in a third of the rows, so that a mean of all rows would tell
        of y."""
        source = random.Random(7)
        self.rows = []
        for i in range(90):
            y = source.gauss(0, 2)
            self.rows.append({"x": source.gauss(5, 1) + 3 * y, "z": source.gauss(0, 1) + y,
                              "u": source.gauss(1, 1), "who": "once" if i == 4 else source.choice("ab"),
                              "w": 1 + i % 3, "y": y, "class": "yes" if y > 0 else "no",
                              "three": "abc"[(y > -1) + (y > 1)], "count": int(math.exp(y / 3) + 0.5)})
            for name, share in (("x", 0.3), ("z", 0.1)):
                if source.random() < share:
                    self.rows[-1][name] = None
        self.rows[0]["z"] = 30.0  # which no fold but one may learn from
        self.write_rows("all.csv", self.rows)

    def write_rows(self, name, rows):
        with open(self.path(name), "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def filled(self, rows, means, indicator):
        """As the reader is to fill them."""
        made = []
        for row in rows:
            row = dict(row)
            for name, mean in means.items():
                if indicator:
                    row[name + " gone"] = int(row[name] is None)
                row[name] = mean if row[name] is None else row[name]
            made.append(row)
        return made

    def check(self, verb, way, *options, text=False, device="cpu", accuracy=1e-6):
        """Each fold's predictions against a training of its own, on rows that are filled here."""
        features = "x,z,u" + ",who" * text
        options = [*options, *(["--reference", "who=a"] if text else [])]
        where = ["--device", device, "--quiet"]
        kiln(*verb, self.path("all.csv"), "--features", features, "--cv", 3, "--missing", way, "--held-out",
             self.path("held.csv"), *options, *where)
        with open(self.path("held.csv"), newline="") as file:
            held = list(csv.DictReader(file))
        given = {"logreg": "probability " + ("yes" if "class" in verb else "b"),
                 "svm": "decision yes"}.get(verb[0], "predicted")
        more = {"logreg": ["--probabilities"], "svm": ["--decision"]}.get(verb[0], [])
        for fold in "123":
            train = [row for row, own in zip(self.rows, held) if own["fold"] != fold]
            test = [row for row, own in zip(self.rows, held) if own["fold"] == fold]
            means = {}
            for name in ("x", "z"):
                known = [row[name] for row in train if row[name] is not None]
                means[name] = sum(known) / len(known)
            indicator = way == "indicator"
            self.write_rows("train.csv", self.filled(train, means, indicator))
            self.write_rows("test.csv", self.filled(test, means, indicator))
            kiln(*verb, self.path("train.csv"), "--features", features + ",x gone,z gone" * indicator, "-o",
                 self.path("m.kiln"), *options, *CPU)
            told = kiln("predict", self.path("m.kiln"), self.path("test.csv"), *more, *CPU)[0].splitlines()
            own = [row for row in held if row["fold"] == fold]
            for line, row in zip(told, own, strict=True):
                numbers = [float(number) for number in line.replace("\t", " ").replace(",", " ").split()]
                found = numbers[1] if verb[0] == "logreg" and len(numbers) > 1 else numbers[0]
                expected = float(row[given])
                self.assertAlmostEqual(found, expected, delta=accuracy * max(1, abs(expected)),
                                       msg=str((verb, way, options, fold)))

    def test_missing_values_are_filled_in_the_fold(self):
        for verb in VERBS:
            for way in ("mean", "indicator"):
                self.check(verb, way, "--tolerance", "1e-10")

    def test_levels_and_sparse_rows(self):
        """`once` is a level of one row, and a column of zeros to those who train without it: its coefficient
        is 0, with a penalty and without one."""
        for verb in VERBS:
            self.check(verb, "indicator", "--tolerance", "1e-10", text=True)

    def test_weights_and_standardizing(self):
        for verb in VERBS[:1] + VERBS[3:4]:
            for text in (False, True):
                self.check(verb, "indicator", "--weights", "w", "--standardize", "--tolerance", "1e-10",
                           text=text)

    def test_group_and_float(self):
        for text in (False, True):
            self.check(VERBS[0], "mean", "--tolerance", "1e-10", text=text, device="cpu*2")
        self.check(VERBS[0], "mean", "--type", "f32", accuracy=1e-3)

    def test_predictions_stay_where_X_lies(self):
        """No more than a model's sums come to the host: of all ten together less than one row vector,
        beside the targets, which deal the folds."""
        if not any(row["name"].startswith("opencl") and row["usable"]
                   for row in as_json("devices")["devices"]):
            self.skipTest("no OpenCL device")
        source, count = random.Random(3), 3000
        rows = [{"x": source.gauss(0, 1), "z": source.gauss(0, 1), "y": source.gauss(0, 1)}
                for _ in range(count)]
        self.write_rows("long.csv", rows)
        command = ["linreg", self.path("long.csv"), "--target", "y", "--cv", 3, "--l2", "1e-2:1e2:10",
                   "--quiet", "--device"]
        found, expected = (as_json(*command, device) for device in ("opencl", "cpu"))
        self.assertLess(found["memory"]["bytes_down"], 8 * count + 8 * count)
        for own, other in zip(found["cross_validation"]["values"], expected["cross_validation"]["values"],
                              strict=True):
            for key, value in other["metrics"].items():
                self.assertAlmostEqual(own["metrics"][key], value, delta=1e-9 * max(1, abs(value)))

    def test_one_way_for_all_penalties(self):
        """A path of penalties says of each what that penalty says alone, and checkpoints keep which folds are
        done."""
        one = [as_json("linreg", self.path("all.csv"), "--target", "y", "--features", "x,z,u", "--missing",
                       "mean", "--cv", 3, "--l2", l2, *CPU)
               ["cross_validation"]["values"][0]["folds"] for l2 in (10, 1, 0.1)]
        all_three = as_json("linreg", self.path("all.csv"), "--target", "y", "--features", "x,z,u",
                            "--missing", "mean", "--cv", 3, "--l2", "0.1,1,10", "--checkpoint",
                            self.path("c"), *CPU)["cross_validation"]["values"]
        for alone, value in zip(one, all_three):
            for a, b in zip(alone, value["folds"]):
                self.assertAlmostEqual(a, b, 6)

    def test_rows_left_out_lose_their_weights(self):
        """Files of weights, offsets, groups and targets have a number for each row of the table, left out or
        not."""
        kept = [row for row in self.rows if row["x"] is not None and row["z"] is not None]
        self.write_rows("kept.csv", kept)
        for rows, name in ((self.rows, "all"), (kept, "few")):
            for column in ("w", "u", "y"):
                self.write(f"{column}-{name}.txt", "".join(f"{row[column]}\n" for row in rows))
            self.write(f"class-{name}.txt", "".join(f"0{'12'[row['class'] == 'yes']}\n" for row in rows))

        def run(data, name, device, code=0):
            told = []
            for verb in (["glm", "--target", "count", "--family", "poisson", "--offset-file",
                          self.path(f"u-{name}.txt")],
                         ["linreg", "--target", "y", "--cv", "3", "--groups-file",
                          self.path(f"w-{name}.txt")],
                         ["linreg", "--target-file", self.path(f"y-{name}.txt")],
                         ["logreg", "--target-file", self.path(f"class-{name}.txt")]):
                out, error = kiln(*verb, self.path(data), "--features", "x,z", "--weights-file",
                                  self.path(f"w-{name}.txt"), "--missing", "drop", "--l2", "1", "--json",
                                  "--device", device, "--quiet", code=code)
                told.append(json.loads(out)["objective"] if not code else error)
            return told

        expected = run("kept.csv", "few", "cpu")
        for device in "cpu", "cpu*2":
            for a, b in zip(run("all.csv", "all", device), expected):
                self.assertAlmostEqual(a / b, 1, delta=1e-9)
        for error in run("all.csv", "few", "cpu", 3):
            self.assertIn(f"{len(kept)} rows, the data have 90", error)
            self.assertRegex(error, r"are left out|leaves \d+ out")

    def test_no_warning(self):
        told = kiln("linreg", self.path("all.csv"), "--target", "y", "--features", "x,z,u", "--missing",
                    "mean", "--cv", 3, "--device", "cpu")[1]
        self.assertNotIn("warning", told)


if __name__ == "__main__":
    unittest.main(argv=["folds_test"])
