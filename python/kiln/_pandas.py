"""A frame of pandas as a stream of Arrow's record batches where pyarrow is not installed, of which pandas
itself makes one. Numbers and dates stay where they are; text becomes the numbers of its levels."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_Address, _Call = ctypes.c_void_p, ctypes.CFUNCTYPE
_Release, _Get, _Error = (_Call(None, _Address), _Call(ctypes.c_int, _Address, _Address),
                          _Call(_Address, _Address))
_NUMBERS = {"i1": b"c", "u1": b"C", "i2": b"s", "u2": b"S", "i4": b"i", "u4": b"I", "i8": b"l", "u8": b"L",
            "f2": b"e", "f4": b"f", "f8": b"g"}


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    _fields_ = [("get_schema", _Get), ("get_next", _Get), ("get_last_error", _Error), ("release", _Release),
                ("private", _Address)]


_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", _Address),
                    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
                    ("dictionary", ctypes.POINTER(_Schema)), ("release", _Release), ("private", _Address)]
_Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                   ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("buffers", ctypes.POINTER(_Address)),
                   ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
                   ("dictionary", ctypes.POINTER(_Array)), ("release", _Release), ("private", _Address)]


class Stream:
    """address: of the stream, which is there as long as this object."""

    def __init__(self, frame: Any) -> None:
        self._keep: list[Any] = []
        columns = [self._column(name, frame[name]) for name in frame]
        self._schema = _Schema(b"+s", b"", flags=0)
        self._batch = _Array(length=len(frame), n_buffers=1, buffers=(_Address * 1)())
        for whole, parts in ((self._schema, [schema for schema, _ in columns]),
                             (self._batch, [array for _, array in columns])):
            whole.n_children = len(parts)
            whole.children = (ctypes.POINTER(type(whole)) * len(parts))(*map(ctypes.pointer, parts))
            whole.release = self._released(type(whole))
        self._stream = _Stream(_Get(lambda _, place: self._put(place, self._schema)),
                               _Get(lambda _, place: self._put(place, self._batch)),
                               _Error(lambda _: None), self._released(_Stream))
        self.address = ctypes.addressof(self._stream)

    def _put(self, place: int, made: Any) -> int:
        """Hands a struct out, and an empty one the next time: the end of the stream."""
        ctypes.memmove(place, ctypes.addressof(made), ctypes.sizeof(made))
        made.release = _Release()
        return 0

    def _released(self, kind: Any) -> Any:
        """What marks a struct as released: there is nothing to free that does not go with this object."""
        def release(place: int) -> None:
            kind.from_address(place).release = _Release()

        self._keep.append(_Release(release))
        return self._keep[-1]

    def _column(self, name: str, column: Any) -> tuple[Any, Any]:
        """The schema and the array of a column."""
        kind, count, there = column.dtype, len(column), _bits(np.asarray(column.notna()))
        if hasattr(kind, "categories"):
            levels = column.cat.categories
            texts = all(isinstance(level, str) for level in levels)
            return self._coded(name, np.asarray(column.cat.codes), there,
                               self._texts(levels) if texts else self._column("", levels.to_series()))
        if getattr(kind, "kind", "O") == "O":
            codes, levels = column.factorize()
            sorts = {type(level) for level in levels}
            if not sorts:
                return self._struct(name, b"n", count)
            if all(issubclass(sort, str) for sort in sorts):
                return self._coded(name, codes, there, self._texts(levels))
            if not all(issubclass(sort, (bool, int, float, np.number, np.bool_)) for sort in sorts):
                if all(hasattr(sort, "isoformat") for sort in sorts):
                    return self._struct(name, b"tsn:", count, there, np.zeros(count, np.int64))
                raise TypeError(f"column {name!r} has values of "
                                f"{' and '.join(sorted(sort.__name__ for sort in sorts))}")
            column = column.astype(np.float64)
        elif kind.kind in "Mm":
            return self._struct(name, b"tsn:" if kind.kind == "M" else b"tDn", count, there,
                                np.zeros(count, np.int64))
        wanted = getattr(kind, "numpy_dtype", column.dtype)
        values = np.asarray(column.fillna(0).astype(wanted) if hasattr(kind, "numpy_dtype") else column)
        if values.dtype.kind == "b":
            return self._struct(name, b"b", count, there, _bits(values))
        if values.dtype.str[1:] not in _NUMBERS:
            raise NotImplementedError(f"column {name!r} is of {kind}")
        return self._struct(name, _NUMBERS[values.dtype.str[1:]], count, there,
                            np.ascontiguousarray(values))

    def _texts(self, levels: Any) -> tuple[Any, Any]:
        texts = [level.encode() for level in levels]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return self._struct("", b"U", len(texts), None, ends, np.frombuffer(b"".join(texts) + b" ", np.uint8))

    def _coded(self, name: str, codes: Any, there: Any, levels: tuple[Any, Any]) -> tuple[Any, Any]:
        """A column by the numbers of its levels."""
        schema, array = self._struct(name, b"i", len(codes), there, np.maximum(codes, 0).astype(np.int32))
        schema.dictionary, array.dictionary = map(ctypes.pointer, levels)
        return schema, array

    def _struct(self, name: str, form: bytes, length: int, *buffers: Any) -> tuple[Any, Any]:
        places = (_Address * len(buffers))(*(None if one is None else one.ctypes.data for one in buffers))
        self._keep += [buffers, places]
        return (_Schema(form, name.encode(), flags=2, release=self._released(_Schema)),
                _Array(length=length, null_count=-1, n_buffers=len(buffers), buffers=places,
                       release=self._released(_Array)))


def _bits(values: Any) -> Any:
    """Booleans as Arrow has them, eight in a byte, the first one the lowest bit."""
    return np.packbits(values, bitorder="little")
