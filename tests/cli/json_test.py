"""The output of --json has the keys and types of json_schema.json: each key of an object is there, with the
type that it had, but for those whose name ends in "?"; and no other key is. docs/command-line.md names each
of them: those of the outermost object in the row of its schema, or below the table. A type is "integer",
"number", "string", "boolean", "null", several with "|" between them, an object of keys, or a list of one
type. Under "any" is whatever a model file says.

usage: json_test.py KILN           checks
       json_test.py KILN --write   writes json_schema.json anew, from what the commands print: a change of it
                                   is to be seen in review
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "json_schema.json")
PAGE = os.path.join(os.path.dirname(SCHEMA), "..", "..", "docs", "command-line.md")
FREE = {"metadata"}  # keys whose objects are a model's own
ELSEWHERE = {"options", "figures"}  # keys whose objects' keys have another page

COMMANDS = [
    "hits links.edges --top 3 -o h.kiln",
    "pagerank links.edges --top 3 --personalize seeds.txt",
    "mds points.csv",
    "kmeans points.csv -k 3 --checkpoint c.checkpoint -o k.kiln",
    "kmeans points.csv -k 3 --device auto",
    "als ratings.csv --factors 2 --test-fraction 0.2 -o a.kiln",
    "als ratings.csv --factors 2 --implicit --test-fraction 0.2",
    "sfa ratings.csv --factors 2",
    "svd docword.txt -k 2 -o s.kiln",
    "pca points.csv -k 2 --scale --coordinates rows.csv --vectors columns.csv --plot p.svg -o p.kiln",
    "spectral links.edges -k 2 --coordinates vertices.csv --plot p.svg -o e.kiln",
    "gap docword.txt --topics 2",
    "lda docword.txt --topics 2 --test-fraction 0.2 -o l.kiln",
    "linreg table.csv --target y --ignore two,three,n,g -o y.kiln",
    "linreg table.csv --target y,n --ignore two,three,g",
    "linreg table.csv --target y --ignore two,three,n,g --l2 0.1",
    "linreg table.csv --target y --ignore two,three,n,g --cv 3 --l2 1e-3:1:3",
    "linreg table.csv --target y --ignore two,three,n,g --l2 1e-3:1:3",
    "logreg table.csv --target two --ignore y,three,n,g -o two.kiln",
    "logreg table.csv --target three --ignore y,two,n,g --l1 0.01 -o three.kiln",
    "logreg table.csv --target two --ignore y,three,n,g --cv 3 --l1 1e-3:1:3 --groups g",
    "svm table.csv --target three --ignore y,two,n,g --l2 0.1",
    "svm table.csv --target y --ignore two,three,n,g --regression --l2 0.1",
    "glm table.csv --target n --ignore y,two,three,g --family poisson --standard-errors -o n.kiln",
    "glm table.csv --target n --ignore y,two,three,g,a --family poisson -o small.kiln",
    "glm table.csv --target two --ignore y,three,n,g --family binomial",
    "glm table.csv --target n --ignore y,two,three,g --family gaussian",
    "predict y.kiln table.csv",
    "predict three.kiln table.csv --probabilities",
    "predict two.kiln table.csv",
    "predict k.kiln points.csv",
    "predict l.kiln docword.txt",
    "evaluate two.kiln table.csv",
    "evaluate three.kiln table.csv",
    "evaluate n.kiln table.csv",
    "evaluate l.kiln docword.txt",
    "statistics n.kiln table.csv",
    "statistics small.kiln table.csv --errors cluster --groups g",
    "statistics n.kiln table.csv --against small.kiln --residuals rows.csv",
    "verify y.kiln table.csv",
    "verify h.kiln links.edges",
    "info table.csv --target y",
    "info links.edges",
    "convert table.csv packed.kiln-data --target y --weights n --offset a --groups g",
    "info packed.kiln-data",
    "info three.kiln",
    "info a.kiln",
    "recommend a.kiln --user u1 --top 2",
    "recommend a.kiln --item i1 --top 2",
    "recommend a.kiln ratings.csv --pairs",
    "recommend a.kiln ratings.csv --test",
    "coefficients n.kiln",
    "coefficients three.kiln",
    "mmchain points.csv y.csv --z y.csv -o w.npy",
    "sddmm docword.txt A.csv B.csv --kind residual",
    "devices",
    "devices --start --device cpu",
    "explain mmchain --rows 5000 --columns 100 --nnz 50000 --device cpu",
    "explain batch --rows 3000 --columns 33 --device cpu",
    "explain linreg table.csv --target y",
    "explain pagerank links.edges",
    "explain logreg --rows 1000000 --columns 28 --type f32 --gpus 8 --nodes 2",
    "tune mmchain --rows 2000 --columns 10 --device cpu",
    "kernels list",
    "version",
    "linreg nowhere.csv",
]


def write(name, lines):
    with open(name, "w") as file:
        file.write("\n".join(lines) + "\n")


def make_data():
    draw = random.Random(1)
    write("links.edges", [f"v{draw.randrange(12)} v{draw.randrange(15)}" for _ in range(60)])
    write("seeds.txt", ["v1 2", "v2", "", "v3"])
    write("points.csv", ["p,q"] + [f"{i % 3 * 4 + draw.gauss(0, 1)},{draw.gauss(0, 1)}" for i in range(30)])
    pairs = sorted({(draw.randrange(15), draw.randrange(12)) for _ in range(120)})
    write("ratings.csv", ["user,item,rating"] + [f"u{u},i{i},{draw.randrange(1, 6)}" for u, i in pairs])
    entries = sorted({(draw.randrange(1, 13), draw.randrange(1, 16)) for _ in range(90)})
    write("docword.txt", ["12", "15", str(len(entries))] + [f"{d} {w} {draw.randrange(1, 5)}"
                                                            for d, w in entries])
    for name, count in (("y.csv", 2), ("A.csv", 12), ("B.csv", 15)):
        write(name, ["p,q"] + [f"{draw.gauss(0, 1)},{draw.gauss(0, 1)}" for _ in range(count)])
    rows = []
    for i in range(60):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        rows.append(f"{a},{b},{'rgb'[i % 3]},{a - b + draw.gauss(0, 0.3)},{int(a + draw.gauss(0, 1) > 0)},"
                    f"{draw.choice('xyz')},{draw.randrange(4)},g{i % 6}")
    write("table.csv", ["a,b,c,y,two,three,n,g", *rows])


def type_of(value, key=""):
    if key in FREE:
        return "any"
    if isinstance(value, dict):
        return {key: type_of(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        merged = None
        for item in value:
            merged = merge(merged, type_of(item))
        return [] if merged is None else [merged]
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return names[type(value)]


def merge(a, b):
    """The type of what is a or b; of objects, keys that one of them lacks get a "?"."""
    if a is None or a == b:
        return b
    if isinstance(a, dict) and isinstance(b, dict):
        plain = {key.rstrip("?"): inner for key, inner in a.items()}
        other = {key.rstrip("?"): inner for key, inner in b.items()}
        merged = {}
        for key in [*plain, *(key for key in other if key not in plain)]:
            needed = key in a and key in b
            both = merge(plain[key],
                         other[key]) if key in plain and key in other else plain.get(key, other.get(key))
            merged[key if needed else key + "?"] = both
        return merged
    if isinstance(a, list) and isinstance(b, list):
        return [merge(a[0], b[0])] if a and b else a or b
    parts = []
    for part in [*(a["|"] if is_choice(a) else [a]), *(b["|"] if is_choice(b) else [b])]:
        for i, known in enumerate(parts):
            if type(known) is type(part) and not isinstance(part, str):
                parts[i] = merge(known, part)
                break
        else:
            if part not in parts:
                parts.append(part)
    return {"|": parts}


def is_choice(kind):
    return isinstance(kind, dict) and set(kind) == {"|"}


def problems(value, kind, where):
    if kind == "any":
        return []
    if is_choice(kind):
        found = [problems(value, part, where) for part in kind["|"]]
        return min(found, key=len)
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return [f"{where}: an object is missing"]
        known = {key.rstrip("?") for key in kind}
        found = [f"{where}.{key}: is not in the schema" for key in value if key not in known]
        for key, inner in kind.items():
            name = key.rstrip("?")
            if name in value:
                found += problems(value[name], inner, f"{where}.{name}")
            elif not key.endswith("?"):
                found.append(f"{where}.{name}: is missing")
        return found
    if isinstance(kind, list):
        if not isinstance(value, list):
            return [f"{where}: a list is missing"]
        return ([problem for item in value for problem in problems(item, kind[0], where + "[]")] if kind
                else [])
    own = type_of(value)
    fits = own == kind or (kind == "number" and own == "integer")
    return [] if fits else [f"{where}: is {own if isinstance(own, str) else 'no scalar'}, not {kind}"]


def keys_of(kind):
    """All keys of a type, and of what is in it."""
    if isinstance(kind, list):
        return {key for part in kind for key in keys_of(part)}
    if not isinstance(kind, dict):
        return set()
    own = set() if is_choice(kind) else {key.rstrip("?") for key in kind}
    return own | {key for name, part in kind.items() if name not in ELSEWHERE for key in keys_of(part)}


def undocumented(schema):
    with open(PAGE) as file:
        page = file.read()

    def names(text):
        return {word for code in re.findall(r"`([^`\n]*)`", text) for word in re.findall(r"\w+", code)}

    common = names(page[page.index("### `metrics`"):]) | {"schema", "kiln_version", "verb", "error"}
    found, everywhere = [], names(page)
    for name, kind in schema.items():
        row = names("\n".join(line for line in page.splitlines() if line.startswith("|") and name in line))
        found += [f"docs/command-line.md: {name}: no row or section names {key}" for key in
                  sorted({key.rstrip("?") for key in kind} - row - common | keys_of(kind) - everywhere)]
    return found


def main():
    kiln = os.path.abspath(sys.argv[1])
    seen, outputs = {}, []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_data()
        for command in COMMANDS:
            arguments = command.split()
            chosen = arguments[0] in ("hits pagerank mds kmeans als sfa gap lda svd pca linreg logreg svm "
                                      "glm").split()
            device = ["--device", "cpu"] if chosen and "--device" not in arguments else []
            run = subprocess.run([kiln, *arguments, *device, "--json", "--quiet"], capture_output=True,
                                 text=True, env={**os.environ, "KILN_WITHOUT": "cuda,opencl"}, check=False)
            value = json.loads(run.stdout)
            name = value.get("schema", "error")
            outputs.append((command, name, value))
            seen[name] = merge(seen.get(name), type_of(value))
        os.chdir("/")
    if "--write" in sys.argv:
        with open(SCHEMA, "w") as file:
            json.dump(seen, file, indent=1)
            file.write("\n")
        return
    with open(SCHEMA) as file:
        schema = json.load(file)
    found = [f"kiln {command}: {problem}" for command, name, value in outputs
             for problem in problems(value, schema[name], name)]
    found += [f"{name}: no command prints it" for name in schema if name not in seen]
    found += undocumented(schema)
    print(*found, sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
