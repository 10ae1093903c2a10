#!/usr/bin/env python3
"""Checks what the tree promises: who may include and call whom, no vendor headers, no raw allocation past the
seams, no function that nobody calls or that only its own file does, no file too long to read, no line too
wide, no folder of too many files, no comment that begins as a fragment; that the files which
docs/architecture.md, docs/passes.md and comments name exist, and the tests that tests/guards.md names; that
no merge left its marks; that files which name the version name this one; and that the README beside results
and studies lists each of them once.

The rules are those of docs/architecture.md; a line that breaks one is printed and the exit code is 1.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)

# Folder -> folders of src/ that it may include from (besides kiln.h and its own).
MAY_INCLUDE = {
    "src/core": ["dialect"],
    "src/backends": ["core"],
    # the table of every room's CPU bodies
    "src/bodies": ["core", "dialect", "derived", "pass", "ops", "choose", "metrics"],
    "src/derived": ["core", "dialect", "bodies"],
    "src/pass": ["core", "dialect", "bodies", "derived"],
    "src/ops": ["core", "dialect", "bodies", "derived", "pass"],
    "src/choose": ["core", "bodies", "derived", "pass"],
    "src/io": ["core"],
    "src/processes": ["core", "derived", "pass", "io"],
    "src/metrics": ["core", "dialect", "bodies", "pass", "ops"],
    "src/algorithms": [],
    "cli": [],
    "bench": [],
    "examples": [],
}
# Folder -> headers of other rooms that its files may include.
ALSO = {
    "src/algorithms": [
        "derived/fills.h",
        "derived/select.h",
        "derived/sparse_columns.h",
        "derived/transposed.h",
        "metrics/explained.h",
        "ops/graph/ranks_error.h",
        "ops/linear/ahead.h",
        "ops/linear/dual.h",
        "ops/linear/dual_judge.h",
        "ops/linear/families.h",
        "ops/linear/fold_losses.h",
        "ops/linear/gram.h",
        "ops/linear/newton.h",
        "ops/linear/scales.h",
        "ops/points/furthest.h",
        "ops/points/piece_sums.h",
        "ops/points/potentials.h",
        "ops/sampled/gamma.h",
        "ops/sampled/top_products.h",
        "ops/vectors/reduce.h",
    ],
}
# A file -> what it alone may include.
EXCEPTIONS = {
    ("src/algorithms/algorithm.h", "core/each.h"),
    ("src/algorithms/algorithm.h", "core/random.h"),
    ("src/algorithms/algorithm.h", "core/range.h"),
    ("src/algorithms/algorithm.h", "core/seams.h"),
    ("src/algorithms/algorithm.h", "core/size.h"),
    ("src/algorithms/algorithm.h", "core/sized.h"),
    ("src/algorithms/algorithm.h", "core/status.h"),
    ("src/algorithms/registry.h", "io/model/model.h"),
    ("src/algorithms/trials.c", "choose/trial.h"),
}
# Room -> rooms whose functions it may call besides those that it may include from, by their public names.
MAY_CALL = {
    "src/pass": ["choose"],  # X is cut among unlike devices by their figures
    "src/processes": ["ops"],  # each process runs operations
    "src/choose": ["ops"],  # rates are measured by running operations
    "src/algorithms": ["core", "ops", "derived", "choose", "io"],
    "src/metrics": ["algorithms"],  # the intercept alone beside an offset is fitted
}
# Folder within a room -> folders of src/ that it must not include from: a table does not know what feeds it.
MUST_NOT_INCLUDE = {
    "src/io/table": ["io/csv", "io/arrow"],
    "src/io/csv": ["io/arrow"],
    "src/io/arrow": ["io/csv"],
}
VENDOR = re.compile(r"^(cuda|nvrtc|cublas|cusparse|nccl|mpi|CL/|OpenCL/)")
# Calls that must go through core/seams.h, and the files that are the seam.
RAW_CALL = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|posix_memalign|abort|exit)\s*\(")
RAW_ALLOWED = {"src/core/seams.c"}
FILES_MOST = 45  # of a folder


def files(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.[ch]") if path.is_file())


def check_includes(folder, path, text):
    name = str(path.relative_to(ROOT))
    for quote, target in INCLUDE.findall(text):
        if VENDOR.match(target):
            yield f"{name}: includes the vendor header {target}"
        if quote == "<" or target == "kiln.h" or target.startswith("kiln/") or (name, target) in EXCEPTIONS:
            continue
        if target in ALSO.get(folder, []):
            continue
        if target.rpartition("/")[0] in MUST_NOT_INCLUDE.get(name.rpartition("/")[0], []):
            yield f"{name}: must not include {target}"
        own = folder.removeprefix("src/")
        source = target.split("/")[0] if "/" in target else own
        if source != own and source not in MAY_INCLUDE[folder]:
            yield f"{name}: {folder} must not include {target}"


def code_of(text):
    """Without comments and strings, the lines where they were."""
    code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    code = re.sub(r"'(\\.|[^'\\])'", "' '", code)
    return re.sub(r'"(\\.|[^"\\])*"', '""', code)


DEFINITION = re.compile(r"^(?!static|typedef|#|\s)[\w ]+?\**\b(ki_\w+|kiln_\w+)\([^;{]*\)\s*\{", re.M)
CALL = re.compile(r"\b(ki_\w+|kiln_\w+)\(")


def find_rooms():
    """Function -> the room of src/ that defines it."""
    rooms = {}
    for path in files("src"):
        if path.suffix == ".c":
            room = path.relative_to(ROOT / "src").parts[0]
            rooms.update((name, room) for name in DEFINITION.findall(code_of(path.read_text())))
    return rooms


def check_rooms(folder, path, text, rooms):
    """Calls upward need no include where the public header declares the function."""
    name = str(path.relative_to(ROOT))
    own = folder.removeprefix("src/")
    may = {own, *MAY_INCLUDE[folder], *MAY_CALL.get(folder, [])}
    for number, line in enumerate(code_of(text).split("\n"), 1):
        for called in CALL.findall(line):
            room = rooms.get(called, own)
            if room not in may:
                yield f"{name}:{number}: {folder} must not call {called} of src/{room}"


EXTERNAL = re.compile(r"^(?!static|typedef|#|\s)[\w ]+?\**\b(\w+)\([^;{]*\)\s*\{", re.M)
MACRO = re.compile(r"^\s*#\s*define(?:\\\n|.)*", re.M)
INLINE = re.compile(r"^static inline\b[^;{]*\{\n(?:.*\n)*?\}", re.M)
WORD = re.compile(r"\b[A-Za-z]\w*\b")
LINES_MOST = 500
COLUMNS_MOST = 110


def check_used():
    """A function of the library or the tool that is not static is used by another of their files, or by a
    header's macro or inline function."""
    defined, users = {}, {}
    for path in files("src") + files("cli"):
        code = code_of(path.read_text())
        if path.suffix == ".c":
            defined.update((name, path) for name in EXTERNAL.findall(code))
        if path.suffix == ".h" and not path.name.endswith(".cpu.h"):
            code = "\n".join(MACRO.findall(code) + INLINE.findall(code))
        for word in set(WORD.findall(code)):
            users.setdefault(word, set()).add(path)
    for name, path in sorted(defined.items()):
        if not name.startswith("kiln_") and name != "main" and users[name] == {path}:
            yield f"{path.relative_to(ROOT)}: {name} is used in no other file: static, or dead"


