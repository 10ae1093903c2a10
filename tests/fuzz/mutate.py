"""Files that lie, by structure: valid files of each format, of which one thing or a few are wrong, with
checksums that are right, so that they reach what lies behind them. Each goes through the tool.

usage: mutate.py KILN [--count N | --seconds S] [--seed N] [--only FORMAT,...] [--keep FOLDER]

A finding is an end by a signal or a sanitizer, exit code 1 or one that the verb does not have, more than 20
seconds, an error without a message, a parse error without a place, or a file that is accepted and, converted,
not read again as the same. Exit code 1 then, and the file stays in FOLDER with the command that it failed.
libFuzzer's targets beside this script take bytes; what they find seldom passes a checksum.
"""

import argparse
import gzip
import hashlib
import io
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
import zlib

warnings.filterwarnings("ignore", "Duplicate name")

ODD_NUMBERS = ["0", "-0", "1e308", "-1e308", "1e309", "1e-320", "nan", "inf", "-inf", "NA", "", " ", "1e",
               "0x10", "1,5", "+1", ".5", "5.", "00", "1" * 400, "1e99999999999", "9007199254740993", "٣",
               "1 2", "-"]
ODD_TEXTS = ["", "NA", "a" * 5000, 'q"q', "x,y", "a\nb", "a\tb", "=1", "é", "\x1b[31m", "\x00", "\ufeff",
             "yes", "1", " ", "l0"]
ODD_COUNTS = [-(2**63), -1, 0, 1, 2, 3, 4, 255, 2**16, 2**31 - 1, 2**31, 2**32, 2**53, 2**61, 2**62,
              2**63 - 1, 2**63, 2**64, 2**70]


# ------------------------------------------------------------------------------------------------- text

def csv_file(r):
    delimiter = r.choice([",", ",", ";", "\t"])
    columns, rows = r.randint(1, 7), r.randint(0, 40)
    kinds = [r.choice(["number", "text", "holes", "date"]) for _ in range(columns)]

    def cell(kind):
        if kind == "text":
            return f"l{r.randint(0, 4)}"
        if kind == "date":
            return f"2024-0{r.randint(1, 9)}-1{r.randint(0, 9)}"
        if kind == "holes" and r.random() < 0.2:
            return r.choice(["", "NA", "nan", "?"])
        return repr(round(r.gauss(0, 10), r.randint(0, 5)))

    table = [[f"c{i}" for i in range(columns)]] + [[cell(kind) for kind in kinds] for _ in range(rows)]
    if r.random() < 0.3:
        table[0][-1] = "y"
    for _ in range(r.choice([0, 0, 1, 1, 2, 4])):
        row = r.choice(table)
        what = r.randint(0, 9)
        if what <= 4 and row:
            row[r.randrange(len(row))] = r.choice(ODD_NUMBERS + ODD_TEXTS)
        elif what == 5:
            row.append(r.choice(ODD_TEXTS))
        elif what == 6 and row:
            row.pop()
        elif what == 7:
            table.insert(r.randrange(len(table) + 1), list(r.choice(table)))
        elif what == 8:
            table.insert(r.randrange(len(table) + 1), [])
        else:
            table.pop(r.randrange(len(table)))
            table = table or [["x"]]

    def field(text):
        if r.random() < 0.97 and any(c in text for c in f'"{delimiter}\n\r') or r.random() < 0.03:
            return '"' + text.replace('"', '""') + '"'
        return text

    end = r.choice(["\n", "\n", "\r\n", "\r"] if r.random() < 0.2 else ["\n"])
    text = end.join(delimiter.join(map(field, row)) for row in table) + (end if r.random() < 0.9 else "")
    options = r.choice([[], [], ["--target", "y"], ["--target", "c0"], ["--missing", "drop"],
                        ["--missing", "mean"], ["--missing", "indicator"],
                        ["--missing-words", "?,l1", "--missing", "mean"], ["--ignore", "c0"],
                        ["--features", "c1"], ["--categorical", "c0"], ["--numeric", "c1"],
                        ["--reference", "c1=l0"], ["--decimal-comma"], ["--allow-nonfinite"],
                        ["--max-columns", "3"], ["--max-levels", "2"], ["--max-name", "3"], ["--type", "f32"],
                        ["--target", "c0", "--missing", "indicator", "--type", "f32"]])
    return ((b"\xef\xbb\xbf" if r.random() < 0.05 else b"") + text.encode("utf-8", "surrogatepass"), ".csv",
            options)


