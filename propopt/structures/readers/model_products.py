"""Fitted models as sums of products, by the columns of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from sklearn.pipeline import Pipeline

from propopt.base.arrays import Array
from propopt.structures.boosters import LightGBMBooster, XGBoostBooster, margins_of
from propopt.structures.kernels import (
    GaussianClasses,
    IndependentGaussians,
    KernelMachine,
)
from propopt.structures.networks import (
    Affine,
    Chain,
    Cosines,
    Exponentiated,
    Layers,
    Link,
    LogOdds,
    Monomials,
    Network,
    Scaling,
    Score,
    Sigmoid,
    Softmax,
)
from propopt.structures.products.algebra import Products
from propopt.structures.products.families import Exponentials, Powers
from propopt.structures.products.seen import (
    Bent,
    Line,
    Listed,
    SeenColumn,
    by_table,
    constant,
)
from propopt.structures.products.sums import NoProducts, SumOfProducts
from propopt.structures.readers.kernel_products import (
    machine_products,
    monomial_sum,
    quadratic_sum,
)
from propopt.structures.readers.pipelines import (
    CodedColumn,
    Curved,
    Rising,
    Same,
    Steps,
    View,
    behind,
    table_numbers,
)
from propopt.structures.readers.tree_models import SUMS, ModelSum, read_boxes
from propopt.structures.readers.tree_nodes import Questions, TreeOutput


# ---- Sums of products of whatever fitted models are, by the columns of the table


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
COSINES: Final = "its random features are cosines of sums of columns"
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


def why_unread(model: Any, output: TreeOutput, view: View) -> str:
    """Half a sentence, which names the output that is exact where there is one."""
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


# ---- Networks as sums of products of what they see, where they are


@final
@dataclass(frozen=True, eq=False)
class Combination:
    """row · z + base, a number made of K scores z."""

    row: Array  # (K,): the weights
    base: float = 0.0  # the constant

    def of_affine(self, A: Array, b: Array) -> Combination:
        """The same of what an affine map A x + b is of."""
        return Combination(self.row @ A, self.base + float(self.row @ b))


def network_products(
    network: Network, link: Link, n_columns: int
) -> SumOfProducts | NoProducts:
    """What is read from the scores of a network, by the columns that it sees."""
    combination = _linear(link, network.n_scores)
    if isinstance(combination, NoProducts):
        return combination
    steps = _steps(network)
    while steps and _is_affine(steps[-1]) and not all(map(_is_scaling, steps)):
        combination = _before(steps.pop(), combination)
    core = None if all(map(_is_scaling, steps)) else steps.pop()
    match core, link:
        case None, Exponentiated():
            function: SumOfProducts | NoProducts = _multiplicative(
                combination, n_columns
            )
        case None, _:
            function = _additive(combination, n_columns)
        case _, Exponentiated():
            function = NoProducts(EXPONENTIAL)
        case step, _:
            function = _of_last(step, combination)
    return _behind(steps, function, n_columns)


def _behind(
    scalings: Sequence[Network], function: SumOfProducts | NoProducts, n_columns: int
) -> SumOfProducts | NoProducts:
    """The function of what is scaled, the innermost scaling first."""
    for step in reversed(scalings):
        match function, step:
            case SumOfProducts(), Scaling():
                function = by_table(function, _lines(step), n_columns)
            case SumOfProducts(), _:
                return NoProducts(MIXED)
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


def _steps(network: Network) -> list[Network]:
    """The networks of a chain, the innermost first; layers that do not bend apart."""
    match network:
        case Chain(inner, outer):
            return [*_steps(inner), *_steps(outer)]
        case Layers(weights, biases, activation) if (
            activation == "identity" or len(weights) == 1
        ):
            return [Affine(A.T, b) for A, b in zip(weights, biases, strict=True)]
        case _:
            return [network]


def _is_affine(step: Network) -> bool:
    return isinstance(step, Affine | Scaling)


def _is_scaling(step: Network) -> bool:
    return isinstance(step, Scaling)


def _before(step: Network, combination: Combination) -> Combination:
    """The combination of what an affine step is of."""
    match step:
        case Affine(A, b):
            return combination.of_affine(A, b)
        case Scaling(center, factor, offset):
            shift = float(combination.row @ (offset - center * factor))
            return Combination(combination.row * factor, combination.base + shift)
        case _:
            raise TypeError(type(step))


def _linear(link: Link, n_scores: int) -> Combination | NoProducts:
    """The scores that a link adds; those of a logarithmic link before it."""
    unit = np.eye(n_scores)
    match link:
        case Score(index, sign):
            return Combination(sign * unit[index])
        case Exponentiated(index):
            return Combination(unit[index])
        case LogOdds(index) if n_scores == 2:
            return Combination(unit[index] - unit[1 - index])
        case LogOdds():
            return NoProducts(LOG_ODDS_OF_MANY)
        case Sigmoid():
            return NoProducts(SIGMOID)
        case Softmax():
            return NoProducts(SOFTMAX)
        case _:
            return NoProducts(UNKNOWN)


def _of_last(step: Network, combination: Combination) -> SumOfProducts | NoProducts:
    row, base = combination.row, combination.base
    match step:
        case KernelMachine():
            return machine_products(step, row, base)
        case Monomials():
            return monomial_sum(step.exponents, row, base)
        case IndependentGaussians(means, precisions, offsets):
            forms = [np.diag(precision) for precision in precisions]
            return quadratic_sum(means, forms, -0.5 * row, base + float(row @ offsets))
        case GaussianClasses(means, whitenings, offsets):
            forms = [B @ B.T for B in whitenings]
            return quadratic_sum(means, forms, -0.5 * row, base + float(row @ offsets))
        case Layers():
            return NoProducts(UNITS.format(step.activation))
        case Cosines():
            return NoProducts(COSINES)
        case _:
            return NoProducts(UNKNOWN)


def _additive(combination: Combination, n_columns: int) -> SumOfProducts:
    """Weights of the columns themselves."""
    used = np.flatnonzero(combination.row)
    return SumOfProducts.additive(
        combination.base, combination.row[used], Powers.first(used), n_columns
    )


def _multiplicative(combination: Combination, n_columns: int) -> SumOfProducts:
    """The exponential of a sum over columns."""
    used = np.flatnonzero(combination.row)
    rate = combination.row[used]
    center = np.zeros(len(used))
    value = np.exp(combination.base) if len(used) == 0 else 1.0
    if len(used) > 0:  # the constant alone may have no exponential in float64
        steepest = np.abs(rate).argmax()
        center[steepest] = -combination.base / rate[steepest]
    products = Products(
        0.0, np.array([value]), np.arange(len(used))[None, :], used, n_columns
    )
    return SumOfProducts(products, (Exponentials(used, rate, center),))


# ---- How columns that a part of a model sees come from those of the table


FAR_PROBE: Final = 2.0**40
"""Lines are asked for these numbers, which are exact in single precision."""

_MOST_KEPT: Final = 32


def through_view(function: SumOfProducts, view: View) -> SumOfProducts | NoProducts:
    """A function of the columns that are seen, by the columns of the table."""
    used = function.columns.tolist()
    columns = SeenColumns(view, used)
    broken = [k for k in used if columns.is_broken(k)]
    if broken:
        j = view.sources[broken[0]].column
        return NoProducts(
            f"what it is given of column {j} (counted from 0) is no affine function of "
            "its numbers, as those of scalers are, nor of a few categories"
        )
    unused: SeenColumn = constant(0, np.nan)
    seen = [columns.of(k) if k in used else unused for k in range(len(view.sources))]
    return by_table(function, seen, view.n_columns)


@final
@dataclass(frozen=True, eq=False)
class SeenColumns:
    """The columns of a view, asked of the steps before it."""

    view: View  # what is seen
    used: Sequence[int]  # the columns that are asked for

    def is_broken(self, k: int) -> bool:
        """Whether it is a map of numbers with kinks or jumps that are not known."""
        source = self.view.sources[k]
        return isinstance(source, Rising) and not source.straight

    def of(self, k: int) -> SeenColumn:
        """A column that is not broken."""
        match self.view.sources[k]:
            case Same(j):
                return Line(j, missing=self._missing[k])
            case Rising(j, _):
                return self._line(j, k)
            case Steps(j, values, _) as source:
                return self._listed(j, k, np.array(values), source.elsewhere)
            case Curved(j, knots):
                return Bent(j, Asked(self, k), np.array(knots))
            case CodedColumn(j):
                seen = self._asked.codes(k)
                return Listed(j, np.arange(float(len(seen))), seen)

    @cached_property
    def _asked(self) -> Questions:
        return Questions(self.view, table_numbers)

    @cached_property
    def _missing(self) -> dict[int, float]:
        """What is seen of missing numbers."""
        coded = [isinstance(self.view.sources[k], CodedColumn) for k in self.used]
        numeric = [k for k, c in zip(self.used, coded, strict=True) if not c]
        return dict(self._asked.missing(numeric)) if numeric else {}

    def _line(self, j: int, k: int) -> SeenColumn:
        low, middle, high = self.seen(
            k, np.array([-FAR_PROBE, 0.0, FAR_PROBE])
        ).tolist()
        slope = (high - low) / (2.0 * FAR_PROBE)
        if slope == 0.0:
            return constant(j, middle, self._missing[k])
        return Line(j, slope, -middle / slope, self._missing[k])

    def _listed(self, j: int, k: int, values: Array, elsewhere: bool) -> Listed:
        if not elsewhere:  # other values are refused
            return Listed(j, values, self.seen(k, values), missing=self._missing[k])
        beyond = np.floor(values[-1]) + 1.0
        *seen, other = self.seen(k, np.append(values, beyond)).tolist()
        return Listed(j, values, np.array(seen), other, self._missing[k])

    def seen(self, k: int, values: Array) -> Array:
        """What is seen in one column of values of its source; values (n,)."""
        columns = np.full(len(values), k, np.intp)
        with np.errstate(all="ignore"):  # such as logarithms of other columns at 0
            return self.view.ask(table_numbers, columns, values)


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """What is seen of a column, asked of the steps; a few answers are kept."""

    columns: SeenColumns
    k: int  # which

    def __call__(self, values: Array) -> Array:
        """Of values (n,): many factors of a column ask for the same."""
        key = values.tobytes()
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self.columns.seen(self.k, values)
        return self._kept[key]

    @cached_property
    def _kept(self) -> dict[bytes, Array]:
        return {}


@final
@dataclass(frozen=True)
class Networks:
    """What reads the scores of models, and what is made of them."""

    # from a fitted model to its scores, or None
    network: Callable[[Any], Network | None]
    link: Callable[[Any, str, int, int], Link | None]


def model_products(
    model: Any, output: TreeOutput, view: View, networks: Networks
) -> SumOfProducts | NoProducts:
    """The sum of products of an output of a fitted model."""
    if type(model) is Pipeline:
        model, view = _behind_columns(model, view)
    network = networks.network(model)
    if network is not None:
        return _of_network(model, network, output, view, networks)
    if type(model) in SUMS:
        return _added(SUMS[type(model)](model, output, view), view, networks)
    boxes = read_boxes(model, output, view)
    if boxes is not None:
        return boxes.as_products()
    return NoProducts(why_unread(model, output, view))


def _behind_columns(model: Pipeline, view: View) -> tuple[Any, View]:
    """The rest of a pipeline behind steps that each make columns of one, and its view.

    The last estimator alone is no pipeline.
    """
    for place, (_, step) in enumerate(model.steps[:-1]):
        seen = behind(step, view)
        if seen is None:
            return Pipeline(model.steps[place:]), view
        view = seen
    return model.steps[-1][1], view


def _of_network(
    model: Any, network: Network, output: TreeOutput, view: View, networks: Networks
) -> SumOfProducts | NoProducts:
    index = output.index or 0
    link = networks.link(model, output.name, index, network.n_scores)
    if link is None:
        return NoProducts(
            f"the {output.name} of a {type(model).__name__} is made of its scores by a "
            "rule that is not read; wrap(model, output='margin') is exact"
        )
    function = network_products(network, link, len(view.sources))
    if isinstance(function, NoProducts):
        return function
    return through_view(function, view)


def _added(
    total: ModelSum | NoProducts, view: View, networks: Networks
) -> SumOfProducts | NoProducts:
    """The sum of the parts, or why one of them is none."""
    if isinstance(total, NoProducts):
        return total
    parts = [SumOfProducts.constant(total.base, view.n_columns)]
    for weight, model, output, seen in total.parts:
        part = model_products(model, output, seen, networks)
        if isinstance(part, NoProducts):
            return part
        parts.append(part.scaled(weight))
    return SumOfProducts.sum_of(parts)
