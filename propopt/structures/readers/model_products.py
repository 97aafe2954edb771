"""Fitted models as sums of products, by the columns of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from propopt.base.arrays import Array
from propopt.base.text import Reason
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kernels import GaussianClasses, KernelFeatures
from propopt.structures.networks import (
    Activation,
    Affine,
    Chain,
    LogOdds,
    Monomials,
    Scaling,
    ScoreLink,
    Softmax,
)
from propopt.structures.products.families import CurveRule, Exponentials, Powers
from propopt.structures.products.pipeline_columns import (
    Bent,
    Line,
    Listed,
    SeenColumn,
    by_table,
    constant,
)
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.kernel_products import (
    kernel_sum,
    monomial_sum,
    quadratic_sum,
)
from propopt.structures.readers.lightgbm import LightGBMBooster
from propopt.structures.readers.pipelines import (
    ColumnView,
    ModelOutput,
    table_numbers,
)
from propopt.structures.readers.tree_models import read_trees
from propopt.structures.readers.tree_nodes import Questions
from propopt.structures.readers.xgboost import XGBoostBooster
from propopt.structures.scores import Link, Network


SIGMOID: Final = (
    "a probability is the logistic function of a sum; "
    "wrap(model, output='log_odds') is exact"
)
SOFTMAX: Final = (
    "a probability of one of several classes is a softmax of their scores; "
    "wrap(model, output='margin', target=...) is exact where the model has margins"
)
LOG_ODDS_OF_MANY: Final = (
    "log-odds of one of several classes hold the logarithm of a sum over the others; "
    "wrap(model, output='margin', target=...) is exact where the model has margins"
)
EXPONENTIAL: Final = (
    "its values are the exponential of a sum of products, and only that of a sum over "
    "single columns is a product"
)
MIXED: Final = (
    "its steps mix columns, as PCA does, before what is no linear function of them"
)
UNITS: Final = "layers of {} units are no sum of products of single columns"
UNKNOWN: Final = "its scores are not known to be a sum of products"


# ---- Why a fitted model is not read as a sum of products, by its class


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


def why_unread(model: Any, output: ModelOutput, view: ColumnView) -> str:
    """Half a sentence, which names the output that is exact where there is one."""
    name = type(model).__name__
    bent = f"the {output.name} of a {name} is another function of its sum of trees"
    scores = [
        other
        for other in ("log_odds", "margin")
        if other != output.name
        and read_trees(model, ModelOutput(other, output.index), view) is not None
    ]
    offered = [other for other in scores if _is_offered(model, other)]
    if offered:
        return f"{bent}; wrap(model, output={offered[0]!r}) is exact"
    if scores:
        return bent
    if isinstance(model, LightGBMBooster | XGBoostBooster):
        name = f"a booster of {name.removesuffix('Booster')}"
    return REASONS.get(name) or (
        f"{name}, with these settings, is not known to be a sum of products of "
        "functions of single columns"
    )


def _is_offered(model: Any, output: str) -> bool:
    """Whether wrap knows how to ask a model for a score."""
    fitted = FittedModel.of(model)
    if output == "log_odds":
        return fitted.has("predict_proba")
    return fitted.has("decision_function") or fitted.margin is not None


# ---- Networks as sums of products of what they see, where they are


Combination: TypeAlias = tuple[Array, float]
"""A number made of K scores z, row · z + base."""


def network_products(
    network: Network, link: Link, n_columns: int
) -> SumOfProducts | Reason:
    """What is read from the scores of a network, by the columns that it sees."""
    combination = linear_combination(link, network.n_scores)
    if isinstance(combination, Reason):
        return combination
    steps = steps_of(network)
    while not all(map(_is_scaling, steps)) and isinstance(steps[-1], Affine | Scaling):
        combination = pulled_back(steps.pop(), combination)
    core = None if all(map(_is_scaling, steps)) else steps.pop()
    match core, link:
        case None, ScoreLink("exp"):
            function: SumOfProducts | Reason = _multiplicative(combination, n_columns)
        case None, _:
            row, base = combination
            used = np.flatnonzero(row)
            powers = Powers.first(used)
            function = SumOfProducts.additive(base, row[used], powers, n_columns)
        case _, ScoreLink("exp"):
            function = Reason(EXPONENTIAL)
        case step, _:
            function = _of_last(step, combination)
    return _behind(steps, function, n_columns)


def _behind(
    scalings: Sequence[Network], function: SumOfProducts | Reason, n_columns: int
) -> SumOfProducts | Reason:
    """The function of what is scaled, the innermost scaling first."""
    for step in reversed(scalings):
        match function, step:
            case SumOfProducts(), Scaling():
                function = by_table(function, _lines(step), n_columns)
            case SumOfProducts(), _:
                return Reason(MIXED)
            case _:
                return function
    return function


def _lines(scaling: Scaling) -> Sequence[SeenColumn]:
    """(x − center) factor + offset = factor (x − root)."""
    parts = zip(scaling.center, scaling.factor, scaling.offset, strict=True)
    return [
        Line(j, factor, center - offset / factor)
        if factor != 0
        else constant(j, offset)
        for j, (center, factor, offset) in enumerate(parts)
    ]


def steps_of(network: Network) -> list[Network]:
    """The networks of a chain, the innermost first."""
    match network:
        case Chain(inner, outer):
            return [*steps_of(inner), *steps_of(outer)]
        case _:
            return [network]


def _is_scaling(step: Network) -> bool:
    return isinstance(step, Scaling)


def pulled_back(step: Network, combination: Combination) -> Combination:
    """The combination of what an affine step is of."""
    row, base = combination
    match step:
        case Affine(A, b):
            return row @ A, base + float(row @ b)
        case Scaling(center, factor, offset):
            return row * factor, base + float(row @ (offset - center * factor))
        case _:
            raise TypeError(type(step))


def linear_combination(link: Link, n_scores: int) -> Combination | Reason:
    """The scores that a link adds; those of a logarithmic link before it."""
    unit = np.eye(n_scores)
    match link:
        case ScoreLink("identity", index, sign):
            return sign * unit[index], 0.0
        case ScoreLink("exp", index):
            return unit[index], 0.0
        case LogOdds(index) if n_scores == 2:
            return unit[index] - unit[1 - index], 0.0
        case LogOdds():
            return Reason(LOG_ODDS_OF_MANY)
        case ScoreLink("logistic"):
            return Reason(SIGMOID)
        case Softmax():
            return Reason(SOFTMAX)
        case _:
            return Reason(UNKNOWN)


def _of_last(step: Network, combination: Combination) -> SumOfProducts | Reason:
    row, base = combination
    match step:
        case KernelFeatures():
            return kernel_sum(step, row, base)
        case Monomials():
            return monomial_sum(step.exponents, row, base)
        case GaussianClasses(means, whitenings, offsets):
            forms = [B @ B.T if B.ndim == 2 else np.diag(B * B) for B in whitenings]
            return quadratic_sum(means, forms, -0.5 * row, base + float(row @ offsets))
        case Activation(name):
            return Reason(UNITS.format(name))
        case _:
            return Reason(UNKNOWN)


def _multiplicative(combination: Combination, n_columns: int) -> SumOfProducts:
    """The exponential of a sum over columns."""
    row, base = combination
    used = np.flatnonzero(row)
    rate = row[used]
    center = np.zeros(len(used))
    value = np.exp(base) if len(used) == 0 else 1.0
    if len(used) > 0:  # the constant alone may have no exponential in float64
        steepest = np.abs(rate).argmax()
        center[steepest] = -base / rate[steepest]
    factors, paths = Exponentials(used, rate, center), np.arange(len(used))[None, :]
    return SumOfProducts(0.0, np.array([value]), paths, (factors,), n_columns)


# ---- How columns that a part of a model sees come from those of the table


FAR_PROBE: Final = 2.0**40
"""Lines are asked for these numbers, which are exact in single precision."""

_MOST_KEPT: Final = 32


def through_view(function: SumOfProducts, view: ColumnView) -> SumOfProducts | Reason:
    """A function of the columns that are seen, by the columns of the table."""
    used = {k: view.sources[k] for k in function.columns.tolist()}
    for source in used.values():
        if source.kind == "rising":
            return Reason(
                f"what it is given of column {source.column} (counted from 0) is no "
                "affine function of its numbers, as those of scalers are, nor of a few "
                "categories"
            )
    asked = Questions(view, table_numbers)
    numeric = [k for k in used if used[k].kind not in ("codes", "curved")]
    missing = asked.missing(numeric) if numeric else {}
    seen: list[SeenColumn] = [constant(0, np.nan)] * len(view.sources)
    for k in used:
        seen[k] = _seen(asked, k, missing.get(k, np.nan))
    return by_table(function, seen, view.n_columns)


def _seen(asked: Questions, k: int, missing: float) -> SeenColumn:
    """A column of a view, asked of the steps before it."""
    source = asked.view.sources[k]
    j = source.column
    match source.kind:
        case "same":
            return Line(j, missing=missing)
        case "steps":
            return Listed(j, *asked.listed(k, source), missing)
        case "curved":
            return Bent(
                j, _remembering(partial(asked.ask, k)), np.array(source.numbers)
            )
        case "codes":
            codes = asked.codes(k)
            return Listed(j, np.arange(float(len(codes))), codes)
        case _:
            probes = np.array([-FAR_PROBE, 0.0, FAR_PROBE])
            low, middle, high = asked.ask(k, probes).tolist()
            slope = (high - low) / (2.0 * FAR_PROBE)
            if slope == 0.0:
                return constant(j, middle, missing)
            return Line(j, slope, -middle / slope, missing)


def _remembering(of: CurveRule) -> CurveRule:
    """The same, a few answers kept: many factors of a column ask for the same."""
    kept: dict[bytes, Array] = {}

    def remembered(values: Array) -> Array:
        key = values.tobytes()
        if key not in kept:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = of(values)
        return kept[key]

    return remembered