def libsvm_file(r):
    lines = []
    for _ in range(r.randint(0, 30)):
        index, words = 0, [",".join(r.choice(["0", "1", "-1", "2.5"]) for _ in range(r.choice([1, 1, 1, 2])))]
        for _ in range(r.randint(0, 6)):
            index += r.choice([1, 1, 2, 50])
            words.append(f"{index}:{round(r.gauss(0, 1), 3)}")
        lines.append(words)
    for _ in range(r.choice([0, 0, 1, 2])):
        if not lines:
            break
        words = r.choice(lines)
        at = r.randrange(len(words))
        number, count = r.choice(ODD_NUMBERS), r.choice(ODD_COUNTS)
        words[at] = r.choice([f"{count}:1", f"1:{number}", number, "1:2:3", ":", "1:", ":1", "#", "qid:3",
                              "1 :2", "\x00"])
    text = r.choice(["\n", "\r\n"]).join(" ".join(words) for words in lines) + "\n"
    return text.encode(), ".svm", r.choice([[], [], ["--zero-based"], ["--strict"], ["--type", "f32"],
                                            ["--allow-nonfinite"]])


def matrix_market_file(r):
    rows, cols = r.randint(0, 9), r.randint(0, 9)
    shape = r.choice(["coordinate", "array"])
    field, symmetry = (r.choice(["real", "integer", "pattern", "complex"]),
                       r.choice(["general", "symmetric", "skew-symmetric"]))
    places = [(i + 1, j + 1) for i in range(rows) for j in range(cols)]
    places = r.sample(places, r.randint(0, len(places)))
    value = (lambda: "") if field == "pattern" else (lambda: str(r.randint(-5, 5)))
    lines = [f"%%MatrixMarket matrix {shape} {field} {symmetry}", "% a comment"]
    if shape == "coordinate":
        lines += [f"{rows} {cols} {len(places)}"] + [f"{i} {j} {value()}".strip() for i, j in places]
    else:
        lines += [f"{rows} {cols}"] + [value() or "1" for _ in range(rows * cols)]
    for _ in range(r.choice([0, 0, 1, 2])):
        at = r.randrange(len(lines))
        words = lines[at].split(" ")
        words[r.randrange(len(words))] = r.choice([str(r.choice(ODD_COUNTS)), r.choice(ODD_NUMBERS),
                                                   "hermitian", "%", "matrix"])
        lines[at] = " ".join(words)
    if r.random() < 0.1:
        lines.pop()
    return ("\n".join(lines) + "\n").encode(), ".mtx", r.choice([[], [], ["--strict"], ["--type", "f32"]])


def bag_of_words_file(r):
    rows, cols, count = r.choice([(3, 4, 5), (1, 1, 1), (0, 0, 0), (5, 2, 8)])
    lines = [str(rows), str(cols),
             str(count)] + [f"{r.randint(1, max(rows, 1))} {r.randint(1, max(cols, 1))} {r.randint(0, 9)}"
                            for _ in range(count)]
    for _ in range(r.choice([0, 0, 1, 2])):
        at = r.randrange(len(lines))
        words = lines[at].split(" ")
        words[r.randrange(len(words))] = r.choice([str(r.choice(ODD_COUNTS)), r.choice(ODD_NUMBERS)])
        lines[at] = " ".join(words)
    if r.random() < 0.1:
        lines.pop()
    return ("\n".join(lines) + "\n").encode(), ".txt", ["--format", "docword"]


def edges_file(r):
    names = [r.choice(["a", "7", "07", "seven", "é", "x" * 50]) + str(r.randint(0, 9)) for _ in range(8)]
    weighted = r.random() < 0.4
    lines = ["# a graph"] + [[r.choice(names), r.choice(names)] + ([str(r.randint(0, 5))] if weighted else [])
                             for _ in range(r.randint(0, 25))]
    for _ in range(r.choice([0, 0, 1, 2])):
        if len(lines) > 1:
            words = lines[r.randrange(1, len(lines))]
            words[r.randrange(len(words))] = r.choice(ODD_NUMBERS + ODD_TEXTS)
            if r.random() < 0.3:
                words.append(r.choice(ODD_NUMBERS))
    text = "\n".join(line if isinstance(line, str) else r.choice([" ", "\t"]).join(line) for line in lines)
    return text.encode("utf-8", "surrogatepass"), ".edges", []


def ratings_file(r):
    separator = r.choice(["::", "\t", ",", ";", "|", " "])
    fields = r.choice([2, 3, 4])
    lines = [[r.choice(["1", "7", "07", "u", "é"]) + str(r.randint(0, 9)),
              r.choice(["1", '"a""b"', "x", "a b"]), str(r.randint(0, 5)), "978300760"][:fields]
             for _ in range(r.randint(0, 25))]
    if r.random() < 0.4:
        lines.insert(0, r.choice([["userId", "movieId", "rating", "timestamp"], ["a", "b", "c", "d"],
                                  ["rating", "item", "user", "x"]])[:fields])
    for _ in range(r.choice([0, 0, 1, 2])):
        if lines:
            words = r.choice(lines)
            words[r.randrange(len(words))] = r.choice(ODD_NUMBERS + ODD_TEXTS + ['"', '""', ""])
            if r.random() < 0.2:
                words.append("1")
    text = "\n".join(separator.join(line) for line in lines)
    return (text.encode("utf-8", "surrogatepass"), ".ratings",
            ["--format", "ratings", *r.choice([[], ["--type", "f32"]])])


