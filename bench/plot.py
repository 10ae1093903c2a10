#!/usr/bin/env python3
"""Figures of what lies in bench/results, as SVG that reads on light and on dark: rooflines, ratios to peers
(after Figures 2 to 5 of the fused-kernels paper), training and end to end. Needs nothing but Python; the same
results give the same bytes. Of bench/results those that a page shows, and the tables of README.md and of
the pages in docs (bench/tables.py).

usage: bench/plot.py [--results DIR] [--out DIR] [--check]      default: bench/results, docs/figures
--check writes nothing and fails where --out is not what would be drawn.
"""
import argparse
import glob
import json
import math
import os
import sys
import textwrap
from xml.sax.saxutils import escape

import tables

HERE = os.path.dirname(os.path.abspath(__file__))
COLOURS = ["#3b82c4", "#e08a1e", "#4a9d5b", "#a65fb0", "#c0504d", "#8a8a8a", "#2aa5a0", "#b59a2b", "#d57fa7", "#6b5bd2"]
APART = 40  # most over least of values that are drawn on a logarithmic axis
LETTER = 7.4  # a letter's mean width at size 14, in units of a drawing
STYLE = ("svg{color:#222;background:#fff;font:14px sans-serif}@media (prefers-color-scheme:dark)"
         "{svg{color:#ddd;background:#161616}}text{fill:currentColor}.grid{stroke:currentColor;opacity:.18}")


class Drawing:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def text(self, x, y, text, anchor="start", size=14, colour=None):
        fill = f' style="fill:{colour}"' if colour else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
                          f'font-size="{size}"{fill}>{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, kind='class="grid"'):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {kind}/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
                          f'height="{height:.1f}" fill="{colour}"/>')

    def dot(self, x, y, colour, title):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}" '
                          f'opacity="0.85"><title>{escape(title)}</title></circle>')

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} '
                f'{self.height}"><style>{STYLE}</style>\n' +
                "\n".join(self.parts) + "\n</svg>\n")