def check_size(path, text):
    lines = text.count("\n")
    if lines > LINES_MOST:
        yield f"{path.relative_to(ROOT)}: {lines} lines; cut it where a reader would"


def check_width():
    """C, kernels and Python, but bench's, keep within the columns; what CMake reads as a line of a kernel's
    build may be longer."""
    for folder in ("src", "include", "cli", "plugins", "examples", "tests", "bench", "python", "scripts"):
        kinds = (".c", ".h", ".cl") if folder == "bench" else (".c", ".h", ".cl", ".py")
        for path in sorted(path for path in (ROOT / folder).rglob("*")
                           if path.suffix in kinds and path.name != "_binding.py"):  # the build writes that
            for number, line in enumerate(path.read_text().split("\n"), 1):
                if len(line) > COLUMNS_MOST and not line.startswith("// build "):
                    yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns, at most {COLUMNS_MOST}"


SOURCES = ("src", "include", "cli", "plugins", "examples", "tests", "bench", "python", "scripts", "docs")
# A comment or docstring that begins so has no subject, and seldom a verb; with "What" or "Where" it has one
# late. These two are gone from some rooms.
FRAGMENT = re.compile(r'(?:/\*+<? *|"""|(?:^|  ) *# )(Of|How|So|That)\b')
LATE_SUBJECT = re.compile(r"/\*+<? *(What|Where)\b")
EARLY_SUBJECTS = ("src/algorithms/", "src/choose/", "src/io/", "src/metrics/", "src/ops/", "cli/")