# ----------------------------------------------------------------------------------------------- binary

def npy_bytes(r, array=None, descr=None, shape=None, order=None, damage=0.5):
    """An array of numbers as .npy; with `damage` one field of its header says something else."""
    if array is None:
        rows, cols = r.randint(0, 6), r.randint(0, 6)
        array, shape = [r.randint(-3, 3) for _ in range(rows * cols)], (rows, cols)
    descr = descr or r.choice(["<f8", "<f4", ">f8", "<i4", "|i1", "|u1", "<i8", "|b1", ">u2"])
    codes = {"f8": "d", "f4": "f", "i8": "q", "u8": "Q", "i4": "i", "u4": "I", "i2": "h", "u2": "H",
             "i1": "b", "u1": "B", "b1": "B"}
    code = codes[descr[1:]]
    low = [abs(v) if code in "QIHB" else v for v in array]
    body = struct.pack((">" if descr[0] == ">" else "<") + str(len(low)) + code, *low)
    header = {"descr": repr(descr), "fortran_order": str(bool(order)), "shape": repr(tuple(shape))}
    if r.random() < damage:
        key = r.choice(list(header))
        count = r.choice(ODD_COUNTS)
        header[key] = {"descr": lambda: repr(r.choice(["<f2", "<c16", "|O", "<U5", "<f16", "=f8", "f8", "<i3",
                                                       "", "<f8" * 99])),
                       "fortran_order": lambda: r.choice(["True", "False", "1", "None", "'True'"]),
                       "shape": lambda: r.choice([f"({count},)", f"({count}, 1)", f"(1, {count})", "()",
                                                  "(2, 2, 2)", "(-1, 2)", "[2, 2]"])}[key]()
        if r.random() < 0.2:
            header[r.choice(["extra", "descr "])] = "1"
        if r.random() < 0.2:
            body = r.choice([body[:-1], body + b"\0", b"", body * 3])
    text = "{" + ", ".join(f"'{key}': {value}" for key, value in header.items()) + ", }"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    version = r.choice([(1, 0), (1, 0), (2, 0), (3, 0)] + ([(9, 1)] if r.random() < damage / 5 else []))
    size = struct.pack("<H", len(text)) if version[0] == 1 else struct.pack("<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text.encode() + body


def npy_file(r):
    data = npy_bytes(r)
    if r.random() < 0.2:
        data = bytearray(data)
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    return bytes(data), ".npy", r.choice([[], [], ["--type", "f32"], ["--map"],
                                          ["--target", r.choice(["-1", "1", "2,1", "9"])]])


def dense_npz_file(r):
    """X, and mostly y, with members that may lie about themselves."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", r.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        rows, cols = r.randint(0, 5), r.randint(1, 5)
        names = r.choice([("X", "y"), ("x", "target"), ("arr_0", "arr_1"), ("X",), ("q", "y")])
        for name, shape in zip(names, ((rows, cols), (r.choice([rows, rows, rows, rows + 1]),))):
            values = [r.randint(0, 3) for _ in range(math.prod(shape))]
            member = npy_bytes(r, values, r.choice(["<f8", "<f4", ">i4", "|u1"]), shape, damage=0.2)
            archive.writestr(name + ".npy", member[:r.randrange(len(member) + 1)] if r.random() < 0.1
                             else member)
    return out.getvalue(), ".npz", r.choice([[], [], ["--type", "f32"], ["--map"]])


def npz_file(r):
    if r.random() < 0.3:
        return dense_npz_file(r)
    rows, cols = r.randint(0, 6), r.randint(1, 6)
    counts = [r.randint(0, min(3, cols)) for _ in range(rows)]
    indptr, indices = [0], []
    for count in counts:
        indices += sorted(r.sample(range(cols), count))
        indptr.append(len(indices))
    kind = r.choice([b"csr", b"csr", b"csc", b"coo"])
    if kind == b"csc":
        rows, cols = cols, rows
    parts = {"data": [r.randint(-3, 3) for _ in indices], "indices": indices, "indptr": indptr,
             "shape": [rows, cols]}
    for _ in range(r.choice([0, 0, 1, 2])):
        part = parts[r.choice(list(parts))]
        what = r.randint(0, 3)
        if what == 0 and part:
            part[r.randrange(len(part))] = r.choice([-1, 0, 1, cols, 2**31 - 1])
        elif what == 1:
            part.append(r.choice([0, 1, 5]))
        elif what == 2 and part:
            part.pop()
        else:
            r.shuffle(part)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", r.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        names = list(parts) + ["format"]
        if r.random() < 0.1:
            names.remove(r.choice(names))
        for name in names:
            if name == "format":
                text = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }"
                text += " " * (-(len(text) + 11) % 64) + "\n"
                member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + kind
            else:
                descr = {"data": r.choice(["<f8", "<f4", "<i8"]),
                         "shape": "<i8"}.get(name, r.choice(["<i4", "<i8"]))
                member = npy_bytes(r, parts[name], descr, (len(parts[name]),), damage=0.05)
            if r.random() < 0.03:
                member = member[:r.randrange(len(member) + 1)]
            archive.writestr(name + ".npy", member)
            if r.random() < 0.03:
                archive.writestr(r.choice([name + ".npy", "../x", "more"]), b"\0" * 10)
    data = bytearray(out.getvalue())
    for _ in range(r.choice([0, 0, 0, 1, 3])):  # of the directory, which no checksum covers
        at = data.rfind(b"PK\x01\x02", 0, r.randrange(len(data)) + 1)
        if at >= 0:
            data[min(at + r.randrange(4, 46), len(data) - 1)] ^= 1 << r.randrange(8)
    return bytes(data), ".npz", r.choice([[], [], ["--strict"], ["--map"], ["--type", "f32"]])


def zstd_frame(r, data):
    """One raw block behind a header that states a size, mostly the right one."""
    size = len(data) if r.random() < 0.8 else r.choice([0, 1, len(data) + 1, 2**31, 2**32 - 1])
    last = r.random() < 0.95
    block = struct.pack("<I", len(data) << 3 | last)[:3] + data
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", size) + block + (b"" if last else b"\x01\0\0")


def packed_file(r):
    data, suffix, options = r.choice([csv_file, libsvm_file, npy_file])(r)
    if len(data) < 2**17 and r.random() < 0.4:
        packed = zstd_frame(r, data)
        packed += r.choice([b"", b"", b"", zstd_frame(r, b""), b"\x50\x2a\x4d\x18\x02\0\0\0ab", b"junk"])
        return packed[:r.choice([len(packed), len(packed),
                                 r.randrange(len(packed))])], suffix + ".zst", options
    packed = bytearray(gzip.compress(data, mtime=0))
    what = r.randint(0, 6)
    if what == 1:
        packed = packed[:r.randrange(len(packed))]
    elif what == 2:
        packed += r.choice([b"\0" * 20, b"junk", gzip.compress(data), b"\x1f\x8b"])
    elif what == 3:
        packed[-r.randint(1, 8)] ^= 1 << r.randrange(8)
    elif what == 4:
        packed[r.randrange(3, len(packed))] ^= 1 << r.randrange(8)
    elif what == 5:
        packed = bytearray(gzip.compress(bytes(packed), mtime=0))
    return bytes(packed), suffix + ".gz", options


# ------------------------------------------------------------------------------------------------ models

def number(n):
    return struct.pack("<Q", n)


def text_digest(text):
    return number(len(text.encode("utf-8", "surrogatepass"))) + text.encode("utf-8", "surrogatepass")


def model_bytes(tensors, texts):
    """docs/formats.md: the header with a checksum over what it says. tensors: name -> (type, rows, cols,
    values)."""
    texts = {key: value for key, value in texts.items() if key not in ("format", "sha256")}
    digest = hashlib.sha256(text_digest("kiln 1") + number(len(texts)))
    for key in sorted(texts, key=str.encode):
        digest.update(text_digest(key) + text_digest(texts[key]))
    header, values, at = {}, b"", 0
    for name in sorted(tensors, key=str.encode):
        kind, rows, cols, body = tensors[name]
        digest.update(text_digest(name) + number(1 if kind == "F32" else 2) + number(rows) + number(cols)
                      + body)
        header[name] = {"dtype": kind, "shape": [rows, cols], "data_offsets": [at, at + len(body)]}
        values, at = values + body, at + len(body)
    header["__metadata__"] = dict(texts, format="kiln 1", sha256=digest.hexdigest())
    text = json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogatepass")
    text += b" " * (-len(text) % 8)
    return number(len(text)) + text + values


def read_model(data):
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    texts = header.pop("__metadata__")
    tensors = {name: (t["dtype"], *t["shape"],
                      data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
               for name, t in header.items()}
    return tensors, texts


def change_json(r, value, depth=0):
    """One place in a tree says something else."""
    if isinstance(value, dict) and value and (depth == 0 or r.random() < 0.8):
        key = r.choice(list(value))
        what = r.randint(0, 5)
        if what == 0:
            del value[key]
        elif what == 1:
            value[r.choice(["x", "levels", "mean", "reference", "indicator", "ignored",
                            "missing"])] = value[key]
        else:
            value[key] = change_json(r, value[key], depth + 1)
        return value
    if isinstance(value, list) and value and r.random() < 0.8:
        at = r.randrange(len(value))
        what = r.randint(0, 4)
        if what == 0:
            value.pop(at)
        elif what == 1:
            value.insert(at, value[at])
        else:
            value[at] = change_json(r, value[at], depth + 1)
        return value
    return r.choice([None, True, False, 0, -1, 1e308, 2**62, "", "number", "text", "mean", [], {}, ["a"],
                     {"name": "a"}, "\x1b[1m", "a" * 3000])


def change_tensors(r, tensors, what, others):
    """One tensor is gone (0), stands under another name (1), has another shape (2) or another number (3)."""
    name = r.choice(list(tensors))
    kind, rows, cols, body = tensors[name]
    if what == 0:
        del tensors[name]
    elif what == 1:
        tensors[r.choice(others)] = tensors[name]
    elif what == 2:
        size = 4 if kind == "F32" else 8
        rows, cols = r.choice([(cols, rows), (rows + 1, cols), (max(rows - 1, 0), cols), (0, cols),
                               (rows * cols, 1), (1, rows * cols)])
        tensors[name] = (kind, rows, cols, (body + bytes(8 * rows * cols))[:size * rows * cols])
    elif body:
        body = bytearray(body)
        at = r.randrange(len(body) // 8) * 8 if len(body) >= 8 else 0
        body[at:at + 8] = struct.pack("<d",
                                      r.choice([0, -1, 1e308, float("nan"), float("inf"), 5e-324,
                                                2]))[:len(body) - at]
        tensors[name] = (kind, rows, cols, bytes(body))


def empty_dimension(r, tensors):
    """A dimension that tensors share is 0 in all of them."""
    _, rows, cols, _ = tensors[r.choice(list(tensors))]
    gone = r.choice([rows, cols])
    for name, (kind, rows, cols, body) in tensors.items():
        if gone in (rows, cols):
            tensors[name] = (kind, 0 if rows == gone else rows, 0 if cols == gone else cols, b"")


def checkpoint_file(r, data):
    tensors, texts = read_model(data)
    for _ in range(r.choice([1, 1, 2, 3])):
        what = r.choice([0, 1, 2, 3, 3, 3, 3, 3, 4])
        if what == 4:
            texts[r.choice(list(texts))] = r.choice(["", "1", "off", "f32", "nan",
                                                     "f64 dense, 9 x 9, 81 entries", "lda", "a" * 300])
        elif tensors:
            change_tensors(r, tensors, what, list(tensors))
    return model_bytes(tensors, texts)


def model_file(r, models):
    tensors, texts = read_model(r.choice(models))
    for _ in range(r.choice([1, 1, 2, 3])):
        what = r.randint(0, 8)
        if what == 8 and tensors:
            empty_dimension(r, tensors)
        elif what <= 3 and tensors:
            change_tensors(r, tensors, what, ["W", "b", "classes", "parameters", "standard_errors", "hubs",
                                              "authorities", "ranks", "A", "B", "centres", "x"])
        elif what == 4:
            texts[r.choice(["algorithm", "family", "link", "type"])] = r.choice(["linreg", "logreg", "glm",
                                                                                 "svm", "hits", "pagerank",
                                                                                 "als", "kmeans", "mds", "x",
                                                                                 "", "log", "poisson"])
        else:
            key = r.choice(["schema", "options", "metrics", "class_names", "vertices", "features", "targets",
                            "report", "cross_validation"])
            try:
                texts[key] = json.dumps(change_json(r, json.loads(texts.get(key, "{}"))))
            except ValueError:
                texts[key] = r.choice(["", "[", "{}", "[" * 500, '{"a":' * 500, "null"])
    return model_bytes(tensors, texts)


# ----------------------------------------------------------------------------------------------- running

class Run:
    def __init__(self, options):
        self.kiln, self.keep = os.path.abspath(options.kiln), options.keep
        self.folder = tempfile.mkdtemp(prefix="kiln-mutate-")
        self.executions, self.findings, self.codes, self.former = 0, 0, {}, None
        self.environment = dict(os.environ, ASAN_OPTIONS="exitcode=99:abort_on_error=0:detect_leaks=1",
                                UBSAN_OPTIONS="halt_on_error=1:exitcode=99", KILN_CACHE_DIR=self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def run(self, arguments, allowed=(0, 3)):
        command = [self.kiln, *arguments, "--device", "cpu", "--threads", "2", "--quiet", "--json"]
        self.executions += 1
        try:
            result = subprocess.run(command, capture_output=True, timeout=20, env=self.environment)
        except subprocess.TimeoutExpired:
            self.finding(command, "more than 20 s", b"")
            return None, None
        code = result.returncode
        self.codes[code] = self.codes.get(code, 0) + 1
        try:
            answer = json.loads(result.stdout) if result.stdout else {}
        except ValueError:
            self.finding(command, "what it printed is no JSON", result.stdout)
            return code, None
        if code not in allowed:
            self.finding(command, f"exit code {code}", result.stderr)
        elif code == 4:
            pass  # not converged, a claim that does not hold: told, but no error
        elif code and not answer.get("error", {}).get("message"):
            self.finding(command, "an error without a message", result.stderr)
        elif code and answer["error"]["code"] == "KILN_ERR_PARSE" and not answer["error"]["file"]:
            self.finding(command, "a parse error without its file", result.stderr)
        elif (
            code
            and answer["error"]["code"] == "KILN_ERR_PARSE"
            and answer["error"]["line"] is None
            and answer["error"].get("offset") is None
            and not any(
                array in answer["error"]["message"]
                for array in ("member", "array", "indptr", "indices", "data.npy", "shape", "row ")
            )
        ):
            self.finding(command, "a parse error without a place", result.stderr)
        return code, answer

    def finding(self, command, what, text):
        self.findings += 1
        print(f"FINDING {what}: {' '.join(command)}\n{text.decode(errors='replace')[-1500:]}", flush=True)
        if self.keep:
            folder = os.path.join(self.keep, str(self.findings))
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def data(self, r, make):
        data, suffix, options = make(r)
        path = self.write("data" + suffix, data)
        mapped = "--map" in options
        # two files as one, mostly of other columns
        further = [self.former] if self.former and r.random() < 0.15 else []
        self.former = shutil.copy(path, self.path("former" + suffix)) if r.random() < 0.5 else None
        code, _ = self.run((["linreg"] if mapped else ["info"]) + [path, *further, *options], (0, 2, 3, 4)
                           if mapped else (0, 2, 3, 7) if suffix == ".kiln-data" else (0, 2, 3))
        if code == 0 and not mapped and r.random() < 0.3:
            self.again(path, [o for o in options if o not in ("--map",)])

    def again(self, path, options):
        """An accepted file is written and read again: the same entries."""
        out = self.path("again.csv")
        code, first = self.run(["convert", path, out, *options], (0, 2, 3))
        if code != 0:
            return
        keep = ["--type", "f32"] if "f32" in options else []
        code, second = self.run(["info", out, "--allow-nonfinite", "--max-name", "100000", *keep], (0, 3))
        if code == 0 and second["rows"] != first["rows"] and first["columns"]:
            self.finding(["convert", path], f"{first['rows']} rows, read again {second['rows']}", b"")

    def model(self, r, models, data):
        path = self.write("model.kiln", model_file(r, models))
        with open(path, "rb") as file:
            algorithm = read_model(file.read())[1].get("algorithm", "")
        self.run(["info", path], (0, 7))
        for name in r.sample(sorted(data), 2):
            self.run(["predict", path, data[name]], (0, 2, 3, 7))
        name = r.choice(sorted(data))
        target = ["--target", r.choice(["y", "k"])] if name == "table" else []
        self.run(["evaluate", path, data[name], *target], (0, 2, 3, 7))
        whom = r.choice([["--user", r.choice(["0", "1", "u1", "x"])], ["--item", r.choice(["1", "i2"])],
                         [data["ratings"]], [data["rated"]], [data["graph"]]])
        self.run(["recommend", path, *whom], (0, 2, 3, 7))
        start = ["--warm-start", path, "--max-iterations", "5"]
        self.run(r.choice([["verify", path, data[name]], ["coefficients", path],
                           ["linreg", data["table"], "--target", "y", *start],
                           ["logreg", data["table"], "--target", "k", *start],
                           ["svm", data["numbers"], *start],
                           ["glm", data["table"], "--target", "y", *start]]), (0, 2, 3, 4, 7))
        own = {"linreg": ["linreg", data["table"], "--target", "y"], "logreg": ["logreg", data["numbers"]],
               "svm": ["svm", data["numbers"]], "glm": ["glm", data["table"], "--target", "y"],
               "hits": ["hits", data["graph"]], "pagerank": ["pagerank", data["graph"]],
               "als": ["als", data["ratings"], "--factors", "2"],
               "sfa": ["sfa", data["rated"], "--factors", "2"], "lda": ["lda", data["words"], "-k", "2"],
               "gap": ["gap", data["words"], "-k", "2"], "kmeans": ["kmeans", data["points"], "-k", "3",
                                                                    "--init", "given"],
               "mds": ["mds", data["points"], "--init", "given"]}
        if algorithm in own:
            self.run([*own[algorithm], *start], (0, 2, 3, 4, 7))


    def checkpoint(self, r, kept):
        command, data = r.choice(kept)
        path = self.write("run.ckpt", checkpoint_file(r, data))
        # 2: numbers that no model holds
        self.run([*command, "--max-iterations", "6", "--resume", path], (0, 2, 3, 7))


def begin_checkpoints(run, data):
    """Runs that were stopped after two iterations: the command, and the state."""
    kept = []
    for arguments in (["linreg", data["table"], "--target", "y", "--missing", "mean", "--solver", "cg"],
                      ["logreg", data["numbers"]], ["logreg", data["table"], "--target", "k", "--missing",
                                                    "mean"],
                      ["logreg", data["numbers"], "--l1", "0.1"],
                      ["svm", data["table"], "--target", "k", "--missing", "mean", "--ignore", "x"],
                      ["glm", data["table"], "--target", "y", "--family", "poisson", "--missing", "mean"],
                      ["hits", data["graph"]], ["hits", data["words"], "--solver", "lobpcg"],
                      ["pagerank", data["graph"]],
                      ["kmeans", data["spread"], "-k", "3", "--restarts", "3", "--init", "random"],
                      ["kmeans", data["points"], "-k", "3", "--batch", "4"],
                      ["mds", data["points"], "--restarts", "2"],
                      ["mds", data["points"], "--metric", "ordinal"],
                      ["als", data["ratings"], "--factors", "2"],
                      ["als", data["rated"], "--factors", "2", "--solver", "ccd"],
                      ["sfa", data["rated"], "--factors", "2"],
                      ["svd", data["broad"], "-k", "2"], ["pca", data["broad"], "-k", "1", "--scale"],
                      ["lda", data["words"], "-k", "2", "--learn-alpha"],
                      ["lda", data["words"], "-k", "2", "--batch", "2"], ["gap", data["words"], "-k", "2"]):
        path = run.path("begun.ckpt")
        command = [*arguments, "--tolerance", "1e-300"]
        code, _ = run.run([*command, "--max-iterations", "2", "--checkpoint", path])
        if code != 0 or not os.path.exists(path):
            sys.exit(f"mutate: cannot make a checkpoint: {arguments}")
        with open(path, "rb") as file:
            kept.append((command, file.read()))
        os.remove(path)
    return kept


def begin_models(run):
    rows = "".join(f"{i % 7},{'' if i % 5 == 3 else i % 4},{'uvw'[i % 3]},{i % 2}\n" for i in range(60))
    table = run.write("table.csv", ("x,h,k,y\n" + rows).encode())
    numbers = run.write("numbers.svm",
                        "".join(f"{i % 2} 1:{i % 5} {2 + i % 3}:1\n" for i in range(40)).encode())
    graph = run.write("graph.edges", b"a b\nb c\nc a\na c\n")
    points = run.write("points.csv",
                       ("a,b,c\n" + "".join(f"{i % 4},{i * i % 5},{i % 3}\n" for i in range(12))).encode())
    # K-Means needs more than two iterations here, whatever rows it starts from.
    spread = run.write("spread.csv", ("a,b,c\n" + "".join(f"{i * i % 97},{i * i * i % 89},{i % 83}\n"
                                                          for i in range(200))).encode())
    # Two iterations know 32 of its 60 columns.
    broad = run.write("broad.csv", "".join(
        ",".join(str((i * i * j + 7 * i * j * j + i) % 101) for j in range(60)) + "\n"
        for i in range(120)).encode())
    ratings = run.write("ratings.mtx", ("%%MatrixMarket matrix coordinate real general\n6 5 12\n" +
                                        "".join(f"{i % 6 + 1} {i // 6 + i % 3 + 1} {i % 5 + 1}\n"
                                                for i in range(12))).encode())
    rated = run.write("rated.csv",
                      ("user,item,rating\n" + "".join(f"u{i % 5},i{(i + i // 5) % 6},{i % 5 + 1}\n"
                                                      for i in range(25))).encode())
    words = run.write("docword.txt",
                      ("6\n5\n12\n" + "".join(f"{i % 6 + 1} {i // 6 + i % 3 + 1} {i % 4 + 1}\n"
                                              for i in range(12))).encode())
    made = []
    for i, arguments in enumerate([["linreg", table, "--target", "y", "--missing", "indicator"],
                                   ["logreg", table, "--target", "k", "--missing", "mean"],
                                   ["logreg", numbers], ["svm", table, "--target", "k", "--missing", "mean",
                                                         "--ignore", "x"], ["svm", numbers, "--regression"],
                                   ["hits", graph], ["pagerank", graph],
                                   ["als", ratings, "--factors", "2", "--biases"],
                                   ["sfa", rated, "--factors", "2"],
                                   ["als", rated, "--factors", "2", "--implicit"],
                                   ["lda", words, "-k", "2", "--learn-alpha"], ["gap", words, "-k", "2"],
                                   ["kmeans", points, "-k", "3"], ["mds", points],
                                   ["mds", points, "--metric", "ordinal"],
                                   ["glm", table, "--target", "y", "--family", "poisson", "--missing",
                                    "indicator"], ["glm", table, "--target", "y", "--family", "binomial",
                                                   "--missing", "mean", "--reference", "k=v",
                                                   "--standard-errors"],
                                   ["logreg", table, "--target", "k", "--missing", "mean", "--cv", "3",
                                    "--l2", "1e-1:1e1:3"]]):
        code, _ = run.run([*arguments, "-o", run.path(f"{i}.kiln")])
        if code != 0:
            sys.exit(f"mutate: cannot make a model: {arguments}")
        with open(run.path(f"{i}.kiln"), "rb") as file:
            made.append(file.read())
    return made, {"table": table, "numbers": numbers, "graph": graph, "points": points, "spread": spread,
                  "broad": broad, "ratings": ratings, "rated": rated, "words": words}


def panels_file(r):
    """Kiln's own packed file: X dense, sparse or with categories, and what stands beside it."""
    rows, cols = r.randrange(0, 6), r.randrange(1, 4)
    kind = r.choice(["dense", "sparse", "codes"])
    arrays = []

    def add(name, dtype, shape, values):
        code = {"F64": "d", "F32": "f", "U8": "B", "I16": "h", "I32": "i", "I64": "q", "U32": "I"}[dtype]
        arrays.append([name, dtype, shape, struct.pack(f"<{len(values)}{code}", *values)])
    if kind == "sparse":
        places = [sorted(r.sample(range(cols), r.randrange(cols + 1))) for _ in range(rows)]
        starts = [sum(map(len, places[:i])) for i in range(rows + 1)]
        if r.random() < 0.7:
            add("X.values", "F32", [starts[-1]], [r.choice([0, 1, 2.5]) for _ in range(starts[-1])])
        add("X.row_start", "I64", [rows + 1], [n + (r.random() < 0.02) for n in starts])
        add("X.columns", "I32", [starts[-1]],
            [j + r.choice([0] * 40 + [-1, 1]) for one in places for j in one])
    elif kind == "codes":
        numbers, cols = cols, cols + 3
        add("X.values", "I16", [rows, numbers], [r.randrange(-9, 9) for _ in range(rows * numbers)])
        codes = [0, 1, 2, 3, 3, 1] + [9] * (r.random() < 0.1)
        add("X.codes", "U8", [rows, 1], [r.choice(codes) for _ in range(rows)])
        add("X.categories", "I64", [1, 2], [r.choice([numbers] * 9 + [0, 99]), 3])
    else:
        dtype = r.choice(["F64", "U8", "F32"])
        add("X.values", dtype, [rows, cols], [r.randrange(9) for _ in range(rows * cols)])
    if r.random() < 0.5:
        add("y", "F64", [rows, 1], [r.choice([0, 1]) for _ in range(rows)])
    if r.random() < 0.3:
        add("weights", "U8", [rows], [1] * rows)
    if r.random() < 0.3:
        names = b"".join(b"c%d\0" % j for j in range(cols + (r.random() < 0.1)))
        add("names.features", "U8", [len(names)], names)
    if len(arrays) and r.random() < 0.3:
        arrays.pop(r.randrange(len(arrays)))
    for array in arrays:
        if r.random() < 0.05:
            array[2] = r.choice([[2**62, 4], [0, 0], [1], [-1, 2], [rows + 1, cols], []])
        if r.random() < 0.05:
            array[1] = r.choice(["F16", "BF16", "I8", "BOOL", ""])
    panels = [array[3] for array in arrays if array[3]]
    at, members = 0, {}
    count = len(panels) + 2
    for name, dtype, shape, body in arrays + [["checksums", "U32", [count], b"\0" * 4 * count]]:
        members[name] = {"dtype": dtype, "shape": shape,
                         "data_offsets": [at + (r.random() < 0.01), at + len(body)]}
        at += len(body)
    texts = {"format": r.choice(["kiln data 1"] * 30 + ["kiln data 2"]), "rows": str(rows),
             "columns": str(cols)}
    if r.random() < 0.05:
        texts[r.choice(["rows", "columns"])] = r.choice(["", "x", "-1", "2147483648", "9223372036854775807"])
    header = json.dumps({"__metadata__": texts, **members}, separators=(",", ":")).encode()
    head = struct.pack("<Q", len(header)) + header
    sums = [zlib.crc32(head), *map(zlib.crc32, panels)]
    sums.append(zlib.crc32(struct.pack(f"<{len(sums)}I", *sums)))
    data = bytearray(head + b"".join(array[3] for array in arrays) + struct.pack(f"<{len(sums)}I", *sums))
    if r.random() < 0.1:
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    return bytes(data), ".kiln-data", r.choice([[], [], ["--type", "f32"], ["--map"]])


FORMATS = {"csv": csv_file, "libsvm": libsvm_file, "mtx": matrix_market_file, "edges": edges_file,
           "ratings": ratings_file, "docword": bag_of_words_file, "npy": npy_file, "npz": npz_file,
           "packed": packed_file, "kiln-data": panels_file, "model": None, "checkpoint": None}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--keep")
    options = parser.parse_args()
    formats = options.only.split(",") if options.only else list(FORMATS)
    r, run, start = random.Random(options.seed), Run(options), time.time()
    try:
        models, data = begin_models(run)
        kept = begin_checkpoints(run, data)
        files = 0
        while time.time() - start < options.seconds if options.seconds else files < options.count:
            name = formats[files % len(formats)]
            files += 1
            if name == "model":
                run.model(r, models, data)
            elif name == "checkpoint":
                run.checkpoint(r, kept)
            else:
                for _ in range(2):  # the second may be read with the first, of the same format
                    run.data(r, FORMATS[name])
        print(f"mutate: {files} files, {run.executions} executions in {time.time() - start:.0f} s, exit "
              "codes "
              f"{dict(sorted(run.codes.items()))}, {run.findings} findings (seed {options.seed})")
    finally:
        shutil.rmtree(run.folder)
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
