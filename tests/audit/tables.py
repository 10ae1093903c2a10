"""Tables with text and missing values: the audit reads and encodes them itself, solves in long double, and
compares predictions, so that no order of features matters. Fold by fold, nothing is learnt from the rows that
are held out.

SPDX-License-Identifier: Apache-2.0
"""

import csv
import io
import types
import typing

import numpy as np

from losses import logistic_loss, squared_loss
from problems import L, near, refused
from runs import Tool
from validation import optimum

LEVELS = ("red", "7", "007", "1e3", "a b", "x,y", 'say "no"', "Ärger", "-", "0x1f")
LABELS = (("007", "7"), ("yes", "no"), ("9007199254740993", "9007199254740992"), ("a b", "a,b"))
MISSING = ("", "NA", "n/a", "NaN")


class Table(typing.NamedTuple):
    numbers: np.ndarray  # NaN where a value is missing
    texts: list[list[str]]  # of each row
    target: list[str]

    def write(self, rng, path, with_target: bool = True) -> None:
        out = io.StringIO()
        writer = csv.writer(out)
        columns = [f"n{j}" for j in range(self.numbers.shape[1])] + [
            f"t{j}" for j in range(len(self.texts[0]))
        ]
        writer.writerow([*columns, "y"] if with_target else columns)
        for numbers, texts, y in zip(self.numbers, self.texts, self.target):
            fields = [str(rng.choice(MISSING)) if np.isnan(v) else repr(float(v)) for v in numbers]
            writer.writerow([*fields, *texts, y] if with_target else [*fields, *texts])
        path.write_text(out.getvalue(), encoding="utf-8")


class Encoding(typing.NamedTuple):
    """The lessons of training rows: means of the numbers that are there, levels, and pairs of the first two
    columns' levels, if they interact."""

    means: np.ndarray
    indicated: np.ndarray
    levels: list[list[str]]
    pairs: list[list[str]]

    def design(self, table: Table) -> np.ndarray:
        gone = np.isnan(table.numbers)
        parts = [np.where(gone, self.means, table.numbers), gone[:, self.indicated].astype(float)]
        for j, levels in enumerate(self.levels):
            own = np.array([row[j] for row in table.texts], dtype=object)
            parts.append(np.column_stack([own == level for level in levels]).astype(float))
        parts += [np.array([[float(row[:2] == pair)] for row in table.texts]) for pair in self.pairs]
        return np.hstack(parts)


def learn(table: Table, rows: np.ndarray, way: str, interact: bool) -> Encoding:
    numbers = table.numbers[rows]
    gone = np.isnan(numbers)
    counts = np.maximum(1, (~gone).sum(axis=0))
    means = (np.where(gone, 0, numbers).astype(L).sum(axis=0) / counts).astype(float)
    indicated = (
        np.isnan(table.numbers).any(axis=0) if way == "indicator" else np.zeros(numbers.shape[1], bool)
    )
    texts = [table.texts[i] for i in np.nonzero(rows)[0]]
    levels = [sorted({row[j] for row in texts}) for j in range(len(table.texts[0]))]
    pairs = [list(pair) for pair in sorted({tuple(row[:2]) for row in texts})] if interact else []
    return Encoding(means, indicated, levels, pairs)


def model(design: np.ndarray, y: np.ndarray, l2: float, kind: type, loss):
    problem = types.SimpleNamespace(
        kept=design.astype(kind).astype(L), s=np.ones(len(y), L), kind=kind, intercept=True,
        standardize=False, l2=l2, l1=0.0, offset=None,
    )  # fmt: skip
    return optimum(problem, loss, y.astype(kind).astype(L)).coefficients()


def draw_table(rng, n: int, missing: float, texts: list[list[str]]) -> Table:
    numbers = np.column_stack([rng.normal(3, 2, n), rng.poisson(2, n)])
    numbers[rng.random(numbers.shape) < missing] = np.nan
    rows = [[str(rng.choice(levels)) for levels in texts] for _ in range(n)]
    return Table(numbers, rows, ["0"] * n)


