#!/usr/bin/env python3
"""Plots of what lies in bench/results, as SVG that reads on light and on dark: a roofline, the ratio to peers (after Figures 2 to
5 of the fused-kernels paper), and training end to end. Needs nothing but Python.

usage: bench/plot.py [--results DIR] [--out DIR]      default: bench/results, bench/plots
"""
import argparse
import glob
import json
import math
import os
import sys
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.abspath(__file__))
COLOURS = ["#3b82c4", "#e08a1e", "#4a9d5b", "#a65fb0", "#c0504d", "#8a8a8a"]
STYLE = ("svg{color:#222;background:#fff;font:12px sans-serif}@media (prefers-color-scheme:dark)"
         "{svg{color:#ddd;background:#161616}}text{fill:currentColor}.grid{stroke:currentColor;opacity:.18}")


class Drawing:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def text(self, x, y, text, anchor="start", size=12, colour=None):
        fill = f' style="fill:{colour}"' if colour else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{fill}>{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, kind='class="grid"'):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {kind}/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" fill="{colour}"/>')

    def dot(self, x, y, colour, title):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}" opacity="0.85"><title>{escape(title)}</title></circle>')

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"><style>{STYLE}</style>\n')
            file.write("\n".join(self.parts) + "\n</svg>\n")
        print(path)


def bars(path, title, groups, unit="x", note="", mark=None):
    """Horizontal bars; groups: [(label, [(series, value)])]. mark: a value at which a line stands."""
    series = list(dict.fromkeys(name for _, values in groups for name, _ in values))
    rows = sum(len(values) for _, values in groups)
    left, width, top = 270, 820, 58
    drawing = Drawing(width, top + rows * 17 + len(groups) * 7 + 34)
    most = max([value for _, values in groups for _, value in values] + [mark or 0]) * 1.12
    scale = (width - left - 60) / most
    drawing.text(16, 24, title, size=15)
    for i, name in enumerate(series):
        drawing.bar(16 + 190 * i, 34, 11, 11, COLOURS[i % len(COLOURS)])
        drawing.text(31 + 190 * i, 44, name)
    y = top
    for label, values in groups:
        drawing.text(left - 8, y + 8 + 8.5 * len(values), label, "end")
        for name, value in values:
            drawing.bar(left, y + 3, value * scale, 13, COLOURS[series.index(name) % len(COLOURS)])
            drawing.text(left + value * scale + 5, y + 14, f"{value:.3g}{unit}")
            y += 17
        y += 7
    if mark is not None:
        drawing.line(left + mark * scale, top - 2, left + mark * scale, y, 'stroke="currentColor" stroke-dasharray="3 3"')
    drawing.text(16, y + 20, note, size=11)
    drawing.save(path)


def roofline(path, title, points, bandwidth, note):
    """points: [(series, flops a byte, gigaflops a second, label)]."""
    width, height, left, bottom, top = 820, 420, 70, 60, 60
    drawing = Drawing(width, height)
    xs = [point[1] for point in points]
    low, high = math.floor(math.log10(min(xs)) * 2) / 2, math.ceil(math.log10(max(xs) * 1.01) * 2) / 2
    y_high = math.ceil(math.log10(max(max(p[2] for p in points), bandwidth * 10 ** high)))
    y_low = math.floor(math.log10(min(p[2] for p in points)))
    at_x = lambda x: left + (width - left - 30) * (math.log10(x) - low) / (high - low)
    at_y = lambda y: height - bottom - (height - bottom - top) * (math.log10(y) - y_low) / (y_high - y_low)
    drawing.text(16, 24, title, size=15)
    for exponent in range(y_low, y_high + 1):
        drawing.line(left, at_y(10 ** exponent), width - 30, at_y(10 ** exponent))
        drawing.text(left - 6, at_y(10 ** exponent) + 4, f"{10.0 ** exponent:g}", "end")
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        drawing.line(at_x(10 ** exponent), top, at_x(10 ** exponent), height - bottom)
        drawing.text(at_x(10 ** exponent), height - bottom + 16, f"{10.0 ** exponent:g}", "middle")
    drawing.line(at_x(10 ** low), at_y(bandwidth * 10 ** low), at_x(10 ** high), at_y(bandwidth * 10 ** high),
                 'stroke="currentColor" stroke-width="1.5"')
    drawing.text(width - 36, height - bottom - 8, f"line: measured read bandwidth, {bandwidth:.0f} GB/s", "end")
    series = list(dict.fromkeys(point[0] for point in points))
    for name, x, y, label in points:
        drawing.dot(at_x(x), at_y(y), COLOURS[series.index(name) % len(COLOURS)], label)
    for i, name in enumerate(series):
        drawing.bar(16 + 130 * i, 34, 11, 11, COLOURS[i % len(COLOURS)])
        drawing.text(31 + 130 * i, 44, name)
    drawing.text(width / 2, height - 26, "flops a byte", "middle")
    drawing.text(16, height - 8, "Gflop/s upward. " + note, size=11)
    drawing.save(path)


