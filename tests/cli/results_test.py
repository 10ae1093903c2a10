"""The worth of models: kiln evaluate, compared with sums over pairs and rows that share nothing with it.

usage: results_test.py KILN FLIGHTS.csv.gz, as cli_test.py
"""

import csv
import math
import os
import random
import unittest
import xml.dom.minidom

from cli_test import Case, as_json, kiln

CPU = ["--device", "cpu", "--quiet"]


def mean(values, weights):
    return sum(v * w for v, w in zip(values, weights)) / sum(weights)


def area(scores, positive, weights):
    """The share of pairs in the right order, by looking at all pairs."""
    right = pairs = 0
    for a, p, v in zip(scores, positive, weights):
        for b, q, w in zip(scores, positive, weights):
            if p and not q:
                pairs += v * w
                right += v * w * (a > b) + v * w * (a == b) / 2
    return right / pairs


def area_of_many(scores, positive):
    """The same by ranks: the sum of those of the positive rows, equal scores sharing theirs."""
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    total = begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and scores[order[end]] == scores[order[begin]]:
            end += 1
        total += sum(positive[i] for i in order[begin:end]) * (begin + end + 1) / 2
        begin = end
    count = sum(positive)
    return (total - count * (count + 1) / 2) / (count * (len(scores) - count))


