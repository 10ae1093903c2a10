"""Nothing of the user's is lost, and nothing wrong is silent.

usage: safety_test.py KILN FLIGHTS.csv.gz, as cli_test.py
"""

import array
import json
import os
import pty
import signal
import subprocess
import sys
import time
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
            result = subprocess.run([KILN, "logreg", "-", "--target", "y", "-o", self.data, *CPU],
                                    stdin=stdin, capture_output=True)
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


class Signals(Case):
    def test_a_signal_ends_the_wait_for_a_fifo(self):
        fifo = self.path("pipe.csv")
        os.mkfifo(fifo)
        model = self.path("pipe.kiln")
        kiln("logreg", self.write("d.csv", LABELS), "--target", "y", "-o", model, *CPU)
        for arguments in (["info", fifo], ["linreg", fifo, "--target", "y"], ["predict", model, fifo],
                          ["predict", fifo, fifo], ["convert", self.path("d.csv"), fifo, "--to", "csv"]):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(arguments=arguments, number=number):
                    process = self.start(*arguments, "--device", "cpu")
                    self.until_caught(process, number)
                    time.sleep(0.05)
                    self.assertIsNone(process.poll())
                    process.send_signal(number)
                    process.communicate(timeout=10)
                    self.assertEqual(process.returncode, 130)

    def until_caught(self, process, number):
        """Returns when the process has a handler for the signal, as Linux tells."""
        until = time.time() + 60
        while time.time() < until:
            with open(f"/proc/{process.pid}/status") as file:
                caught = next(line.split()[1] for line in file if line.startswith("SigCgt:"))
            if int(caught, 16) >> (number - 1) & 1:
                return
            time.sleep(0.005)
        self.fail("no handler after a minute")

    def test_silence_lasts_no_longer_than_a_second(self):
        """Data that do not come: what is waited for is told all the same, and nothing with --quiet."""
        fifo = self.path("silent.csv")
        os.mkfifo(fifo)
        for quiet in ([], ["--quiet"]):
            process = self.start("info", fifo, "--device", "cpu", *quiet)
            with open(fifo, "wb") as data:
                data.write(b"a,b\n1,2\n")
                data.flush()
                if not quiet:
                    self.assertIn(b"read", next(line for line in process.stderr if b"s so far" in line))
                else:
                    time.sleep(1.3)
            error = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 0)
            if quiet:
                self.assertEqual(error, b"")

    def test_a_terminal_is_told_soon(self):
        """On a terminal what is waited for has a line from 0.2 s on, and nothing is said of what is not
        known."""
        fifo = self.path("slow.csv")
        os.mkfifo(fifo)
        ours, theirs = pty.openpty()
        process = subprocess.Popen([KILN, "info", fifo, "--device", "cpu"], stdout=subprocess.DEVNULL,
                                   stderr=theirs,
                                   env=dict(os.environ, TERM="xterm"))
        os.close(theirs)
        seen, begun = b"", time.time()
        with open(fifo, "wb") as data:
            while b"s so far" not in seen:
                seen += os.read(ours, 4096)
            waited = time.time() - begun
            data.write(b"a,b\n1,2\n")
        try:
            while more := os.read(ours, 4096):
                seen += more
        except OSError:  # the terminal's other side is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertRegex(seen, rb"read, \d+\.\d s so far")
        self.assertNotIn(b"nan", seen)
        self.assertLess(waited, 30)

    def interrupt_twice(self, folder, *arguments):
        """Two signals as soon as there is a temporary file in the folder, which then has none; how often they
        came in time."""
        met = 0
        for _ in range(8):
            process = self.start(*arguments, "--device", "cpu")
            until = time.time() + 20
            while not os.listdir(folder) and process.poll() is None and time.time() < until:
                pass
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)  # two of one kind may arrive as one
            met += process.wait(20) == 130
            process.communicate()
            self.assertLessEqual(set(os.listdir(folder)), {os.path.basename(arguments[-1])})
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
        return met

    def test_two_signals_leave_no_temporary_file(self):
        """Neither the library's, of data and models, nor the tool's own, of predictions and tables."""
        rows = "".join(f"{i % 97},{i % 89},{i % 83}\n" for i in range(200000))
        data, folder, model = self.write("big.csv", "a,b,c\n" + rows), self.path("out"), self.path("big.kiln")
        os.mkdir(folder)
        kiln("linreg", data, "--target", "c", "-o", model, *CPU)
        self.assertGreater(self.interrupt_twice(folder, "convert", data, os.path.join(folder, "x.csv.gz")), 0)
        self.assertGreater(self.interrupt_twice(folder, "predict", model, data, "-o",
                                                os.path.join(folder, "x.csv")), 0)

    def test_a_limit_of_the_file_size_is_an_error(self):
        data, out = self.write("d.csv", "a,b\n" + "1,2\n" * 50000), self.path("limited.csv")
        result = subprocess.run(["bash", "-c", f"ulimit -f 4; exec {KILN} convert {data} {out} --device cpu"],
                                capture_output=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"File too large", result.stderr)
        self.assertIn(b"ulimit", result.stderr)
        self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".tmp")])


