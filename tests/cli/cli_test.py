"""Drives the kiln executable: verbs, exit codes, JSON, signals, streams.

usage: cli_test.py KILN FLIGHTS.csv.gz [SECONDS]

SECONDS: how long kiln --help may take beyond what starting any process takes; 0.005 unless told.
"""

import gzip
import json
import math
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

KILN, FLIGHTS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
START_SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 0.005
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SOURCES = os.path.join(ROOT, "src")
# Words that only a C program knows: kiln_glm, kiln_glm_options.l2, KILN_ERR_DATA; not the environment's
# KILN_CACHE_DIR.
C_NAME = re.compile(r"\bkiln_[a-z]\w*|\bKILN_(ERR|STOP|LOSS|FILE|F32|F64|LINK|TYPE)\w*")
VERBS = ["linreg", "logreg", "glm", "svm", "hits", "pagerank", "mds", "als", "sfa", "lda", "gap", "kmeans",
         "svd", "pca", "spectral",
         "predict", "evaluate", "statistics", "verify", "info", "recommend", "coefficients", "convert",
         "mmchain", "sddmm", "devices", "doctor",
         "explain", "tune", "completion", "man", "help", "version"]


def kiln(*arguments, code=0, stdin=None, stdout=subprocess.PIPE, environment=None):
    """Runs kiln; fails unless it ends with `code`. Returns (stdout, stderr) as text."""
    result = subprocess.run(
        [KILN, *map(str, arguments)],
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        timeout=300,
    )
    out = (result.stdout or b"").decode()
    error = result.stderr.decode()
    if result.returncode != code:
        raise AssertionError(f"kiln {arguments}: exit code {result.returncode}, not {code}\n{out}\n{error}")
    if C_NAME.search(error):
        raise AssertionError(f"kiln {arguments}: a C name in the message\n{error}")
    return out, error


def content(path, unpack=open):
    with unpack(path, "rb") as file:
        return file.read()


