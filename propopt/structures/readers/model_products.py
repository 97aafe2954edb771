"""Fitted models as sums of products of functions of the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial, reduce
from typing import Any, Final, TypeAlias

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from propopt.base.arrays import Array
from propopt.base.text import Reason
from propopt.structures.kernels import GaussianClasses, KernelFeatures
from propopt.structures.kinds import class_name_of, has_method, working_steps
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
    AffineColumn,
    CurvedColumn,
    InputColumn,
    TabulatedColumn,
    by_table,
    constant,
)
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.fitted_networks import NETWORKS, Reader, step_map
from propopt.structures.readers.kernel_products import (
    kernel_sum,
    monomial_sum,
    quadratic_sum,
)
from propopt.structures.readers.model_reader import ModelSum
from propopt.structures.readers.pipelines import ColumnView, ModelOutput, table_numbers
from propopt.structures.readers.sklearn_sums import rest_of_pipeline, scale_of_target
from propopt.structures.readers.tree_nodes import InputProbe
from propopt.structures.registry import (
    as_estimator,
    exact_boxes,
    final_of,
    read_by_others,
    read_trees,
    reader_of,
)
from propopt.structures.scores import Link, Network


SIGMOID: Final = (
    "a probability is the logistic function of log-odds; "
    "wrap(model, output='log_odds') is exact where these are a sum of products"
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
MIXED: Final = "its steps mix columns, as PCA does, before a nonlinear function of them"
UNITS: Final = "layers of {} units are no sum of products of single columns"
UNKNOWN: Final = "its scores have no exact sum of products"


# ---- Scores, links and sums of products of fitted models, by class


_UNREAD: Final[Reader] = (lambda _: None, lambda *_: None)


def exact_network(model: Any) -> Network | None:
    """The differentiable scores of an estimator; None if there is no rule for it."""
    if type(model) is Pipeline:
        *before, final = working_steps(model)
        maps = [*map(step_map, before), exact_network(final)]
        networks = [network for network in maps if network is not None]
        # one map after another, the first innermost
        return reduce(Chain, networks) if len(networks) == len(maps) else None
    if type(model) is TransformedTargetRegressor:
        return _in_units_of_target(model)
    network, _ = NETWORKS.get(class_name_of(model), _UNREAD)
    return network(model)


def exact_link(final: Any, output: str, index: int, n_scores: int) -> Link | None:
    """The exact link from scores to an output of a final estimator, or None."""
    if type(final) is TransformedTargetRegressor:
        return ScoreLink("identity", index) if output == "value" else None
    _, link = NETWORKS.get(class_name_of(final), _UNREAD)
    return link(final, ModelOutput(output, index), n_scores)


def _in_units_of_target(model: Any) -> Network | None:
    """The scores of a model with a scaled target, or None if it is not affine."""
    units = scale_of_target(model.transformer_)
    inner = as_estimator(model.regressor_)
    network = exact_network(inner)
    if units is None or network is None or network.n_scores != 1:
        return None
    if exact_link(final_of(inner), "value", 0, 1) != ScoreLink("identity"):
        return None
    slope, intercept = map(float, units)
    return Chain(network, Affine(np.array([[slope]]), np.array([intercept])))


def exact_products(
    model: Any, output: ModelOutput, view: ColumnView
) -> SumOfProducts | Reason:
    """An output as a sum of products, boxes for trees; or the reason why not."""
    boxes = exact_boxes(model, output, view)
    return without_trees(model, output, view) if boxes is None else boxes


def without_trees(
    model: Any, output: ModelOutput, view: ColumnView
) -> SumOfProducts | Reason:
    """The same for an estimator that is no sum of trees."""
    if type(model) is Pipeline:
        model, view = rest_of_pipeline(model, view)
    network = exact_network(model)
    if network is not None:
        return _of_network(model, network, output, view)
    sums = reader_of(model).sum
    if sums is not None:
        return _added(sums(model, output, view), view)
    match read_by_others(model, output, view):
        case SumOfProducts() as read:
            return through_view(read, view)
        case Reason() as reason:
            return reason
        case _:
            return Reason(why_inexact(model, output, view))


def _of_network(
    model: Any, network: Network, output: ModelOutput, view: ColumnView
) -> SumOfProducts | Reason:
    link = exact_link(final_of(model), output.name, output.column, network.n_scores)
    if link is None:
        return Reason(
            f"the {output.name} of a {type(model).__name__} is made of its scores by a "
            "rule without an exact form; wrap(model, output='margin') is exact"
        )
    function = network_products(network, link, len(view.sources))
    if isinstance(function, Reason):
        return function
    return through_view(function, view)


def _added(total: ModelSum | Reason, view: ColumnView) -> SumOfProducts | Reason:
    """The sum of the parts, or the reason why a part is no sum of products."""
    if isinstance(total, Reason):
        return total
    members, base = total
    parts = [SumOfProducts.constant(base, view.n_columns)]
    for weight, model, output, part_view in members:
        part = exact_products(as_estimator(model), output, part_view)
        if isinstance(part, Reason):
            return part
        parts.append(part.scaled(weight))
    return SumOfProducts.sum_of(parts)


# ---- Reasons why a fitted model has no exact sum of products


def why_inexact(model: Any, output: ModelOutput, view: ColumnView) -> str:
    """The reason why an output is no sum of products, with an exact alternative."""
    name = type(model).__name__
    bent = f"the {output.name} of a {name} is a nonlinear function of its sum of trees"
    others = [other for other in ("log_odds", "margin") if other != output.name]
    for other in sorted(others, key=partial(_is_offered, model), reverse=True):
        if read_trees(model, ModelOutput(other, output.index), view) is not None:
            remedy = f"; wrap(model, output={other!r}) is exact"
            return bent + (remedy if _is_offered(model, other) else "")
    return reader_of(model).inexact or (
        f"{name}, with these settings, has no exact sum of products of "
        "functions of single columns"
    )


def _is_offered(model: Any, output: str) -> bool:
    """Whether wrap can compute a score of a model."""
    if output == "log_odds":
        return has_method(model, "predict_proba")
    margin = reader_of(model).margin
    return has_method(model, "decision_function") or margin is not None


# ---- Networks as sums of products of their input columns


Combination: TypeAlias = tuple[Array, float]
"""An affine function of K scores z, row · z + base."""


def network_products(
    network: Network, link: Link, n_columns: int
) -> SumOfProducts | Reason:
    """A link of the scores of a network as a sum of products, by its input columns."""
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
    """A function of scaled columns as a function of the original ones."""
    for step in reversed(scalings):
        match function, step:
            case SumOfProducts(), Scaling():
                function = by_table(function, _lines(step), n_columns)
            case SumOfProducts(), _:
                return Reason(MIXED)
            case _:
                return function
    return function


def _lines(scaling: Scaling) -> Sequence[InputColumn]:
    """Affine columns of a scaling: (x − center) factor + offset = factor (x − root)."""
    parts = zip(scaling.center, scaling.factor, scaling.offset, strict=True)
    return [
        AffineColumn(j, factor, center - offset / factor)
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
    """A combination of the outputs of an affine step as a combination of its inputs."""
    row, base = combination
    match step:
        case Affine(A, b):
            return row @ A, base + float(row @ b)
        case Scaling(center, factor, offset):
            return row * factor, base + float(row @ (offset - center * factor))
        case _:
            raise TypeError(type(step))


def linear_combination(link: Link, n_scores: int) -> Combination | Reason:
    """The combination of scores that a link adds; for a log link the exponent."""
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
    """A combination of the features of the last nonlinear step as a sum of products."""
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
    """The exponential of a sum over columns as a single product."""
    row, base = combination
    used = np.flatnonzero(row)
    rate = row[used]
    center = np.zeros(len(used))
    value = np.exp(base) if len(used) == 0 else 1.0
    if len(used) > 0:  # the constant by itself may overflow in float64
        steepest = np.abs(rate).argmax()
        center[steepest] = -base / rate[steepest]
    factors = Exponentials(used, rate, center)
    paths = np.arange(len(used))[None, :]
    return SumOfProducts(0.0, np.array([value]), paths, (factors,), n_columns)


# ---- Input columns of a part of a model, as transformed columns of the table


FAR_PROBE: Final = 2.0**40
"""Affine columns are evaluated at ± this number, which is exact in single precision."""

_CACHE_SIZE: Final = 32


def through_view(function: SumOfProducts, view: ColumnView) -> SumOfProducts | Reason:
    """A function of the input columns of a view, by the columns of the table."""
    if view.is_table:
        return function
    used = {k: view.sources[k] for k in function.columns.tolist()}
    for source in used.values():
        if source.kind == "rising":
            return Reason(
                f"the transformation of column {source.column} (counted from 0) is "
                "neither affine, as of scalers, nor a table of a few categories"
            )
    questions = InputProbe(view, table_numbers)
    numeric = [k for k in used if used[k].kind not in ("codes", "curved")]
    missing = questions.missing(numeric) if numeric else {}
    straight = [k for k in used if used[k].kind == "straight"]
    inputs: list[InputColumn] = [constant(0, np.nan)] * len(view.sources)
    if straight:  # probed together: each call transforms a whole table
        columns = np.repeat(straight, 3)
        probes = np.tile([-FAR_PROBE, 0.0, FAR_PROBE], len(straight))
        ends = questions.probe(columns, probes).reshape(-1, 3)
        for k, (low, middle, high) in zip(straight, ends.tolist(), strict=True):
            slope = (high - low) / (2.0 * FAR_PROBE)
            j = used[k].column
            inputs[k] = (
                AffineColumn(j, slope, -middle / slope, missing[k])
                if slope != 0.0
                else constant(j, middle, missing[k])
            )
    for k in used.keys() - set(straight):
        inputs[k] = _seen(questions, k, missing.get(k, np.nan))
    return by_table(function, inputs, view.n_columns)


def _seen(questions: InputProbe, k: int, missing: float) -> InputColumn:
    """The input column k of a view, determined by evaluating the steps before it."""
    source = questions.view.sources[k]
    j = source.column
    match source.kind:
        case "same":
            return AffineColumn(j, missing=missing)
        case "steps":
            return TabulatedColumn(j, *questions.listed(k, source), missing)
        case "curved":
            return CurvedColumn(
                j, _with_cache(partial(questions.probe, k)), np.array(source.numbers)
            )
        case _:  # codes
            codes = questions.codes([k])[k]
            return TabulatedColumn(j, np.arange(float(len(codes))), codes)


def _with_cache(of: CurveRule) -> CurveRule:
    """Same function with its last results cached, since many factors share a column."""

    @lru_cache(_CACHE_SIZE)
    def of_bytes(content: bytes) -> Array:
        return of(np.frombuffer(content))

    return lambda values: of_bytes(values.tobytes())
