"""Runs that are interrupted and killed, and go on.

usage: checkpoint_test.py KILN FLIGHTS.csv.gz [KILLS [RECORD]]

KILLS of each of three algorithms, at random instants; 3 unless told. RECORD: a JSON file for what was counted
and measured.
"""

import datetime
import json
import os
import platform
import random
import signal
import subprocess
import sys
import time
import unittest

from cli_test import FLIGHTS, KILN, Case, as_json, kiln

KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
RECORD = sys.argv[4] if len(sys.argv) > 4 else None
CPU = ["--device", "cpu", "--deterministic", "--quiet"]
SAME = ("iterations", "converged", "stopped_by", "residual", "objective", "inertia", "metrics",
        "cross_validation")
recorded = {}


def tensors(path):
    """A model file's numbers, byte by byte."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()
    places = {name: about["data_offsets"] for name, about in header.items() if name != "__metadata__"}
    return {name: data[begin:end] for name, (begin, end) in places.items()}


def answer(result):
    trace = [{key: value for key, value in row.items() if key != "seconds"} for row in result["trace"]]
    return {**{key: result.get(key) for key in SAME}, "trace": trace}


class Checkpoints(Case):
    def setUp(self):
        self.model, self.state = self.path("m.kiln"), self.path("run.ckpt")
        if os.path.exists(self.state):
            os.remove(self.state)
        source = random.Random(3)
        entries = [(u, i, source.randint(1, 5)) for u in range(1, 801) for i in range(1, 401)
                   if source.random() < 0.1]
        head = f"%%MatrixMarket matrix coordinate real general\n800 400 {len(entries)}\n"
        ratings = self.write("ratings.mtx", head + "".join(f"{u} {i} {r}\n" for u, i, r in entries))
        self.commands = {
            "linreg": ["linreg", FLIGHTS, "--target", "arr_delay", "--solver", "cg"],
            "kmeans": ["kmeans", FLIGHTS, "--ignore", "arr_delay", "-k", "12", "--tolerance", "1e-9",
                       "--restarts", "2"],
            "als": ["als", ratings, "--factors", "16", "--biases", "--tolerance", "1e-12", "--max-iterations",
                    "60"],
            "folds": ["linreg", FLIGHTS, "--target", "arr_delay", "--solver", "cg", "--l2", "1e-2:1:2",
                      "--cv", "4"],
        }

    def keeping(self, every):
        resume = ["--resume", self.state] if os.path.exists(self.state) else []
        return ["-o", self.model, "--checkpoint", self.state, "--checkpoint-every", every, *resume]

    def whole(self, command):
        began = time.monotonic()
        result = as_json(*command, *CPU, "-o", self.model)
        return answer(result), tensors(self.model), time.monotonic() - began

    def kill_and_go_on(self, name):
        """Each run begins where the last one was killed; at the end the answer is that of a run that was
        not."""
        command = self.commands[name]
        expected, numbers, seconds = self.whole(command)
        source, killed, kept, ends, size, written, taken = random.Random(7), 0, 0, 0, 0, [], []
        while True:
            process = subprocess.Popen([KILN, *command, *CPU, "--json", *self.keeping("0.001")],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if killed < KILLS:
                time.sleep(1.2 * seconds * source.random())
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    killed += 1
                    kept += os.path.exists(self.state)
                    continue
            out, error = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, error)
            result = json.loads(out)
            self.assertEqual(answer(result), expected)
            self.assertEqual(tensors(self.model), numbers)
            ends += 1
            about = result["checkpoint"]
            written.append(about["written"])
            taken.append(about["seconds"])
            size = max(size, about["bytes"])
            if killed >= KILLS:
                break
            if os.path.exists(self.state):
                os.remove(self.state)
        recorded[name] = {"kills": killed, "kills_with_a_checkpoint": kept, "ends_at_the_same_bits": ends,
                          "checkpoint_bytes": size, "seconds_a_write": sum(taken) / max(sum(written), 1),
                          "run_seconds": seconds}

    def test_kills_of_a_linear_model(self):
        self.kill_and_go_on("linreg")

    def test_kills_of_kmeans(self):
        self.kill_and_go_on("kmeans")

    def test_kills_of_als(self):
        self.kill_and_go_on("als")

    def test_kills_of_a_cross_validation(self):
        self.kill_and_go_on("folds")

    def test_other_folds(self):
        """Numbers of another validation, or of a run alone, are refused; and a path has no state."""
        command = ["linreg", FLIGHTS, "--target", "arr_delay", *CPU]
        stopped = as_json(*command, "--l2", "1e-2:1:2", "--cv", "4", *self.keeping("0.0001"))
        self.assertGreater(stopped["checkpoint"]["written"], 0)
        for code, other, message in ((7, ["--l2", "1e-2:1:3", "--cv", "4"],
                                      "other folds, penalties or metrics"),
                                     (7, ["--l2", "1e-2:2:2", "--cv", "4"], "other folds"),
                                     (7, ["--l2", "1e-2:1:2", "--cv", "4", "--seed", "3"], "other folds"),
                                     (7, ["--l2", "1"], "a run alone"),
                                     (2, ["--l2", "1e-2:1:2"], "with a path")):
            self.assertIn(message, kiln(*command, *other, "--resume", self.state, code=code)[1])

    def test_folds_that_ended_by_a_limit(self):
        """Under a higher limit a run goes on with the first of them, and ends as one without a limit."""
        command = ["logreg", FLIGHTS, "--target", "origin", "--cv", "3", "--l2", "1:100:3", "--strict", *CPU]
        limit = ["--max-iterations", "3"]
        told = kiln(*command, *limit, "--checkpoint", self.state, code=4)[1]
        self.assertIn("3 of 3 values", told)
        self.assertIn("from the first such fold on", told)
        self.assertIn("3 of 3 values", kiln(*command, *limit, "--resume", self.state, code=4)[1])
        out, told = kiln(*command, "--resume", self.state, "--json")
        result, whole = json.loads(out), json.loads(kiln(*command, "--json")[0])
        self.assertEqual((result["warnings"], told), ([], ""))
        for key in "cross_validation", "objective", "iterations":
            self.assertEqual(result[key], whole[key])

    def test_paths_that_ended_by_a_limit(self):
        command = ["logreg", FLIGHTS, "--target", "origin", "--l2", "1:100:3", "--strict", *CPU]
        result = json.loads(kiln(*command, "--max-iterations", 3, "--json", code=4)[0])
        self.assertEqual([warning["name"] for warning in result["warnings"]], ["unconverged-models"])

    @unittest.skipUnless(RECORD, "takes a while")
    def test_cost(self):
        """A state of 150 MB: what writing it takes, checksum and fsync included, and what reading it does."""
        rows, factors = 300_000, 63
        head = f"%%MatrixMarket matrix coordinate real general\n{rows} 100 {rows}\n"
        wide = self.write("wide.mtx", head + "".join(f"{i + 1} {i % 100 + 1} {i % 5 + 1}\n"
                                                     for i in range(rows)))
        command = ["als", wide, "--factors", factors, "--tolerance", "1e-300", *CPU]
        plain = as_json(*command, "--max-iterations", 3)
        turns = [as_json(*command, "--max-iterations", 3, "--checkpoint", self.state, "--checkpoint-every",
                         "0.001")["checkpoint"]
                 for _ in range(5)]
        about = min(turns, key=lambda turn: turn["seconds"])  # others use this machine, too
        again = as_json(*command, "--max-iterations", 3, "--resume", self.state)
        recorded["cost"] = {"rows": rows, "factors": factors, "checkpoint_bytes": about["bytes"],
                            "seconds_a_write": about["seconds"] / about["written"],
                            "writes": about["written"], "run_seconds": plain["seconds"]["total"],
                            "run_seconds_of_a_resume_without_iterations": again["seconds"]["total"]}

    def test_interrupt(self):
        """Ctrl-C and SIGTERM: a last checkpoint, and how to go on."""
        command = [*self.commands["als"], "--tolerance", "1e-300", "--max-iterations", "3000"]
        iterations = []
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([KILN, *command, "--device", "cpu", "--verbose", *self.keeping("600")],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            seen = b""
            for line in process.stderr:
                seen += line
                if line.startswith(b"iteration"):
                    process.send_signal(number)
                    break
            _, error = process.communicate(timeout=120)
            text = (seen + error).decode()
            self.assertEqual(process.returncode, 130, text)
            self.assertIn(f"the same command with --resume {self.state} goes on after iteration ", text)
            iterations.append(int(text.rsplit("after iteration ", 1)[1].split()[0]))
        self.assertLess(iterations[0], iterations[1])

    def test_limit(self):
        """A run that came to its limit goes on under a larger one, and reads what it writes."""
        command = self.commands["als"]
        first = as_json(*command, "--max-iterations", 5, *CPU, *self.keeping("600"))
        self.assertEqual(first["checkpoint"], {**first["checkpoint"], "resume": None, "resumed_after": None,
                                               "iteration": 5, "written": 1})
        self.assertEqual(first["checkpoint"]["bytes"], os.path.getsize(self.state))
        second = as_json(*command, *CPU, *self.keeping("600"))
        self.assertEqual(second["checkpoint"]["resumed_after"], 5)
        numbers = tensors(self.model)
        expected, whole, _ = self.whole(command)
        self.assertEqual((answer(second), numbers), (expected, whole))

    def test_refusals(self):
        command, flights = self.commands["als"], self.commands["linreg"]
        kiln(*command, "--max-iterations", 2, *CPU, *self.keeping("600"))
        for changed, message in (
            ([*command, "--l2", "3"], "--l2 is 3, but in "),
            ([*command, "--implicit"], "exclude each other"),
            ([*command[:2], "--factors", "8", "--biases"],
             "part 'A' is f64, 800 x 17, but the run's is f64, 800 x 9"),
            (flights, "is a checkpoint of als, and this run is one of linreg"),
        ):
            code = 2 if "exclude" in message else 7
            self.assertIn(message, kiln(*changed, *CPU, "--resume", self.state, code=code)[1])
        self.assertIn("is a checkpoint of a run, not a model", kiln("info", self.state, code=7)[1])
        kiln(*command, "--max-iterations", 2, *CPU, "-o", self.model)
        self.assertIn("is a model, not a checkpoint", kiln(*command, *CPU, "--resume", self.model, code=7)[1])
        kiln(*command, *CPU, "--resume", self.path("none"), code=7)
        for options in (["--checkpoint-every", "5"], ["--checkpoint", "-"]):
            kiln(*command, *CPU, *options, code=2)
        for options in (["--checkpoint", self.state], ["--resume", self.state]):
            self.assertIn("with a path", kiln(*flights, "--l2", "1:9:3", *CPU, *options, code=2)[1])
        kiln(*command, *CPU, "--checkpoint", command[1], code=2)


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], exit=False)
    if RECORD:
        revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True,
                                  text=True).stdout.strip()
        with open(RECORD, "w") as file:
            json.dump({"device": f"cpu, {os.cpu_count()} threads, {platform.machine()}",
                       "date": str(datetime.date.today()), "commit": revision, "runs": recorded}, file,
                      indent=1)
            file.write("\n")
    sys.exit(not program.result.wasSuccessful())