def as_json(*arguments, code=0, stdin=None):
    """The one JSON object on standard output; strict: NaN and Infinity are not JSON."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(kiln(*arguments, "--json", code=code, stdin=stdin)[0], parse_constant=refuse)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="kiln-cli-")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def read(self, name, mode="rb"):
        with open(self.path(name), mode) as file:
            return file.read()

    def start(self, *arguments, stdin=None):
        """A kiln that is running, whose streams are closed when the test ends."""
        process = subprocess.Popen(
            [KILN, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            self.addCleanup(lambda stream=stream: stream.closed or stream.close())
        return process


class Usage(Case):
    def test_help_of_every_verb_is_complete(self):
        for verb in VERBS:
            with self.subTest(verb=verb):
                out, error = kiln(verb, "--help")
                self.assertEqual(error, "")
                self.assertEqual(out, kiln("help", verb)[0])
                for part in (f"usage: kiln {verb}", "Examples", "Exit codes", "--json", "--help"):
                    self.assertIn(part, out)
                self.assertLessEqual(max(map(len, out.splitlines())), 110)

    def test_overview_names_every_verb_and_exit_code(self):
        out = kiln("--help")[0]
        for verb in VERBS:
            self.assertRegex(out, rf"\n  {verb} ")
        for code in (0, 1, 2, 3, 4, 5, 6, 7, 130):
            self.assertRegex(out, rf"\n +{code}  ")

    def test_nothing_given(self):
        out, error = kiln(code=2)
        self.assertEqual(out, "")
        self.assertIn("usage: kiln VERB", error)

    def test_version(self):
        number = kiln("--version")[0].split()[1]
        self.assertEqual(kiln("version")[0], f"kiln {number}\n")
        self.assertEqual(as_json("version")["kiln_version"], number)

    def test_suggestions(self):
        for arguments, hint in (
            (["linrge"], "kiln linreg"),
            (["linreg", "x", "--tolerence", "1"], "--tolerance"),
            (["linreg", "x", "--max-iter", "1"], "--max-iterations"),
            (["predcit"], "kiln predict"),
            (["help", "lin"], "kiln help linreg"),
            (["man", "cnovert"], "kiln man convert"),
            (["linreg", "x", "--devcie=cpu"], "--device"),
            (["linreg", "x", "-json"], "--json"),
            ([FLIGHTS], "kiln linreg"),
        ):
            with self.subTest(arguments=arguments):
                self.assertRegex(kiln(*arguments, code=2)[1], rf"hint: .*{hint}")

    def test_bad_usage(self):
        for arguments in (
            ["linreg"],
            ["convert", "a", "b", "c"],
            ["predict", "a"],
            ["devices", "--l2", "1"],
            ["linreg", "a", "--l2", "-1"],
            ["linreg", "a", "--l2", "one"],
            ["linreg", "a", "--l2", "nan"],
            ["linreg", "a", "--tolerance=-1"],
            ["hits", "a", "--tolerance=-1"],
            ["glm", "a", "--alpha", "0"],
            ["glm", "a", "--family", "tweedie", "--variance-power", "2"],
            ["logreg", "a", "--l1", "0:1:3"],
            ["logreg", "a", "--C", "0"],
            ["svm", "a", "--C", "1e-320:1:3"],
            ["linreg", "a", "--threads", "0"],
            ["linreg", "a", "--type", "f16"],
            ["linreg", "a", "--memory", "10X"],
            ["linreg", "a", "--json=1"],
            ["linreg", "a", "--l2"],
            ["linreg", "a", "--max-iterations", "1e3"],
            ["linreg", "a", "-x"],
            ["help", "nothing"],
            ["completion", "csh"],
            ["convert", "a", "-"],
            ["linreg", "a", "--device", "gpu"],
            ["linreg", "a", "--json", "-o", "-"],
        ):
            with self.subTest(arguments=arguments):
                error = kiln(*arguments, code=2)[1]
                self.assertRegex(error, r"\Akiln: .")

    def test_messages_name_options_as_they_are_typed(self):
        """Each field of options that a message of the library names is an option, or in parentheses, which
        drops it."""
        options = set(re.findall(r"--([a-z][a-z0-9-]*)", "".join(kiln(verb, "--help")[0] for verb in VERBS)))
        found = 0
        for folder, _, names in os.walk(SOURCES):
            for name in filter(lambda name: name.endswith(".c"), names):
                text = content(os.path.join(folder, name)).decode()
                for literal in re.findall(r'"(?:[^"\\\n]|\\.)*"', text):
                    for whole, field in re.findall(r"((?:kiln_\w+|%s)_options\.(\w+))", literal):
                        found += 1
                        if f"({whole})" not in literal:
                            self.assertIn(field.replace("_", "-"), options, f"{name}: {literal}")
        self.assertGreater(found, 5)

    def test_outputs_are_apart(self):
        train = ["linreg", FLIGHTS, "--target", "arr_delay"]
        same = self.path("same")
        self.assertIn("two outputs", kiln(*train, "--cv", 2, "-o", same, "--plot", same, code=2)[1])
        self.assertIn("two outputs", kiln("convert", FLIGHTS, same, "--to", "mtx", "--targets-to", same,
                                          code=2)[1])
        self.assertFalse(os.path.exists(same))
        out, error = kiln(*train, "--l2", "1:100:3", "--plot", "-")
        self.assertTrue(out.startswith("<svg") and out.endswith("</svg>\n"))
        self.assertIn("path on the training data", error)

    def test_options_that_do_nothing(self):
        for arguments, part in (
            (["linreg", FLIGHTS, "--target", "arr_delay", "--zero-based"], "no LIBSVM file"),
            (["linreg", FLIGHTS, "--target", "arr_delay", "--select", "best"], "--cv"),
            (["explain", "mmchain", FLIGHTS, "--rows", 3, "--columns", 2], "no data"),
            (["explain", "linreg", FLIGHTS, "--rows", 3], "from its data"),
            (["tune", "mmchain", "--rows", 30, "--columns", 20, "--skew", "zipf"], "--nnz"),
            (["tune", "mmchain", "--rows", 30, "--columns", 20, "--nnz", 601], "600 places"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(part, kiln(*arguments, code=2)[1])

    def test_usage_errors_are_json_too(self):
        error = as_json("linreg", "x", "--tolerence", "1", code=2)["error"]
        self.assertEqual(set(error), {"code", "message", "file", "line", "column", "offset", "hint"})
        self.assertEqual(error["code"], "KILN_ERR_ARGUMENT")
        self.assertIn("--tolerance", error["hint"])

    def test_options_stand_anywhere(self):
        model = self.path("anywhere.kiln")
        kiln("-q", "--target=arr_delay", "linreg", "-o" + model, FLIGHTS, "--device", "cpu")
        self.assertTrue(os.path.exists(model))
        self.assertIn("No such file", kiln("info", "-q", "--", "--json", code=3)[1])

    def test_help_shows_what_applies(self):
        for verb, taken, refused in (("version", (), ("--device", "--threads", "--seed")),
                                     ("man", (), ("--memory", "--type")),
                                     ("devices", ("--device", "--threads"), ("--type", "--seed")),
                                     ("coefficients", ("--device",), ("--type", "--deterministic", "--seed")),
                                     ("linreg", ("--seed", "rmse|mae|r2. "),
                                      ("log_loss", "--C ", "--probabilities")),
                                     ("predict", ("Write the predictions", " 7 the model"),
                                      ("not converged", "Draw ", "Write the model")),
                                     ("convert", (" 3 bad data",), (" 4 ", " 7 the model")),
                                     ("hits", ("--device",), ("--seed",)), ("kmeans", ("--seed",), ()),
                                     ("logreg", ("--l1", "log_loss|brier|accuracy|auc. "),
                                      ("rmse", "--offset"))):
            text = kiln(verb, "--help")[0]
            words = " ".join(text.split())
            for part in taken:
                self.assertIn(part, words, verb)
            for part in refused:
                self.assertNotIn(part, words, verb)
        self.assertIn("version does not take --seed", kiln("version", "--seed", 7, code=2)[1])
        self.assertIn("als does not take -k\n", kiln("als", "ratings.csv", "-k", 8, code=2)[1])
        kiln("devices", "--memory", "1.5G", "--threads", 1)

    def test_a_dash_is_missing(self):
        for word, meant in (("-target", "--target"), ("-json", "--json"), ("-output=x", "--output")):
            error = kiln("linreg", FLIGHTS, word, "arr_delay", code=2)[1]
            self.assertEqual(error, f"kiln: unknown option -{meant[2:]}\nhint: did you mean {meant}?\n")

    def test_times_add_up(self):
        for arguments in (["linreg", FLIGHTS, "--target", "arr_delay", "--cv", 2],
                          ["hits", self.write("g.edges", "a b\nb c\n")]):
            seconds = as_json(*arguments)["seconds"]
            parts = [seconds[part] for part in ("read", "transfer", "build", "solve", "measure", "write",
                                                "other")]
            self.assertAlmostEqual(sum(parts), seconds["total"], 9)
            self.assertRegex(kiln(*arguments)[0],
                             r"  time .*: read .*, solve .*, measure .*, write .*, other .* s\n")


class Pages(Case):
    def test_man_pages_name_their_options(self):
        for verb in VERBS:
            page = kiln("man", verb)[0].replace("\\-", "-")
            names = re.findall(r"^ .{5}--([a-z0-9-]+)", kiln(verb, "--help")[0], re.M)
            self.assertGreaterEqual(len(names), 4)
            for name in names:
                self.assertIn(f"--{name}\\fR", page)
            self.assertIn(f'.TH "KILN-{verb.upper()}" 1', page)
        self.assertIn(".SH EXIT STATUS", kiln("man")[0])

    def test_man_pages_format_without_warnings(self):
        if not shutil.which("groff"):
            print("cli: no groff here: man pages are checked for their content only", file=sys.stderr)
            return
        for verb in [None, *VERBS]:
            page = kiln("man", *([verb] if verb else []))[0].encode()
            result = subprocess.run(
                ["groff", "-man", "-Tascii", "-ww", "-z"], input=page, capture_output=True
            )
            self.assertEqual((result.returncode, result.stderr), (0, b""), verb)

    def test_each_algorithm_says_what_its_tolerance_is_of(self):
        own = {"linreg": "normal equations", "logreg": "it is at zero", "glm": "constant mean",
               "svm": "it is at zero", "hits": "authorities"}
        for verb, words in own.items():
            text = " ".join(
                kiln(verb, "--help")[0].split("--tolerance NUMBER")[1].split("--max-iterations")[0].split()
            )
            self.assertIn(words, text)
            for other in {"normal equations", "constant mean", "authorities"} - {words}:
                self.assertNotIn(other, text)

    def test_bash_offers_what_the_verb_takes(self):
        if not shutil.which("bash"):
            print("cli: no bash here: its completion is not run", file=sys.stderr)
            return
        script = kiln("completion", "bash")[0]
        for words, offered in (("logreg --metric ", "log_loss brier accuracy auc"),
                               ("mds --metric ", "ratio interval ordinal"), ("linreg --metric r", "rmse r2"),
                               ("glm --link id", "identity"),
                               ("linreg --missing ", "error drop mean indicator")):
            line = (script
                    + f"\nCOMP_WORDS=(kiln {words.rsplit(' ', 1)[0]} '{words.rsplit(' ', 1)[1]}'); "
                      f"COMP_CWORD=3; _kiln; echo ${{COMPREPLY[@]}}\n")
            found = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
            self.assertEqual(found.stdout.strip(), offered, (words, found.stderr))

    def test_completion_scripts_parse(self):
        for shell in ("bash", "zsh", "fish"):
            script = kiln("completion", shell)[0]
            for verb in VERBS:
                self.assertIn(verb, script)
            for option in ("max-iterations", "target-file", "warm-start"):
                self.assertIn(option, script)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script.encode(), check=True)

    def test_bash_completes(self):
        words = {
            "kiln li": "linreg",
            "kiln linreg --tol": "--tolerance",
            "kiln linreg --type f3": "f32",
            "kiln completion f": "fish",
            "kiln devices --jso": "--json",
            "kiln devices --l2": "",
        }
        script = (
            'source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _kiln; '
            'echo "${COMPREPLY[*]}"'
        )
        for line, want in words.items():
            got = subprocess.run(
                ["bash", "-c", script, "-", KILN, *line.split()], capture_output=True, check=True
            )
            self.assertEqual(got.stdout.decode().strip(), want, line)


class Examples(Case):
    """An example of the help on the data that the tree has runs as it stands, here on some of the rows."""

    def test_examples_run(self):
        os.mkdir(self.path("data"))
        lines = content(FLIGHTS, gzip.open).splitlines(keepends=True)[:3001]
        for name in ("flights.csv.gz", "flights_test.csv.gz"):
            with gzip.open(self.path(f"data/{name}"), "wb") as file:
                file.write(b"".join(lines))
        commands = ["kiln logreg data/flights.csv.gz --target origin -o origin.kiln"]  # evaluate judges it
        for verb in VERBS:
            examples = kiln(verb, "--help")[0].split("Examples\n")[1].split("\n\n")[0]
            commands += [line.strip() for line in examples.splitlines() if "flights" in line]
        self.assertGreater(len(commands), 6)
        path = os.path.dirname(KILN) + os.pathsep + os.environ["PATH"]
        self.assertEqual(os.path.basename(KILN), "kiln")
        for command in commands:
            with self.subTest(command=command):
                result = subprocess.run(command, shell=True, cwd=self.folder, capture_output=True, text=True,
                                        env={**os.environ, "PATH": path}, timeout=300, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)


class Training(Case):
    def test_linreg_reports_and_writes(self):
        model = self.path("flights.kiln")
        out, error = kiln("linreg", FLIGHTS, "--target", "arr_delay", "--solver", "cg", "-o", model)
        self.assertRegex(out, r"converged +yes")
        self.assertRegex(out, r"R2 +0\.8")
        self.assertRegex(error, r"device \S+: ")
        self.assertRegex(error, r"read \S+: [\d,]+ rows x")
        iterations = [int(i) for i in re.findall(r"^iteration (\d+):", error, re.M)]
        powers = [2**i for i in range(max(iterations).bit_length())]  # and others where a second has passed
        self.assertEqual([i for i in iterations if i in powers], powers)
        self.assertGreaterEqual(len(powers), 3)

    def test_json_result(self):
        result = as_json("linreg", FLIGHTS, "--target", "arr_delay", "--device", "cpu")
        keys = {
            "schema",
            "algorithm",
            "device",
            "type",
            "rows",
            "columns",
            "nnz",
            "iterations",
            "converged",
            "stopped_by",
            "objective",
            "metrics",
            "seconds",
            "trace",
        }
        self.assertLessEqual(keys, set(result))
        self.assertEqual((result["schema"], result["algorithm"]), ("kiln.result/1", "linreg"))
        self.assertEqual((result["device"], result["type"]), ("cpu", "f64"))
        self.assertEqual(set(result["metrics"]), {"r2", "rss", "rmse", "rank"})
        self.assertLessEqual({"read", "transfer", "build", "solve", "total"}, set(result["seconds"]))
        self.assertIs(result["converged"], True)
        self.assertEqual(result["stopped_by"], "tolerance")
        self.assertLessEqual(result["residual"], result["tolerance"])
        self.assertAlmostEqual(
            result["metrics"]["rmse"], math.sqrt(result["metrics"]["rss"] / result["rows"]), 9
        )
        self.assertAlmostEqual(
            result["objective"], result["metrics"]["rss"] / 2, delta=1e-6 * result["objective"]
        )
        self.assertEqual(result["trace"][0]["iteration"], 0)
        self.assertEqual(set(result["trace"][0]), {"iteration", "residual", "objective", "seconds", "inner",
                                                   "radius"})
        seconds = result["seconds"]
        self.assertLessEqual(seconds["read"] + seconds["solve"], seconds["total"])

    def test_undefined_numbers_are_null(self):
        data = self.write("constant.csv", "x,y\n1,2\n2,2\n3,2\n")
        self.assertIsNone(as_json("linreg", data, "--target", "y")["metrics"]["r2"])

    def test_known_solution(self):
        rows = "\n".join(f"{i},{i * i % 7},{3 * i - 2 * (i * i % 7) + 5}" for i in range(50))
        data = self.write("exact.csv", f"a,b,y\n{rows}\n")
        model = self.path("exact.kiln")
        kiln("linreg", data, "--target", "y", "-o", model, "-q")
        info = as_json("info", model)
        weights = {row["name"]: row["weight"] for row in info["top_coefficients"]}
        self.assertAlmostEqual(weights["a"], 3, 8)
        self.assertAlmostEqual(weights["b"], -2, 8)
        self.assertEqual(info["kind"], "model")
        self.assertEqual(
            {t["name"]: (t["rows"], t["columns"]) for t in info["tensors"]}, {"W": (2, 1), "b": (1, 1)}
        )
        self.assertEqual(info["metadata"]["options"]["l2"], 0)
        self.assertLessEqual(
            {"algorithm", "kiln_version", "device", "type", "options", "metrics", "schema"},
            set(info["metadata"]),
        )
        predicted = [float(line) for line in kiln("predict", model, data, "-q")[0].split()]
        for i, value in enumerate(predicted):
            self.assertAlmostEqual(value, 3 * i - 2 * (i * i % 7) + 5, 6)

    def test_options_change_the_model(self):
        base = as_json("linreg", FLIGHTS, "--target", "arr_delay")["objective"]
        for options in (["--l2", "100"], ["--l2", "100", "--standardize"]):
            self.assertGreater(
                as_json("linreg", FLIGHTS, "--target", "arr_delay", *options)["objective"], base
            )
        data = self.write("shifted.csv", "x,y\n1,11\n2,12\n4,14\n")
        self.assertLess(as_json("linreg", data, "--target", "y")["objective"], 1e-9)
        self.assertGreater(as_json("linreg", data, "--target", "y", "--no-intercept")["objective"], 1)
        self.assertEqual(as_json("linreg", FLIGHTS, "--target", "arr_delay", "--type", "f32")["type"], "f32")

    def test_sample_weights(self):
        data = self.write("weighted.csv", "x,y\n0,0\n0,10\n")
        weights = self.write("weights.csv", "w\n1\n3\n")
        model = self.path("weighted.kiln")
        result = as_json("linreg", data, "--target", "y", "--weights-file", weights, "-o", model)
        self.assertAlmostEqual(result["metrics"]["rss"], 75, 6)
        self.assertAlmostEqual(result["metrics"]["rmse"], math.sqrt(75 / 4), 6)
        self.assertEqual([float(v) for v in kiln("predict", model, data, "-q")[0].split()], [7.5, 7.5])
        short = self.write("short.csv", "w\n1\n")
        self.assertIn(
            f"--weights-file {short} has 1 row, the data have 2 rows",
            kiln("linreg", data, "--target", "y", "--weights-file", short, code=3)[1],
        )

    def test_warm_start(self):
        model = self.path("warm.kiln")
        cold = as_json("linreg", FLIGHTS, "--target", "arr_delay", "-o", model)["iterations"]
        warm = as_json("linreg", FLIGHTS, "--target", "arr_delay", "--warm-start", model)
        self.assertLess(warm["iterations"], cold / 2)
        self.assertTrue(warm["converged"])
        other = self.write("other.csv", "x,arr_delay\n1,2\n2,3\n")
        kiln("linreg", other, "--target", "arr_delay", "--warm-start", FLIGHTS, code=7)

    def test_not_converged(self):
        arguments = ["linreg", FLIGHTS, "--target", "arr_delay", "--solver", "cg", "--max-iterations", "2"]
        out, error = kiln(*arguments)
        self.assertIn("warning: not converged", error)
        self.assertIn("hint: ", error)
        self.assertRegex(out, r"converged +no")
        result = as_json(*arguments, "--strict", code=4)
        self.assertIs(result["converged"], False)
        self.assertEqual(result["stopped_by"], "max_iterations")

    def test_advice_after_a_stall_is_new(self):
        stall = ["glm", FLIGHTS, "--target", "arr_delay", "--tolerance", "1e-300"]
        for more, wanted, unwanted in (([], ["--tolerance ", "--standardize", "--l2"], ["--type f64"]),
                                       (["--standardize"], ["--l2"], ["--standardize", "--type f64"]),
                                       (["--type", "f32"], ["--type f64", "--standardize"], [])):
            error = kiln(*stall, *more, "-q")[1]
            hint = error[error.index("hint:"):]
            self.assertIn("rounding of f32" if "f32" in more else "rounding of f64", error)
            for part in wanted:
                self.assertIn(part, hint)
            for part in unwanted:
                self.assertNotIn(part, hint)
        error = kiln(*stall, "-q")[1]
        reached = error.split("hint: --tolerance ")[1].split(",")[0]
        # the columns depend on each other: rounding must not lead along that
        self.assertLess(float(reached), 1e-12)
        self.assertIs(as_json(*stall[:4], "--tolerance", reached)["converged"], True)

    def test_standard_input_gives_the_same_model(self):
        kiln("linreg", FLIGHTS, "--target", "arr_delay", "-o", self.path("file.kiln"), "-q")
        for name, stream in (("packed", content(FLIGHTS)), ("plain", content(FLIGHTS, gzip.open))):
            kiln("linreg", "-", "--target", "arr_delay", "-o", self.path(name), "-q", stdin=stream)
            self.assertEqual(self.read("file.kiln"), self.read(name), name)

    def test_seed_changes_nothing(self):
        for seed in (0, 12345):
            kiln(
                "linreg",
                FLIGHTS,
                "--target",
                "arr_delay",
                "-o",
                self.path(f"seed{seed}"),
                "--seed",
                seed,
                "-q",
            )
        self.assertEqual(self.read("seed0"), self.read("seed12345"))

    def test_model_on_standard_output(self):
        kiln("linreg", FLIGHTS, "--target", "arr_delay", "-o", self.path("named"), "-q")
        with open(self.path("piped"), "wb") as file:
            error = kiln("linreg", FLIGHTS, "--target", "arr_delay", "-o", "-", stdout=file)[1]
        self.assertEqual(self.read("named"), self.read("piped"))
        self.assertRegex(error, r"R2 +0\.8")

    def test_quiet_and_verbose(self):
        self.assertEqual(kiln("linreg", FLIGHTS, "--target", "arr_delay", "-q")[1], "")
        error = kiln("linreg", FLIGHTS, "--target", "arr_delay", "--solver", "cg", "-v")[1]
        self.assertIn("iteration 3:", error)
        self.assertIn("peak memory", error)


class Predicting(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = os.path.join(cls.folder, "flights.kiln")
        cls.result = as_json("linreg", FLIGHTS, "--target", "arr_delay", "-o", cls.model)

    def test_predictions_and_metrics(self):
        error = kiln("predict", self.model, FLIGHTS, "-o", self.path("p.txt"))[1]
        self.assertIn("R2 0.8", error)
        lines = self.read("p.txt", "r").splitlines()
        self.assertEqual(len(lines), self.result["rows"])
        for line in lines[:200]:
            self.assertEqual(float(repr(float(line))), float(line))
        self.assertEqual(kiln("predict", self.model, FLIGHTS)[0].splitlines(), lines)
        self.assertEqual([n for n in os.listdir(self.folder) if ".tmp" in n], [])

    def test_json(self):
        result = as_json("predict", self.model, FLIGHTS, "-o", self.path("q.txt"))
        self.assertEqual(result["schema"], "kiln.prediction/1")
        self.assertAlmostEqual(result["metrics"]["r2"], self.result["metrics"]["r2"], 9)
        self.assertAlmostEqual(result["metrics"]["rmse"], self.result["metrics"]["rmse"], 7)
        self.assertNotIn("predictions", result)
        values = as_json("predict", self.model, FLIGHTS)["predictions"]
        self.assertEqual(values, [float(line) for line in self.read("q.txt", "r").split()])

    def test_without_labels(self):
        lines = content(FLIGHTS, gzip.open).decode().splitlines()[:20]
        at = lines[0].split(",").index("arr_delay")
        bare = "\n".join(",".join(v for i, v in enumerate(line.split(",")) if i != at) for line in lines)
        result = as_json("predict", self.model, self.write("bare.csv", bare + "\n"))
        self.assertIsNone(result["metrics"])
        self.assertEqual(len(result["predictions"]), 19)

    def test_several_targets(self):
        data = self.write("two.csv", "x,y,z\n1,2,0\n2,4,1\n3,6,2\n4,8,3\n")
        model = self.path("two.kiln")
        kiln("linreg", data, "--target", "y,z", "-o", model, "-q")
        rows = [
            [float(v) for v in line.split(" ")] for line in kiln("predict", model, data, "-q")[0].splitlines()
        ]
        for i, row in enumerate(rows):
            self.assertEqual(len(row), 2)
            self.assertAlmostEqual(row[0], 2 * i + 2, 7)
            self.assertAlmostEqual(row[1], i, 7)

    def test_unusable_models(self):
        self.assertIn("not a model", kiln("predict", FLIGHTS, self.model, code=7)[1])
        kiln("predict", self.path("missing.kiln"), FLIGHTS, code=7)
        wide = self.path("wide.kiln")
        kiln("linreg", self.write("wide.svm", "1 1:2 5:3\n0 2:1\n1 1:1\n"), "-o", wide)
        narrow = self.write("narrow.csv", "1,2,3\n4,5,6\n")
        for verb in ("predict", "verify"):
            self.assertIn("was trained on 5 columns", kiln(verb, wide, narrow, "--target", "column3",
                                                           code=7)[1])
        torn = self.read("flights.kiln")[:-5]
        with open(self.path("torn.kiln"), "wb") as file:
            file.write(torn)
        error = as_json("predict", self.path("torn.kiln"), FLIGHTS, code=7)["error"]
        self.assertEqual(error["code"], "KILN_ERR_MODEL")

    def test_output_is_all_or_nothing(self):
        target = self.write("old.txt", "old\n")
        strange = self.write("strange.csv", "x\n1\n")
        self.assertIn("dep_delay", kiln("predict", self.model, strange, "-o", target, code=7)[1])
        bad = self.write("bad.csv", content(FLIGHTS, gzip.open).decode()[:2000] + '"')
        kiln("predict", self.model, bad, "-o", target, code=3)
        self.assertEqual(self.read("old.txt", "r"), "old\n")


class Data(Case):
    def test_info(self):
        info = as_json("info", FLIGHTS, "--target", "arr_delay")
        self.assertEqual((info["kind"], info["format"]), ("data", "csv"))
        self.assertAlmostEqual(info["density"], info["nnz"] / info["rows"] / info["columns"], 12)
        self.assertEqual(sum(b["rows"] for b in info["row_lengths"]["histogram"]), info["rows"])
        self.assertEqual(len(info["features"]), info["columns"])
        self.assertEqual(info["targets"][0]["name"], "arr_delay")
        self.assertEqual(info["targets"][0]["finite"], info["rows"])
        out = kiln("info", FLIGHTS, "--target", "arr_delay")[0]
        for part in ("format", "shape", "entries", "row length", "target", "read", "#"):
            self.assertIn(part, out)

    def test_numbers_are_kept_narrow(self):
        """Whole numbers stay bytes, and no verb can tell: on two devices, which have wide values, all is the
        same to rounding."""
        rows = [(i * 7 % 13, i * i % 200, 1 + i % 3, i * 7 % 13 > i % 6) for i in range(400)]
        lines = "".join(f"{a},{b},{c},{y:d}\n" for a, b, c, y in rows)
        narrow = self.write("bytes.csv", "a,b,c,y\n" + lines)
        wide = self.write("wide.csv", "a,b,c,y\n" + "".join(f"{a},{b},{c + 0.3},{y:d}\n"
                                                             for a, b, c, y in rows))
        target = ("--target", "y")
        info = as_json("info", narrow, *target)
        self.assertEqual((info["stored_values"], info["stored_bytes"], info["type"]), ("u8", 1200, "f64"))
        self.assertEqual((info["stored_numbers"], info["stored_categories"]), (3, 0))
        self.assertIn("each number as u8", kiln("info", narrow, *target)[0])
        self.assertEqual(as_json("info", wide, *target)["stored_values"], "f64")
        self.assertNotIn("each number", kiln("info", wide, *target)[0])
        for verb, options, figure in (("linreg", target, "objective"), ("logreg", target, "objective"),
                                      ("svm", target, "objective"), ("mds", (), "stress"),
                                      ("kmeans", ("--clusters", "3"), "inertia")):
            here, there = (as_json(verb, narrow, *options, "--device", device)[figure]
                           for device in ("cpu", "cpu*2"))
            self.assertLess(abs(here - there), 1e-6 * (1 + abs(there)), verb)
        model, back = self.path("narrow.kiln"), self.path("back.csv")
        kiln("linreg", narrow, *target, "-o", model)
        kiln("verify", model, narrow, *target)
        kiln("convert", narrow, back, *target)
        self.assertEqual(as_json("info", back, *target)["stored_values"], "u8")

    def test_categories_are_codes(self):
        """Text columns, kept as codes, give what the same X gives as entries, whichever solver reads them."""
        target = ("--target", "arr_delay")
        few = self.write("few.csv", "".join(content(FLIGHTS, gzip.open).decode().splitlines(True)[:3000]))
        plain = self.path("few.svm")
        kiln("convert", few, plain, *target)
        info, other = as_json("info", few, *target), as_json("info", plain)
        rows, numbers, categories = info["rows"], info["stored_numbers"], info["stored_categories"]
        self.assertEqual((numbers, categories), (4, 3))
        self.assertEqual(info["stored_bytes"], rows * (numbers * 8 + categories))
        self.assertEqual((other["stored_numbers"], other["stored_categories"]), (0, 0))
        self.assertEqual(other["stored_bytes"], other["nnz"] * 12 + (rows + 1) * 8)
        self.assertEqual((info["nnz"], info["columns"]), (other["nnz"], other["columns"]))
        self.assertEqual(info["dense_bytes"], 8 * rows * info["columns"])
        for verb in (("linreg", "--l2", 1), ("linreg", "--l2", 1, "--solver", "cg", "--standardize"),
                     ("glm", "--family", "gaussian", "--l1", 300), ("glm", "--family", "gaussian", "--l2", 1),
                     ("svm", "--regression", "--l2", 1), ("linreg", "--l2", 1, "--type", "f32")):
            found = [as_json(verb[0], path, *verb[1:], *(target if path == few else ()), "--device", "cpu",
                             "--quiet") for path in (few, plain)]
            with self.subTest(verb=verb):
                loose = "f32" in verb
                self.assertTrue(all(one["converged"] for one in found))
                self.assertAlmostEqual(found[0]["objective"] / found[1]["objective"], 1, 4 if loose else 9)
                weights = [[row["value"] for row in one["coefficients"]] for one in found]
                most = max(abs(weight) for weight in weights[0])
                for one, two in zip(*weights):
                    self.assertAlmostEqual(one / most, two / most, 2 if loose else 5)

    def test_categories_where_columns_outnumber_rows(self):
        """Solvers that go over entries have them."""
        rows = [f"a{i * 7 % 61},b{i * 11 % 53},{i % 9},{int(i * i % 7 > 2)}" for i in range(80)]
        wide, plain = self.write("wide.csv", "\n".join(["a,b,x,y", *rows]) + "\n"), self.path("wide.svm")
        kiln("convert", wide, plain, "--target", "y", "--quiet")
        for verb in (("svm",), ("logreg",), ("logreg", "--l1", 1), ("svm", "--solver", "dual"),
                     ("logreg", "--solver", "dual", "--l2", 0.1),
                     ("logreg", "--solver", "newton", "--l2", 0.1)):
            found = [as_json(verb[0], path, *verb[1:], *(("--target", "y") if path == wide else ()),
                             "--device", "cpu", "--quiet") for path in (wide, plain)]
            with self.subTest(verb=verb):
                self.assertTrue(all(one["converged"] for one in found))
                self.assertAlmostEqual(found[0]["objective"] / found[1]["objective"], 1, 6)

    def test_info_statistics(self):
        data = self.write("small.svm", "1 1:1\n-1 1:1 2:1 5:2\n1\n1 3:1 4:1\n")
        info = as_json("info", data)
        self.assertEqual((info["rows"], info["columns"], info["nnz"]), (4, 5, 6))
        bins = [(b["from"], b["to"], b["rows"]) for b in info["row_lengths"]["histogram"]]
        self.assertEqual(bins, [(0, 0, 1), (1, 1, 1), (2, 3, 2)])
        target = info["targets"][0]
        self.assertEqual(
            (target["least"], target["most"], target["mean"], target["distinct"]), (-1, 1, 0.5, 2)
        )
        self.assertAlmostEqual(target["deviation"], math.sqrt(0.75), 12)
        self.assertEqual(as_json("info", "-", stdin=content(data))["nnz"], 6)

    def test_convert_round_trip(self):
        svm = self.write("a.svm", "1 1:0.5 3:2\n-1 2:1e-300\n2.5 1:3 2:0.1 3:-7\n")
        for name in ("a.svm.gz", "b.svm"):
            kiln("convert", svm, self.path(name), "-q")
            svm = self.path(name)
        self.assertEqual(self.read("b.svm", "r").split(), self.read("a.svm", "r").split())
        for name in ("a.npz", "a.mtx"):
            result = as_json("convert", svm, self.path(name))
            self.assertEqual(result["nnz"], 6)
            back = as_json("info", self.path(name))
            self.assertEqual((back["rows"], back["columns"], back["nnz"]), (3, 3, 6))
        self.assertTrue(kiln("convert", svm, "-", "--to", "mtx")[0].startswith("%%MatrixMarket"))

    def test_convert_keeps_targets_or_says_so(self):
        X, y = self.path("X.npz"), self.path("y.npy")
        error = kiln("convert", FLIGHTS, X, "--target", "arr_delay")[1]
        self.assertIn("--targets-to", error)
        self.assertNotIn(
            "warning", kiln("convert", FLIGHTS, X, "--target", "arr_delay", "--targets-to", y)[1]
        )
        split = as_json("linreg", X, "--target-file", y)
        whole = as_json("linreg", FLIGHTS, "--target", "arr_delay")
        # The table's categories are codes, the archive has entries: sums of the same numbers in other orders.
        self.assertLess(abs(split["objective"] / whole["objective"] - 1), 1e-12)
        kiln("convert", X, self.path("Z.npz"), "--targets-to", y, code=3)
        self.assertNotIn("warning", kiln("convert", FLIGHTS, self.path("Z.CSV"), "--target", "arr_delay")[1])
        self.assertIn("--to", kiln("convert", FLIGHTS, self.path("Z.xyz"), code=2)[1])

    def test_errors_name_the_place(self):
        data = self.write("bad.svm", "1 1:1\n1 1:1 2:x\n")
        out, error = kiln("linreg", data, code=3)
        self.assertRegex(error, rf"kiln: {re.escape(data)}:2:\d+: ")
        record = as_json("linreg", data, code=3)["error"]
        self.assertEqual((record["code"], record["file"], record["line"]), ("KILN_ERR_PARSE", data, 2))
        self.assertGreater(record["column"], 5)

    def test_zero_index(self):
        data = self.write("zero.svm", "1 0:1\n2 1:1\n")
        error = kiln("linreg", data, code=3)[1]
        self.assertRegex(error, r"zero\.svm:1:3: ")
        self.assertIn("--zero-based", error)
        kiln("linreg", data, "--zero-based")

    def test_instruction_set(self):
        for isa, named in (("baseline", "baseline"), ("scalar", "baseline"), ("", "thread")):
            self.assertIn(named, kiln("devices", environment={"KILN_ISA": isa})[0])
        # Names that the list of devices prints can be typed.
        devices = [kiln("devices", environment={"KILN_ISA": isa})[0] for isa in ("avx2", "AVX2", "avx512",
                                                                                 "AVX-512")]
        names = [re.search("^cpu .*, (.*)$", text, re.MULTILINE)[1] for text in devices]
        self.assertEqual(names[0::2], names[1::2])
        error = kiln("linreg", FLIGHTS, "--target", "arr_delay", code=2,
                     environment={"KILN_ISA": "avx1024"})[1]
        self.assertIn("KILN_ISA is 'avx1024'", error)
        self.assertIn("baseline, avx2 or avx512", error)

    def test_threads(self):
        self.assertIn("3 threads", kiln("devices", environment={"KILN_NUM_THREADS": "3"})[0])
        for threads in ("four", "0", "5000", "2x"):
            environment = {"KILN_NUM_THREADS": threads}
            error = kiln("linreg", FLIGHTS, "--target", "arr_delay", code=2, environment=environment)[1]
            self.assertIn(f"KILN_NUM_THREADS is '{threads}'", error)
        kiln("linreg", FLIGHTS, "--target", "arr_delay", "--threads", "2",
             environment={"KILN_NUM_THREADS": "four"})

    def test_nonfinite(self):
        data = self.write("nan.svm", "1 1:1\n2 1:nan\n")
        self.assertRegex(kiln("linreg", data, code=3)[1], r"nan\.svm:2:\d+: .*nan")
        kiln("info", data, "--allow-nonfinite")
        # of columns that cannot be used the name, or the number as a person counts
        error = kiln("linreg", data, "--allow-nonfinite", code=3)[1]
        self.assertIn("column 1 of X has NaN", error)
        self.assertIn("columns count from 1", error)
        named = self.write("nan.csv", "a,length,y\n1,2,3\n2,nan,4\n3,1,4\n")
        for verb in "linreg", "logreg", "glm", "svm":
            self.assertIn("column 'length' of X has NaN",
                          kiln(verb, named, "--target", "y", "--allow-nonfinite", code=3)[1])

    def test_no_targets(self):
        error = kiln("linreg", FLIGHTS, code=3)[1]
        self.assertIn("--target", error)
        self.assertIn("arr_delay", kiln("linreg", FLIGHTS, "--target", "arr_dealy", code=2)[1])
        labelled = self.write("labelled.svm", "1 1:2\n")
        self.assertIn("first number of each line", kiln("linreg", labelled, "--target", "y", code=2)[1])
        header = self.write("header.csv", "a,b\n")
        self.assertIn(f"{header} has no rows", kiln("linreg", header, "--target", "b", code=3)[1])

    def test_standard_input_is_read_once(self):
        self.assertIn("standard input", kiln("linreg", "-", "--target-file", "-", code=2, stdin=b"1,2\n")[1])
        self.assertIn("standard input", kiln("predict", "-", "-", code=2, stdin=b"1,2\n")[1])

    def test_missing_file(self):
        record = as_json("linreg", self.path("missing.csv"), code=3)["error"]
        self.assertEqual(record["code"], "KILN_ERR_IO")
        self.assertIn("missing.csv", record["message"])


class Machine(Case):
    def test_devices(self):
        result = as_json("devices")
        cpu = [d for d in result["devices"] if d["name"] == "cpu"]
        self.assertEqual(len(cpu), 1)
        self.assertTrue(cpu[0]["usable"])
        for device in result["devices"]:
            if not device["usable"]:
                self.assertTrue(device["reason"])
        self.assertIn("cpu", kiln("devices")[0])

    def test_missing_device_is_an_error(self):
        for device in as_json("devices")["devices"]:
            if device["usable"]:
                continue
            error = as_json("linreg", FLIGHTS, "--target", "arr_delay", "--device", device["name"], code=5)[
                "error"
            ]
            self.assertEqual(error["code"], "KILN_ERR_DEVICE")
            self.assertTrue(error["hint"])
        self.assertIn("hint: ", kiln("linreg", FLIGHTS, "--device", "cuda:4000", code=5)[1])
        self.assertIn("not a number", kiln("linreg", FLIGHTS, "--device", "cuda:x", code=2)[1])

    def test_doctor(self):
        result = as_json("doctor", "--device", "cpu")
        self.assertEqual([d["name"] for d in result["devices"]], ["cpu"])
        tests = result["devices"][0]["tests"]
        both = {"mmchain", "multiply", "gram_diagonal", "rows", "batch_reduce", "loss_gradient",
                "loss_hessian", "cg_step", "assign"}
        dense = {"dot", "norm", "combine", "combine_from", "batch_scale", "gram", "loss_mean", "logreg",
                 "distances", "guttman", "dirichlet_expect"}
        sparse = {"sddmm", "sddmm_multiply", "factor_solve", "ranks_step"}
        self.assertEqual(
            {(t["operation"], t["type"], t["format"]) for t in tests},
            {(o, t, "sparse") for o in both | sparse for t in ("f32", "f64")}
            | {(o, t, "dense") for o in both | dense for t in ("f32", "f64")},
        )
        for test in tests:
            self.assertTrue(test["passed"])
            self.assertLessEqual(test["error"], test["allowed"])
        self.assertGreater(result["devices"][0]["bytes_per_second"], 1e8)
        for row in result["machine"]:
            self.assertEqual(set(row), {"what", "found", "detail", "hint"})
        out = kiln("doctor", "--device", "cpu")[0]
        self.assertIn("right", out)
        self.assertRegex(out, r"bandwidth +[\d.]+ [MG]B/s")

    def test_memory_budget(self):
        error = as_json(
            "linreg", FLIGHTS, "--target", "arr_delay", "--device", "cpu", "--memory", "64K", code=6
        )
        self.assertIn("NOMEM", error["error"]["code"])
        self.assertIn("--map", error["error"]["hint"])
        points = self.path("points.npz")
        kiln("convert", FLIGHTS, points)
        for case, code in ((["--memory", "64K"], 6), (["--map"], 2)):
            # a verb without --map, whose hints know that
            error = as_json("mmchain", points, points, *case, "--device", "cpu", code=code)["error"]
            self.assertNotIn("--map", error["hint"])
        self.assertEqual(error["message"], "mmchain does not take --map")
        data, targets = self.path("budget.npz"), self.path("budget.npy")  # which helps
        kiln("convert", FLIGHTS, data, "--target", "arr_delay", "--targets-to", targets)
        result = as_json("linreg", data, "--target-file", targets, "--map", "--memory", "2M",
                         "--deterministic")
        self.assertTrue(result["converged"])
        self.assertGreater(result["memory"]["panels"], 100)
        self.assertLessEqual(result["memory"]["peak"], 2 << 20)
        error = as_json("linreg", data, "--target-file", targets, "--map", "--memory", "4K", code=6)
        self.assertNotIn("--map", error["error"]["hint"])  # which is there already
        # text in a temporary file, of which a model predicts the same
        model, lines = self.path("m.kiln"), []
        for way in (), ("--map", "--memory", "8M"):
            one = as_json("linreg", FLIGHTS, "--target", "arr_delay", "--device", "cpu", "--l2", "1", *way)
            kiln("linreg", FLIGHTS, "--target", "arr_delay", "-o", model, "--l2", "1", "-q")
            lines.append((one["rows"], one["columns"], kiln("predict", "-q", model, FLIGHTS, *way)[0]))
        self.assertEqual(lines[0][:2], lines[1][:2])
        for one, other in zip(lines[0][2].split(), lines[1][2].split()):
            self.assertAlmostEqual(float(one), float(other), places=8)

    def test_links_in_their_file(self):
        links = self.path("links.npz")
        with open(self.path("links.edges"), "w") as file:
            file.writelines(f"{i * 7919 % 500} {i * i % 311}\n" for i in range(4000))
        kiln("convert", self.path("links.edges"), links)
        whole, mapped = (as_json("hits", links, "--deterministic", *more) for more in ([], ["--map"]))
        self.assertEqual(mapped["iterations"], whole["iterations"])
        self.assertAlmostEqual(mapped["eigenvalue"] / whole["eigenvalue"], 1, places=12)


class Streams(Case):
    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            for arguments in (
                ["--help"],
                ["man", "linreg"],
                ["devices"],
                ["linreg", FLIGHTS, "--target", "arr_delay"],
                ["linreg", FLIGHTS, "--target", "arr_delay", "--json"],
            ):
                with self.subTest(arguments=arguments):
                    self.assertIn("cannot write", kiln(*arguments, code=1, stdout=full)[1])
        model = self.path("m.kiln")
        kiln("linreg", FLIGHTS, "--target", "arr_delay", "-o", model, "-q")
        for arguments in (["predict", model, FLIGHTS], ["linreg", FLIGHTS, "--target", "arr_delay"]):
            kiln(*arguments, "-q", "-o", "/dev/full", code=1)
        self.assertTrue(os.path.exists("/dev/full"))

    def test_closed_standard_output(self):
        command = (
            f'exec "{KILN}" linreg "{FLIGHTS}" --target arr_delay -q -o "{self.path("closed.kiln")}" >&-'
        )
        result = subprocess.run(["sh", "-c", command], capture_output=True)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(as_json("info", self.path("closed.kiln"))["algorithm"], "linreg")

    def test_reader_that_goes_away(self):
        model = self.path("m2.kiln")
        kiln("linreg", FLIGHTS, "--target", "arr_delay", "-o", model, "-q")
        process = self.start("predict", model, FLIGHTS, "-q")
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.wait(timeout=60), 1)

    def test_unwritable_output_is_told_before_work(self):
        """Who reads the data first waits here for good."""
        process = self.start("linreg", "-", "-o", self.path("no/such/folder/m"), stdin=subprocess.PIPE)
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn(b"cannot write", process.stderr.read())
        kiln("predict", "x", "y", "-o", self.folder, code=1)

    def test_start_is_quick(self):
        """By the processor's time, which others who use the machine do not change."""
        def best(*command):
            times = []
            for _ in range(40):
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, 0)
                times.append(usage.ru_utime + usage.ru_stime)
            return min(times)

        self.assertLess(best(KILN, "--help") - best("true"), START_SECONDS)