class Claims(Case):
    """A point that is no optimum is not called one."""

    def test_a_link_that_cannot_fit(self):
        data = self.write("n.csv", "x,y\n" + "".join(f"{i % 11},{-50 - 3 * (i % 11) + i % 3}\n"
                                                     for i in range(200)))
        for link in ("log", "sqrt", "inverse-squared", "logit", "probit", "cloglog", "cauchit"):
            with self.subTest(link=link):
                train = ["glm", data, "--target", "y", "--link", link, "--device", "cpu"]
                self.assertIs(as_json(*train)["converged"], False)
                error = kiln(*train, "--strict", code=4)[1]
                self.assertIn("not converged", error)
        self.assertIn("--link log can give do not come near", kiln("glm", data, "--target", "y", "--link",
                                                                   "log", *CPU)[1])
        self.assertIs(as_json("glm", data, "--target", "y", "--link", "inverse", *CPU)["converged"], True)
        zeros = self.write("z.csv", "x,y\n1,0\n2,0\n3,0\n")
        kiln("glm", zeros, "--target", "y", "--family", "poisson", *CPU)

    def test_numbers_are_not_classes_unasked(self):
        data = self.write("many.csv", "x,y\n" + "".join(f"{i % 11},{i * 17}\n" for i in range(300)))
        for verb in ("logreg", "svm"):
            error = kiln(verb, data, "--target", "y", *CPU, code=3)[1]
            self.assertIn("the target has 300 different numbers", error)
            self.assertIn("--max-classes", error)
        kiln("logreg", data, "--target", "y", "--max-classes", 300, "--max-iterations", 1, *CPU)

    def test_sums_that_overflow(self):
        for value in ("1e200", "1e308"):
            data = self.write("o.csv", f"a,y\n1,{value}\n2,{value}\n3,-{value}\n")
            for verb in ("linreg", "glm"):
                for option in ([], ["--no-intercept"]):
                    result = subprocess.run([KILN, verb, data, "--target", "y", *option, *CPU, "--json"],
                                            capture_output=True)
                    object = json.loads(result.stdout)
                    self.assertTrue(result.returncode != 0 or not object["converged"] or object["objective"]
                                    is not None,
                                    (verb, option, result.stdout))

    def test_a_weight_that_no_header_names(self):
        """A third column under a header without a source and a target is a weight, and both verbs say so."""
        for text, told in (("person,friend,when\n1,2,3\n2,3,4\n", True),
                           ("person,friend,when\nann,bob,3\nbob,ann,4\n", True),
                           ("person,friend\n1,2\n2,3\n", False), ("1,2,3\n2,3,4\n", False),
                           ("from,to,weight\n1,2,3\n2,3,4\n", False)):
            for verb in ("pagerank", "hits"):
                self.assertEqual("3 as the weight" in kiln(verb, self.write("links.csv", text), *CPU)[1],
                                 told, (verb, text))

    def test_data_that_change_in_their_file(self):
        """The data's exit code, and no model, though the file looks as old and as long as before."""
        data, target, model = self.path("change.npy"), self.path("change-y.npy"), self.path("change.kiln")
        for path, columns, numbers in ((data, 10, (i * i % 89 % 7 for i in range(600000))),
                                       (target, 1, (i % 10 for i in range(60000)))):
            header = (f"{{'descr': '<f8', 'fortran_order': False, 'shape': (60000, {columns}), }}".ljust(117)
                      + "\n")
            with open(path, "wb") as file:
                file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
                array.array("d", numbers).tofile(file)
        process = self.start("logreg", data, "--target-file", target, "--map", "--cv", "40", "--device",
                             "cpu", "-o", model)
        while b"fold 2 of" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        old = os.stat(data)
        with open(data, "r+b") as file:
            file.seek(2400000)
            file.write(bytes(8))
        os.utime(data, ns=(old.st_atime_ns, old.st_mtime_ns))
        error = process.communicate(timeout=60)[1]
        self.assertIn(b"has changed while it was in use", error)
        self.assertEqual(process.returncode, 3, error)
        self.assertFalse(os.path.exists(model))

    def test_finished_folds_are_kept(self):
        rows = "".join(f"{i % 97},{i * i % 89},{i * 7 % 83},{i % 10}\n" for i in range(60000))
        data = self.write("folds.csv", "a,b,c,y\n" + rows)
        process = self.start("logreg", data, "--target", "y", "--cv", "40", "--l2", "1e-3:1e3:5", "--device",
                             "cpu", "-o", self.path("folds.kiln"), "--held-out", self.path("held.csv"))
        while b"fold 2 of" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, error)
        self.assertIn(b"of 40 folds", error)
        self.assertIn(b"cross-validation", out)
        self.assertFalse(os.path.exists(self.path("folds.kiln")))
        # Nothing of the fold under way is counted: the table says what the rows of the finished ones do.
        right = {}
        for _, fold, target, predicted, *_ in (line.split(",")
                                               for line in self.read("held.csv").decode().splitlines()[1:]):
            right.setdefault(fold, []).append(target == predicted)
        best = [line.split() for line in out.decode().splitlines() if "  best" in line][0]
        accuracy = sum(sum(rows) / len(rows) for rows in right.values()) / len(right)
        self.assertAlmostEqual(float(best[4]), accuracy, 5)