def table(rng, tool: Tool, kind: type) -> list[str]:
    n, way = int(rng.integers(12, 50)), str(rng.choice(["drop", "mean", "indicator"]))
    kinds = [["red", *rng.choice(LEVELS[1:], 2, replace=False)] for _ in range(int(rng.integers(1, 3)))]
    drawn = draw_table(rng, n, 0.15, kinds)
    drawn.numbers[:4] = np.where(np.isnan(drawn.numbers[:4]), 1.5, drawn.numbers[:4])
    for column in range(len(kinds)):
        # a column of which less than a tenth is no number is one of numbers (docs/formats.md)
        for row in drawn.texts[::10]:
            row[column] = "red"
    signal = np.nan_to_num(drawn.numbers[:, 0]) - 2 * np.array([row[0] == "red" for row in drawn.texts])
    classes = rng.random() < 0.5
    if classes:
        labels = LABELS[rng.integers(len(LABELS))]
        y = (signal + rng.logistic(size=n) > np.median(signal)).astype(float)
        y[:4] = [0, 1, 0, 1]
        target = [labels[int(v)] for v in y]
    else:
        y = signal + rng.normal(size=n)
        target = [repr(float(v)) for v in y]
    drawn = drawn._replace(target=target)
    drawn.write(rng, tool.folder / "train.csv")
    l2 = float(rng.choice([0.1, 1, 10]))
    verb, loss = ("logreg", logistic_loss) if classes else ("linreg", squared_loss)
    folds = [] if way == "drop" or rng.random() < 0.5 else ["--cv", 3, "--held-out", "held.csv", "--seed", 1]
    # labels are text whatever they look like
    category = ["--categorical", "y"] if classes else []
    interact = len(kinds) == 2 and bool(rng.random() < 0.5)
    pairs = ["--interact", "t0:t1"] if interact else []
    found: list[str] = []
    arguments = ["--target", "y", "--missing", way, "--l2", l2, *category, *pairs, *folds]
    run = tool.run(verb, "train.csv", *arguments, "-o", "model.kiln")
    if refused(run, found):
        return [*found, f"a table was refused: {run.err.strip()[-200:]}"]
    rows = ~np.isnan(drawn.numbers).any(axis=1) if way == "drop" else np.ones(n, bool)
    encoding = learn(drawn, rows, way, interact)
    w, b = model(encoding.design(drawn)[rows], y[rows], l2, kind, loss)
    fresh = draw_table(rng, 12, 0.0, [[*levels, "never seen"] for levels in kinds])
    if way != "drop":
        fresh.numbers[(rng.random((12, 2)) < 0.3) & np.isnan(drawn.numbers).any(axis=0)] = np.nan
    fresh.write(rng, tool.folder / "new.csv", with_target=False)
    predicted = tool.run("predict", "model.kiln", "new.csv")
    if refused(predicted, found):
        return [*found, f"predict refused a table: {predicted.err.strip()[-200:]}"]
    found += compare(
        predicted.out["predictions"], encoding.design(fresh) @ w + b, labels if classes else None, kind
    )
    return found + (judge_folds(tool, run, drawn, way, interact, y, l2, kind, loss) if folds else [])


def compare(told, eta: np.ndarray, labels, kind: type) -> list[str]:
    allowed = (1e-6 if kind is np.float64 else 2e-2) * (1 + float(np.abs(eta).max()))
    for i, (own, value) in enumerate(zip(eta, told)):
        value = value[0] if isinstance(value, list) else value
        if labels is None and not abs(float(value) - float(own)) <= allowed:
            return [
                f"table: row {i + 1} is predicted as {value}, the audit's own solution gives {float(own):.9g}"
            ]
        if labels is not None and abs(own) > allowed and value != labels[int(own > 0)]:
            return [
                f"table: row {i + 1} is predicted as {value!r}, the audit's own solution gives "
                f"{labels[int(own > 0)]!r}"
            ]
    return []


def judge_folds(
    tool: Tool, run, drawn: Table, way: str, interact: bool, y, l2: float, kind: type, loss
) -> list[str]:
    with open(tool.folder / "held.csv", encoding="utf-8", newline="") as file:
        fold = np.array(
            [int(row["fold"]) for row in sorted(csv.DictReader(file), key=lambda row: int(row["row"]))]
        )
    told, found = run.out["cross_validation"]["values"][0]["folds"], []
    for f, value in enumerate(told):
        train = fold != f + 1
        encoding = learn(drawn, train, way, interact)
        design = encoding.design(drawn)
        w, b = model(design[train], y[train], l2, kind, loss)
        eta, rest = design[~train] @ w + b, y[~train]
        own = loss(rest, eta)[0].mean() if loss is logistic_loss else np.sqrt(((eta - rest) ** 2).mean())
        found += near(f"table: fold {f + 1}", value, own, 1e-5 if kind is np.float64 else 2e-2)
    return found


VERBS = {"table": table}
