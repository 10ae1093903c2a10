#!/usr/bin/env python3
"""Measures what compilers take for a kernel's source with the parts that it includes, and with all parts of
the dialect before it, as it was until 9e1e7929: NVRTC for sm_90, without a GPU, and PoCL's clBuildProgram.

    bench/studies/kernel_sources.py --nvrtc libnvrtc.so.13 --programs FILE --repeat 5 --json FILE

The kernels are the ten files of which the most programs are built: --programs is what `kiln kernels list --backend
opencl` writes of the caches that the conformance suite and the tests of the verbs leave (test-cache/kiln and
package in the build folder). Each is built in the variant that its file names first. Sources come from
git: --before puts the parts that its kernel_source.c lists before each kernel, --after and the working tree
("today") follow the lines #include. Seconds are the processor's, of this process with all its threads, as others
may use the machine; the least of the turns, in which the states alternate.
"""
import argparse
import collections
import ctypes
import datetime
import json
import os
import re
import resource
import subprocess

ALWAYS = ["-default-device", "-fmad=true", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "--minimal"]


def most_built(programs):
    """Returns the ten files of which the most programs are listed, and how many of each."""
    with open(programs, encoding="utf-8") as file:
        return collections.Counter(line.split()[0] for line in file).most_common(10)


def text_of(rev, path):
    if rev is None:
        with open(path, encoding="utf-8") as file:
            return file.read()
    return subprocess.check_output(["git", "show", f"{rev}:{path}"], text=True)


def paths_of(rev):
    """Returns the path of each file of kernels, and of each part, by its name."""
    command = ["git", "ls-files", "src"] if rev is None else ["git", "ls-tree", "-r", "--name-only", rev, "src"]
    found = subprocess.check_output(command, text=True).split()
    return {os.path.basename(path): path for path in found if path.endswith(".cl") or "/dialect/" in path}


class Sources:
    """The sources of one state of the tree, as src/core/kernels/kernel_source.c makes them."""

    def __init__(self, rev):
        self.rev, self.paths, self.kept = rev, paths_of(rev), {}
        listed = re.search(r'parts\[\] = \{([^}]*)\};', text_of(rev, "src/core/kernels/kernel_source.c"))[1]
        self.parts = [name.strip() for name in listed.split(",")]

    def text(self, name):
        if name not in self.kept:
            self.kept[name] = text_of(self.rev, self.paths[name])
        return self.kept[name]

    def part(self, name, seen):
        if name in seen:
            return ""
        seen.add(name)
        lines = [f'\n#line 1 "{name}"']
        for number, line in enumerate(self.text(name).split("\n"), 1):
            included = re.match(r'#include "dialect/([^"]+)"', line)
            lines += [self.part(included[1], seen), f'\n#line {number + 1} "{name}"'] if included else [line]
        return "\n".join(lines)

    def source(self, dialect, kernel):
        names = {"header": f"{dialect}.h", "dialect": f"{dialect}.h", "body": f"{kernel}.cl",
                 "file": f"{kernel}.cl"}
        seen = set()
        return "#define REAL_F32 1\n" + "".join(
            self.part(part[1:-1] if part[0] == '"' else names[part], seen) for part in self.parts)


class Nvrtc:
    name = "cuda"

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.says = f"NVRTC {major.value}.{minor.value} for sm_90"

    def build(self, source, defines):
        options = [*ALWAYS, "--gpu-architecture=sm_90", *(f"-D{define}" for define in defines)]
        program, lib = ctypes.c_void_p(), self.lib
        lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        code = lib.nvrtcCompileProgram(program, len(options),
                                       (ctypes.c_char_p * len(options))(*map(str.encode, options)))
        size = ctypes.c_size_t()
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetCUBIN(program, cubin)
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        if code:
            raise SystemExit(log.value.decode()[:2000])
        return cubin.raw


class Pocl:
    name = "opencl"

    def __init__(self):
        os.environ["POCL_KERNEL_CACHE"] = "0"
        self.lib = lib = ctypes.CDLL("libOpenCL.so.1")
        lib.clCreateContext.restype = lib.clCreateProgramWithSource.restype = ctypes.c_void_p
        platform, device, code = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        lib.clGetPlatformIDs(1, ctypes.byref(platform), None)
        lib.clGetDeviceIDs(platform, ctypes.c_ulong(0xFFFFFFFF), 1, ctypes.byref(device), None)
        self.device = device
        self.context = ctypes.c_void_p(lib.clCreateContext(None, 1, ctypes.byref(device), None, None,
                                                           ctypes.byref(code)))
        version = ctypes.create_string_buffer(200)
        lib.clGetPlatformInfo(platform, 0x0901, 200, version, None)
        self.says = version.value.decode()

    def build(self, source, defines):
        text, code = ctypes.c_char_p(source.encode()), ctypes.c_int()
        program = ctypes.c_void_p(self.lib.clCreateProgramWithSource(self.context, 1, ctypes.byref(text), None,
                                                                     ctypes.byref(code)))
        options = " ".join(["-cl-std=CL1.2", *(f"-D{define}" for define in defines)])
        code = self.lib.clBuildProgram(program, 1, ctypes.byref(self.device), options.encode(), None, None)
        if code:
            log = ctypes.create_string_buffer(20000)
            self.lib.clGetProgramBuildInfo(program, self.device, 0x1183, 20000, log, None)
            raise SystemExit(log.value.decode()[:2000])
        self.lib.clReleaseProgram(program)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(compilers, states, kernels, repeat):
    rows = []
    for kernel, programs in kernels:
        defines = re.search(r"^// build (.*)$", states["today"].text(f"{kernel}.cl"), re.M)[1]
        row = {"kernel": kernel, "programs": programs, "defines": defines}
        for compiler in compilers:
            least = {}
            for _ in range(repeat):
                for state, sources in states.items():
                    source = sources.source(compiler.name, kernel)
                    start = processor_seconds()
                    compiler.build(source, defines.split())
                    took = processor_seconds() - start
                    least[state] = min(took, least.get(state, took))
                    row.setdefault("lines", {})[f"{compiler.name} {state}"] = source.count("\n")
            row[f"{compiler.name}_ms"] = {state: round(1e3 * took, 1) for state, took in least.items()}
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvrtc", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--before", default="9e1e7929^")
    parser.add_argument("--after", default="9e1e7929")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--device", default="")
    parser.add_argument("--json")
    a = parser.parse_args()
    compilers = [Nvrtc(a.nvrtc), Pocl()]
    states = {"before": Sources(a.before), "after": Sources(a.after), "today": Sources(None)}
    found = {"study": "what compilers take for kernels that include what they use, against all parts before each",
             "device": a.device, "compilers": [compiler.says for compiler in compilers],
             "date": str(datetime.date.today()),
             "commit": subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip(),
             "how": " ".join(__doc__.split()), "kernels": measure(compilers, states, most_built(a.programs), a.repeat)}
    if a.json:
        with open(a.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
