"""Labels are what the file says: from the file to the model, the predictions and the metrics.

usage: labels_test.py KILN FLIGHTS.csv.gz, as cli_test.py
"""

import collections
import random
import struct
import unittest

from cli_test import Case, as_json, kiln

CPU = ["--device", "cpu", "--quiet"]
CODES = ["007", "07", "7", "1", "1.0", "9007199254740993", "9007199254740992"]


def npy(values, kind):
    """An .npy file of whole numbers: '<i8' or '<u8'."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({len(values)},), }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header
        + struct.pack(f"<{len(values)}{'q' if 'i' in kind else 'Q'}", *values)
    )


class Labels(Case):
    """Clusters far apart, so that a right model gives every row its own label."""

    def rows(self, labels, each=20):
        source = random.Random(1)
        return [(k + source.uniform(-0.2, 0.2), (k * 3) % len(labels) + source.uniform(-0.2, 0.2), labels[k])
                for _ in range(each) for k in range(len(labels))]

    def csv(self, name, rows):
        return self.write(name, "a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in rows))

    def svm(self, name, rows):
        return self.write(name, "".join(f"{y} 1:{a + 9} 2:{b + 9}\n" for a, b, y in rows))

    def predicted(self, model, data, *more):
        return kiln("predict", model, data, *CPU, *more)[0].split()

    def trained(self, data, *more, algorithm="logreg"):
        kiln(algorithm, data, "-o", self.path("m.kiln"), *CPU, *more)
        return self.path("m.kiln")

    def check(self, data, rows, *more, algorithm="logreg", type=None):
        """Train, predict, evaluate, verify and cross-validate."""
        names = [y for _, _, y in rows]
        of_type = ["--type", type] if type else []
        model = self.trained(data, *more, *of_type, algorithm=algorithm)
        named = more if "--target-file" in more else ()
        self.assertEqual(self.predicted(model, data), names)
        found = as_json("evaluate", model, data, *CPU, *named)
        self.assertEqual(found["metrics"]["accuracy"], 1)
        self.assertEqual([str(name) for name in found["metrics"]["confusion"]["classes"]], sorted(set(names)))
        kiln("verify", model, data, *CPU, *named)
        kiln(algorithm, data, "--cv", "3", *CPU, *more, *of_type)

    def test_codes_in_csv(self):
        rows = self.rows(CODES)
        for algorithm in "logreg", "svm":
            self.check(self.csv("codes.csv", rows), rows, "--target", "y", algorithm=algorithm)
        self.check(self.csv("codes.csv", rows), rows, "--target", "y", type="f32")

    def test_codes_in_libsvm(self):
        rows = self.rows(CODES)
        self.check(self.svm("codes.svm", rows), rows)

    def test_single_precision_counts_to_2_24(self):
        rows = self.rows(["16777216", "16777217"])
        self.check(self.csv("wide.csv", rows), rows, "--target", "y", type="f32")
        self.check(self.svm("wide.svm", rows), rows, type="f32")
        rows = self.rows(["16777215", "16777214"])
        self.check(self.csv("wide.csv", rows), rows, "--target", "y", type="f32")

    def test_target_files(self):
        labels = ["9007199254740993", "9007199254740992", "-5"]
        rows = self.rows(labels)
        with open(self.path("y.npy"), "wb") as file:
            file.write(npy([int(y) for _, _, y in rows], "<i8"))
        matrix = self.write("x.mtx", f"%%MatrixMarket matrix array real general\n{len(rows)} 2\n"
                            + "".join(f"{row[j] + 9}\n" for j in range(2) for row in rows))
        self.check(matrix, rows, "--target-file", self.path("y.npy"))
        with open(self.path("u.npy"), "wb") as file:
            file.write(npy([2**64 - 1 - (y == "-5") for _, _, y in rows], "<u8"))
        unsigned = [(a, b, str(2**64 - 1 - (y == "-5"))) for a, b, y in rows]
        self.check(matrix, unsigned, "--target-file", self.path("u.npy"))
        self.check(matrix, rows, "--target-file", self.write("y.txt", "".join(f"{y}\n" for _, _, y in rows)))

    def test_plain_numbers_stay_numbers(self):
        rows = self.rows(["-1", "+1"])
        model = self.trained(self.csv("sign.csv", rows), "--target", "y")
        self.assertEqual(collections.Counter(self.predicted(model, self.path("sign.csv"))),
                         {"-1": 20, "1": 20})
        again = self.csv("again.csv", [(a, b, f"{int(y)}.0") for a, b, y in rows])
        self.assertEqual(as_json("evaluate", model, again, *CPU)["metrics"]["accuracy"], 1)

    def test_categorical_and_numeric_targets(self):
        rows = self.rows(["1", "2", "3"])
        data = self.csv("kinds.csv", rows)
        model = self.trained(data, "--target", "y", "--categorical", "y")
        self.assertEqual(as_json("evaluate", model, data, *CPU)["metrics"]["confusion"]["classes"],
                         ["1", "2", "3"])
        codes = self.csv("codes.csv", self.rows(["01", "02"]))
        model = self.trained(codes, "--target", "y", "--numeric", "y")
        self.assertEqual(set(self.predicted(model, self.write("x.csv", "a,b\n0,0\n1,3\n"))), {"1", "2"})
        self.assertIn("is a number here", kiln("linreg", data, "--target", "y", "--categorical", "y", *CPU,
                                               code=2)[1])

    def test_measurements_are_no_labels(self):
        source = random.Random(2)
        rows = [(source.random(), source.random(), f"{source.uniform(0, 1000):.2f}") for _ in range(500)]
        self.assertIn("a measurement", kiln("logreg", self.csv("prices.csv", rows), "--target", "y", *CPU,
                                            code=3)[1])

    def test_missing_labels(self):
        for word in "", "NA", "null", "None", "#N/A":
            rows = self.rows(["0", "1"]) + [(0, 0, word)]
            data = self.csv("holes.csv", rows)
            self.assertIn("missing", kiln("logreg", data, "--target", "y", *CPU, code=3)[1])
            model = self.trained(data, "--target", "y", "--missing", "drop")
            self.assertEqual(set(self.predicted(model, self.csv("full.csv", rows[:-1]))), {"0", "1"})
        rows = self.rows(["None", "mild"])
        self.check(self.csv("none.csv", rows), rows, "--target", "y", "--categorical", "y")
        self.check(self.csv("none.csv", rows), rows, "--target", "y")  # among words it is one


class MissingText(Case):
    def shown(self, *more, code=0):
        return kiln("linreg", self.path("t.csv"), "--target", "y", "-o", self.path("m.kiln"), *CPU, *more,
                    code=code)

    def levels(self, *more):
        self.shown(*more)
        return sorted(line["level"] for line in as_json("coefficients", self.path("m.kiln"))["coefficients"]
                      if line["name"] == "t")

    def test_one_level_or_an_error(self):
        words = ["", "NA", "null", "N/A", "n/a", "None", "#N/A", "<NA>", "nan"]
        self.write("t.csv",
                   "t,x,y\n" + "".join(f"{w},{i},{i % 3}\n"
                                       for i, w in enumerate(words * 3 + ["a", "b"] * 9)))
        self.assertEqual(self.levels(), ["", "a", "b"])
        self.assertIn("text column 't': missing", self.shown("--missing", "error", code=3)[1])
        self.assertIn("None", self.levels("--categorical", "t"))
        self.write("t.csv",
                   "t,x,y\n" + "".join(f"a,{w},{i % 3}\n"
                                       for i, w in enumerate(["1", "2", "3"] * 9 + words[1:])))
        self.assertIn("numeric column 'x': missing", self.shown(code=3)[1])
        self.shown("--missing", "mean")

    def test_numbers_that_become_levels(self):
        for words in (["45%", "3%", "7%"], ["12kg", "3.5kg", "1kg"], ["0x1f", "0x20", "0xff"],
                      ["1_000", "2_000", "10_000"], ["$12", "$3", "$7"], ["-€3", "€12", "€7"],
                      ["<5", "<1", "<9"], ["(12)", "(3)", "(7)"]):
            self.write("t.csv", "t,y\n" + "".join(f"{w},{i % 3}\n" for i, w in enumerate(words * 9)))
            self.assertIn(f"such as '{words[0]}'", self.shown()[1])
            self.assertNotIn("such as", self.shown("--categorical", "t")[1])
        for words in (["1st", "2nd", "3rd"], ["20-29", "30-39"], ["3A", "4B"], ["a", "b"]):
            self.write("t.csv", "t,y\n" + "".join(f"{w},{i % 3}\n" for i, w in enumerate(words * 9)))
            self.assertNotIn("such as", self.shown()[1])
        self.write("t.csv", "t,y\n" + "?,1\n" * 3000 + "".join(f"{i / 8},{i % 3}\n" for i in range(1000)))
        self.assertIn("t.csv:2: text column 't': 1000 of its 1001 levels are numbers, the first that is none "
                      "is '?'", self.shown()[1])
        self.assertNotIn("levels", self.shown("--missing-words", "?", "--missing", "mean")[1])
        words = lambda begin: ["?" if begin <= i < 3000 else str(i / 8) for i in range(4001)]  # noqa: E731
        self.write("u.csv",
                   "t,u,y\n" + "".join(f"{t},{u},{i % 3}\n"
                                       for i, (t, u) in enumerate(zip(words(9), words(5)))))
        told = kiln("linreg", self.path("u.csv"), "--target", "y", *CPU)[1]
        for line, column in ((11, "t"), (7, "u")):
            self.assertRegex(told,
                             f"u.csv:{line}: text column '{column}': 10.. of its 10.. levels are numbers")
        self.assertIn("text columns: t (1,001 levels)", kiln("linreg", self.path("t.csv"), "--target", "y",
                                                             "--device", "cpu")[1])


if __name__ == "__main__":
    unittest.main(argv=["labels_test"])
