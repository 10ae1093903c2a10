"""libkiln: where it lies, its structs, and its errors as exceptions."""
from __future__ import annotations

import functools
import os
import pathlib
import sys
from typing import Any

from ._binding import ffi as ffi
from ._words import advice, of_table, without_header, words


class KilnError(Exception):
    """An error of libkiln. `hint` says what to do about it; `file`, `line` and `column` say where it is."""

    hint: str = ""
    file: str = ""
    line: int = 0
    column: int = 0


class ArgumentError(KilnError, ValueError):
    """An argument that is out of range, or does not fit the others."""


class DataError(KilnError, ValueError):
    """Data that cannot be used, or a file that cannot be read as what it claims to be."""


class ModelError(KilnError, ValueError):
    """A model that cannot be used for this."""


class DeviceError(KilnError, RuntimeError):
    """A device that is not there, or has failed."""


class OutOfMemoryError(KilnError, MemoryError):
    """Too little memory, on the host or on a device."""


class FileError(KilnError, OSError):
    """A file that cannot be read or written."""


class UnsupportedError(KilnError, NotImplementedError):
    """A call that this device or this kind of matrix does not offer."""


_EXCEPTIONS: dict[str, type[KilnError]] = {
    "KILN_ERR_ARGUMENT": ArgumentError,
    "KILN_ERR_PARSE": DataError,
    "KILN_ERR_DATA": DataError,
    "KILN_ERR_NOMEM": OutOfMemoryError,
    "KILN_ERR_DEVICE_NOMEM": OutOfMemoryError,
    "KILN_ERR_DEVICE": DeviceError,
    "KILN_ERR_DEVICE_LOST": DeviceError,
    "KILN_ERR_BUILD": DeviceError,
    "KILN_ERR_IO": FileError,
    "KILN_ERR_LIMIT": ArgumentError,
    "KILN_ERR_UNSUPPORTED": UnsupportedError,
    "KILN_ERR_MODEL": ModelError,
}


def _open() -> Any:
    """The library beside this file, as the wheel has it, or the system's; KILN_LIBRARY names another one."""
    name = "libkiln.0.dylib" if sys.platform == "darwin" else "libkiln.so.0"
    beside = pathlib.Path(__file__).resolve().parent / name
    path = os.environ.get("KILN_LIBRARY") or (str(beside) if beside.exists() else beside.name)
    # so that it knows where it lies, whatever the folder then
    path = os.path.abspath(path) if os.sep in path else path
    try:
        return ffi.dlopen(path)
    except OSError as error:
        raise ImportError(f"kiln: {error}; set KILN_LIBRARY to the path of {name}, or install the "
                          "package again") from None


lib = _open()


def text(pointer: Any) -> str:
    """A C string; "" for NULL."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


def c_name(value: Any, what: str = "path") -> bytes:
    """A path, or a text, as C takes it: it ends at the first NUL there."""
    made = os.fsencode(value)
    if b"\0" in made:
        raise ArgumentError(f"a {what} cannot have a NUL character in it: {value!r}")
    return made


def check(status: int) -> None:
    """Raises what libkiln says went wrong."""
    if status == 0:
        return
    error = lib.kiln_last_error()
    message, hint = words(text(error.message)), advice(text(error.hint))
    place = text(error.file)
    if place == "(table)":
        hint = without_header(hint)
    for number in (error.line, error.column):
        if place and number:
            place += f":{number}"
    raised = _EXCEPTIONS.get(text(lib.kiln_status_name(status)), KilnError)(
        of_table((f"{place}: " if place else "") + message + (f" ({hint})" if hint else "")))
    raised.hint, raised.file, raised.line, raised.column = hint, text(error.file), error.line, error.column
    raise raised


@functools.cache
def _layout(name: str) -> tuple[Any, int]:
    return ffi.typeof(f"{name} *"), ffi.sizeof(name)


def struct(name: str, /, **fields: Any) -> Any:
    """A zeroed struct of the interface with its size and these fields set; what pointers point to must be
    kept alive."""
    kind, size = _layout(name)
    given = {field: value for field, value in fields.items() if value is not None}
    try:
        made = ffi.new(kind, given)
    except (TypeError, OverflowError):
        made = ffi.new(kind)
        for field, value in given.items():  # which of them it is
            try:
                setattr(made, field, value)
            except (TypeError, OverflowError) as error:
                told = words(f"{name}.{field}").rpartition(".")[2]
                raise ArgumentError(f"{told} must be a number that fits, got {value!r}") from error
        raise
    made.size = size
    return made


_YES_OR_NO = {"usable", "is_gpu", "has_f64", "chosen", "considered", "measured", "streamed", "found"}


def fields(made: Any) -> dict[str, Any]:
    """A struct's numbers and texts as a dictionary, without its size; texts in Python's words."""
    values: dict[str, Any] = {}
    for name, field in ffi.typeof(made).fields:
        value = getattr(made, name)
        if field.type.kind == "array" or (field.type.kind == "pointer" and field.type.item.cname == "char"):
            values[name] = (advice if name == "hint" else words)(text(value))
        elif name in _YES_OR_NO and field.type.cname == "int":
            values[name] = bool(value)
        elif field.type.kind in ("primitive", "enum") and name != "size":
            values[name] = value
    return values


def rows(call: Any, name: str) -> list[dict[str, Any]]:
    """A list of structs that the library hands out: call(infos, count, size) fills it."""
    infos, count = ffi.new(f"{name} **"), ffi.new("int64_t *")
    check(call(infos, count, ffi.sizeof(name)))
    try:
        return [fields(infos[0][i]) for i in range(count[0])]
    finally:
        lib.kiln_free(infos[0])
