"""Why a fitted model is not read as a sum of products, by its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sklearn.pipeline import Pipeline

from propopt.structures.boosters import LightGBMBooster, XGBoostBooster
from propopt.structures.margins import margins_of
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.reading import read_boxes
from propopt.structures.readers.trees.scores import TreeOutput


NEIGHBOURS: Final = "which neighbours are nearest depends on all columns at once"
LINEAR_TREES: Final = "linear models in leaves, or in place of trees, are not read"
REASONS: Final[Mapping[str, str]] = {
    "AdaBoostRegressor": "a weighted median of trees is no sum of them",
    "CalibratedClassifierCV": "a calibrated probability bends the score; "
    "wrap(model.estimator, output='margin') is exact where that is a sum of products",
    "GaussianProcessClassifier": "its probability is a mean over a latent function",
    "KNeighborsClassifier": NEIGHBOURS,
    "KNeighborsRegressor": NEIGHBOURS,
    "KernelRidge": "its kernel is not read; the gaussian (RBF) kernel is",
    "LGBMClassifier": LINEAR_TREES,
    "LGBMRegressor": LINEAR_TREES,
    "RadiusNeighborsClassifier": NEIGHBOURS,
    "RadiusNeighborsRegressor": NEIGHBOURS,
    "XGBClassifier": LINEAR_TREES,
    "XGBRegressor": LINEAR_TREES,
}
"""By the names of classes."""


def why_unread(model: Any, output: TreeOutput, view: View) -> str:
    """Half a sentence, which names the output that is exact where there is one.

    Parameters
    ----------
    model : estimator
        One that is not read.
    output : TreeOutput
        What was wanted.
    view : View
        What it is given.
    """
    name = type(model).__name__
    bent = f"the {output.name} of a {name} is another function of its sum of trees"
    scores = [
        other
        for other in ("log_odds", "margin")
        if _is_read(model, other, output, view)
    ]
    offered = [other for other in scores if _is_offered(model, other)]
    if offered:
        return f"{bent}; wrap(model, output={offered[0]!r}) is exact"
    if scores:
        return bent
    if isinstance(model, Pipeline):
        first, last = (type(model.steps[k][1]).__name__ for k in (0, -1))
        return (
            f"{first} is not known to make each of its columns of one column of the "
            f"table, and {last} is no linear function of them"
        )
    if isinstance(model, LightGBMBooster | XGBoostBooster):
        name = f"a booster of {name.removesuffix('Booster')}"
    return REASONS.get(name) or (
        f"{name}, with these settings, is not known to be a sum of products of "
        "functions of single columns"
    )


def _is_read(model: Any, other: str, output: TreeOutput, view: View) -> bool:
    wanted = TreeOutput(other, output.index)
    return other != output.name and read_boxes(model, wanted, view) is not None


def _is_offered(model: Any, output: str) -> bool:
    """Whether wrap knows how to ask a model for a score."""
    if output == "log_odds":
        return hasattr(model, "predict_proba")
    return hasattr(model, "decision_function") or margins_of(model) is not None
