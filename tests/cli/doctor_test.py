"""kiln doctor finds a device that computes wrongly; it, and kiln devices, outlive drivers that crash or hang.

What computes is PoCL with kernels that this test has spoilt: KILN_KERNEL_DIR names a folder with kernels in
place of the library's. What crashes or hangs is stub_opencl.c beside this file, or a library with a driver's
name.

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

# Text in a file of kernels and what this test puts there: sums without half of their threads, and an
# address that nobody has, in the kernels of the first checks and in those of later ones.
WRONG = ("reduce.cl", "reach >= span", "reach > span")
FATAL = ("csr.cl", "const int id = (int)get_local_id(0), place",
         "*(volatile __global real *)8 = 1;\n    const int id = (int)get_local_id(0), place")

# A sanitizer catches the signal, and ends the process.
ENDED = r"(crashed \(signal \d+, .*\)|ended the process \(exit code \d+\))"
STUB = pathlib.Path(__file__).with_name("stub_opencl.c")


def run(*arguments, code=0, **environment):
    found = subprocess.run([KILN, *arguments], env=dict(os.environ, **environment), capture_output=True,
                           text=True, timeout=900)
    assert found.returncode == code, (found.returncode, found.stdout, found.stderr)
    return found


def rows(*arguments, **settings):
    return json.loads(run(*arguments, "--json", "--quiet", **settings).stdout)["devices"]


def doctor(*arguments, **settings):
    """Each device's row, by the first word of its name."""
    return {device["name"].split(":")[0]: device for device in rows("doctor", *arguments, **settings)}


