"""Runs the tool as a user does, and reads what it wrote. Nothing of Kiln is imported here.

SPDX-License-Identifier: Apache-2.0
"""

import json
import pathlib
import subprocess
import typing

import numpy as np

# A run may refuse a problem with these: usage, bad data, unusable model. Anything else is a finding.
REFUSALS = (2, 3, 7)


class Model(typing.NamedTuple):
    tensors: dict[str, np.ndarray]
    texts: dict[str, str]


class Run(typing.NamedTuple):
    code: int
    out: dict[str, typing.Any]
    err: str
    command: list[str]


def read_model(path: pathlib.Path) -> Model:
    """A safetensors file: the header's length, the header, the values."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    texts = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(
            data[8 + length + begin : 8 + length + end], {"F32": "<f4", "F64": "<f8"}[entry["dtype"]]
        )
        tensors[name] = values.reshape(entry["shape"])
    return Model(tensors, texts)


class Tool:
    """The tool with the options that all runs of one problem share, in a folder of its own."""

    validated = ("linreg", "logreg", "glm")  # the verbs with cross-validation
    needs_groups = False  # whether it has to be told the folds
    starts_warm = True  # whether it takes --warm-start
    centres = True  # whether svd takes --center, and krylov for its solver
    holds_out = True  # whether factor models hold entries out
    scores_given = False  # whether cross-validation scores targets as given, not as the type has them
    least_probability = 0.0  # what cross-validation takes a smaller one for

    def __init__(self, path: str, folder: pathlib.Path, options: list[str], seconds: float = 60) -> None:
        self.path, self.folder, self.options, self.seconds = path, folder, options, seconds
        self.commands: list[str] = []

    def run(self, verb: str, *arguments: object, shared: bool = True) -> Run:
        command = [
            self.path,
            verb,
            *map(str, arguments),
            "--json",
            "--quiet",
            *(self.options if shared else []),
        ]
        self.commands.append(" ".join([self.path, *command[1:]]))
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=self.seconds)
        try:
            out = json.loads(done.stdout)
        except ValueError:
            out = {}
        return Run(done.returncode, out, done.stderr, command)

    def verify(self, *arguments: object) -> "Run | None":
        """The answer of `kiln verify` to model.kiln; None where the entrance has no such thing."""
        return self.run("verify", "model.kiln", *arguments, shared=False)

    def evaluate(self, *arguments: object) -> "Run | None":
        """The answer of `kiln evaluate` to model.kiln; None where the entrance has no such thing."""
        return self.run("evaluate", "model.kiln", *arguments)

    def logistic(self, model: Model) -> bool:
        """Whether model.kiln, the last that was written, has probabilities."""
        return model.texts.get("algorithm") == "logreg"

    def model(self, name: str = "model.kiln") -> Model:
        return read_model(self.folder / name)
