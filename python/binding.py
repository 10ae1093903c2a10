"""Writes kiln/_binding.py: what the C headers declare, as cffi reads it at run time without a parser.

    python binding.py CC INCLUDE OUTPUT

The headers are the only source: a struct, an enumerator or a function that they gain is in the binding with
the next build.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import cffi

# Other libraries lend an array by these, https://dmlc.github.io/dlpack/latest/c_api.html (version 0 and 1 of
# the tensor).
DLPACK = """
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
"""


def declarations(compiler: str, include: pathlib.Path) -> str:
    """The headers after the preprocessor, without those of the system, which cffi knows."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("stddef.h", "stdint.h"):
            pathlib.Path(folder, name).touch()
        source = pathlib.Path(folder, "all.c")
        source.write_text("".join(f'#include "{name}"\n' for name in
                                  ("kiln.h", "kiln/codes.h", "kiln/half.h", "kiln/meet.h", "kiln/tune.h")))
        text = subprocess.check_output(
            # Not GNU C, so that KILN_API is empty
            [compiler, "-E", "-P", "-nostdinc", "-U__GNUC__", f"-I{folder}", f"-I{include}", str(source)],
            text=True)
    base = (include / "kiln" / "base.h").read_text()
    none = re.search(r"#define KILN_NONE \((-?\d+)\)", base)
    if not none:
        sys.exit("binding.py: kiln/base.h defines no KILN_NONE")
    return f"{text}\n#define KILN_NONE {none[1]}\n{DLPACK}"


def main() -> None:
    compiler, include, output = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    ffi = cffi.FFI()
    ffi.cdef(declarations(compiler, include))
    ffi.set_source("kiln._binding", None)
    ffi.emit_python_code(str(output))


if __name__ == "__main__":
    main()