class Memory(Case):
    """Memory grows with what was read, never with a number in it."""

    def peak(self, *arguments, code=0):
        """Peak resident bytes of a kiln, begun by a process that is small: a new one's peak begins with its
        parent's size. The kiln has one thread, so that it allocates the same each time, and what it needs is
        the least of three peaks: other processes add to how much of a library, or of what was freed, is
        resident, and take nothing away."""
        runner = ("import os, sys; null = os.open(os.devnull, os.O_RDWR)\n"
                  "to = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]\n"
                  "pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=to)\n"
                  "_, status, usage = os.wait4(pid, 0)\n"
                  "print(usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), usage.ru_utime)\n")
        line = [sys.executable, "-I", "-S", "-c", runner, KILN, *arguments, "--device", "cpu", "--quiet"]
        # A sanitizer keeps 256 MB of what has been freed.
        environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "")
                           + ":quarantine_size_mb=1",
                           KILN_NUM_THREADS="1")
        peaks = []
        for _ in range(3):
            peak, ended, self.seconds = subprocess.run(line, capture_output=True, text=True, check=True,
                                                       env=environment).stdout.split()
            self.assertEqual(int(ended), code)
            peaks.append(int(peak))
        return min(peaks)

    def test_a_line_of_commas(self):
        """At most 40 times the file, with columns that have names too, as text and as JSON."""
        with open(KILN, "rb") as file:
            # a sanitizer surrounds each piece of memory with more
            times = 80 if b"__asan_init" in file.read() else 40
        nothing = self.peak("info", self.write("small.csv", "a,b\n1,2\n"))
        commas = self.write("commas.csv", "," * 99999 + "\n")
        self.assertLess(self.peak("info", commas, code=3) - nothing, times * 100e3)
        self.assertIn("names no column", kiln("info", commas, *CPU, code=3)[1])
        named = self.write("named.csv", "x" + "," * 99999 + "\n")
        self.assertLess(self.peak("info", named, code=3) - nothing, times * 100e3)
        self.assertIn("99999 columns without a name, more than 1000", kiln("info", named, *CPU, code=3)[1])
        seconds = {}
        for row in ("1", "a"):
            wide = self.write("wide.csv", ",".join(f"c{i}" for i in range(100000)) + "\n"
                              + ",".join([row] * 100000) + "\n")
            for json in ([], ["--json"]):
                self.assertLess(self.peak("info", wide, *json) - nothing, times * os.path.getsize(wide))
            seconds[row] = float(self.seconds)
        self.assertLess(seconds["a"], 20 * seconds["1"] + 1)  # not by the square of the columns
        self.assertIn("--max-columns 100001", kiln("info", self.write("wider.csv", "," * 100000 + "a\n"),
                                                   *CPU, code=3)[1])

    def test_an_array_is_converted_where_it_lies(self):
        """16 MB of numbers take their own room and, while it is made, that of a copy in half the bytes: not
        that of another copy to write, or by rows where they lie by columns."""
        data, out = self.path("big.npy"), self.path("copy.npy")
        nothing = self.peak("info", self.write("small.csv", "a,b\n1,2\n"))
        by_columns = array.array("d", range(2000000))
        by_rows = array.array("d", [0]) * 2000000
        for column in range(10):
            by_rows[column::10] = by_columns[200000 * column:200000 * (column + 1)]
        for fortran, values in ((False, by_rows), (True, by_columns)):
            header = (f"{{'descr': '<f8', 'fortran_order': {fortran}, 'shape': (200000, 10), }}".ljust(117)
                      + "\n")
            with open(data, "wb") as file:
                file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
                           + values.tobytes())
            self.assertLess(self.peak("convert", data, out) - nothing, 2 * 16e6)
            self.assertEqual(self.read("copy.npy")[-16000000:], by_rows.tobytes())

    def test_the_largest_index(self):
        data = self.write("wide.svm", "1 2147483647:1\n")
        self.assertLess(self.peak("info", data), 100e6)
        object = as_json("info", data, *CPU)
        self.assertEqual(object["row_lengths"]["empty_columns"], 2147483646)

    def test_a_model_of_empty_objects(self):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
        import mutate

        good = self.path("good.kiln")
        kiln("logreg", self.write("d.csv", LABELS), "--target", "y", "-o", good, *CPU)
        tensors, texts = mutate.read_model(self.read("good.kiln"))
        for key in ("options", "schema", "report"):
            for text in ("[" + "{}," * 1000000 + "{}]", "[" + "[]," * 1000000 + "[]]",
                         '{"a":' * 1000 + "1" + "}" * 1000):
                with open(self.path("bad.kiln"), "wb") as file:
                    file.write(mutate.model_bytes(tensors, {**texts, key: text}))
                for arguments in (["info", self.path("bad.kiln")],
                                  ["predict", self.path("bad.kiln"), self.path("d.csv")]):
                    self.assertLess(self.peak(*arguments, code=7), 60e6)
        with open(self.path("same.kiln"), "wb") as file:
            file.write(mutate.model_bytes(tensors, texts))
        self.assertEqual(kiln("predict", self.path("same.kiln"), self.path("d.csv"), *CPU)[0],
                         kiln("predict", good, self.path("d.csv"), *CPU)[0])

    def test_plans_of_endless_shapes(self):
        for rows, nnz in ((9 * 10**18, 9 * 10**18), (2**62, 2**61), (10**18, 10**17)):
            kiln("explain", "mmchain", "--rows", rows, "--columns", 2147483647, "--nnz", nnz, "--device",
                 "cpu", code=2)


class Plugins(Case):
    def test_none_is_taken_from_the_current_folder(self):
        """The name that a program is called with says nothing about where it lies."""
        for name in ("libkiln-openmpi.so", "libkiln-mpich.so"):
            self.write(name, "not a library")
        data = self.write("d.csv", TABLE)
        ran = subprocess.run(["./kiln", "linreg", data, "--target", "y", "--mpi", *CPU], executable=KILN,
                             cwd=os.path.dirname(data), capture_output=True, text=True)
        self.assertNotIn("./libkiln", ran.stderr)
        self.assertNotIn("file too short", ran.stderr)
        self.assertNotIn("invalid ELF", ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