def check_words():
    """Comments are sentences: these words begin none."""
    for path in sorted(path for folder in SOURCES for path in (ROOT / folder).rglob("*")
                       if path.suffix in (".c", ".h", ".cl", ".py")):
        former, name = "", str(path.relative_to(ROOT))
        for number, line in enumerate(path.read_text().split("\n"), 1):
            goes_on = line.lstrip().startswith("#") and former.lstrip().startswith("#")
            found = FRAGMENT.search(line) or (name.startswith(EARLY_SUBJECTS) and LATE_SUBJECT.search(line))
            if found and not goes_on:
                yield f"{name}:{number}: a comment begins with a subject, not with \"{found[1]}\""
            former = line


def check_calls(path, text):
    name = str(path.relative_to(ROOT))
    if name in RAW_ALLOWED or not name.startswith("src/"):
        return
    code = code_of(text)
    for number, line in enumerate(code.split("\n"), 1):
        found = RAW_CALL.search(line)
        if found:
            yield f"{name}:{number}: calls {found.group(1)}() past the seams"


def check_page(page):
    """Files that a page names in backquotes exist: from the root, or from src/."""
    text = (ROOT / page).read_text()
    for number, line in enumerate(text.split("\n"), 1):
        for named in re.findall(r"`([\w.-]+/[\w./-]*\.(?:c|h|cl|py|md|json|cmake))`", line):
            if "NAME" not in named and not any((ROOT / base / named).exists()
                                               for base in (".", "src", "include")):
                yield f"{page}:{number}: there is no {named}"


# A file in the words of a comment: not a member, as s.h of an expression, and none of another project's.
NAMED = re.compile(r"(?<![\w/<.>*-])((?:[a-z]\w*/)*[a-z]\w{2,}\.(?:c|h|cl|cpu\.h))\b(?![(\w])")
OF_OTHERS = ("cuda.h", "nvrtc.h", "nccl.h", "mpi.h", "zlib.h", "dialect/part.h")


def check_named():
    """Files that comments name exist: a path from the root, from a room, from the file's own folder or from
    the one above, a bare name anywhere."""
    tree = {str(path.relative_to(ROOT)) for folder in SOURCES for path in (ROOT / folder).rglob("*")}
    bare = {name.rsplit("/", 1)[-1] for name in tree}
    for name in sorted(tree):
        if not name.endswith((".c", ".h", ".cl")):
            continue
        text, folder = (ROOT / name).read_text(), name.rsplit("/", 1)[0]
        for comment in re.finditer(r"/\*.*?\*/", text, re.S):
            for found in NAMED.finditer(comment[0]):
                file = found[1]
                bases = ["", "src/", "include/", f"{folder}/", f"{folder}/../"]
                bases += ["tests/"] if name.startswith("tests/") else []
                there = (file in bare if "/" not in file
                         else any((ROOT / (base + file)).exists() for base in bases))
                if not there and file not in OF_OTHERS:
                    line = text.count("\n", 0, comment.start() + found.start()) + 1
                    yield f"{name}:{line}: there is no {file}"


WORDS = {"README.md": 900, "docs/architecture.md": 2500, "docs/performance.md": 2500}


def check_lengths():
    """Pages that are read as a whole stay short."""
    for page, most in WORDS.items():
        words = len((ROOT / page).read_text().split())
        if words > most:
            yield f"{page}: {words} words, at most {most}"


FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"(?<!\\)\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")


def anchors_of(page):
    """The names that GitHub and Sphinx give the headings of a page, and those that it gives itself."""
    text = FENCE.sub("", page.read_text())
    heads = (re.sub(r"\]\([^)]*\)", "", head) for head in re.findall(r"^#+ (.*)$", text, re.M))
    return ({re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}
            | set(re.findall(r'id="([^"]+)"', text)))


