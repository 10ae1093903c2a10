"""The declarations of OpenCL's functions that our kernels call, out of all that PoCL's compiler otherwise
reads for each kernel.

usage: pocl_header.py PATH/opencl-c.h SOURCES FOLDER/opencl-few.h

With `-D_OPENCL_H_ -DKILN_FEW_DECLARATIONS -IFOLDER` PoCL leaves its own header out, and src/dialect/opencl.h
reads this one.
A function that is called and not declared is an error, so none can be missing unnoticed.
"""

import pathlib
import re
import sys

header, sources, new = map(pathlib.Path, sys.argv[1:])
kernels = [path for path in sources.rglob("*") if path.suffix == ".cl" or path.parent.name == "dialect"]
words = {word for path in kernels for word in re.findall(r"\w+", path.read_text())}
# A comment, a line of the preprocessor with those that it goes on in, or a statement; a declared function's
# name stands before the first parenthesis that does not belong to an attribute.
parts = re.findall(r"/\*.*?\*/|//[^\n]*|#(?:[^\n]*\\\n)*[^\n]*|[^;#/]+;", header.read_text(), re.DOTALL)
kept = []
for part in parts:
    name = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", part))
    if part.startswith("#") or (not part.startswith("/") and (name is None or name[1] in words)):
        kept.append(part.strip())
new.parent.mkdir(parents=True, exist_ok=True)
text = "\n".join(kept).replace("_OPENCL_H_", "KILN_FEW_H")
new.write_text(re.sub(r'#include "(.*)"', rf'#include "{header.parent}/\1"', text) + "\n")
