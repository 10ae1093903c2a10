"""Tables as people have them: missing values, columns by name, levels that training has not seen, several
files.

usage: tables_test.py KILN FLIGHTS.csv.gz, as cli_test.py
"""

import csv
import gzip
import json
import os
import pty
import random
import subprocess
import sys
import unittest

from cli_test import KILN, Case, as_json, kiln

CPU = ["--device", "cpu", "--quiet"]


def people(count=200, seed=1):
    """Rows with numbers, text and holes: age may be missing, deck often is."""
    source = random.Random(seed)
    rows = []
    for i in range(count):
        sex, age, port = source.choice(["female", "male"]), source.randint(1, 80), source.choice("CQS")
        chance = 0.8 if sex == "female" else 0.2
        rows.append({"id": f"P{i}", "sex": sex, "age": "" if i % 5 == 3 else age, "port": port,
                     "fare": round(source.uniform(5, 90), 2), "alive": "yes" if source.random() < chance
                     else "no"})
    return rows


class Tables(Case):
    def table(self, name, rows, delimiter=",", columns=None):
        with open(self.path(name), "w", newline="") as file:
            writer = csv.DictWriter(file, columns or list(rows[0]), delimiter=delimiter,
                                    extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        return self.path(name)

    def setUp(self):
        self.rows = people()
        self.data = self.table("people.csv", self.rows)
        self.ages = [row["age"] for row in self.rows if row["age"] != ""]

    def schema(self, model):
        return as_json("info", model)["metadata"]["schema"]

    def train(self, verb, *options, data=None, target="alive", model="t.kiln", code=0):
        return kiln(verb, data or self.data, "--target", target, "-o", self.path(model), "--device", "cpu",
                    *options, code=code)[1]


class Blanks(Tables):
    """numpy.savetxt and R's write.table: rows, whatever a list of links looks like."""

    def predictions(self, data, target):
        self.train("linreg", data=data, target=target)
        kiln("predict", self.path("t.kiln"), data, "-o", self.path("p.csv"), "--device", "cpu")
        return open(self.path("p.csv")).read().split("\n")[1:]

    def test_a_table_with_blanks_is_no_graph(self):
        rows = [(i, (7 * i) % 5, 2 * i + (7 * i) % 5) for i in range(30)]
        comma = self.write("t.csv", "a,b,y\n" + "".join("%d,%d,%d\n" % row for row in rows))
        files = {"y": ["# a b y\n" + "".join("%d.0 %d.0 %d.0\n" % row for row in rows),
                       '"a" "b" "y"\n' + "".join(f'"{i}" {a} {b} {y}\n' for i, (a, b, y) in enumerate(rows)),
                       "a   b y\n" + "".join("  %d  %d %d \n" % row for row in rows)],
                 "column3": ["".join("%d %d %d\n" % row for row in rows)]}
        wanted = self.predictions(comma, "y")
        for target, texts in files.items():
            for text in texts:
                blanks = self.write("t.txt", text)
                self.assertEqual(self.predictions(blanks, target), wanted)
                for verb in ("evaluate", "verify"):
                    kiln(verb, self.path("t.kiln"), blanks, "--device", "cpu")
        pairs = self.write("pairs.txt", "".join("%d %d\n" % row[:2] for row in rows))
        self.assertEqual(as_json("kmeans", pairs, "--clusters", 2, "--device", "cpu")["rows"], 30)


class Missing(Tables):
    def test_all_problems_of_a_kind_are_told_at_once(self):
        error = self.train("logreg", code=3)
        self.assertIn("people.csv:5:", error)
        self.assertIn("value '' in numeric column 'age': missing; 40 such values, the next: line 10 'age', "
                      "line 15 'age', "
                      "line 20 'age', line 25 'age'", error)
        self.assertIn("--missing drop|mean|indicator", error)
        words = self.write("words.csv", "a,y\n" + "1,1\n" * 50 + "x,1\n" + "2,1\n" * 50 + "y,1\n")
        error = kiln("linreg", words, "--target", "y", *CPU, code=3)[1]
        self.assertIn("words.csv:52:1: value 'x'", error)
        self.assertIn("2 such values, the next: line 103 'a'", error)

    def test_drop(self):
        error = self.train("logreg", "--missing", "drop", "--ignore", "id")
        self.assertIn("rows left out, as values are missing: 40 of 200", error)
        self.assertIn("people.csv:5:", error)
        self.assertIn("read " + self.data + ": 160 rows", error)
        self.assertNotIn("missing", self.schema(self.path("t.kiln")))
        kiln("verify", self.path("t.kiln"), self.data, *CPU)
        self.assertIn("missing", kiln("predict", self.path("t.kiln"), self.data, *CPU, code=3)[1])

    def test_mean_is_remembered(self):
        self.train("logreg", "--missing", "mean", "--ignore", "id")
        age = [column for column in self.schema(self.path("t.kiln"))["columns"] if column["name"] == "age"][0]
        self.assertAlmostEqual(age["mean"], sum(self.ages) / len(self.ages))
        one = dict(self.rows[0], age="")
        holes = self.table("one.csv", [one])
        filled = self.table("filled.csv", [dict(one, age=repr(age["mean"]))])
        def answer(data):
            return kiln("predict", self.path("t.kiln"), data, "--probabilities", *CPU)[0]
        self.assertEqual(answer(holes), answer(filled))
        kiln("verify", self.path("t.kiln"), self.data, *CPU)

    def test_indicator(self):
        for columns in (None, ["age", "fare", "alive"]): # sparse, dense
            data = self.table("some.csv", self.rows, columns=columns)
            self.train("logreg", "--missing", "indicator", *(["--ignore", "id"] if not columns else []),
                       data=data)
            schema = self.schema(self.path("t.kiln"))
            self.assertEqual([c["name"] for c in schema["columns"] if c.get("indicator")], ["age"])
            wide = self.path("wide.csv")
            kiln("convert", data, wide, "--missing", "indicator", "--target", "alive", "--categorical",
                 "sex" if not columns else "age")
            self.assertTrue(all(line.endswith((",yes", ",no", ",alive"))
                                for line in self.read("wide.csv", "r").splitlines()))
            kiln("verify", self.path("t.kiln"), data, *CPU)
            kiln("predict", self.path("t.kiln"), data, *CPU)

    def test_indicator_values(self):
        data = self.write("h.csv", "a,b,y\n1,5,1\n,6,2\n3,7,3\n")
        out = kiln("convert", data, "-", "--to", "csv", "--missing", "indicator", "--target", "y", *CPU)[0]
        self.assertEqual(out, "a,a missing,b,y\n1,0,5,1\n2,1,6,2\n3,0,7,3\n")
        text = self.write("t.csv", "a,k,y\n1,u,1\n,v,2\n3,,3\n")
        out = kiln("convert", text, "-", "--to", "csv", "--missing", "indicator", "--target", "y", *CPU)[0]
        self.assertEqual(out, "a,a missing,k=,k=u,k=v,y\n1,0,0,1,0,1\n2,1,0,0,1,2\n3,0,1,0,0,3\n")

    def test_words(self):
        data = self.write("w.csv", "a,y\n" + "1,1\n" * 20 + "?,1\n-,2\n")
        self.assertIn("--missing-words", kiln("linreg", data, "--target", "y", *CPU, code=3)[1])
        out = kiln("convert", data, "-", "--to", "csv", "--missing-words", "?,-", "--missing", "mean",
                   "--target", "y", *CPU)[0]
        self.assertTrue(out.endswith("1,1\n1,1\n1,2\n"), out)
        self.train("linreg", "--missing-words", "?,-", "--missing", "mean", data=data, target="y")
        kiln("predict", self.path("t.kiln"), data, *CPU)

    def test_no_number_at_all(self):
        data = self.write("none.csv", "a,b,y\n,1,1\nNA,2,2\n")
        self.assertIn("has no numbers", kiln("linreg", data, "--target", "y", "--missing", "mean", *CPU,
                                             code=3)[1])
        every = self.write("every.csv", "a,y\n,1\nNA,2\n")
        self.assertIn("all 2 rows", kiln("linreg", every, "--target", "y", "--missing", "drop", *CPU,
                                         code=3)[1])

    def test_a_target_is_not_made_up(self):
        data = self.write("noy.csv", "a,y\n1,1\n2,\n3,3\n")
        self.assertIn("noy.csv:3:3", kiln("linreg", data, "--target", "y", "--missing", "mean", *CPU,
                                          code=3)[1])
        kiln("linreg", data, "--target", "y", "--missing", "drop", *CPU)


class Columns(Tables):
    def names(self, *options, data=None):
        out = kiln("convert", data or self.data, "-", "--to", "csv", "--missing", "mean", *options, *CPU)[0]
        return out.splitlines()[0].split(",")

    def test_features_and_ignore(self):
        self.assertEqual(self.names("--features", "fare,age"), ["age", "fare"])
        self.assertEqual(self.names("--ignore", "id,port,alive,sex"), ["age", "fare"])
        self.assertIn("did you mean 'fare'", kiln("info", self.data, "--ignore", "fair", code=2)[1])
        self.assertIn("both", kiln("info", self.data, "--ignore", "fare", "--features", "fare", code=2)[1])
        self.assertIn("both", kiln("linreg", self.data, "--features", "fare", "--target", "fare", *CPU,
                                   code=2)[1])
        self.assertIn("no column is left", kiln("info", self.data, "--ignore", "id,sex,age,port,fare,alive",
                                                code=3)[1])

    def test_kinds(self):
        data = self.write("k.csv", "zip,x,y\n" + "".join(f"{i % 3},{i},{i}\n" for i in range(30)))
        self.assertEqual(self.names("--target", "y", "--categorical", "zip", data=data),
                         ["zip=0", "zip=1", "zip=2", "x", "y"])
        text = self.write("n.csv", "a,y\nu,1\n2,2\n3,3\n4,4\n")
        self.assertIn("--numeric says so", kiln("linreg", text, "--target", "y", "--numeric", "a", *CPU,
                                                code=3)[1])
        self.assertIn("both", kiln("info", data, "--numeric", "x", "--categorical", "x", code=2)[1])

    def test_interact(self):
        """The same predictions as of the table whose pairs are a text column, also from a packed file."""
        rows = [("pqr"[i % 3], "uv"[i * i % 7 % 2], i % 5, i * i % 11) for i in range(60)]
        pairs = self.write("pairs.csv", "a,b,x,y\n" + "".join("{},{},{},{}\n".format(*row) for row in rows))
        hand = self.write("hand.csv", "a,b,x,y,both\n" + "".join(
            "{0},{1},{2},{3},{0}{1}\n".format(*row) for row in rows))
        packed = self.path("pairs.kiln-data")
        options = ["--target", "y", "--l2", 2, *CPU]
        kiln("linreg", pairs, *options, "--interact", "a:b", "-o", self.path("pairs.kiln"))
        kiln("linreg", hand, *options, "-o", self.path("hand.kiln"))
        kiln("convert", pairs, packed, "--target", "y", "--interact", "a:b")
        wanted = kiln("predict", self.path("hand.kiln"), hand, *CPU)[0].split()
        for data in (pairs, packed):
            for one, other in zip(kiln("predict", self.path("pairs.kiln"), data, *CPU)[0].split(), wanted,
                                  strict=True):
                self.assertAlmostEqual(float(one), float(other), 10)
        kiln("verify", self.path("pairs.kiln"), pairs)
        names = [row[:2] for row in map(lambda line: line.split("\t"), kiln(
            "coefficients", self.path("pairs.kiln"))[0].splitlines())]
        self.assertIn(["a:b", "p:b=u"], names)
        self.assertIn("a=p:b=u", kiln("info", self.path("pairs.kiln"))[0])
        self.assertIn("--interact comes too late", kiln("linreg", packed, "--interact", "a:b", "-o",
                                                        self.path("no.kiln"), code=2)[1])
        self.assertIn("not seen in training", kiln("predict", self.path("pairs.kiln"), self.write(
            "new.csv", "a,b,x\np,w,1\n"), *CPU)[1])

    def test_reference(self):
        self.assertEqual(self.names("--features", "sex,port", "--reference", "port=S,sex=male"),
                         ["sex=female", "port=C", "port=Q"])
        self.assertIn("no level 'X'", kiln("info", self.data, "--reference", "port=X", code=2)[1])
        self.assertIn("numeric", kiln("info", self.data, "--reference", "fare=1", code=2)[1])
        error = self.train("glm", "--family", "binomial", "--missing", "mean", "--ignore", "id",
                           "--reference", "sex=male,port=S", "--standard-errors")
        self.assertIn("1 is 'yes', 0 is 'no'", error)
        columns = {column["name"]: column for column in self.schema(self.path("t.kiln"))["columns"]}
        self.assertEqual(columns["sex"]["reference"], "male")
        self.assertEqual(self.schema(self.path("t.kiln"))["ignored"], ["id"])
        out = kiln("predict", self.path("t.kiln"), self.data, *CPU)[0].split()
        self.assertTrue(all(0 < float(value) < 1 for value in out))

    def test_names_with_commas(self):
        data = self.write("c.csv", '"a,b",a,"k=1",y\n1,2,u,1\n2,3,v,2\n3,5,"v,w",4\n')
        self.assertEqual(self.names("--ignore", "a,b,a", "--target", "y", data=data),
                         ["k=1=u", "k=1=v", '"k=1=v', 'w"', "y"])
        self.assertEqual(self.names("--features", "k=1", "--reference", "k=1=v,w", data=data),
                         ["k=1=u", "k=1=v"])

    def test_binomial_targets_have_two_classes(self):
        rows = [dict(row, alive="maybe" if i == 7 else row["alive"]) for i, row in enumerate(self.rows)]
        data = self.table("three.csv", rows)
        self.assertIn("three classes", self.train("glm", "--family", "binomial", "--missing", "mean",
                                                  data=data, code=3))


class Warnings(Tables):
    def test_text_among_numbers(self):
        data = self.write("m.csv", "a,y\n" + "1,1\n" * 10 + "absent,2\n" * 3)
        error = kiln("linreg", data, "--target", "y", "--device", "cpu")[1]
        self.assertIn("m.csv:12:1: column 'a' is taken as text: 3 of its first 13 values are no numbers, the "
                      "first 'absent'", error)
        self.assertIn("--missing-words 'absent'", error)
        self.assertNotIn("taken as text", kiln("linreg", data, "--target", "y", "--categorical", "a",
                                               "--device", "cpu")[1])

    def test_identifiers_and_dates(self):
        self.assertIn("text column 'id' has 200 levels in 200 rows", kiln("info", self.data)[1])
        data = self.write("d.csv", "day,y\n2024-01-31,1\n2024-02-01,2\n")
        self.assertIn("holds dates", kiln("info", data)[1])
        for times in ("9:05,1\n10:00,2\n", "09:05:59,1\n23:59:00,2\n"):
            self.assertIn("holds dates or times", kiln("info", self.write("t.csv", "at,y\n" + times))[1])
        self.assertNotIn("holds dates", kiln("info", self.write("r.csv", "score,y\n3:2,1\n1:1,2\n"))[1])
        other = self.write("e.csv", "day,y\n31.12.2024 10:00,1\n1/2/24,2\n")
        self.assertNotIn("holds dates", kiln("info", other)[1])

    def test_files_of_other_kinds(self):
        parquet = self.path("a.csv")
        with open(parquet, "wb") as file:
            file.write(b"PAR1\x15\x04\x15" + bytes(100) + b"PAR1")
        for options in ([], ["--format", "csv"]):
            self.assertIn("Parquet", kiln("info", parquet, *options, code=3)[1])
        svm = self.write("s.csv", "1 3:1 11:0.5\n0 2:1\n")
        self.assertIn("this is LIBSVM", kiln("info", svm, code=3)[1])
        self.assertIn("--format libsvm", kiln("info", svm, code=3)[1])
        kiln("info", svm, "--format", "libsvm")
        times = self.write("t.csv", "when,y\n2024-01-01 12:30,1\n")
        kiln("info", times)

    def test_decimal_commas(self):
        data = self.write("dc.csv", "a;y\n1,5;2,25\n2;3,5\n-0,5;1\n")
        self.assertIn("--decimal-comma", kiln("linreg", data, "--target", "y", *CPU, code=3)[1])
        self.assertEqual(kiln("convert", data, "-", "--to", "csv", "--decimal-comma", "--target", "y",
                              *CPU)[0],
                         "a,y\n1.5,2.25\n2,3.5\n-0.5,1\n")


class Predictions(Tables):
    def setUp(self):
        super().setUp()
        self.model = self.path("p.kiln")
        self.train("logreg", "--missing", "mean", "--ignore", "id", model="p.kiln")

    def test_another_format_is_refused(self):
        svm = self.write("x.svm", "1 1:2 3:4\n")
        error = kiln("predict", self.model, svm, *CPU, code=7)[1]
        self.assertIn("trained on a CSV file", error)
        matrix = self.path("x.npy")
        kiln("convert", self.data, matrix, "--features", "fare", *CPU)
        kiln("predict", self.model, matrix, *CPU, code=7)

    def test_unseen_levels(self):
        rows = [dict(row, port="X" if i % 4 == 2 else row["port"]) for i, row in enumerate(self.rows)]
        data = self.table("unseen.csv", rows)
        out, error = kiln("predict", self.model, data, "--device", "cpu")
        self.assertIn("unseen.csv:4:", error)
        self.assertIn("values of text columns not seen in training: 50; they count as no level; the first is "
                      "'X' in column 'port'", error)
        error = kiln("predict", self.model, data, "--unseen", "error", *CPU, code=7)[1]
        self.assertIn("50 such values", error)
        self.assertNotEqual(kiln("predict", self.model, data, "--unseen", "reference", "--decision", *CPU)[0],
                            kiln("predict", self.model, data, "--decision", *CPU)[0])
        classes = self.table("classes.csv", [dict(row, alive="perhaps") for row in self.rows])
        self.assertIn("rows of a class that training has not seen: 200",
                      kiln("predict", self.model, classes, "--device", "cpu")[1])

    def test_further_columns(self):
        rows = [dict(row, extra=1, other="u") for row in self.rows]
        data = self.table("extra.csv", rows)
        self.assertIn("2 columns that the model does not know ignored: 'extra', 'other'",
                      kiln("predict", self.model, data, "--device", "cpu")[1])
        self.assertNotIn("warning", kiln("predict", self.model, data, "--extra-columns", "ignore", "--device",
                                         "cpu")[1])
        self.assertIn("'extra', 'other'", kiln("predict", self.model, data, "--extra-columns", "error", *CPU,
                                               code=7)[1])
        self.assertNotIn("warning", kiln("predict", self.model, self.data, "--device", "cpu")[1])

    def test_sparse_formats(self):
        train = self.write("train.svm", "".join(f"{i % 2} 1:{i % 3} {2 + i % 2}:1\n" for i in range(20)))
        kiln("logreg", train, "-o", self.path("s.kiln"), *CPU)
        rare = self.write("rare.svm", "1 1:2 3:1 900:4\n0 1:1 2:1\n")
        out, error = kiln("predict", self.path("s.kiln"), rare, "--device", "cpu")
        self.assertIn("1 entries beyond are ignored, the first in row 1", error)
        same = self.write("same.svm", "1 1:2 3:1\n0 1:1 2:1\n")
        self.assertEqual(out, kiln("predict", self.path("s.kiln"), same, *CPU)[0])
        fewer = self.write("fewer.svm", "1 1:2\n0 1:1\n")
        kiln("predict", self.path("s.kiln"), fewer, *CPU)
        kiln("predict", self.path("s.kiln"), rare, "--extra-columns", "error", *CPU, code=7)
        plain = self.write("plain.csv", "a,b,c\n1,2,3\n")
        self.assertIn("taken by their place", kiln("predict", self.path("s.kiln"), plain, "--device",
                                                   "cpu")[1])


class Several(Tables):
    def test_lists_of_links_and_of_ratings_in_several_files(self):
        halves = [self.write("a.edges", "ann bob\nbob cy\n"),
                  self.write("b.edges", "# more\ncy ann\nann cy\n")]
        whole = self.write("whole.edges", "ann bob\nbob cy\ncy ann\nann cy\n")
        for verb in ("hits", "pagerank"):
            one, two = (as_json(verb, *files, "-o", self.path("g.kiln"), *CPU) for files in ([whole], halves))
            self.assertEqual((one["nnz"], one["rows"], one["top"] if "top" in one else 0),
                             (two["nnz"], two["rows"], two["top"] if "top" in two else 0))
            self.assertTrue(as_json("verify", self.path("g.kiln"), *halves, *CPU)["holds"])
        again = self.write("again.edges", "bob dee\n\nbob cy\n")
        self.assertIn(f"{again}:3: the link from 'bob' to 'cy' stands twice, first in {halves[0]}:2",
                      kiln("hits", halves[0], again, "--strict", *CPU, code=3)[1])
        table = self.write("market.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 1\n")
        self.assertIn("this is Matrix Market, the first file is an edge list",
                      kiln("hits", halves[0], table, *CPU, code=3)[1])

        rated = [self.write("a.csv", "user,item,rating\nann,tea,5\nbob,tea,3\n"),
                 self.write("b.csv", "item,user,rating\ncocoa,ann,4\n")]
        model = self.path("r.kiln")
        for verb in ("als", "sfa"):
            result = as_json(verb, *rated, "--factors", 1, "-o", model, *CPU)
            self.assertEqual((result["rows"], result["columns"], result["nnz"]), (2, 2, 3))
            self.assertTrue(as_json("verify", model, *rated, *CPU)["holds"])
            users = {row["user"] for row in as_json("recommend", model, *rated, *CPU)["recommendations"]}
            self.assertEqual(users, {"ann", "bob"})
        seen = self.write("seen.csv", "user,item\nann,tea\n")
        error = kiln("als", rated[0], seen, *CPU, code=3)[1]
        self.assertIn("seen.csv:1:10: no column of ratings, the first file has one", error)

        words = [self.write(f"docword.{name}.txt", "2\n3\n2\n1 1 2\n2 3 1\n") for name in "ab"]
        for verb in ("lda", "gap"):
            self.assertEqual(as_json(verb, *words, "-k", 1, *CPU)["rows"], 4)

    def test_several_files_are_one(self):
        parts = []
        for i in range(4):
            name = self.table(f"part-{i}.csv", self.rows[50 * i:50 * i + 50])
            if i % 2:
                with open(name, "rb") as file, gzip.open(name + ".gz", "wb") as packed:
                    packed.write(file.read())
                name += ".gz"
            parts.append(name)
        options = ["--missing", "mean", "--ignore", "id", "--target", "alive", *CPU]
        kiln("logreg", self.data, *options, "-o", self.path("whole.kiln"))
        kiln("logreg", *parts, *options, "-o", self.path("parts.kiln"))
        self.assertEqual(self.read("whole.kiln"), self.read("parts.kiln"))
        self.assertEqual(kiln("predict", self.path("whole.kiln"), *parts, *CPU)[0],
                         kiln("predict", self.path("whole.kiln"), self.data, *CPU)[0])
        kiln("verify", self.path("whole.kiln"), *parts, *CPU)
        self.assertEqual(as_json("info", *parts)["rows"], 200)
        self.assertIn("the same file", kiln("logreg", *parts, *options, "-o", parts[2], code=2)[1])

    def test_files_by_a_pattern(self):
        """--parts names the files that a shell would, in the order of their bytes, behind those that are
        named; and says why not."""
        for number in range(3):
            self.write(f"share-{number}.csv",
                       "x,y\n" + "".join(f"{i},{i * i + number}\n"
                                         for i in range(20 * number, 20 * number + 20)))
        names = [self.path(f"share-{number}.csv") for number in range(3)]
        expected = as_json("linreg", *names, "--target", "y", *CPU)
        for command in (["--parts", self.path("share-*.csv")],
                        [names[0], "--parts", self.path("share-[12].csv")]):
            found = as_json("linreg", *command, "--target", "y", *CPU)
            self.assertEqual((found["rows"], found["objective"]), (60, expected["objective"]))
        self.assertIn("no file matches", kiln("linreg", "--parts", self.path("nothing-*"), "--target", "y",
                                              code=2)[1])

    def test_errors_name_their_file(self):
        good, bad = self.write("good.csv", "a,y\n1,2\n2,3\n"), self.write("bad.csv", "a,y\n1,2\n2,\n")
        self.assertIn("bad.csv:3:3", kiln("linreg", good, bad, "--target", "y", *CPU, code=3)[1])
        for text, message in (("a,z\n1,2\n", "column 2 is 'z', in the first file 'y'"),
                              ("a\n1\n", "1 columns")):
            other = self.write("other.csv", text)
            self.assertIn(message, kiln("linreg", good, other, "--target", "y", *CPU, code=3)[1])
        self.assertIn("none.csv", kiln("linreg", good, self.path("none.csv"), "--target", "y", *CPU,
                                       code=3)[1])

    def test_other_formats(self):
        one, two = self.write("1.svm", "1 1:1\n0 2:1\n"), self.write("2.svm", "1 3:1\n")
        both = self.write("both.svm", "1 1:1\n0 2:1\n1 3:1\n")
        options = ["--device", "cpu", "-o"]
        kiln("linreg", one, two, *options, self.path("ab.kiln"))
        kiln("linreg", both, *options, self.path("c.kiln"))
        self.assertEqual(self.read("ab.kiln"), self.read("c.kiln"))
        self.assertIn("the first file is LIBSVM", kiln("linreg", one, self.write("x.csv", "a,y\n1,2\n"), *CPU,
                                                       code=3)[1])
        dense = "%%MatrixMarket matrix array real general\n{} {}\n" + "1\n" * 4
        wide, tall = self.write("wide.mtx", dense.format(1, 4)), self.write("square.mtx", dense.format(2, 2))
        self.assertIn("2 columns, the first file has 4", kiln("kmeans", wide, tall, "-k", 1, *CPU, code=3)[1])
        sparse = self.write("sparse.mtx", "%%MatrixMarket matrix coordinate real general\n1 4 1\n1 1 1\n")
        self.assertIn("a sparse matrix, that of the first file is dense",
                      kiln("kmeans", wide, sparse, "-k", 1, *CPU, code=3)[1])
        more = self.write("more.svm", "1,2 1:1\n")
        self.assertIn("2 targets, the first file has 1", kiln("linreg", one, more, *CPU, code=3)[1])
        self.assertEqual(as_json("kmeans", one, two, "-k", 1, *CPU)["rows"], 3)


class Packed(Tables):
    def test_a_packed_file_is_the_table(self):
        roles = ["--weights", "fare", "--missing", "mean", "--ignore", "id"]
        packed = self.path("people.kiln-data")
        kiln("convert", self.data, packed, "--target", "alive", *roles)
        lines = [kiln("logreg", *data, *CPU, "-o", self.path("m.kiln"))[0].splitlines()
                 for data in ([self.data, "--target", "alive", *roles], [packed], [packed, "--map"])]
        for one in lines[1:]:
            self.assertEqual([line for line in one if "loss" in line], [x for x in lines[0] if "loss" in x])
        self.assertEqual(self.schema(self.path("m.kiln"))["target"],
                         [{"name": "alive", "levels": ["no", "yes"]}])
        kiln("verify", self.path("m.kiln"), packed, *CPU)
        told = [[line for line in kiln("evaluate", self.path("m.kiln"), *data, *CPU)[0].splitlines()[1:]
                 if not line.startswith("  time")]
                for data in ([self.data, "--weights", "fare"], [packed])]
        self.assertEqual(*told)
        self.assertIn("no place for weights",
                      kiln("convert", self.data, self.path("x.csv"), *roles, code=2)[1])
        self.assertIn("the file has 'alive' as its target, not 'sex'",
                      kiln("logreg", packed, "--target", "sex", *CPU, code=2)[1])
        other = self.table("other.csv", [dict(row, sex=row["sex"] + "?") for row in self.rows])
        kiln("convert", other, self.path("other.kiln-data"), "--target", "alive", *roles)
        self.assertIn("not those that the model was trained on",
                      kiln("evaluate", self.path("m.kiln"), self.path("other.kiln-data"), *CPU, code=7)[1])
        few = self.table("few.csv", self.rows[: len(self.rows) // 2])
        kiln("convert", few, self.path("few.kiln-data"), "--target", "alive", *roles)
        self.assertIn("not those of the model's training",
                      kiln("predict", self.path("m.kiln"), self.path("few.kiln-data"), *CPU, code=7)[1])
        kiln("convert", self.data, self.path("sex.kiln-data"), "--target", "sex", *roles)
        kiln("logreg", self.path("sex.kiln-data"), *CPU, "-o", self.path("sex.kiln"))
        self.assertIn("not those that the model was trained on",
                      kiln("predict", self.path("sex.kiln"), packed, *CPU, code=7)[1])
        self.assertIn("--ignore comes too late", kiln("logreg", packed, "--ignore", "age", *CPU, code=2)[1])
        self.assertIn("packed data, not a model", kiln("predict", packed, self.data, code=7)[1])

    def test_roles_keep_their_names(self):
        rows = [{"y": i % 4, "x": i % 7, "e": i % 3, "w": 1 + i % 2, "g": f"g{i % 5}"} for i in range(40)]
        table, once, model = self.table("y.csv", rows), self.path("once.kiln-data"), self.path("m.kiln")
        roles = ("--offset", "e", "--weights", "w", "--groups", "g")
        kiln("convert", table, once, "--target", "y", *roles)
        packed = self.path("twice.kiln-data")
        kiln("convert", once, packed)
        self.assertEqual(*(self.read(name) for name in (once, packed)))
        told = as_json("info", packed)
        self.assertEqual([told[role] for role in ("weights", "offset", "groups")], ["w", "e", "g"])
        glm = ("glm", packed, "--family", "poisson", "--l2", 0, *CPU)
        used = as_json(*glm, "-o", model, "--cv", 3)
        self.assertEqual([used["options"][role] for role in ("offset", "weights")], ["e", "w"])
        self.assertEqual(used["cross_validation"]["groups"], "g")
        for verb in ("predict", "verify", "statistics"):
            self.assertEqual(*([line for line in kiln(verb, model, data, *CPU)[0].splitlines()
                                if "time" not in line] for data in (table, packed)))
        errors = ("--errors", "cluster")
        self.assertEqual(*(as_json("statistics", model, *data, *errors, *CPU)["coefficients"]
                           for data in ([packed], [table, "--groups", "g"])))
        self.assertIn("no column says", kiln("statistics", model, table, *errors, *CPU, code=2)[1])
        # What a model was not trained with is no part of what it says.
        plain = ("glm", table, "--target", "y", "--ignore", "e,w,g", "--family", "poisson", *CPU)
        kiln(*plain, "-o", self.path("plain.kiln"))
        other = self.path("plain.kiln")
        kiln("verify", other, packed, *CPU)
        self.assertEqual(*(kiln("predict", other, data, *CPU)[0] for data in (table, packed)))
        self.assertIn("offset, 'e', is not used", kiln("linreg", packed, *CPU)[1])

    def test_a_text_target_is_ignored_where_it_is_not_wanted(self):
        rows = [{"a": i % 7, "b": i % 5, "w": 1 + i % 2, "alive": "yes" if i % 3 else "no"}
                for i in range(40)]
        packed, back, model = self.path("p.kiln-data"), self.path("back.csv"), self.path("m.kiln")
        kiln("convert", self.table("text.csv", rows), packed, "--target", "alive", "--weights", "w")
        warned = kiln("convert", packed, back)[1]
        self.assertIn("the weights are not in", warned)
        self.assertEqual([line.split(",")[-1] for line in self.read("back.csv", "r").splitlines()],
                         ["alive", *(row["alive"] for row in rows)])
        self.assertIn("the targets are not in", kiln("convert", packed, self.path("X.npy"))[1])
        self.assertIn("'alive' is text", kiln("convert", packed, self.path("X.svm"), code=3)[1])
        for verb, data in (("pca", packed), ("svd", packed), ("kmeans", packed), ("kmeans", back)):
            left = ("--ignore", "alive") if data == back else ()
            warned = kiln(verb, data, "-k", 1, *left, "--device", "cpu", "-o", model)[1]
            unused = "the file's weights, 'w', is not used"
            self.assertEqual(unused in warned, verb != "kmeans")
            self.assertEqual(unused in kiln("verify", model, packed)[1], data == back or verb != "kmeans")
            self.assertEqual(as_json("info", model)["metadata"]["options"]["weights"],
                             "w" if verb == "kmeans" and data == packed else None)
            self.assertIn("the model has no targets to compare with",
                          kiln("predict", model, packed, "--device", "cpu")[1])
        sparse = self.path("sparse.kiln-data")
        rows = [{"c": f"c{i % 7}", "d": f"d{i % 5}", "x": i % 3, "w": 1 + i % 2} for i in range(40)]
        kiln("convert", self.table("levels.csv", rows), sparse, "--weights", "w")
        for verb in ("als", "sfa"):
            self.assertIn(unused, kiln(verb, sparse, "--factors", 1, "--device", "cpu", "-o", model)[1])
            self.assertIn(unused, kiln("verify", model, sparse)[1])
        self.assertIn(unused, kiln("recommend", model, sparse, "--user", 1)[1])
        kiln("gap", sparse, "--topics", 2, "--device", "cpu", "-o", model)
        self.assertIn(unused, kiln("evaluate", model, sparse)[1])
        self.assertIn("counts alike", kiln("evaluate", model, sparse, "--weights-file", back, code=2)[1])
        self.assertIn(unused, kiln("mmchain", sparse, self.table("y.csv", [{"y": 1}] * 13), "--device", "cpu",
                                   "-o", self.path("product.npy"))[1])
        error = kiln("linreg", packed, *CPU, code=3)[1]
        self.assertIn("a classifier takes it, as kiln logreg", error)


class Looking(Tables):
    def test_info_describes_columns(self):
        columns = {c["name"]: c for c in as_json("info", self.data, "--target", "alive")["columns_of_file"]}
        self.assertEqual(list(columns), ["id", "sex", "age", "port", "fare", "alive"])
        age, fare = columns["age"], columns["fare"]
        self.assertEqual((age["kind"], age["role"], age["missing"], age["levels"]),
                         ("number", "feature", 40, None))
        self.assertEqual((age["least"], age["most"]), (min(self.ages), max(self.ages)))
        self.assertAlmostEqual(age["mean"], sum(self.ages) / len(self.ages))
        self.assertAlmostEqual(fare["mean"], sum(row["fare"] for row in self.rows) / 200)
        self.assertEqual((columns["port"]["kind"], columns["port"]["levels"]), ("text", 3))
        self.assertEqual((columns["alive"]["role"], columns["alive"]["levels"]), ("target", 2))
        out = kiln("info", self.data, "--ignore", "id", "--target", "alive")[0]
        self.assertRegex(out, r"feature\s+number\s+1\s+80\s+[\d.]+\s+40\s+age")
        self.assertRegex(out, r"ignored\s+id")

    def test_coefficients(self):
        model = self.path("co.kiln")
        self.train("glm", "--family", "binomial", "--missing", "indicator", "--ignore", "id",
                   "--standard-errors", "--reference", "sex=male", model="co.kiln")
        lines = [line.split("\t") for line in kiln("coefficients", model, "--quiet")[0].splitlines()]
        self.assertEqual(lines[0], ["column", "level", "class", "coefficient", "std_error", "z", "p",
                                    "low_95", "high_95", "note"])
        student = self.path("student.kiln")  # the dispersion is estimated
        kiln("glm", self.data, "--target", "fare", "--features", "sex", "--standard-errors", "-o", student,
             *CPU)
        self.assertEqual(kiln("coefficients", student, "--quiet")[0].splitlines()[0].split("\t")[5], "t")
        rows = {(line[0], line[1]): line for line in lines[1:]}
        self.assertEqual(list(rows), [("sex", "female"), ("sex", "male"), ("age", ""), ("age", "(missing)"),
                                      ("port", "C"), ("port", "Q"), ("port", "S"), ("fare", ""),
                                      ("(intercept)", "")])
        self.assertEqual(rows["sex", "male"][3:], ["0", "", "", "", "", "", "reference"])
        self.assertEqual(rows["port", "S"][-1], "dependent")
        female = rows["sex", "female"]
        value, error = float(female[3]), float(female[4])
        self.assertAlmostEqual(float(female[5]), value / error)
        self.assertAlmostEqual(float(female[7]), value - 1.959963984540054 * error)
        kiln("coefficients", model, "-o", self.path("co.tsv"), "--quiet")
        self.assertEqual(self.read("co.tsv", "r"), kiln("coefficients", model, "--quiet")[0])
        kinds = [row["kind"] for row in as_json("coefficients", model)["coefficients"]]
        self.assertEqual(kinds.count("reference"), 1)
        self.assertIn("the same file", kiln("coefficients", model, "-o", model, code=2)[1])

    def test_coefficients_of_classes(self):
        self.train("logreg", "--ignore", "id,alive", "--missing", "mean", target="port")
        rows = as_json("coefficients", self.path("t.kiln"))["coefficients"]
        self.assertEqual({row["class"] for row in rows}, {"C", "Q", "S"})
        self.assertEqual(len(rows), 3 * 5)

    def test_names_do_not_command_the_terminal(self):
        data = self.write("esc.csv", 'a\x1b[2Jb,k,y\n' + "".join(f"{i},l\x1b]0;x\x07{i % 2},{i % 2}\n"
                                                                 for i in range(30)))
        kiln("logreg", data, "--target", "y", "-o", self.path("esc.kiln"), *CPU)
        kiln("glm", data, "--target", "y", "--standard-errors", "-o", self.path("glm.kiln"), *CPU)
        hostile = self.write("more.csv",
                             'a\x1b[2Jb,k,y\n1,\x1b[31mnew\x9b,1\nx\x1b[3m,u,0\n'.replace("\x9b", "\x9b"))
        graph = self.write("g.edges", "a\x1b[31m b\nb a\x1b[31m\n")
        odd = self.path("o\x1b[31m.kiln")
        for arguments, code in ((["linreg", data, "--target", "y", "-o", odd], 0),
                                (["verify", odd, data, "--target", "y"], 0), (["info", data], 0),
                                (["info", data, "--target", "k"], 0), (["info", self.path("esc.kiln")], 0),
                                (["coefficients", self.path("esc.kiln")], 0),
                                (["coefficients", self.path("glm.kiln")], 0),
                                (["glm", data, "--target", "y", "--standard-errors"], 0),
                                (["hits", graph], 0), (["logreg", data, "--target", "k"], 0),
                                (["info", hostile], 0), (["predict", self.path("esc.kiln"), hostile], 3),
                                (["info", data, "--target", "\x1b[1m"], 2)):
            with self.subTest(arguments=arguments):
                out, error = kiln(*arguments, "--device", "cpu", code=code)
                self.assertNotRegex(out + error, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")


    def test_data_on_a_terminal(self):
        """Labels and names in a file or a pipe are those of the data; a terminal gets them escaped."""
        data = self.write("labels.csv", "x,y\n" + "".join(f"{i},l\x1b[3{i % 2}m\n" for i in range(20)))
        model, graph = self.path("labels.kiln"), self.write("links.edges", "a\x1b[31m b\nb a\x1b[31m\n")
        kiln("logreg", data, "--target", "y", "-o", model, *CPU)
        for arguments in (["predict", model, data], ["hits", graph, "--scores", "-"],
                          ["pagerank", graph, "--scores", "-"]):
            master, slave = pty.openpty()
            kiln(*arguments, "--device", "cpu", stdout=slave)
            os.close(slave)
            shown = os.read(master, 1 << 16).decode()
            os.close(master)
            self.assertNotIn("\x1b[3", shown)
            self.assertIn(r"\x1b[31m", shown)
            self.assertIn("\x1b[31m", kiln(*arguments, "--device", "cpu")[0])


class Validation(Tables):
    def test_metric_and_kept_scores(self):
        options = ["--target", "alive", "--missing", "mean", "--ignore", "id", "--cv", "4", "--l2",
                   "1e-2:1e2:5", *CPU]
        object = as_json("logreg", self.data, *options, "--metric", "auc", "-o",
                         self.path("v.kiln"))["cross_validation"]
        self.assertEqual(object["metric"], "auc")
        best = max(object["values"], key=lambda value: value["mean"])
        self.assertEqual(object["best"], best["l2"])
        self.assertAlmostEqual(best["metrics"]["auc"], best["mean"])
        self.assertIn("log_loss", best["metrics"])
        kept = json.loads(json.dumps(as_json("info", self.path("v.kiln"))["metadata"]["cross_validation"]))
        self.assertEqual(kept, object)
        table = kiln("logreg", self.data, *options)[0]
        self.assertIn("accuracy", table)
        self.assertIn("AUC", table)
        self.assertIn("one of log_loss|brier|accuracy|auc", kiln("logreg", self.data, *options, "--metric",
                                                                 "rmse", code=2)[1])
        self.assertIn("have none", kiln("svm", self.data, *options, "--metric", "rmse", code=2)[1])

    def test_the_end_of_a_path(self):
        noise = ["logreg", self.data, "--target", "alive", "--missing", "mean", "--ignore", "id", "--cv", "4",
                 *CPU]
        line = ["linreg",
                self.write("line.csv", "x,y\n" + "".join(f"{i},{3 * i + i * i % 7}\n" for i in range(60))),
                "--target", "y", "--cv", "4", *CPU]
        for data, path, end, wider in ((line, "1e5,1e4,1e6", "weakest", "100:10000:5"),
                                       (noise, "1e4:1e6:3", "strongest", "1e+06:1e+08:5")):
            table = kiln(*data, "--l2", path)[0]
            self.assertIn(f"the best value is the {end} of the path: a wider one may hold a better, as --l2 "
                          f"{wider}", table)
            self.assertEqual(as_json(*data, "--l2", path)["cross_validation"]["best_at_end"], end)
        self.assertIsNone(as_json(*line, "--l2", "0,1e8,1e9")["cross_validation"]["best_at_end"])


class Limits(Tables):
    def test_many_levels(self):
        """Ten times the levels take about ten times the processor's time, not a hundred times as they once
        did."""
        seconds = []
        for count in (30000, 300000):
            data = self.write("levels.csv", "k,y\n" + "".join(f"level{i * 7919 % 300007},{i % 5}\n"
                                                              for i in range(count)))
            process = subprocess.Popen([KILN, "info", data, "--json", *CPU], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
            self.assertEqual(json.load(process.stdout)["columns_of_file"][0]["levels"], count)
            process.stdout.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            seconds.append(usage.ru_utime + usage.ru_stime)
        self.assertLess(seconds[1], 40 * max(seconds[0], 0.02))

    def test_limits_name_their_option(self):
        line = self.write("line.csv", "," * 200000 + "a\n")
        self.assertIn("--max-columns 200001", kiln("info", line, *CPU, code=3)[1])
        levels = self.write("few.csv", "k,y\na,1\nb,2\nc,3\n")
        self.assertIn("--max-levels", kiln("info", levels, "--max-levels", 2, code=3)[1])
        kiln("info", levels, "--max-levels", 3)
        self.assertIn("--max-name", kiln("info", self.write("name.csv", "a" * 5000 + ",y\n1,2\n"), code=3)[1])
        kiln("info", self.path("name.csv"), "--max-name", 5000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
