"""Libraries that compute Shapley values of trees, each by the call in its manual."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.conformance.cases import Case
from benchmarks.conformance.oracle import Array


class Answered(NamedTuple):
    """Values, and their base where the library gives one."""

    values: Array  # (N, D)
    base: float | None
    note: str = ""


class AnotherQuestion(Exception):
    """The library has no values against a given background."""


def _propopt(case: Case) -> Answered:
    import propopt as po

    found = po.explain(
        case.model,
        case.rows,
        data=case.background,
        target=case.target,
        output=case.output,
        kind="contributions",
        robustness=0,
    )
    error = found.sampling_excess
    note = "" if not error else f"sampled, its own error {error:.1%}"
    return Answered(found.attributions, float(found.base_value[0]), note)


def _of_target(values: Any, case: Case) -> Any:
    values = np.asarray(values)
    return values[..., 1 if case.target is None else case.target]


def _shap(case: Case) -> Answered:
    import shap

    explainer = shap.TreeExplainer(case.model, case.background)
    values = np.asarray(explainer.shap_values(case.rows))
    base = np.asarray(explainer.expected_value)
    if values.ndim == 3:
        values = _of_target(values, case)
    if base.size > 1:
        base = _of_target(base, case)
    return Answered(values, float(base.squeeze()))


def _woodelf(case: Case) -> Answered:
    import woodelf
    from woodelf.core.trees.parse_models import load_decision_tree_ensemble_model

    model, names = case.model, list(case.rows.columns)
    if case.target is not None:  # its explainer itself takes no class
        model = load_decision_tree_ensemble_model(model, names, case.target)
    explainer = woodelf.WoodelfExplainer(model, case.background)
    values = np.asarray(explainer.shap_values(case.rows, verbose=False), np.float64)
    return Answered(values, None)


def _shapiq(case: Case) -> Answered:
    """Its ``TreeExplainer`` takes no background."""
    del case
    raise AnotherQuestion("path-dependent values only")


LIBRARIES: dict[str, tuple[str, str, Callable[[Case], Answered]]] = {
    "propopt": ("propopt", "propopt", _propopt),
    "shap": ("shap", "shap", _shap),
    "woodelf": ("woodelf", "woodelf-explainer", _woodelf),
    "shapiq": ("shapiq", "shapiq", _shapiq),
}
"""By name what is imported, what is installed, and how it is called."""


def call(name: str, case: Case) -> Answered:
    """Values by one library, without what it prints and warns."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        return LIBRARIES[name][2](case)