def check_links():
    """What pages link to is in the repository, files and headings; the site's first page lies in docs
    there."""
    known, pages = {}, [*ROOT.glob("*.md")]
    for folder in ("bench", "data", "docs", "examples", "packaging", "plugins", "python", "tests"):
        pages += (ROOT / folder).rglob("*.md")
    for page in sorted(pages):
        text = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), page.read_text())
        folder = page.parent.parent if page.match("docs/site/index.md") else page.parent
        for link in LINK.finditer(text):
            to = (folder / link[1]).resolve() if link[1] else page
            here = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, link.start()) + 1}"
            if not to.exists():
                yield f"{here}: links to {link[1]}, which is not there"
            elif link[2] and to.suffix == ".md" and link[2] not in known.setdefault(to, anchors_of(to)):
                yield f"{here}: {link[1] or 'the page'} has no heading #{link[2]}"


def check_guards():
    """The tests that tests/guards.md names, as FILE::NAME, exist; each of its rows names one at least."""
    for number, line in enumerate((ROOT / "tests/guards.md").read_text().split("\n"), 1):
        named = re.findall(r"`([\w./]+)::(\w+)`", line)
        if line.startswith("| ") and not line.startswith("| fault") and not named:
            yield f"tests/guards.md:{number}: the row names no test"
        for file, name in named:
            path = ROOT / file
            if not path.exists() or not re.search(rf"\b{name}\(", path.read_text()):
                yield f"tests/guards.md:{number}: there is no {file}::{name}"


def check_merges():
    """No page has the marks of a merge that was not finished."""
    for path in [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]:
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if re.match("(<{7}|>{7}) ", line):
                yield f"{path.relative_to(ROOT)}:{number}: a merge left its mark"


def check_listed(folder):
    """Each file of a folder stands in the first column of its README once, and no other. N stands for any
    number."""
    cells = [line.split("|")[1] for line in (ROOT / folder / "README.md").read_text().split("\n")
             if line.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`([\w.-]+)`", cell)
              if not name.startswith("cpuN")]
    there = [path.name for path in (ROOT / folder).iterdir() if path.name != "README.md"]
    for name in sorted(set(listed + there)):
        if (listed.count(name), there.count(name)) != (1, 1):
            yield (f"{folder}/README.md: {name} is listed {listed.count(name)} times, and there are "
                   f"{there.count(name)}")


def check_machines(folder):
    """Results name no folder of the machine that they were measured on."""
    for path in sorted((ROOT / folder).glob("*.json*")):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if found := re.search(r"/(root|home|tmp)/\S*", line):
                yield f"{path.relative_to(ROOT)}:{number}: {found[0]}, a path of one machine"


def check_folders():
    """No folder of src/ holds more files than a newcomer can look over."""
    for folder in sorted(path for path in (ROOT / "src").rglob("*") if path.is_dir()):
        count = sum(path.is_file() for path in folder.iterdir())
        if count > FILES_MOST:
            yield f"{folder.relative_to(ROOT)}: {count} files, at most {FILES_MOST}"


def check_version():
    """Files for people and other packagers name the version that CMakeLists.txt has."""
    version = re.search(r"project\(kiln VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    lines = {"CHANGELOG.md": "## {}", "CITATION.cff": "version: {}\n",
             "cmake/debian/changelog": "kiln ({}-1)", "packaging/conda/meta.yaml": 'version: "{}"',
             "packaging/nix/default.nix": 'version = "{}"', "packaging/README.md": "kiln@{}",
             "packaging/spack/packages/kiln/package.py": 'version("{}")'}
    for name, line in lines.items():
        if line.format(version) not in (ROOT / name).read_text():
            yield f"{name}: has no {line.format(version).strip()}"


def main():
    problems = []
    for page in ("docs/architecture.md", "docs/passes.md"):
        problems += check_page(page)
    for folder in ("bench/results", "bench/studies"):
        problems += check_listed(folder)
        problems += check_machines(folder)
    rooms = find_rooms()
    for folder in MAY_INCLUDE:
        for path in files(folder):
            text = path.read_text()
            problems += check_includes(folder, path, text)
            problems += check_calls(path, text)
            problems += check_size(path, text)
            if folder.startswith("src/") and path.suffix == ".c":
                problems += check_rooms(folder, path, text, rooms)
    problems += check_used()
    problems += check_width()
    problems += check_words()
    problems += check_named()
    problems += check_folders()
    problems += check_links()
    problems += check_lengths()
    problems += check_guards()
    problems += check_merges()
    problems += check_version()
    for problem in problems:
        print(problem)
    print(f"check_tree: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
