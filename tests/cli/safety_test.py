"""Nothing of the user's is lost, and nothing wrong is silent.

usage: safety_test.py KILN FLIGHTS.csv.gz, as cli_test.py
"""

import os
import subprocess
import sys
import unittest

from cli_test import KILN, Case, as_json, kiln

CPU = ["--device", "cpu", "--quiet"]
TABLE = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(30))
LABELS = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(30))


class Outputs(Case):
    """An output that is an input, the model or another output is refused before anything is read."""

    def setUp(self):
        self.data = self.write("d.csv", LABELS)
        self.model = self.path("m.kiln")
        if os.path.exists(self.model):
            os.remove(self.model)
        kiln("logreg", self.data, "--target", "y", "-o", self.model, *CPU)
        self.before = {name: self.read(os.path.basename(name)) for name in (self.data, self.model)}

    def refused(self, *arguments, naming="the same file"):
        error = kiln(*arguments, *CPU, code=2)[1]
        self.assertIn(naming, error)
        self.assertIn("hint: ", error)
        for name, text in self.before.items():
            self.assertEqual(self.read(os.path.basename(name)), text)

    def aliases(self, path):
        """The file under other names: ./x, a symbolic link, a hard link, through a link to its folder."""
        folder, base = os.path.split(path)
        names = [path, os.path.join(folder, ".", base), os.path.join(folder, "sub", "..", base)]
        os.makedirs(os.path.join(folder, "sub"), exist_ok=True)
        for kind, link in (("soft", os.symlink), ("hard", os.link)):
            name = os.path.join(folder, f"{kind}-{base}")
            if os.path.lexists(name):
                os.remove(name)
            link(path, name)
            names.append(name)
        there = self.path("folder-link")
        if not os.path.lexists(there):
            os.symlink(folder, there)
        return names + [os.path.join(there, base)]

    def test_output_over_the_data(self):
        for name in self.aliases(self.data):
            with self.subTest(name=name):
                self.refused("logreg", self.data, "--target", "y", "-o", name)
                self.refused("logreg", name, "--target", "y", "-o", self.data)
                self.refused("logreg", self.data, "--target", "y", "--cv", 2, "--plot", name)
                self.refused("predict", self.model, self.data, "-o", name)
                self.refused("convert", self.data, name, "--to", "csv")

    def test_output_over_the_model(self):
        for name in self.aliases(self.model):
            with self.subTest(name=name):
                self.refused("predict", self.model, self.data, "-o", name)
                self.refused("logreg", self.data, "--target", "y", "--warm-start", self.model, "-o", name)

    def test_output_over_other_inputs(self):
        matrix = self.write("X.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n")
        numbers = self.write("n.txt", "1\n2\n4\n")
        for option in ("--weights-file", "--target-file"):
            self.refused("linreg", matrix, "--target-file", numbers, option, numbers, "-o", numbers)
        self.refused("glm", matrix, "--target-file", numbers, "--offset-file", numbers, "-o", numbers)
        graph = self.write("g.edges", "a b\nb c\nc a\n")
        self.refused("hits", graph, "--scores", graph)
        self.refused("convert", self.data, self.path("y.csv"), "--target", "y", "--targets-to", self.data)

    def test_two_outputs_under_two_names(self):
        train = ["logreg", self.data, "--target", "y", "--cv", 2, "-o", self.path("new")]
        os.makedirs(self.path("sub"), exist_ok=True)
        self.refused(*train, "--plot", self.path("sub/../new"), naming="two outputs")
        self.assertFalse(os.path.exists(self.path("new")))
        self.refused(*train, "--plot", self.path("./new"), naming="two outputs")
        kiln(*train, *CPU)
        os.link(self.path("new"), self.path("again"))
        self.refused(*train, "--plot", self.path("again"), naming="two outputs")

    def test_standard_streams_are_files_too(self):
        with open(self.data) as stdin:
            result = subprocess.run([KILN, "logreg", "-", "--target", "y", "-o", self.data, *CPU], stdin=stdin,
                                    capture_output=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        for extra in ([], ["--json"]):
            with open(self.data, "a") as stdout:
                result = subprocess.run([KILN, "predict", self.model, self.data, *CPU, *extra], stdout=stdout,
                                        stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(b"standard output would overwrite", result.stderr)
            self.assertEqual(self.read("d.csv"), LABELS.encode())

    def test_what_is_no_file_may_stand_twice(self):
        kiln("logreg", self.data, "--target", "y", "--cv", 2, "-o", "/dev/null", "--plot", "/dev/null", *CPU)
        kiln("predict", self.model, "-", "-o", "-", *CPU, stdin=LABELS.encode())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
