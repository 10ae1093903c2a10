#!/usr/bin/env python3
"""binaries.py LIBRARY TOOL: what is shipped is hardened, and the library exports nothing but kiln_*.

Full RELRO (relocations resolved at start, then read-only), no library path baked in, no segment both writable
and executable, no executable stack, position-independent code.
"""
import re
import subprocess
import sys

problems = []


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def expect(holds, path, what):
    if not holds:
        problems.append(f"{path}: {what}")


def check_hardening(path):
    header = output("readelf", "-hW", path)
    segments = output("readelf", "-lW", path)
    dynamic = output("readelf", "-dW", path)
    loaded = re.findall(r"^\s+(LOAD|GNU_STACK|GNU_RELRO)\s+(?:0x\S+\s+){5}([RWE ]{3})", segments, re.M)
    kinds = [kind for kind, _ in loaded]
    expect(re.search(r"Type:\s+DYN", header), path, "is not position-independent")
    expect(kinds.count("LOAD") >= 2, path, "has no segments to check")
    expect("GNU_RELRO" in kinds, path, "has no RELRO")
    expect("GNU_STACK" in kinds, path, "has no GNU_STACK, so that its stack may be executable")
    expect(re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic), path, "resolves symbols late")
    expect(not re.search(r"\((RPATH|RUNPATH)\)", dynamic), path, "has a library path baked in")
    expect(not re.search(r"\(TEXTREL\)", dynamic), path, "has relocations in its code")
    for kind, flags in loaded:
        expect(not ("W" in flags and "E" in flags), path, f"{kind} is writable and executable")


def check_exports(library):
    names = [line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()]
    expect("kiln_last_error" in names, library, "does not export kiln_last_error")
    for name in names:
        expect(name.startswith("kiln_"), library, f"exports {name}")


def main():
    library, tool = sys.argv[1:]
    check_hardening(library)
    check_hardening(tool)
    check_exports(library)
    print("\n".join(problems) or "binaries: hardened, and only kiln_* exported")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
