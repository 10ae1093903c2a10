"""Formulas, as R and statsmodels write them, by the package formulaic where that is installed."""
from __future__ import annotations

from typing import Any

from ._extras import needed


def parts(formula: str, data: Any) -> tuple[Any, Any, bool]:
    """The target of a formula, the frame of its features, and whether it has an intercept. Missing values are
    an error: weights and offsets would no longer belong to their rows."""
    made = _parsed(formula)
    matrix = made.rhs.get_model_matrix(data, na_action="raise")
    return target_of(formula, data), matrix, "Intercept" in matrix.columns


def _parsed(formula: str) -> Any:
    made = needed("formulaic", "a formula").Formula(formula)
    if not hasattr(made, "lhs"):
        raise ValueError(f"the formula {formula!r} has no target: 'y ~ a + C(b)'")
    return made


def target_of(formula: str, data: Any) -> Any:
    """What a formula's left side makes of a frame."""
    side = _parsed(formula).lhs
    if str(side) in getattr(data, "columns", ()):
        return data[str(side)]
    matrix = side.get_model_matrix(data, na_action="raise")
    if matrix.shape[1] != 1:
        raise ValueError(f"the target {str(side)!r} of the formula {formula!r} has {matrix.shape[1]} "
                         "columns, not one")
    return matrix.iloc[:, 0]


def features(matrix: Any) -> Any:
    """Without the column that is the intercept."""
    return matrix.drop(columns="Intercept", errors="ignore").astype(float)


def features_of(spec: Any, frame: Any) -> Any:
    """The features that a formula's right side makes of a frame; what is none stays what it is."""
    if not hasattr(frame, "columns"):
        return frame
    return features(spec.get_model_matrix(frame, na_action="raise"))