class Terminal(Case):
    def run_on_terminal(self, environment):
        """The text that kiln writes to a terminal on its standard error."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [KILN, "linreg", FLIGHTS, "--target", "arr_delay"],
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(theirs)
        text = b""
        try:
            while chunk := os.read(ours, 4096):
                text += chunk
        except OSError:  # Linux reports a closed terminal so
            pass
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0)
        return text.decode()

    def test_bar(self):
        text = self.run_on_terminal({"NO_COLOR": ""})
        self.assertIn("\r", text)
        self.assertIn("\033[36m", text)
        self.assertRegex(text, r"\d+: objective ")

    def test_no_color(self):
        text = self.run_on_terminal({"NO_COLOR": "1"})
        self.assertNotIn("\033[36m", text)
        self.assertRegex(text, r"\d+: objective ")

    def test_dumb_terminal_gets_plain_lines(self):
        text = self.run_on_terminal({"TERM": "dumb"})
        self.assertNotIn("\033", text)
        self.assertIn("iteration 1:", text)


class Interrupt(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Powers of one number: so ill-conditioned that the solver takes many iterations, in rows that repeat.
        rows = []
        for i in range(1000):
            x = (i * 619 % 1000) / 1000
            rows.append(
                ",".join(f"{x ** p + 1e-4 * ((i * p * p * 7919) % 101) / 101:.12g}" for p in range(1, 21))
                + f",{(i * 7907) % 13}"
            )
        block = "\n".join(rows) + "\n"
        cls.data = os.path.join(cls.folder, "slow.csv")
        with open(cls.data, "w") as file:
            file.write(",".join(f"x{p}" for p in range(1, 21)) + ",y\n")
            for _ in range(150):
                file.write(block)

    def wait_for(self, process, start):
        """Reads standard error up to a line that begins so."""
        for line in process.stderr:
            if line.startswith(start):
                return
        self.fail(f"kiln ended before it wrote {start}")

    def test_while_solving(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            model = self.path("cut.kiln")
            process = self.start(
                "linreg",
                self.data,
                "--target",
                "y",
                "-o",
                model,
                "--json",
                "--tolerance",
                "1e-300",
                "--max-iterations",
                "1000000",
                "--no-preconditioner",
                "--device",
                "cpu",
            )
            self.wait_for(process, b"iteration 1:")
            process.send_signal(number)
            out, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, error)
            self.assertIn(b"interrupted after", error)
            result = json.loads(out)
            self.assertEqual((result["stopped_by"], result["converged"]), ("cancelled", False))
            self.assertEqual(as_json("info", model)["metadata"]["report"]["iterations"], result["iterations"])

    def test_while_reading(self):
        process = self.start(
            "linreg",
            "-",
            "--target",
            "y",
            "-o",
            self.path("none.kiln"),
            "--device",
            "cpu",
            stdin=subprocess.PIPE,
        )
        self.wait_for(process, b"device ")
        process.stdin.write(b"x,y\n" + b"1,2\n" * 100000)
        process.stdin.flush()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        try:
            process.stdin.write(b"1,2\n" * 100000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertIn(b"interrupted", process.stderr.read())
        self.assertFalse(os.path.exists(self.path("none.kiln")))

    def test_in_the_first_pass(self):
        """It takes a second or more, and before its end there is nothing to save."""
        data, model = self.path("classes.csv"), self.path("first.kiln")
        with open(data, "w") as file:
            file.write("a,b,c,y\n" + "".join(f"{i % 7},{i % 11},{i % 13},{i % 4000}\n" for i in range(40000)))
        process = self.start("logreg", data, "--target", "y", "--max-classes", "4000", "--device", "cpu",
                             "-o", model)
        self.wait_for(process, b"read ")
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, b""), error)
        self.assertNotIn(b"iteration", error)
        self.assertTrue(error.endswith(b"kiln: interrupted\n"), error)
        self.assertFalse(os.path.exists(model))

    def test_second_signal_ends_at_once(self):
        process = self.start("linreg", "-", "--target", "y", "--device", "cpu", stdin=subprocess.PIPE)
        self.wait_for(process, b"device ")
        time.sleep(0.2)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        self.assertEqual(process.wait(timeout=10), 130)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
