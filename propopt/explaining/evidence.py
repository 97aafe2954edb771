"""Numbers that came, their model, and whose values they could be.

Interventional Shapley values are exact here for whatever is a sum of products of
functions of one column (trees, kernel machines, additive models), so that others' are
compared with the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, Self

import numpy as np
from scipy.special import expit, logit

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.checks import read_count, read_seed
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.text import Reason, plural
from propopt.explaining.contributions import ContributionRule
from propopt.explaining.explainers.main_effects import MainEffects, main_effects_of
from propopt.explaining.fidelity_front import FidelityRoughnessFront
from propopt.explaining.mixtures import Mixture, centres_of, mixture_of
from propopt.explaining.sources import (
    ReferenceHypothesis,
    candidates,
    fits,
    made_up_rows,
)
from propopt.explaining.targets import (
    Targets,
    coordinates_of,
    graph_of_rows,
    sizes_of,
)
from propopt.functions import Function
from propopt.functions.means import CheckedStructure
from propopt.functions.models import NumericalModel
from propopt.functions.outputs import Target
from propopt.functions.wrapping import ReferenceTable, wrap_with_table
from propopt.laws.background import N_BACKGROUND, Background
from propopt.laws.data_law import Reference
from propopt.losses import PairwiseRobustness
from propopt.losses.graphs.points import Graph, knn_graph
from propopt.results.explanation import Explanation
from propopt.structures.fitted_model import FittedModel
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels, listed
from propopt.tables.imported import (
    AttributionsLike,
    ImportedAttributions,
    base_values_of,
    read_attributions,
)


# ---- In which unit numbers are, known or asked for


_OUTPUTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "log_odds": ("log_odds", "margin"),
    "probability": ("probability", "value"),
    "margin": ("margin",),
    "value": ("value",),
}
"""Where a model lacks an output: native boosters have no probabilities."""


def _explained(
    model: Any,
    X: Any,
    data: Any,
    output: str | None,
    target: Target,
    outcome: str | None,
) -> tuple[Function, ReferenceTable, str]:
    """The function whose parts they are, and its unit in words."""
    if output is not None and output not in _OUTPUTS:
        raise InvalidInput(
            f"output: expected one of {listed([*_OUTPUTS])}, got {output!r}"
        )
    is_function, kinds = isinstance(model, Function), _OUTPUTS[output or "value"]
    fitted = FittedModel.of(model)
    has_probabilities = not is_function and fitted.has("predict_proba")
    if output is None and (has_probabilities or fitted.margin is not None):
        others = "'probability' or 'margin'" if has_probabilities else "'margin'"
        raise InvalidInput(
            "output: the model has several outputs, and the numbers do not say which; "
            f"give output='log_odds', {others}; shap.TreeExplainer gives log-odds of "
            "boosted classifiers of two classes, margins of those of several, and "
            "probabilities of forests"
        )
    said: list[str] = []
    for kind in ("auto",) if is_function else kinds:
        try:
            made = wrap_with_table(model, X, target, kind, data, None, outcome)
        except InvalidInput as error:
            said.append(str(error))
            continue
        quantity = made[0].quantity
        if (output, quantity.kind) == ("probability", "value"):
            return *made, "probability"
        if output in (None, quantity.kind):
            is_value = quantity.kind == "value"
            return *made, "units of the prediction" if is_value else quantity.noun
        said.append(
            f"output: the numbers are said to be {output!r}, but the function is "
            f"the {quantity}; wrap the model with output={output!r}; a booster's file "
            "has probabilities by output: value"
        )
    raise InvalidInput(said[0])


def _position(model: Any, function: Function) -> int | None:
    """The place of the class that is explained, where there are several."""
    labels = FittedModel.of(model).classes
    if labels is None:
        return function.quantity.position
    known = np.asarray(labels).tolist()
    label = function.quantity.label
    return known.index(label) if label in known else None


def _others(
    model: Any, function: Function, X: Any, data: Any, outcome: str | None
) -> Iterator[tuple[str, str, Function]]:
    """Other outputs and other classes of a model: their words, kind and function."""
    if isinstance(model, Function):
        if not isinstance(function, NumericalModel) or function.structure is None:
            return
        model = function.structure.model
    label, own = function.quantity.label, function.quantity.kind
    labels = FittedModel.of(model).classes
    targets: list[Any] = [label if labels is not None else function.quantity.position]
    if labels is not None and np.ndim(labels) == 1:
        targets += [x for x in np.asarray(labels).tolist() if x != label]
    elif targets[0] is not None:
        targets += [x for x in range(_MOST_OUTPUTS) if x != targets[0]]
    for place, target in enumerate(targets[: _MOST_OUTPUTS + 1]):
        kind: Any
        for kind in _OUTPUTS:
            if place == 0 and kind == own:
                continue
            try:
                other, _ = wrap_with_table(model, X, target, kind, data, None, outcome)
            except PropoptError:
                continue
            words = kind.replace("_", "-")
            if place:
                words = f"class {target}"
                words += "" if kind == own else f", {kind.replace('_', '-')}"
            yield words, kind, other


_MOST_OUTPUTS: Final = 20
"""Outputs that are tried."""


# ---- What is known of the numbers and the model, computed when a question needs it


_THEMSELVES: Final = " of the audited rows"

_CLUSTERED: Final = 500
"""Rows whose cluster centres are tried as a background."""

_OUTLYING: Final = 10.0
"""Root mean squares: what is farther from a fitted mixture is another value."""

_NOISE: Final = 0.02
"""Of the root mean square value: what differs by less from a mixture agrees with it."""

_ALIKE: Final = 0.2
"""Rank correlation of errors with the scatter of orders."""

_SAME: Final = 1e-5
"""Of the range of predictions, or the largest value: less is the same number."""


_SINGLE: Final = 5e-7
"""Of the size of predictions: sums in single precision miss as much."""

_FEW: Final = 20
"""Rows at which the scatter of orders is sampled."""

MAJORITY: Final = 0.5
"""Of rows or values: what holds for more is the rule, the others exceptions."""


def read_parts(
    carrier: AttributionsLike,
    labels: Labels,
    shape: tuple[int, int],
    position: int | None = None,
) -> ImportedAttributions:
    """Parts of the output, of the rows and columns of the table."""
    found = read_attributions(
        *(carrier, "attributions", labels, shape),
        position=position,
        saved=Explanation.load,
    )
    if found.explanation is not None and found.units != "output":
        raise InvalidInput(
            f"attributions: expected parts of the output, got "
            f"{found.explanation.units_in_words}; po.explain(model, X, kind='contributions') "
            "has parts"
        )
    if found.values.shape != shape:
        raise InvalidInput(
            f"attributions: expected {shape[0]} rows × {shape[1]} columns, as X has, "
            f"got {' × '.join(map(str, found.values.shape))}"
        )
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditEvidence:
    """Attributions that came, the model, its rows and background."""

    came: ImportedAttributions  # W (N, D), and the base that came with it
    function: Function  # f
    unit: str  # what numbers are of, in words
    points: Points  # (N, D)
    background: Points  # (B, D)
    weights: Values | None  # (B,) of these rows, which add up to 1
    labels: Labels
    graph: Graph | None  # who is similar, where that is given
    n_neighbors: int
    seed: int
    is_given: bool  # the background; else it is the audited rows
    # other outputs of the model, with words and kind
    others_of_model: Callable[[], Iterator[tuple[str, str, Function]]]

    @classmethod
    def of(
        cls,
        attributions: AttributionsLike,
        model: Any,
        X: Any,
        data: Any,
        sample_weight: Any,
        output: str | None,
        base: Any,
        target: Target,
        outcome: str | None,
        graph: Graph | None,
        n_neighbors: int,
        rng: int | None,
    ) -> Self:
        """What :func:`propopt.audit` is given, read and aligned."""
        function, told, words = _explained(model, X, data, output, target, outcome)
        function = function.with_categories_of(X)
        points, labels = told.read(function, X, "X")
        rows = points if data is None else told.read(function, data, "data")[0]
        weights = None
        of_rows = sample_weight, X if data is None else data, rows
        if (weighed := Background.weighed(*of_rows)) is not None:
            rows, weights = weighed.points, weighed.weights
        if graph is not None:
            graph_of_rows(graph, len(points))
        position = _position(model, function)
        came = read_parts(attributions, labels, points.shape, position)
        if base is not None:
            came = replace(came, base=base_values_of(base, len(points)))
        own = cls(
            came=came,
            function=function,
            unit=words,
            points=points,
            background=rows,
            weights=weights,
            labels=labels,
            graph=graph,
            n_neighbors=read_count(n_neighbors, "n_neighbors"),
            seed=read_seed(rng),
            is_given=data is not None,
            others_of_model=partial(_others, model, function, X, data, outcome),
        )
        own._refuse_other_units()
        return own

    def _refuse_other_units(self) -> None:
        """Refuse parts of what rows add up to, if they were said to be of another."""
        f, sums = self.prediction, self.W.sum(axis=1)
        if self.adds_up.mean() > MAJORITY or fits(sums, f):
            return
        is_probability = self.unit == "probability"  # also of boosters, by value
        kind = "probability" if is_probability else self.function.quantity.kind
        with np.errstate(divide="ignore"):
            odds = logit(np.clip(f, 0.0, 1.0))
        others = {
            "log_odds": [("probability", expit(f), "give output='probability'")],
            "probability": [
                ("log-odds", odds, "give output='log_odds'"),
                ("percentage", 100.0 * f, "divide attributions and base by 100"),
            ],
        }.get(kind, [])
        others += [
            (words, values, f"give output={words.replace('-', '_')!r}")
            for words, values in self.other_outputs
            if not words.startswith("class")
        ]
        others += [
            ("percentage", 100.0 * values, f"{advice}, and divide by 100")
            for words, values, advice in others
            if words == "probability"
        ]
        for other, values, advice in others:
            if np.isfinite(values).all() and fits(sums, values):
                raise InvalidInput(
                    f"output: the rows add up to the {other}, and not to the "
                    f"{self.unit} as was said; {advice}"
                )

    @cached_property
    def other_outputs(self) -> list[tuple[str, Values]]:
        """What other outputs and classes of the model are at the rows."""
        found = []
        for words, _, function in self.others_of_model():
            try:
                found.append((words, function.value_at(self.points, self.labels)))
            except PropoptError:  # such as infinite log-odds
                continue
        return found

    @property
    def W(self) -> Attributions:
        """The attributions."""
        return self.came.values

    @cached_property
    def known(self) -> Targets:
        """Shapley values against the background: exact, or drawn."""
        rule = ContributionRule(
            function=self.function,
            reference=self._reference,
            given_background=Background.of_points(self.background, self.weights),
            rng=self.seed,
        )
        return rule.of(self.points, self.labels)

    @cached_property
    def _reference(self) -> Reference:
        names = self.labels.of_columns()
        return Reference.of_points(self.background, names, self.function.schema)

    @property
    def is_exact(self) -> bool:
        """Whether they are."""
        return self.known.estimate.exact

    @property
    def E(self) -> Attributions:
        """The values themselves."""
        return self.known.estimate.values

    @cached_property
    def prediction(self) -> Values:
        """f(x), (N,)."""
        return self.function.value_at(self.points, self.labels)

    @cached_property
    def base(self) -> Array:
        """What came, or what most rows are added to, (N,)."""
        if self.came.base is not None:
            return self.came.base
        return np.full(len(self.W), np.median(self.prediction - self.W.sum(axis=1)))

    @cached_property
    def missed(self) -> Array:
        """Σ w − (f − base), (N,)."""
        return np.asarray(self.W.sum(axis=1) - (self.prediction - self.base))

    @cached_property
    def _rounded(self) -> tuple[Array, str]:
        """Half of the last digit of each number (N, D), and how many digits there are.

        Zero where numbers have all theirs.
        """
        V, size = self.V, max(float(np.abs(self.V).max()), 1e-300)
        for digits in range(-6, 7):
            half = 0.5 * 10.0**-digits
            if half > size:
                continue
            if np.abs(V - V.round(digits)).max() <= 1e-12 * size:
                return np.full(V.shape, half), plural(digits, "decimal")
        with np.errstate(divide="ignore"):
            power = np.floor(np.log10(np.abs(V), where=V != 0.0, out=np.zeros(V.shape)))
        for digits in range(1, 7):
            unit = 10.0 ** (power - digits + 1)
            if (np.abs(V - np.round(V / unit) * unit) <= 1e-9 * unit).all():
                return 0.5 * unit * (V != 0.0), plural(digits, "significant digit")
        return np.zeros(V.shape), ""

    @property
    def step(self) -> Array:
        """What rounding may have moved each number, (N, D)."""
        return self._rounded[0]

    @property
    def digits(self) -> str:
        """The digits that numbers were rounded to, in words."""
        return self._rounded[1]

    @cached_property
    def tolerance(self) -> float:
        """What differs by less is the same number, but for rounding."""
        f = self.prediction
        scale = max(float(np.ptp(f)), float(np.abs(self.W).max()), 1e-12)
        return _SAME * scale + _SINGLE * float(np.abs(f).max())

    @cached_property
    def read(self) -> SumOfProducts | None:
        """What the function is, compared with it; None where it is not read."""
        found = CheckedStructure.of(self.function, self.points.shape[1])
        read = found.at(self.points, self.labels)
        return None if isinstance(read, Reason) or not self.is_exact else read

    @cached_property
    def owners(self) -> list[ReferenceHypothesis]:
        """Whose values and bases they could be, the given background first."""
        background = Background.of_points(self.background, self.weights)
        return [
            *candidates(self.function, self.read, self.points, background, self.labels)
        ]

    @cached_property
    def knowns(self) -> list[ReferenceHypothesis]:
        """Sources with their values at all rows, the given background first."""
        given, *others = self.owners
        words = given.words + ("" if self.is_given else _THEMSELVES)
        room = self.tolerance + self.step
        return [
            replace(given, words=words, exact=self.E, room=room),
            *(replace(one, room=room) for one in others if one.exact is not None),
        ]

    @cached_property
    def mixture(self) -> Mixture | None:
        """The nearest values for any weighted background, fitted where rows add up."""
        return self.nearest_mixture(self.V)

    def nearest_mixture(self, V: Attributions) -> Mixture | None:
        """The same of values that add up as those that came do."""
        if self.read is None:
            return None
        schema, rows = self.function.schema, self.background
        if self.is_given:
            rows = np.concatenate([rows, self.points])
        categories = schema is not None and schema.categorical.any()
        made_up = [*made_up_rows(self.function, self.background).values()]
        if not categories and not np.isnan(rows).any():
            f = self.read.value(rows)
            halves = [rows[f > np.median(f)], rows[f <= np.median(f)]]
            made_up += [x.mean(axis=0, keepdims=True) for x in halves if len(x)]
            made_up.append(centres_of(rows[:_CLUSTERED], (2, 3, 5, 10)))
        good = np.flatnonzero(self.adds_up)
        others = np.concatenate(made_up)
        return mixture_of(self.read, self.points, V, good, rows, others)

    def room_beside(self, found: Mixture, V: Attributions) -> Array:
        """What may lie between right values and the mixture fitted to V, (N, D)."""
        V, fitted = V[self.adds_up], found.values[self.adds_up]
        usual = float(np.sqrt(((V - fitted) ** 2).mean()))
        size = float(np.sqrt((V**2).mean()))
        room = max(_OUTLYING * usual, _NOISE * size)
        return np.asarray(room + self.tolerance + self.step)

    def like_draws(self, errors: Array) -> float | None:
        """The number of orders whose mean has such errors; None of other errors."""
        if self.read is None:
            return None
        rng, rows, D = np.random.default_rng(self.seed), self.few, errors.shape[1]
        x, count = self.points[rows], max(10, min(60, 10_000 // (D + 1)))
        each = np.zeros((count, len(rows), D))
        for k in range(count):
            order = rng.permutation(D)
            at: Any = rng.integers(len(self.background), size=len(x))
            if self.weights is not None:
                at = rng.choice(len(self.background), len(x), p=self.weights)
            walk = self.background[at]
            before = self.read.value(walk)
            for column in order:
                walk[:, column] = x[:, column]
                after = self.read.value(walk)
                each[k, :, column] = after - before
                before = after
        own = each.var(axis=0)
        left = errors[rows] ** 2
        if not own.any() or not left.any():
            return None
        with np.errstate(invalid="ignore"):
            ranks = [np.argsort(np.argsort(v.ravel())) for v in (own, left)]
        if float(np.asarray(np.corrcoef(np.stack(ranks)))[0, 1]) < _ALIKE:
            return None
        return float(own.sum() / left.sum())

    @property
    def V(self) -> Attributions:
        """What is diagnosed."""
        return self.W

    @property
    def sums(self) -> Values:
        """Σ w − f, (N,)."""
        return np.asarray(self.V.sum(axis=1) - self.prediction)

    @cached_property
    def implied(self) -> Array:
        """The base that most rows add up to, (N,): that which came, or another."""
        own = self.came.base
        if own is not None and (np.abs(self.sums + own) <= self.room).mean() > MAJORITY:
            return own
        return np.full(len(self.V), -np.median(self.sums))

    @cached_property
    def adds_up(self) -> Mask:
        """Which rows add up to the prediction less that base, (N,)."""
        return np.asarray(np.abs(self.sums + self.implied) <= self.room)

    @property
    def counts_rows(self) -> bool:
        """Whether rows have no names but their places."""
        names = self.labels.points
        return names is None or list(names) == list(range(len(self.W)))

    @property
    def room(self) -> Values:
        """What rows that add up may miss by rounding, (N,)."""
        return np.asarray(self.tolerance + self.step.sum(axis=1))

    @cached_property
    def few(self) -> Indices:
        """Some of the rows."""
        return np.unique(np.linspace(0, len(self.W) - 1, _FEW).astype(np.intp))

    def place(self, n: int, j: int) -> str:
        """A row and a column in words."""
        names = self.labels.feature_names(self.W.shape[1])
        return f"row {self.row(n)}, {names[j]}"

    def row(self, n: int) -> str:
        """What the n-th row is called."""
        return str(self.labels.row(n))

    # ---- sizeable values, columns that are used

    @cached_property
    def cut(self) -> float:
        """|Value| from which it is sizeable."""
        return SIZEABLE * float(np.abs(self.W).max(axis=1).mean())

    def changed_signs(self, V: Attributions, W: Attributions) -> float:
        """The share of sizeable values of either whose sign is another."""
        sizeable = np.maximum(np.abs(V), np.abs(W)) > self.cut
        other = sizeable & (np.sign(V) != np.sign(W))
        return float(other.sum()) / max(int(sizeable.sum()), 1)

    @property
    def used(self) -> Mask:
        """Which columns the model asks for, where it is read, (D,)."""
        assert self.read is not None, "it is read"
        some = self.read.values != 0.0
        used = np.zeros(self.read.n_columns, bool)
        used[replace(self.read, paths=self.read.paths[some]).columns] = True
        return used

    # ---- rows that are similar

    def front(
        self, aim: Attributions, count: int | None = None
    ) -> FidelityRoughnessFront:
        """That of values, where so many neighbours are similar, without main effects."""
        graph = self.graph
        if graph is None:  # nearest neighbours in columns over their deviations
            sizes = sizes_of(self.function, self._reference, "std")
            where = coordinates_of(self.function, self.points, sizes)
            count = self.n_neighbors if count is None else count
            graph = knn_graph(where, min(count, len(where) - 1))
        G = self.main_effects.explanation.attributions
        return FidelityRoughnessFront(aim, PairwiseRobustness(graph, offset=G))

    @cached_property
    def main_effects(self) -> MainEffects:
        """G: what each column contributes by its value alone."""
        rows = Background.of_points(self.background, self.weights)
        if self.read is None:  # the model is asked
            rows = rows.thinned(N_BACKGROUND)
        return main_effects_of(self.function, self.points, self.labels, rows)

    @cached_property
    def own(self) -> FidelityRoughnessFront:
        """That of what came: what less roughness costs."""
        return self.front(self.W)

    @cached_property
    def true(self) -> FidelityRoughnessFront:
        """That of the exact values."""
        return FidelityRoughnessFront(self.E, self.own.robust)

    @property
    def has_neighbours(self) -> bool:
        """Whether there are similar rows, which differ in something."""
        return len(self.W) > 2 and self.own.plain > 0.0

    @property
    def is_compared(self) -> bool:
        """Whether something of that could go."""
        return self.has_neighbours and self.own.is_rough


SIZEABLE: Final = 0.1
"""Of the mean over rows of the largest |value|: smaller ones count as small."""