def legend(drawing, series, top):
    """Names beside their colours, in as many lines as they need; how high these are."""
    room = drawing.width - 32
    step = min(190, room / len(series))
    widest = 22 + LETTER * max(map(len, series))
    if widest > step:
        step = room / max(1, int(room / widest))
    columns = max(1, round(room / step)) if widest > step or step * len(series) > room + 1 else len(series)
    for i, name in enumerate(series):
        x, y = 16 + step * (i % columns), top + 17 * (i // columns)
        drawing.bar(x, y, 11, 11, COLOURS[i % len(COLOURS)])
        drawing.text(x + 15, y + 10, name)
    return 17 * ((len(series) - 1) // columns)


def ticks(drawing, at, top, bottom, least, most):
    """Lines at powers of ten, and what they are, below."""
    for exponent in range(math.ceil(math.log10(least)), math.floor(math.log10(most)) + 1):
        x = at(10.0 ** exponent)
        drawing.line(x, top - 2, x, bottom)
        drawing.text(x, bottom + 12, told(10.0 ** exponent), "middle", 12)


def told(value):
    """Three digits, or a whole number."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def duration(power):
    """10^power seconds, in a unit that leaves a whole number."""
    unit = max(-3, min(0, power // 3))
    return f"{10 ** (power - 3 * unit):,} {('s', 'ms', 'µs', 'ns')[-unit]}"


def bars(title, groups, unit="x", note="", mark=None, logarithmic=False):
    """Horizontal bars; groups: [(label, [(series, value)])]. mark: a value at which a line stands. logarithmic: the axis, for values
    that are some powers of ten apart."""
    series = list(dict.fromkeys(name for _, values in groups for name, _ in values))
    rows = sum(len(values) for _, values in groups)
    left = max(246, 20 + LETTER * max(len(label) for label, _ in groups))
    drawing = Drawing(left + 434, 0)
    lines = [textwrap.wrap(text, int((drawing.width - 32) / width)) for text, width in ((title, 8.6), (note, 7.2))]
    for i, line in enumerate(lines[0]):
        drawing.text(16, 24 + 20 * i, line, size=16)
    head = 20 * (len(lines[0]) - 1)
    top = 58 + head + legend(drawing, series, 34 + head)
    bottom = top + rows * 17 + len(groups) * 7
    drawing.height = bottom + 34 + 16 * logarithmic + 17 * (len(lines[1]) - 1)
    numbers = [value for _, values in groups for _, value in values]
    most = max(numbers + [mark or 0]) * 1.12 or 1
    least = min(number for number in numbers if number > 0) / 2 if logarithmic else 0
    room = drawing.width - left - max(56, 10 + LETTER * max(len(told(number) + unit) for number in numbers))

    def at(value):
        return left + room * (math.log(max(value, least) / least) / math.log(most / least) if logarithmic else value / most)

    y = top
    if logarithmic:
        ticks(drawing, at, top, bottom, least, most)
    for label, values in groups:
        drawing.text(left - 8, y + 8 + 8.5 * len(values), label, "end")
        for name, value in values:
            drawing.bar(left, y + 3, at(value) - left, 13, COLOURS[series.index(name) % len(COLOURS)])
            drawing.text(max(at(value), left) + 5, y + 14, told(value) + unit)
            y += 17
        y += 7
    if mark is not None:
        drawing.line(at(mark), top - 2, at(mark), y, 'stroke="currentColor" stroke-dasharray="3 3"')
    for i, line in enumerate(lines[1]):
        drawing.text(16, y + 20 + 16 * logarithmic + 17 * i, line, size=13)
    return drawing.svg()


def roofline(title, points, bandwidth, note):
    """points: [(series, flops a byte, gigaflops a second, label)]."""
    width, height, left, bottom, top = 660, 440, 76, 74, 84
    drawing = Drawing(width, height)
    xs = [point[1] for point in points]
    low, high = math.floor(math.log10(min(xs)) * 2) / 2, math.ceil(math.log10(max(xs) * 1.01) * 2) / 2
    y_high = math.ceil(math.log10(max(max(p[2] for p in points), bandwidth * 10 ** high)))
    y_low = math.floor(math.log10(min(p[2] for p in points)))
    at_x = lambda x: left + (width - left - 30) * (math.log10(x) - low) / (high - low)
    at_y = lambda y: height - bottom - (height - bottom - top) * (math.log10(y) - y_low) / (y_high - y_low)
    drawing.text(16, 24, title, size=16)
    for exponent in range(y_low, y_high + 1):
        drawing.line(left, at_y(10 ** exponent), width - 30, at_y(10 ** exponent))
        drawing.text(left - 6, at_y(10 ** exponent) + 4, told(10.0 ** exponent), "end")
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        drawing.line(at_x(10 ** exponent), top, at_x(10 ** exponent), height - bottom)
        drawing.text(at_x(10 ** exponent), height - bottom + 16, told(10.0 ** exponent), "middle")
    first = max(10 ** low, 10 ** y_low / bandwidth)  # no lower than the axis
    drawing.line(at_x(first), at_y(bandwidth * first), at_x(10 ** high), at_y(bandwidth * 10 ** high),
                 'stroke="currentColor" stroke-width="1.5"')
    drawing.text(left + 8, top + 22, f"line: measured read bandwidth, {bandwidth:,.0f} GB/s")
    series = list(dict.fromkeys(point[0] for point in points))
    for name, x, y, label in points:
        drawing.dot(at_x(x), at_y(y), COLOURS[series.index(name) % len(COLOURS)], label)
    for i, name in enumerate(series):
        drawing.bar(16 + 130 * i, 34, 11, 11, COLOURS[i % len(COLOURS)])
        drawing.text(31 + 130 * i, 44, name)
    drawing.text(left, top - 10, "Gflop/s")
    drawing.text((left + width - 30) / 2, height - 36, "floating-point operations per byte read", "middle")
    drawing.text(16, height - 10, note, size=13)
    return drawing.svg()


def load(path):
    with open(path, encoding="utf-8") as file:
        if path.endswith(".jsonl"):
            return [json.loads(line) for line in file if line.strip()]
        return json.load(file)


def shape(row):
    rows, cols = row["rows"], row.get("cols", row.get("columns"))
    text = lambda n: f"{n / 1e6:.3g} M" if n >= 1_000_000 else f"{n:,}"
    return f"{text(rows)} x {text(cols)}"


def noted(data):
    return f"{data['device']}; {data['date']}, commit {data['commit']}"


def ratios(rows, peers):
    """Groups of bars(): rows: [(label, row)], peers: [(name, key of its time, key of Kiln's)]."""
    groups = [(label, [(name, row[theirs] / row[ours]) for name, theirs, ours in peers if theirs in row])
              for label, row in rows]
    return [(label, values) for label, values in groups if values]


def plot_operations(path):
    rows = load(path)
    points = [(r["operation"], r["flops"] / r["bytes"], r["flops"] / r["milliseconds"] / 1e6,
               f"{r['operation']} {r['type']} {r['problem']}: {100 * r['fraction_of_bandwidth']:.0f} % of "
               "the bandwidth")
              for r in rows if r["flops"] > 0 and r["format"] in ("dense", "csr") and r["operation"] in
              ("mmchain", "multiply", "gram_diagonal", "loss_gradient", "loss_hessian", "dot")]
    if points:
        yield "-roofline", roofline(f"Operations under the roof of memory, {rows[0]['description']}", points,
                                    max(r["read_bandwidth_gb_per_second"] for r in rows),
                                    f"{rows[0]['date'][:10]}, commit {rows[0]['commit']}")


def short(kind):
    return kind.replace("float", "f")


def plot_dense(path):
    data = load(path)
    points = [(f"{short(r['type'])}", 4 * r["rows"] * r["cols"] * r["k"] / r["bytes"],
               4 * r["rows"] * r["cols"] * r["k"] / r["fused_ms"] / 1e6,
               f"{shape(r)} {short(r['type'])} k={r['k']}: {100 * r['fraction_of_roof']:.0f} % of the "
               "bandwidth") for r in data["rows"]]
    yield "-roofline", roofline("The dense pass under the roof of memory, 1 to 8 columns of y", points,
                                data["read_bandwidth_gb_s"], noted(data))
    rows = [(f"{shape(r)} {short(r['type'])}", r) for r in data["rows"] if r["k"] == 1]
    groups = ratios(rows, [("two cuBLAS calls", "composed_ms", "fused_ms")])
    if groups:
        yield "", bars("w = X'(v .* (X y)), dense: times faster than", groups, note=noted(data), mark=1)


CASES = {"paper-200": "1 % dense", "paper-1024": "1 % dense", "paper-4096": "1 % dense",
         "million": "uniform columns", "million-zipf": "popular columns", "kdd": "popular columns",
         "kdd-shuffled": "popular, shuffled", "kdd-uniform": "uniform columns", "skewed-rows": "some long rows"}


def plot_sparse(path):
    data = load(path)
    rows = [(f"{shape(r)} {short(r['type'])}, {CASES[r['case']]}", r) for r in data["rows"]]
    yield "-transposed", bars("w = X'p, sparse: times faster than cuSPARSE with", ratios(rows, [
        ("a transposed product", "pair_transposed_ms", "transposed_ms"),
        ("a stored transpose", "stored_transposed_ms", "transposed_ms")]), note=noted(data), mark=1)
    yield "", bars("w = X'(v .* (X y)), sparse: times faster than cuSPARSE with", ratios(rows, [
        ("a transposed product", "pair_ms", "fused_ms"), ("a stored transpose", "stored_ms", "fused_ms")]),
                   note=noted(data), mark=1)


def plot_cpu(path):
    data = load(path)
    threads = max(row["threads"] for row in data["rows"])
    for kind, peers in (("dense", [("NumPy with OpenBLAS", "openblas_ms", "kiln_ms")]),
                        ("csr", [("SciPy", "scipy_ms", "kiln_ms"), ("MKL", "mkl_ms", "kiln_ms")])):
        rows = [(f"{shape(r)} {short(r['type'])}", r) for r in data["rows"] if r["threads"] == threads
                and r["format"] == kind]
        groups = ratios(rows, peers)
        if groups:
            yield f"-{kind}", bars(f"w = X'(v .* (X y)), {kind}, {threads} threads: times faster than",
                                   groups, note=noted(data), mark=1)


def plot_newton(path):
    data = load(path)
    rows = [(row["case"], [("composed calls", row["ratio_to_composed"]),
                           ("Kiln on the CPU", row["ratio_to_cpu"])])
            for row in data["rows"]]
    yield "", bars("Logistic regression to the same optimum: times faster than", rows, note=noted(data),
                   mark=1)


def plot_peers(path):
    """Training to the same objective against other programs: one bar for each of them."""
    data, groups = load(path), {}
    for row in data["rows"]:
        if row.get("solver", "kiln") != "kiln" and row.get("times_kiln"):
            groups.setdefault(f"{row['dataset']} {row['problem']}",
                              []).append((row["solver"], row["times_kiln"]))
    if groups:
        device = data["device"] if isinstance(data["device"], str) else data["device"][-1]
        yield "", bars("Training to the same objective: times faster than", list(groups.items()),
                       note=noted({**data, "device": device, "commit": data["commit"][:7]}), mark=1)


def plot_end_to_end(path):
    data, groups = load(path), []
    for row in data["rows"]:
        for who, key in (("Kiln", "fused"), ("composed", "composed"),
                         ("stored transpose", "composed_stored_transpose")):
            if key in row:
                values = [(phase, row[key][phase]) for phase in ("read", "move", "compute")
                          if row[key].get(phase, 0) > 0.0005]
                groups.append((f"{row['set']} {row['type']}, {who}", values))
    if groups:
        row = data["rows"][0]
        yield "", bars("Linear regression end to end, seconds", groups, unit=" s",
                       note=f"{row['device']}: {row['description']}; scale {row['scale']:g}; {data['date']}, "
                            f"commit {data['commit']}")


def axes(drawing, left, right, top, sizes, values, title):
    """Two logarithmic axes between those x, below that y; a function from size and seconds to a place."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])
    at = lambda x, y: (left + (right - left) * (math.log10(x) - first) / (last - first),
                       top + 310 - 250 * (math.log10(y) - low) / (high - low))
    drawing.text(left, top, title)
    for power in range(low, high + 1):
        y = at(sizes[0], 10.0**power)[1]
        drawing.line(left, y, right, y)
        drawing.text(left - 8, y + 4, duration(power), "end")
    for size in sizes:
        drawing.text(at(size, 10.0**low)[0], top + 332, f"{size:,}", "middle")
    return at


def curves(drawing, at, left, top, lines):
    """lines: [(name, [(size, measured, predicted)])], seconds or None: measured with dots, predicted
    dashed."""
    for i, (name, points) in enumerate(lines):
        colour = COLOURS[i]
        drawing.text(left + 120 * i, top + 24, name, colour=colour)
        for which, dashes in ((1, ""), (2, ' stroke-dasharray="5 4"')):
            places = [at(point[0], point[which]) for point in points if point[which]]
            for (x1, y1), (x2, y2) in zip(places, places[1:]):
                drawing.line(x1, y1, x2, y2, f'stroke="{colour}" stroke-width="2"{dashes}')
        for size, measured, _ in points:
            if measured:
                drawing.dot(*at(size, measured), colour, f"{name}, {size:,}: {measured:.3g} s")


def overheads(verb, rows, gpu, note):
    """Whole runs above, the parts of those on the GPU below. On the smallest data solving is launches and
    waiting."""
    drawing, sizes = Drawing(600, 830), [row["size"] for row in rows]
    whole = [(device, [(row["size"], row["measured"][device], row["predicted"].get(device)) for row in rows])
             for device in ("cpu", gpu)]
    parts = [(name, []) for name in ("start and end", "moving", "solving")]
    for row in rows:
        told, seen, passes = row["estimates"].get(gpu), row["parts"][gpu], row["passes"]
        prepare = told["prepare_seconds"] + passes * (told["pass_seconds"]
                                                      + told["overhead_seconds"]) if told else None
        guess = (told["start_seconds"], told["move_seconds"], prepare) if told else (None,) * 3
        around = row["measured"][gpu] - sum(value for part, value in seen.items()
                                            if part in ("transfer", "build", "solve"))
        for (_, points), measured, predicted in zip(parts, (around, seen["transfer"], seen["solve"]), guess):
            points.append((row["size"], measured, predicted))
    drawing.text(16, 24,
                 f"kiln {verb}: time by number of "
                 f"{'vertices' if verb == 'pagerank' else 'points'}; dashed: predicted", size=16)
    left, right = 84, 556
    for top, lines, title in ((56, whole, "from start to end, without reading"),
                              (436, parts, f"parts of the time on {gpu}")):
        values = [value for _, points in lines for point in points for value in point[1:] if value]
        curves(drawing, axes(drawing, left, right, top, sizes, values, title), left, top, lines)
    drawing.text(16, 816, note, size=13)
    return drawing.svg()


def plot_overheads(path):
    data = load(path)
    for verb in dict.fromkeys(row["verb"] for row in data["rows"]):
        yield f"-{verb}", overheads(verb, [row for row in data["rows"] if row["verb"] == verb], data["gpu"],
                                    noted(data))


def plot_papers(path):
    """A panel for each table or figure that bench/papers has measured; what the paper tells stands below."""
    for name, found in load(path).items():
        groups = [(row["label"], list(row["values"].items())) for row in found["rows"]]
        positive = [value for _, values in groups for _, value in values if value > 0]
        yield f"-{name}", bars(f"{name}: {found['title']} ({found['unit']})", groups, "", f"{noted(found)}, {found['scale']} size",
                               logarithmic=bool(positive) and max(positive) > APART * min(positive))


def strips(title, panels, note):
    """Panels one below the other, a line for each kind, a dot for each cell; panels: [(heading, dots, mark,
    what dots that stand out have in common)], dots: [(kind, ratio, whether it stands out, label)]. The axes
    are logarithmic, from 1/32 to 32."""
    width, left, room, step, top = 480, 170, 290, 22, 44
    drawing = Drawing(width, 0)
    drawing.text(16, 24, title, size=16)
    for heading, dots, mark, apart in panels:
        kinds = list(dict.fromkeys(kind for kind, *_ in dots))
        drawing.text(16, top + 14, heading)
        drawing.dot(22, top + 33, COLOURS[1], apart)
        drawing.text(34, top + 38, apart)
        begin = top + 52
        bottom = begin + step * len(kinds)
        at = lambda ratio: left + room * (math.log2(min(max(ratio, 1 / 32), 32)) + 5) / 10
        for i, kind in enumerate(kinds):
            drawing.text(left - 12, begin + step * i + 16, kind, "end")
            drawing.line(left, begin + step * i + 11, left + room, begin + step * i + 11)
        for exponent in range(-5, 6, 2):
            ratio = 2.0 ** exponent
            drawing.line(at(ratio), begin, at(ratio), bottom)
            drawing.text(at(ratio), bottom + 18, f"{ratio:g}" if ratio >= 1 else f"1/{1 / ratio:g}", "middle")
        drawing.line(at(mark), begin - 6, at(mark), bottom, 'stroke="currentColor" stroke-dasharray="3 3"')
        for kind, ratio, stands, label in dots:
            drawing.dot(at(ratio), begin + step * kinds.index(kind) + 11, COLOURS[1 if stands else 0], label)
        top = bottom + 40
    for i, line in enumerate(textwrap.wrap(note, int((width - 32) / 7.2))):
        drawing.text(16, top + 4 + 17 * i, line, size=13)
        drawing.height = top + 20 + 17 * i
    return drawing.svg()


def plot_map(path):
    """A map (bench/peers/map.py)."""
    data = load(path)
    fits, peers = [], []
    for row in data["rows"]:
        verb, timed = row["cell"]["verb"], "seconds" in row
        fit = timed and "iterations" in row
        if fit and row["passes"] > 0 and row["seconds"] > 0.002:
            times = row["seconds"] / (row["passes"] * row["pass_seconds"])
            fits.append((verb, times, times > 1.5, f"{row['name']}: {times:.2f}"))
        for ours, theirs, who in (("seconds", "peer_seconds", "peer"),
                                  ("pass_seconds", "composed_seconds", "composed")):
            if timed and theirs in row:
                times = row[theirs] / row[ours]
                peers.append((verb, times, times < 1, f"{row['name']}: {row[who]} {times:.2f}"))
    panels = [("a fit's time over its passes' time", fits, 1.5, "more than 1.5 times"),
              ("times faster than a peer, or a composed pass", peers, 1, "slower")]
    yield "", strips(f"A map of speed, {len(data['rows'])} cells", panels, noted(data))


KINDS = [("papers-*.json", plot_papers), ("*-operations.jsonl", plot_operations), ("*-dense-cuda.json", plot_dense),
         ("*-dense-opencl.json", plot_dense), ("*[0-9]-sparse.json", plot_sparse),
         ("cpu*-mmchain.json", plot_cpu), ("*-newton.json", plot_newton), ("cpu*-logreg.json", plot_peers),
         ("*-map.json", plot_map), ("*-end-to-end*.json", plot_end_to_end),
         ("*-overheads.json", plot_overheads)]


def current(folder, figures):
    """Whether the folder holds these figures and no others; says what differs."""
    same = True
    for name in sorted(set(figures)
                       | {os.path.basename(path) for path in glob.glob(os.path.join(folder, "*.svg"))}):
        path = os.path.join(folder, name)
        if (not os.path.exists(path) or name not in figures or open(path, encoding="utf-8").read()
            != figures[name]):
            print(f"{path} is not what bench/plot.py draws")
            same = False
    return same


def shown(figures):
    """Those that a page shows."""
    pages = [os.path.join(HERE, "..", "README.md"), *glob.glob(os.path.join(HERE, "..", "docs", "*.md"))]
    text = "".join(open(page, encoding="utf-8").read() for page in pages)
    return {name: svg for name, svg in figures.items() if f"figures/{name}" in text}


def renew_tables(results, check):
    """Those of README.md and of pages in docs; whether they were current."""
    same = True
    root = os.path.join(HERE, "..")
    for page in ("README.md", *sorted(glob.glob(os.path.join("docs", "*.md"), root_dir=root))):
        path = os.path.join(root, page)
        with open(path, encoding="utf-8") as file:
            former = file.read()
        text = tables.renew(former, results)
        same = same and text == former
        if text != former and check:
            print(f"{page}: its tables are not what bench/tables.py makes of the results")
        elif text != former:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            print(path)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", default=os.path.join(HERE, "results"))
    parser.add_argument("--out", default=os.path.join(HERE, "..", "docs", "figures"))
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    figures = {}
    for pattern, plot in KINDS:
        for path in sorted(glob.glob(os.path.join(options.results, pattern))):
            stem = os.path.splitext(os.path.basename(path))[0]
            figures.update({f"{stem}{suffix}.svg": svg for suffix, svg in plot(path)})
    ours = os.path.samefile(options.results, os.path.join(HERE, "results"))
    figures = shown(figures) if ours else figures
    same = renew_tables(options.results, options.check) if ours else True
    if options.check:
        return 0 if current(options.out, figures) and same else 1
    os.makedirs(options.out, exist_ok=True)
    for name, svg in figures.items():
        path = os.path.join(options.out, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
