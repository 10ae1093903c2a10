#!/usr/bin/env python3
"""abi.py [--update] COMPILER C++-COMPILER LIBRARY: what programs that were built against Kiln rely on stays
as it is.

The list abi.txt holds the exported symbols, and the sizes, offsets and enumerators that include/kiln/*.h give
(but tune.h, which is not stable). A change that breaks a binary shows up as a line that differs. Appending a
field to a struct that begins with its size, a symbol or an enumerator is fine: run with --update and commit
abi.txt. Anything else needs a new SOVERSION. Each header must also compile alone, as C11 and as C++.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
LIST = HERE / "abi.txt"
PROGRAM = ("#include <stdio.h>\n#include <stddef.h>\n#include \"kiln.h\"\n#include \"kiln/codes.h\"\n"
           "#include \"kiln/half.h\"\n"
           "#include \"kiln/meet.h\"\n"
           "int main(void) {\n%s    return 0;\n}\n")


def declarations(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return re.sub(r"#define.*?[^\\]\n", "", text, flags=re.S)


def fields(body):
    """The names of a struct's fields: "int (*f)(void *)", "char a[3], b[2]" and "double x, *y"."""
    for declaration in filter(None, map(str.strip, body.split(";"))):
        pointer = re.match(r"[^(]*\(\*(\w+)\)\s*\(", declaration)
        if pointer:
            yield pointer.group(1)
            continue
        for part in declaration.split(","):
            yield re.search(r"(\w+)\s*(\[[^\]]*\])?$", part.strip()).group(1)


def questions(headers):
    """C statements that print a line for each struct, field and enumerator."""
    for header in headers:
        text = declarations(header)
        for kind, body, name in re.findall(r"typedef (struct|enum) \w+ \{(.*?)\}\s*(\w+);", text, re.S):
            if kind == "enum":
                if "#" in body:  # KILN_STATUS_LIST: its codes stand in the header, and core_status tests them
                    continue
                for number in re.findall(r"(\w+)\s*=", body):
                    yield f'    printf("{number} = %d\\n", (int){number});\n'
                continue
            yield f'    printf("{name}: %zu bytes\\n", sizeof({name}));\n'
            for field in fields(body):
                yield f'    printf("{name}.{field} at %zu\\n", offsetof({name}, {field}));\n'


def layout(compiler):
    headers = [path for path in sorted((INCLUDE / "kiln").glob("*.h")) if path.name != "tune.h"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "abi.c"), pathlib.Path(folder, "abi")
        source.write_text(PROGRAM % "".join(questions(headers)))
        subprocess.run([compiler, "-std=c11", f"-I{INCLUDE}", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def symbols(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                            text=True).stdout
    return sorted(f"{name} exported" for name in re.findall(r"\b(kiln_\w+)$", listed, re.M))


def compiles_alone(compiler, language, flags):
    for header in [INCLUDE / "kiln.h", *sorted((INCLUDE / "kiln").glob("*.h"))]:
        subprocess.run([compiler, "-x", language, *flags, "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                        "-fsyntax-only", f"-I{INCLUDE}", "-include", header, "/dev/null"], check=True)


def main():
    update = "--update" in sys.argv
    compiler, plus, library = [argument for argument in sys.argv[1:] if argument != "--update"]
    compiles_alone(compiler, "c", ["-std=c11"])
    compiles_alone(plus, "c++", ["-std=c++11"])
    found = layout(compiler) + symbols(library)
    if update:
        LIST.write_text("\n".join(found) + "\n")
        return 0
    listed = LIST.read_text().splitlines()
    gone, new = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    for line in gone:
        print(f"gone: {line}")
    for line in new:
        print(f"new:  {line}")
    if gone or new:
        print(f"abi: differs from {LIST.name}; if nothing that a binary relies on has changed:\n"
              f"  {' '.join([sys.argv[0], '--update', compiler, plus, library])}")
    return 1 if gone or new else 0


if __name__ == "__main__":
    sys.exit(main())