class Base(Case):
    def setUp(self):
        source = random.Random(4)
        self.rows = []
        for i in range(300):
            a, b = round(source.gauss(0, 1), 1), source.choice([0, 1, 2])
            eta = a - 0.8 * b + source.gauss(0, 1)
            self.rows.append({"a": a, "b": b, "w": 1 + i % 3, "two": "yes" if eta > 0 else "no",
                              "three": "xyz"[(eta > -1) + (eta > 1)], "number": eta,
                              "count": int(math.exp(eta / 2) + 0.5), "out": int(eta > 0)})
        for name, rows in (("train.csv", self.rows[:200]), ("test.csv", self.rows[100:])):
            with open(self.path(name), "w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        self.test, self.weights = self.rows[100:], [row["w"] for row in self.rows[100:]]


class Results(Base):
    def fit(self, verb, target, *options):
        kiln(verb, self.path("train.csv"), "--target", target, "--features", "a,b", "-o", self.path("m.kiln"),
             *options, *CPU)

    def evaluate(self, *options):
        return as_json("evaluate", self.path("m.kiln"), self.path("test.csv"), "--weights", "w",
                       "--extra-columns", "ignore", *CPU, *options)

    def predict(self, *options):
        return as_json("predict", self.path("m.kiln"), self.path("test.csv"), "--extra-columns", "ignore",
                       *CPU, *options)["predictions"]

    def judge_classes(self, names, probabilities, labels, result):
        w, truth = self.weights, [row["two" if len(names) == 2 else "three"] for row in self.test]
        metrics = result["metrics"]
        self.assertAlmostEqual(metrics["accuracy"], mean([a == b for a, b in zip(labels, truth)], w), 12)
        recalls, scores = [], []
        for name, row in zip(names, result["classes"]):
            own = sum(v for v, t in zip(w, truth) if t == name)
            taken = sum(v for v, p in zip(w, labels) if p == name)
            both = sum(v for v, t, p in zip(w, truth, labels) if t == p == name)
            self.assertEqual((row["class"], row["weight"]), (name, own))
            for key, value in (("precision", both / taken), ("recall", both / own),
                               ("f1", 2 * both / (own + taken))):
                self.assertAlmostEqual(row[key], value, 12)
            recalls.append(both / own)
            scores.append(2 * both / (own + taken))
        self.assertAlmostEqual(metrics["balanced_accuracy"], sum(recalls) / len(names), 12)
        self.assertAlmostEqual(metrics["macro_f1"], sum(scores) / len(names), 12)
        places = [names.index(t) for t in truth]
        self.assertAlmostEqual(metrics["log_loss"],
                               mean([-math.log(p[t]) for p, t in zip(probabilities, places)], w), 10)
        brier = [sum((x - (c == t)) ** 2 for c, x in enumerate(p)) / (2 if len(names) == 2 else 1)
                 for p, t in zip(probabilities, places)]
        self.assertAlmostEqual(metrics["brier"], mean(brier, w), 10)
        subjects = [1] if len(names) == 2 else range(len(names))
        areas = [area([p[c] for p in probabilities], [t == c for t in places], w) for c in subjects]
        for c, found, roc, calibration in zip(subjects, areas, result["roc"], result["calibration"]):
            self.assertEqual((roc["name"], calibration["name"]), (names[c], names[c]))
            self.assertAlmostEqual(roc["auc"], found, 10)
            self.judge_bins(calibration["bins"], [p[c] for p in probabilities], [t == c for t in places])
            x, y = roc["false_positive_rate"], roc["true_positive_rate"]
            self.assertEqual((x[0], y[0], x[-1], y[-1]), (0, 0, 1, 1))
            self.assertTrue(all(p <= q for line in (x, y) for p, q in zip(line, line[1:])))
            trapezium = sum((x[i + 1] - x[i]) * (y[i + 1] + y[i]) / 2 for i in range(len(x) - 1))
            self.assertAlmostEqual(trapezium, found, 2)
        self.assertAlmostEqual(metrics["auc"], sum(areas) / len(areas), 10)

    def judge_bins(self, bins, predicted, observed):
        """All rows are in a bin, in order, a bin's means and error are those of its rows."""
        self.assertTrue(5 <= len(bins) <= 10)
        self.assertAlmostEqual(sum(one["weight"] for one in bins), sum(self.weights))
        for one, after in zip(bins, bins[1:] + [None]):
            self.assertTrue(after is None or one["most"] < after["least"])
            here = [(p, float(o), w) for p, o, w in zip(predicted, observed, self.weights) if one["least"]
                    - 1e-12 <= p <= one["most"] + 1e-12]
            p, o, w = zip(*here)
            self.assertAlmostEqual(one["weight"], sum(w))
            self.assertAlmostEqual(one["predicted"], mean(p, w), 10)
            self.assertAlmostEqual(one["observed"], mean(o, w), 10)
            rows = sum(w) ** 2 / sum(v * v for v in w)
            if rows > 1:
                spread = mean([(x - mean(o, w)) ** 2 for x in o], w)
                self.assertAlmostEqual(one["standard_error"], math.sqrt(spread / (rows - 1)), 10)
            if "residual_50" in one:
                off = sorted((y - x, v) for x, y, v in here)
                for share, key in ((0.1, "residual_10"), (0.5, "residual_50"), (0.9, "residual_90")):
                    below = sum(v for x, v in off if x < one[key] - 1e-9)
                    upto = sum(v for x, v in off if x <= one[key] + 1e-9)
                    self.assertTrue(below - 1e-9 <= share * sum(w) <= upto + 1e-9)

    def test_classes(self):
        for target, names in (("two", ["no", "yes"]), ("three", ["x", "y", "z"])):
            self.fit("logreg", target)
            self.judge_classes(names, self.predict("--probabilities"), self.predict(), self.evaluate())
        for device in ("opencl",):
            on = as_json("evaluate", self.path("m.kiln"), self.path("test.csv"), "--extra-columns", "ignore",
                         "--device", device, "--type", "f32")
            self.assertEqual((on["device"].split(":")[0], on["type"]), ("opencl", "f32"))
            self.assertAlmostEqual(on["metrics"]["auc"], as_json("evaluate", self.path("m.kiln"),
                                                                 self.path("test.csv"),
                                                                 *CPU)["metrics"]["auc"], 4)

    def test_decision_without_probabilities(self):
        self.fit("svm", "two")
        result = self.evaluate()
        truth = [row["two"] == "yes" for row in self.test]
        self.assertAlmostEqual(result["metrics"]["auc"],
                               area(self.predict("--decision"), truth, self.weights), 10)
        self.assertIsNone(result["calibration"])
        self.assertNotIn("log_loss", result["metrics"])

    def test_area_of_many_rows_whose_scores_differ_in_their_last_digits(self):
        """A few rows agree in their first 33 bits, many do, all are equal, or nothing is alike."""
        source = random.Random(7)
        for name, draw in (("few", lambda: source.randrange(2000) + 1e-11 * source.randrange(3)),
                           ("many", lambda: source.choice([-1.0, 0.5, 3.0]) + 1e-13 * source.randrange(400)),
                           ("equal", lambda: 1.0), ("apart", lambda: source.gauss(0, 1))):
            values = [draw() for _ in range(5000)]
            positive = [int(source.random() < 0.5 + 0.3 * (value > 0.5)) for value in values]
            data = self.write(f"{name}.svm",
                              "".join(f"{y} 1:{value!r} 2:1\n" for y, value in zip(positive, values)))
            trained = as_json("logreg", data, "-o", self.path("many.kiln"), *CPU)
            scores = as_json("predict", self.path("many.kiln"), data, "--decision", *CPU)["predictions"]
            self.assertAlmostEqual(trained["metrics"]["auc"], area_of_many(scores, positive), 12, name)

    def test_outcomes_of_a_glm(self):
        self.fit("glm", "out", "--family", "binomial")
        result, w = self.evaluate(), self.weights
        truth, means = [row["out"] for row in self.test], self.predict()
        lost = mean([-math.log(p if t else 1 - p) for p, t in zip(means, truth)], w)
        base = mean(truth, w)
        none = mean([-math.log(base if t else 1 - base) for t in truth], w)
        for key, value in (("log_loss", lost), ("mean_deviance", 2 * lost), ("d2", 1 - lost / none),
                           ("auc", area(means, truth, w)),
                           ("accuracy", mean([(p > 0.5) == bool(t) for p, t in zip(means, truth)], w)),
                           ("brier", mean([(p - t) ** 2 for p, t in zip(means, truth)], w))):
            self.assertAlmostEqual(result["metrics"][key], value, 10)
        self.judge_bins(result["calibration"][0]["bins"], means, truth)
        self.assertEqual(result["roc"][0]["auc"], result["metrics"]["auc"])

    def test_numbers(self):
        for verb, target, options in (("linreg", "number", []), ("glm", "count", ["--family", "poisson"]),
                                      ("svm", "number", ["--regression"])):
            self.fit(verb, target, *options)
            result, w = self.evaluate(), self.weights
            truth, values = [row[target] for row in self.test], self.predict()
            off = [v - t for v, t in zip(values, truth)]
            about = mean(truth, w)
            for key, value in (("mae", mean([abs(x) for x in off], w)),
                               ("rmse", math.sqrt(mean([x * x for x in off], w))),
                               ("mean_error", mean(off, w)),
                               ("r2", 1 - mean([x * x for x in off], w)
                                / mean([(t - about) ** 2 for t in truth], w))):
                self.assertAlmostEqual(result["metrics"][key], value, 10)
            self.judge_bins(result["calibration"][0]["bins"], values, truth)
            self.assertIsNone(result["roc"])

    def test_several_targets(self):
        self.fit("linreg", "number,count")
        result = self.evaluate("--plot", self.path("t.svg"))
        self.assertEqual([row["name"] for row in result["calibration"]], ["number", "count"])
        values = self.predict()
        self.judge_bins(result["calibration"][1]["bins"], [row[1] for row in values],
                        [row["count"] for row in self.test])

    def test_picture_and_table(self):
        for verb, target, words in (("logreg", "three", ["receiver operating characteristic",
                                                         "calibration, with standard errors"]),
                                    ("linreg", "number", ["calibration, with standard errors",
                                                          "residuals: 10 %, 50 % and 90 % below"]),
                                    ("svm", "two",
                                     ["receiver operating characteristic", "false positive rate"])):
            self.fit(verb, target)
            result = self.evaluate("--plot", self.path("e.svg"))
            self.assertEqual(result["plot"], self.path("e.svg"))
            texts = [text.firstChild.data
                     for text in xml.dom.minidom.parse(self.path("e.svg")).getElementsByTagName("text")]
            for word in words:
                self.assertIn(word, texts)
            table = kiln("evaluate", self.path("m.kiln"), self.path("test.csv"), "--weights", "w", *CPU)[0]
            if verb == "logreg":
                for roc in result["roc"]:
                    self.assertIn(f"AUC {roc['auc']:.3f} {roc['name']}", texts)
                self.assertIn("class                weight  precision     recall         F1        AUC\n",
                              table)
                self.assertIn("true \\ predicted", table)
            if verb == "linreg":
                self.assertIn("calibration of number", table)

    def test_refusals(self):
        self.fit("linreg", "number")
        with open(self.path("bare.csv"), "w") as file:
            file.write("a,b\n1,2\n3,4\n")
        error = kiln("evaluate", self.path("m.kiln"), self.path("bare.csv"), *CPU, code=3)[1]
        self.assertIn("has no targets to compare predictions with", error)
        edges = self.write("g.edges", "a b\nb c\n")
        kiln("hits", edges, "-o", self.path("h.kiln"), *CPU)
        self.assertIn("predicts nothing", kiln("evaluate", self.path("h.kiln"), edges, *CPU, code=7)[1])
        for verb in (["kmeans", "-k", "2"], ["mds"]):
            kiln(*verb, self.path("test.csv"), "--features", "a,b", "-o", self.path("u.kiln"), *CPU)
            error = kiln("evaluate", self.path("u.kiln"), self.path("test.csv"), *CPU, code=7)[1]
            self.assertIn(f"a model of {verb[0]} has no targets to evaluate it by", error)
        for name in ("m.kiln", "test.csv"):
            self.assertIn("the same file", kiln("evaluate", self.path("m.kiln"), self.path("test.csv"),
                                                "--plot", self.path(name), *CPU, code=2)[1])
        self.assertTrue(os.path.getsize(self.path("m.kiln")) > 100)

    def test_a_class_that_is_never_predicted(self):
        self.fit("logreg", "three", "--class-weight", "x=0.001,z=0.001")
        table = kiln("evaluate", self.path("m.kiln"), self.path("test.csv"), *CPU)[0]
        self.assertRegex(table, r"\n +x +\d+ +- +0 +0 ")
        self.assertNotIn("nan", table)
        self.assertIsNone(self.evaluate()["classes"][0]["precision"])

    def test_parameters_of_many_columns(self):
        """Levels of two columns, each level with a feature: two of them depend on the others."""
        def table(rows, a, b):
            with open(self.path("many.csv"), "w") as file:
                file.write("x,a,b,y\n" + "".join(f"{i * i % 97},a{i % a},b{i * 7 % b},{i * i % 89}\n"
                                                 for i in range(rows)))
            return ["glm", self.path("many.csv"), "--target", "y", *CPU]

        train = table(2500, 300, 289)
        plain, full = (as_json(*train, *more)["metrics"] for more in ([], ["--standard-errors"]))
        self.assertEqual((plain["parameters"], full["parameters"]), (300 + 289, 300 + 289))
        self.assertAlmostEqual(plain["aic"], full["aic"], 6)
        self.assertEqual(as_json(*table(12000, 2300, 1901))["metrics"]["parameters"], 2300 + 1901)
        with open(self.path("wide.csv"), "w") as file:
            file.write(",".join(f"x{j}" for j in range(4200)) + ",y\n")
            file.writelines(",".join(str((i * j) % 7) for j in range(4200)) + f",{i % 3}\n"
                            for i in range(20))
        out, error = kiln("glm", self.path("wide.csv"), "--target", "y", "--device", "cpu")
        self.assertRegex(out, r"parameters +20\n")
        self.assertIn("AIC is an upper bound, as if the model had 20 parameters", error)

    def test_information_criterion_and_intervals(self):
        """All levels of a text column have a feature: one of them depends on the others, and is no
        parameter."""
        with open(self.path("levels.csv"), "w") as file:
            file.write("x,k,y\n" + "".join(f"{row['a']},{'uvw'[row['b']]},{row['number']!r}\n"
                                           for row in self.rows))
        train = ["glm", self.path("levels.csv"), "--target", "y", *CPU]
        plain, full = as_json(*train), as_json(*train, "--standard-errors", "-o", self.path("s.kiln"))
        self.assertAlmostEqual(plain["metrics"]["aic"], full["metrics"]["aic"], 7)
        self.assertAlmostEqual(plain["metrics"]["dispersion"], full["metrics"]["dispersion"], 9)
        m, rss = len(self.rows), full["metrics"]["rss"]
        self.assertAlmostEqual(plain["metrics"]["aic"], m * (math.log(2 * math.pi * rss / m) + 1) + 2
                               * (4 + 1), 6)
        self.assertAlmostEqual(plain["metrics"]["dispersion"], rss / (m - 4), 9)
        self.assertEqual((plain["metrics"]["parameters"], full["metrics"]["parameters"]), (4, 4))
        self.assertEqual(full["metrics"]["residual_degrees"], m - 4)
        self.assertEqual([row["dependent"] for row in full["coefficients"]],
                         [False, False, False, True, False])
        for row in full["coefficients"]:
            if row["dependent"]:
                self.assertEqual((row["value"], row["standard_error"], row["low"]), (0, None, None))
            else:
                for end, sign in (("low", -1), ("high", 1)):
                    # the quantile of Student's t; judged_test.py
                    errors = sign * (row[end] - row["value"]) / row["standard_error"]
                    self.assertTrue(1.96 < errors < 1.96 * (1 + 2 / m), errors)
        out = kiln(*train, "--standard-errors")[0]
        self.assertIn("95 % from", out)
        self.assertIn("depends on columns before it  k=w", out)
        self.assertNotIn("nan", out)
        kept = kiln("coefficients", self.path("s.kiln"))[0]
        self.assertRegex(kept, "\nk\tw\t\t0\t\t\t\t\t\tdependent\n")
        self.assertIn("low_95\thigh_95", kept)


class Validation(Base):
    def table(self, rows, name="rows.csv"):
        with open(self.path(name), "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return self.path(name)

    def held_out(self, verb, target, *options, features="a,b", data="train.csv"):
        """The JSON object, and the rows that --held-out wrote."""
        path = self.path("held.csv")
        result = as_json(verb, self.path(data), "--target", target, "--features", features, "--held-out",
                         path, *options, *CPU)
        with open(path, newline="") as file:
            return result["cross_validation"], list(csv.DictReader(file))

    def test_folds_of_numbers_share_low_and_high_ones(self):
        """Each tenth of the targets is spread over the folds; values that are equal are one lot."""
        for verb, target, options in (("linreg", "number", []), ("glm", "count", ["--family", "poisson"])):
            rows = self.held_out(verb, target, "--cv", 4, "--l2", 1, *options)[1]
            numbers = sorted(float(row["target"]) for row in rows)
            for cut in (numbers[20], numbers[100], numbers[180]):
                low = [sum(float(row["target"]) < cut for row in rows if int(row["fold"]) == fold)
                       for fold in (1, 2, 3, 4)]
                self.assertLessEqual(max(low) - min(low), 1, (target, cut, low))

    def test_held_out_predictions(self):
        """The scores of the folds follow from the file; each row stands in it once."""
        for verb, target, options, key in (("linreg", "number", [], "rmse"),
                                           ("logreg", "three", [], "log_loss"),
                                           ("logreg", "two", [], "brier"), ("svm", "two", [], "accuracy"),
                                           ("glm", "count", ["--family", "poisson"], "rmse")):
            for select in ("best", "one-se"):
                table, rows = self.held_out(verb, target, "--cv", 4, "--l2", "0.1,1,30", "--metric", key,
                                            "--select", select, *options)
                self.assertEqual([int(row["row"]) for row in rows], list(range(1, 201)))
                for row, own in zip(rows, self.rows):
                    self.assertEqual(row["target"] if target in ("two", "three") else float(row["target"]),
                                     own[target])
                value = table["best" if select == "best" else "one_standard_error"]
                scores = [entry["folds"] for entry in table["values"] if entry["l2"] == value][0]
                for fold in range(4):
                    here = [row for row in rows if int(row["fold"]) == fold + 1]
                    self.assertTrue(48 <= len(here) <= 52)
                    if key == "rmse":
                        found = math.sqrt(sum((float(row["predicted"]) - float(row["target"])) ** 2
                                              for row in here) / len(here))
                    elif key == "accuracy":
                        found = sum(row["predicted"] == row["target"] for row in here) / len(here)
                        self.assertTrue(all((float(row["decision yes"]) > 0) == (row["predicted"] == "yes")
                                            for row in here))
                    elif key == "log_loss":
                        found = -sum(math.log(float(row["probability " + row["target"]]))
                                     for row in here) / len(here)
                    else:
                        found = sum((float(row["probability yes"]) - (row["target"] == "yes")) ** 2
                                    for row in here) / len(here)
                    self.assertAlmostEqual(found, scores[fold], 10)

    def test_folds_have_their_share_of_each_class(self):
        for verb, target, options in (("logreg", "three", []), ("glm", "out", ["--family", "binomial"])):
            _, rows = self.held_out(verb, target, "--cv", 5, *options)
            for label in {row["target"] for row in rows}:
                counts = [sum(row["target"] == label and int(row["fold"]) == fold for row in rows)
                          for fold in range(1, 6)]
                self.assertLessEqual(max(counts) - min(counts), 1)

    def test_groups_stay_together(self):
        source = random.Random(9)
        names = ["Ann, 'B'", 'q"q', "", *(f"g{i}" for i in range(37))]
        rows = [dict(row, who=source.choice(names[:2] + names[3:])) for row in self.rows[:200]]
        data = os.path.basename(self.table(rows))
        for verb, target in (("logreg", "three"), ("linreg", "number")):
            table, held = self.held_out(verb, target, "--cv", 5, "--groups", "who", data=data)
            self.assertEqual(table["groups"], "who")
            folds = {}
            for row, own in zip(held, rows):
                folds.setdefault(own["who"], set()).add(row["fold"])
            self.assertTrue(all(len(found) == 1 for found in folds.values()))
            sizes = [sum(row["fold"] == str(fold) for row in held) for fold in range(1, 6)]
            self.assertLessEqual(max(sizes) - min(sizes), 12)
            self.assertEqual(held, self.held_out(verb, target, "--cv", 5, "--groups", "who", data=data)[1])
            self.assertNotEqual(held, self.held_out(verb, target, "--cv", 5, "--groups", "who", "--seed", 1,
                                                    data=data)[1])
            numbers = self.write("who.txt", "".join(f"{7 * sorted(names).index(row['who']) - 3}\n"
                                                    for row in rows))
            _, by_file = self.held_out(verb, target, "--cv", 5, "--groups-file", numbers, data=data)
            folds = {}
            for row, own in zip(by_file, rows):
                folds.setdefault(own["who"], set()).add(row["fold"])
            self.assertTrue(all(len(found) == 1 for found in folds.values()))
        self.assertIn("there are only 39 groups",
                      kiln("linreg", self.path(data), "--target", "number", "--features", "a", "--cv", 40,
                           "--groups", "who", *CPU, code=2)[1])
        kiln("linreg", self.path(data), "--target", "number", "--cv", 3, "--groups", "who", "-o",
             self.path("g.kiln"), *CPU)
        kiln("predict", self.path("g.kiln"), self.path(data), "--extra-columns", "error", "-o", os.devnull,
             *CPU)
        empty = self.table([dict(row, who="" if i == 5 else row["who"]) for i, row in enumerate(rows)],
                           "empty.csv")
        train = ["linreg", empty, "--target", "number", "--features", "a", "--cv", 3, "--groups", "who",
                 "--device", "cpu"]
        self.assertIn("empty.csv:7:", kiln(*train, code=3)[1])
        self.assertIn("rows left out, as values are missing: 1 of 200", kiln(*train, "--missing", "drop")[1])

    def test_what_does_not_go_together(self):
        data = [self.path("train.csv"), "--target", "number", "--features", "a"]
        for options, part in ((["--held-out", self.path("h.csv")], "no row is held out"),
                              (["--groups", "b"], "there are no folds"),
                              (["--cv", 2, "--groups", "b", "--groups-file", "x"], "together"),
                              (["--cv", 2, "--groups", "c"], "'c'"),
                              (["--cv", 2, "--groups", "number"], "cannot be both"),
                              (["--cv", 2, "--held-out", self.path("train.csv")], "the same file")):
            self.assertIn(part, kiln("linreg", *data, *options, *CPU, code=2)[1])
        svm = self.write("d.svm", "1 1:2\n2 1:3\n")
        self.assertIn("--groups-file", kiln("linreg", svm, "--cv", 2, "--groups", "a", *CPU, code=2)[1])

    def test_a_model_keeps_its_scores(self):
        table = kiln("linreg", self.path("train.csv"), "--target", "number", "--features", "a,b", "--cv", 4,
                     "--l2", "0,1,10", "-o", self.path("v.kiln"), *CPU)[0]
        shown = kiln("info", self.path("v.kiln"))[0]
        lines = table.splitlines()[:5]
        self.assertTrue(lines[0].startswith("cross-validation: 4 folds, rmse"))
        self.assertIn("\n".join(lines), shown)
        for metric in ("r2", "mae"):
            self.assertIn(metric, lines[1])


if __name__ == "__main__":
    unittest.main(argv=["results_test"])