def compile_library(path, source, *arguments):
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, *arguments], input=source,
                   text=True, check=True)


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
        devices = doctor("--time-limit", "500", code=1, KILN_KERNEL_DIR=self.spoilt(WRONG, FATAL))
        device = devices["opencl"]
        wrong = {test["operation"] for test in device["tests"] if not test["passed"]}
        self.assertEqual(wrong, {"dot", "norm", "combine_from"})
        self.assertLessEqual({"combine", "rows", "batch_reduce"},
                             {test["operation"] for test in device["tests"]})
        self.assertRegex(device["problem"], rf"its driver {ENDED} while product f32 sparse was checked")
        self.assertIs(device["healthy"], False)
        self.assertIs(devices["cpu"]["healthy"], True)

    def test_named_device_that_crashes(self):
        problem = doctor("--device", "opencl", "--time-limit", "500", code=1,
                         KILN_KERNEL_DIR=self.spoilt(WRONG, FATAL))["opencl"]["problem"]
        self.assertRegex(problem, f"its driver {ENDED} while")

    def test_building_ends_in_time(self):
        """A device whose kernels are not all built is healthy so far, and a line says how many are left."""
        folder = self.folder()
        said = run("doctor", "--device", "opencl", KILN_CACHE_DIR=folder, POCL_CACHE_DIR=folder).stdout
        self.assertRegex(said, r"right +(\d+) of \1 small problems")
        self.assertRegex(said, r"left +\d+, whose kernels take longer to build")

    def drivers(self, **spoilt):
        """A folder of OpenCL drivers: each name is a stub in which the call IN_... does what is given."""
        folder = self.folder()
        for name, (call, does) in spoilt.items():
            compile_library(f"{folder}/{name}.so", STUB.read_text(), f"-DIN_{call}={does}")
            pathlib.Path(folder, f"{name}.icd").write_text(f"{folder}/{name}.so\n")
        return folder

    def library(self, name, source):
        folder = self.folder()
        compile_library(f"{folder}/{name}", source)
        return folder

    def test_loader_that_ends_the_tool(self):
        folder = self.library("libOpenCL.so.1", "#include <stdlib.h>\n"
                              "__attribute__((constructor)) static void begin(void) { abort(); }\n")
        devices = doctor(code=1, LD_LIBRARY_PATH=folder)
        self.assertIs(devices["cpu"]["healthy"], True)
        self.assertRegex(devices["opencl"]["reason"], rf"^its driver {ENDED} while devices were listed")
        self.assertEqual(devices["opencl"]["hint"], "KILN_WITHOUT=opencl leaves it out")

    def test_cuda_that_ends_the_tool(self):
        folder = self.library("libcuda.so.1", "#include <stdlib.h>\n"
                              "__attribute__((constructor)) static void begin(void) { _Exit(130); }\n")
        for verb, code in (("devices", 0), ("doctor", 1)):
            found = {row["name"].split(":")[0]: row for row in rows(verb, code=code, LD_LIBRARY_PATH=folder,
                                                                     OCL_ICD_VENDORS=self.folder())}
            self.assertIs(found["cpu"]["usable"], True)
            self.assertEqual(found["cuda"]["reason"],
                             "its driver ended the process (exit code 130) while devices were listed")
        left_out = rows("devices", KILN_WITHOUT="cuda", LD_LIBRARY_PATH=folder)
        self.assertNotIn("cuda", {row["name"] for row in left_out})

    def check_one_bad_driver(self, call, does, told, *limit):
        folder = self.drivers(good=("INFO", ""), bad=(call, does))
        found = rows("devices", *limit, OCL_ICD_VENDORS=folder)
        bad = [row for row in found if row["name"] == "opencl"]
        self.assertEqual(len(bad), 1, found)
        self.assertRegex(bad[0]["reason"], rf"^bad\.icd: its driver {told} while devices were listed")
        self.assertIn(folder, bad[0]["hint"])
        good = [row for row in found if row["name"] == "opencl:0.0"]
        self.assertRegex(good[0]["reason"],
                         r"^stub.*: works, but not beside bad\.icd, as all OpenCL drivers are")
        self.assertIs(next(row for row in found if row["name"] == "cpu")["usable"], True)
        return folder

    def test_driver_that_crashes_when_it_is_loaded(self):
        folder = self.check_one_bad_driver("PLATFORMS", "*(volatile int *)8 = 1", ENDED)
        self.assertIs(doctor(code=1, OCL_ICD_VENDORS=folder)["cpu"]["healthy"], True)

    def test_driver_that_crashes_when_it_is_asked(self):
        self.check_one_bad_driver("DEVICES", "abort()", ENDED)

    def test_driver_that_crashes_when_it_describes(self):
        self.check_one_bad_driver("INFO", "exit(0)", r"ended the process \(exit code \d+\)")

    def test_driver_that_hangs(self):
        self.check_one_bad_driver("DEVICES", "for (;;) pause()", "did not answer for 6 seconds",
                                  "--time-limit", "6")

    def test_device_that_hangs_when_it_is_opened(self):
        folder = self.drivers(late=("CONTEXT", "for (;;) pause()"))
        found = doctor("--time-limit", "3", "--device", "opencl", code=1, OCL_ICD_VENDORS=folder)
        self.assertEqual(found["opencl"]["problem"],
                         "its driver did not answer for 3 seconds while it was opened")

    # A sanitizer's own report comes first.
    @unittest.skipIf(b"__asan_init" in pathlib.Path(KILN).read_bytes(), "a sanitizer reports crashes")
    def test_crash_in_the_tool_names_the_driver(self):
        folder = self.drivers(bad=("DEVICES", "abort()"))
        for verb in (["devices", "--start", "--device", "auto"],
                     ["devices", "--start", "--device", "opencl"]):
            found = run(*verb, "--json", code=5, OCL_ICD_VENDORS=folder)
            error = json.loads(found.stdout)["error"]
            self.assertRegex(error["message"], rf"^a driver crashed .*signal 6.*: {folder}/bad\.so$")
            self.assertRegex(error["hint"], "KILN_WITHOUT=opencl")
            run(*verb[:2], KILN_WITHOUT="opencl,cuda", OCL_ICD_VENDORS=folder)
        data = pathlib.Path(folder, "d.csv")
        data.write_text("x,y\n" + "".join(f"{i},{i % 5}\n" for i in range(50)))
        for environment, code in (({}, 5), ({"KILN_WITHOUT": "opencl,cuda"}, 0)):
            found = run("explain", "linreg", data, "--target", "y", code=code, OCL_ICD_VENDORS=folder,
                        **environment)
            self.assertEqual("bad.so" in found.stderr, code == 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