def load(path):
    with open(path, encoding="utf-8") as file:
        if path.endswith(".jsonl"):
            return [json.loads(line) for line in file if line.strip()]
        return json.load(file)


def shape(row):
    rows, cols = row["rows"], row.get("cols", row.get("columns"))
    short = lambda n: f"{n / 1e6:g} M" if n >= 1_000_000 else f"{n:,}"
    return f"{short(rows)} x {short(cols)}"


def plot_operations(path, out, name):
    rows = load(path)
    points = [(r["operation"], r["flops"] / r["bytes"], r["flops"] / r["milliseconds"] / 1e6,
               f"{r['operation']} {r['type']} {r['problem']}: {100 * r['fraction_of_bandwidth']:.0f} % of the bandwidth")
              for r in rows if r["flops"] > 0 and r["format"] in ("dense", "csr") and r["operation"] in
              ("mmchain", "multiply", "gram_diagonal", "loss_gradient", "loss_hessian", "dot")]
    if points:
        bandwidth = max(r["read_bandwidth_gb_per_second"] for r in rows)
        roofline(f"{out}/{name}-roofline.svg", f"Operations under the roof of memory, {rows[0]['description']}", points, bandwidth,
                 f"{rows[0]['date'][:10]}, commit {rows[0]['commit']}")


def plot_pairs(path, out, name):
    """mmchain fused against composed: times as ratios, one plot for dense and one for sparse, as Figures 3 to 5."""
    data = load(path)
    for kind, wanted in (("dense", lambda f: f == "dense"), ("sparse", lambda f: f.startswith("csr"))):
        groups = {}
        for row in data["rows"]:
            if not wanted(row["format"]):
                continue
            label = f"{shape(row)} {row['type'].replace('float', 'f')}{' Zipf' if 'zipf' in row['format'] else ''}"
            values = groups.setdefault(label, [])
            if "composed_ms" in row:
                values.append(("two library calls" if kind == "dense" else "SpMV + transposed SpMV", row["composed_ms"] / row["fused_ms"]))
                if "stored_transpose_ms" in row:
                    values.append(("SpMV + stored transpose", row["stored_transpose_ms"] / row["fused_ms"]))
            elif "peer_ms" in row:
                values.append(("NumPy with OpenBLAS" if kind == "dense" else "SciPy", row["peer_ms"] / row["kiln_ms"]))
        groups = [(label, values) for label, values in groups.items() if values]
        if groups:
            bars(f"{out}/{name}-{kind}.svg", f"The fused operation, {kind}: times faster than", groups,
                 note=f"{data['device']}; {data['date']}, commit {data['commit']}", mark=1)


def plot_end_to_end(path, out, name):
    data, groups = load(path), []
    for row in data["rows"]:
        for who, key in (("Kiln", "fused"), ("composed", "composed"), ("stored transpose", "composed_stored_transpose")):
            if key in row:
                values = [(phase, row[key][phase]) for phase in ("read", "move", "compute") if row[key].get(phase, 0) > 0.0005]
                groups.append((f"{row['set']} {row['type']}, {who}", values))
    if groups:
        row = data["rows"][0]
        bars(f"{out}/{name}.svg", "Linear regression end to end, seconds", groups, unit=" s",
             note=f"{row['device']}: {row['description']}; scale {row['scale']:g}; {data['date']}, commit {data['commit']}")


KINDS = [("*-operations.jsonl", plot_operations), ("*-mmchain*.json", plot_pairs), ("*-end-to-end*.json", plot_end_to_end)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", default=os.path.join(HERE, "results"))
    parser.add_argument("--out", default=os.path.join(HERE, "plots"))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for pattern, plot in KINDS:
        for path in sorted(glob.glob(os.path.join(options.results, pattern))):
            plot(path, options.out, os.path.splitext(os.path.basename(path))[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
