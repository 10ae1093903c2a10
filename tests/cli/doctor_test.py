"""kiln doctor finds a device that computes wrongly, and outlives a driver that crashes.

The device is PoCL with kernels that this test has spoilt: KILN_KERNEL_DIR names a folder with kernels in place of
the library's.

usage: doctor_test.py KILN SOURCE
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

KILN, SOURCE = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))

# What stands in a file of kernels and what this test puts there: sums without half of their threads, and an address
# that nobody has, in the kernels of the first checks and in those of later ones.
WRONG = ("reduce.cl", "reach >= span", "reach > span")
FATAL = ("csr.cl", "const int id = (int)get_local_id(0), place",
         "*(volatile __global real *)8 = 1;\n    const int id = (int)get_local_id(0), place")

# A sanitizer catches the signal, and ends the process.
ENDED = r"(aborted \(signal \d+, .*\)|ended the process \(exit code \d+\))"


def doctor(*arguments, code=0, **environment):
    """Each device's row, by the first word of its name."""
    found = subprocess.run([KILN, "doctor", "--json", "--quiet", *arguments], env=dict(os.environ, **environment),
                           capture_output=True, text=True, timeout=900)
    assert found.returncode == code, (found.returncode, found.stdout, found.stderr)
    return {device["name"].split(":")[0]: device for device in json.loads(found.stdout)["devices"]}


class Doctor(unittest.TestCase):
    def folder(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def spoilt(self, *changes):
        folder = self.folder()
        for path in (*SOURCE.glob("dialect/*.h"), *SOURCE.glob("**/*.cl")):
            shutil.copy(path, folder)
        for name, text, instead in changes:
            path = pathlib.Path(folder, name)
            source = path.read_text()
            self.assertEqual(source.count(text), 1)
            path.write_text(source.replace(text, instead))
        return folder

    def test_wrong_and_fatal(self):
        devices = doctor(code=1, KILN_KERNEL_DIR=self.spoilt(WRONG, FATAL))
        device = devices["opencl"]
        wrong = {test["operation"] for test in device["tests"] if not test["passed"]}
        self.assertEqual(wrong, {"dot", "norm", "combine_from"})
        self.assertLessEqual({"combine", "rows", "batch_reduce"}, {test["operation"] for test in device["tests"]})
        self.assertRegex(device["problem"], rf"its driver {ENDED} while product f32 sparse was checked")
        self.assertIs(device["healthy"], False)
        self.assertIs(devices["cpu"]["healthy"], True)

    def test_named_device_that_crashes(self):
        problem = doctor("--device", "opencl", code=1, KILN_KERNEL_DIR=self.spoilt(WRONG, FATAL))["opencl"]["problem"]
        self.assertRegex(problem, f"its driver {ENDED} while")

    def test_loader_that_ends_the_tool(self):
        folder = self.folder()
        source = pathlib.Path(folder, "loader.c")
        source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{folder}/libOpenCL.so.1", source], check=True)
        devices = doctor(code=1, LD_LIBRARY_PATH=folder)
        self.assertIs(devices["cpu"]["healthy"], True)
        self.assertRegex(devices["others"]["reason"],
                         r"its driver aborted \(signal 6, .*\) while devices were listed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
