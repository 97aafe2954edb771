"""What an audit knows: numbers and model, and whose values they could be.

Interventional Shapley values are exact here for whatever is a sum of products of
functions of one column (trees, kernel machines, additive models), so that others' are
compared with the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from scipy.special import expit, logit

from propopt.base.arrays import Array, Attributions, Points, Positions, Truths, Values
from propopt.base.checks import read_count, read_seed
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.explaining.carriers import Carried, CarrierLike, carried
from propopt.explaining.contributions import (
    N_BACKGROUND,
    ContributionRule,
    background_of,
)
from propopt.explaining.explainers.own_value import (
    OwnValues,
    own_values_of,
)
from propopt.explaining.nearest_front import NearestFront
from propopt.explaining.targets import Targets, coordinates_of, graph_of_rows, sizes_of
from propopt.explaining.sources import PATHS, Candidate, candidates
from propopt.functions import Function
from propopt.functions.means import Checked
from propopt.functions.outputs import Target
from propopt.functions.wrapping import KnownTable, wrapped_and_told
from propopt.laws.data_law import Reference
from propopt.losses import PairwiseRobustness
from propopt.losses.graphs.points import Graph, knn_graph
from propopt.results.certain import plural
from propopt.results.explanation import base_values_of
from propopt.structures.boosters import as_estimator, margins_of
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels, listed


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
) -> tuple[Function, KnownTable, str]:
    """The function whose parts they are, and its unit in words."""
    if output is not None and output not in _OUTPUTS:
        raise InvalidInput(
            f"output: expected one of {listed([*_OUTPUTS])}, got {output!r}"
        )
    if isinstance(model, Function):
        function, told = wrapped_and_told(model, X, target, "auto", data, None, outcome)
        own = function.quantity.kind
        if (output, own) == ("probability", "value"):
            return function, told, "probability"
        if output is not None and output != own:
            raise InvalidInput(
                f"output: the numbers are said to be {output!r}, but the function is "
                f"the {function.quantity}; wrap the model with output={output!r}; a "
                "booster's file has probabilities by output: value"
            )
        return function, told, _unit_of(function)
    estimator = as_estimator(model)
    has_probabilities = hasattr(estimator, "predict_proba")
    if output is None and (has_probabilities or margins_of(estimator) is not None):
        others = "'probability' or 'margin'" if has_probabilities else "'margin'"
        raise InvalidInput(
            "output: the model has several outputs, and the numbers do not say which; "
            f"give output='log_odds', {others}; shap.TreeExplainer gives log-odds of "
            "boosted classifiers of two classes, margins of those of several, and "
            "probabilities of forests"
        )
    said: list[str] = []
    for one in _OUTPUTS[output or "value"]:
        try:
            function, told = wrapped_and_told(
                model, X, target, one, data, None, outcome
            )
        except InvalidInput as error:
            said.append(str(error))
            continue
        own = function.quantity.kind
        if output is None or own == output or (output, own) == ("probability", "value"):
            words = "probability" if output == "probability" else _unit_of(function)
            return function, told, words
        said.append(
            f"output: {function.quantity.model} has a {own}, and no {output!r}"
        )
    raise InvalidInput(said[0])


def _unit_of(function: Function) -> str:
    """What numbers are of, behind a number."""
    noun = function.quantity.noun
    return "units of the prediction" if noun == "prediction" else noun


def _position(model: Any, function: Function) -> int | None:
    """The place of the class that is explained, where there are several."""
    labels = getattr(model, "classes_", None)
    if labels is None:
        return function.quantity.position
    known = np.asarray(labels).tolist()
    label = function.quantity.label
    return known.index(label) if label in known else None


_OF_ANOTHER: Final = 1e-3
"""Of the spread of predictions: rows that miss by so little are parts of these."""


def _scatter(misses: Values) -> float:
    """How far from their median most are: a few rows that are wrong tell nothing."""
    return float(np.median(np.abs(misses - np.median(misses))))


# ---- What is known of the numbers and the model, computed when a question needs it


SIZEABLE: Final = 0.1
"""Of the mean over rows of the largest |value|: smaller ones count as small."""

_SAME: Final = 1e-5
"""Of the range of predictions, or the largest value: less is the same number."""


_OTHER_NEIGHBORS: Final = (4, 16)
"""How many are tried besides."""


_FEW: Final = 20
"""Rows at which it is asked whose values they are."""

_MOST: Final = 0.5
"""Of rows or values: what holds of more is told; the others are told as wrong."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Audited:
    """Attributions that came, the model, its rows and background."""

    came: Carried  # W (N, D), and the base that came with it
    function: Function  # f
    unit: str  # what numbers are of, in words
    points: Points  # (N, D)
    background: Points  # (B, D)
    labels: Labels
    graph: Graph | None  # who is similar, where that is given
    n_neighbors: int
    seed: int
    is_given: bool  # the background; else it is the audited rows

    @classmethod
    def of(
        cls,
        attributions: CarrierLike,
        model: Any,
        X: Any,
        data: Any,
        output: str | None,
        base: Any,
        target: Target,
        outcome: str | None,
        graph: Graph | None,
        n_neighbors: int,
        rng: int | None,
    ) -> Audited:
        """What :func:`propopt.audit` is given, read and aligned."""
        function, told, words = _explained(model, X, data, output, target, outcome)
        points, labels = told.read(function, X, "X")
        rows = points if data is None else told.read(function, data, "data")[0]
        if graph is not None:
            graph_of_rows(graph, len(points))
        position = _position(model, function)
        came = carried(attributions, labels, points.shape, position=position)
        if base is not None:
            came = replace(came, base=base_values_of(base, len(points)))
        own = cls(
            came=came,
            function=function,
            unit=words,
            points=points,
            background=rows,
            labels=labels,
            graph=graph,
            n_neighbors=read_count(n_neighbors, "n_neighbors"),
            seed=read_seed(rng),
            is_given=data is not None,
        )
        own._refuse_other_units()
        return own

    def _refuse_other_units(self) -> None:
        """Refuse parts of what rows add up to, if they were said to be of another."""
        f, sums = self.prediction, self.W.sum(axis=1)
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
        }
        for other, values, advice in others.get(kind, []):
            if not np.isfinite(values).all() or not np.ptp(values):
                continue
            fits = _scatter(sums - values) <= _OF_ANOTHER * float(values.std())
            if fits and _scatter(sums - f) > _OF_ANOTHER * float(f.std()):
                raise InvalidInput(
                    f"output: the rows add up to the {other}, and not to the {self.unit} "
                    f"as was said; {advice}"
                )

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
            background=self.background,
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
    def step(self) -> float:
        """Half of the last digit that was written; 0 of numbers with all theirs."""
        sizes = max(float(np.abs(self.W).max()), 1e-300)
        for digits in range(7):
            if np.abs(self.W - self.W.round(digits)).max() <= 1e-12 * sizes:
                return 0.5 * 10.0**-digits if digits > 1 else 0.0
        return 0.0

    @cached_property
    def tolerance(self) -> float:
        """What differs by less is the same number."""
        scale = max(float(np.ptp(self.prediction)), float(np.abs(self.W).max()))
        return _SAME * max(scale, 1e-12) + self.step

    @cached_property
    def cut(self) -> float:
        """|Value| from which it is sizeable."""
        return SIZEABLE * float(np.abs(self.W).max(axis=1).mean())

    def changed_signs(self, V: Attributions, W: Attributions) -> float:
        """The share of sizeable values of either whose sign is another."""
        sizeable = np.maximum(np.abs(V), np.abs(W)) > self.cut
        other = sizeable & (np.sign(V) != np.sign(W))
        return float(other.sum()) / max(int(sizeable.sum()), 1)

    @cached_property
    def read(self) -> SumOfProducts | None:
        """What the function is, compared with it; None where it is not read."""
        found = Checked.of(self.function, self.points.shape[1])
        read = found.at(self.points, self.labels)
        return None if isinstance(read, Reason) or not self.is_exact else read

    @cached_property
    def owners(self) -> list[Candidate]:
        """Whose values and bases they could be, the given background first."""
        return [
            *candidates(
                self.function, self.read, self.points, self.background, self.labels
            )
        ]

    @cached_property
    def owner(self) -> tuple[Candidate, Attributions] | None:
        """Whose values most of them are; None where of nobody that is known."""
        if self.is_exact and self.same(self.E).all():
            return self.owners[0], self.E
        best, found = _MOST, None
        for one, values in self.tried:
            share = float((np.abs(self.W[self.few] - values) <= self.tolerance).mean())
            if share > best:
                best, found = share, one
        if found is None or found.values is None:
            return None
        is_ours = found is self.owners[0] and self.is_exact
        return found, self.E if is_ours else found.values(self.points)

    @cached_property
    def is_owned(self) -> bool:
        """Whether all of them are values of somebody that is known."""
        return self.owner is not None and bool(self.same(self.owner[1]).all())

    @property
    def compared(self) -> str:
        """What kind of values they are compared with."""
        return "exact" if self.is_exact else "drawn"

    @cached_property
    def aim(self) -> Attributions:
        """What signs and ranks should be: of slips, those of whose values they are."""
        is_slip = self.is_exact and self.owner is not None and not self.is_owned
        return self.owner[1] if is_slip and self.owner is not None else self.E

    @property
    def whose(self) -> str:
        """For which rows the exact values are, where others could be exact, too."""
        if not self.is_exact:
            return ""
        if not self.is_given:
            return " for the audited rows"
        if self.owner is None or self.owner[0] is self.owners[0]:
            return ""
        return " for the background"

    @property
    def counts_rows(self) -> bool:
        """Whether rows have no names but their places."""
        names = self.labels.points
        return names is None or list(names) == list(range(len(self.W)))

    @property
    def is_of_paths(self) -> bool:
        """Whether most of them are path-dependent values, which have no background."""
        return self.owner is not None and self.owner[0].words == PATHS

    @cached_property
    def is_wrong(self) -> bool:
        """Whether a slip is known, such as columns in each other's place."""
        slips = self.owner is not None and not (self.is_owned or self.is_ours)
        return self.is_exact and (slips or self.slip is not None)

    @cached_property
    def is_open(self) -> bool:
        """Whether they may be exact for a background that was not given."""
        unknown = self.owner is None and self.slip is None
        adds_up = float((np.abs(self.missed) <= self.room).mean()) > _MOST
        return self.is_exact and not self.is_given and unknown and adds_up

    @property
    def room(self) -> float:
        """What rows that add up may miss by rounding."""
        return self.tolerance + self.step * self.W.shape[1]

    @cached_property
    def few(self) -> Positions:
        """Some of the rows, at which all owners are asked."""
        return np.unique(np.linspace(0, len(self.W) - 1, _FEW).astype(np.intp))

    @cached_property
    def tried(self) -> list[tuple[Candidate, Attributions]]:
        """Owners with their values at the few rows (n, D)."""
        rows = self.points[self.few]
        return [(x, x.values(rows)) for x in self.owners if x.values is not None]

    @cached_property
    def slip(self) -> tuple[str, str] | None:
        """What happened to somebody's values as a whole, and what to do about it."""
        moved = self._moved
        if moved is not None:
            return moved, "Put the columns in the order of the table, then audit again."
        if self.owner is not None:
            return None
        for one, values in self.tried:
            turned = np.abs(self.W[self.few] + values) <= self.tolerance
            if turned.mean() > _MOST:
                told = f"All signs are turned, as of the other class: of {one.words}."
                return told, "Turn all signs, that of the base too, then audit again."
            apart = np.abs(self.W[None] - values[:, None]).max(axis=2)  # (n, N)
            place, found = apart.argmin(axis=1), apart.min(axis=1) <= self.tolerance
            stays = apart[np.arange(len(place)), self.few] <= self.tolerance
            if found.mean() > _MOST and not stays[found].all():
                n = int(np.flatnonzero(found & ~stays)[0])
                told = (
                    f"Rows stand in another's place: row {self.row(int(place[n]))} "
                    f"holds the values of row {self.row(int(self.few[n]))}."
                )
                return told, "Put the rows in the order of the table, then audit again."
        return None

    @property
    def _moved(self) -> str | None:
        """Whether columns stand in each other's place, in a sentence."""
        names = self.labels.feature_names(self.W.shape[1])
        for _, values in self.tried:
            apart = np.abs(self.W[self.few][:, :, None] - values[:, None, :])
            fits = (apart <= self.tolerance).mean(axis=0)  # shares of rows (D, D)
            # columns of zeros fit each other, and are in their place
            stays = np.diag(fits) == fits.max(axis=1)
            place = np.where(stays, np.arange(len(fits)), fits.argmax(axis=1))
            if fits.max(axis=1).min() <= _MOST or len(set(place)) < len(place):
                continue
            wrong = np.flatnonzero(place != np.arange(len(place)))
            if len(wrong):
                j = int(wrong[0])
                return (
                    f"{plural(len(wrong), 'column')} stand in another's place: "
                    f"{names[j]} holds the values of {names[place[j]]}."
                )
        return None

    @property
    def used(self) -> Truths:
        """Which columns the model asks for, where it is read, (D,)."""
        assert self.read is not None, "it is read"
        read = self.read
        kept = read.paths[read.values != 0.0] if len(read.values) else read.paths
        columns: Positions = np.concatenate(
            [np.zeros(0, np.intp), *(family.column for family in read.factors)]
        )
        used = np.zeros(read.n_columns, bool)
        used[columns[np.unique(kept[kept >= 0])]] = True
        return used

    def same(self, values: Attributions) -> Truths:
        """Where the attributions are these values, (N, D)."""
        return np.asarray(np.abs(self.W - values) <= self.tolerance)

    # ---- rows that are similar

    def similar(self, count: int | None = None) -> Graph:
        """The given graph, or nearest neighbours in columns over their deviations."""
        if self.graph is not None:
            return self.graph
        sizes = sizes_of(self.function, self._reference, "std")
        where = coordinates_of(self.function, self.points, sizes)
        asked = self.n_neighbors if count is None else count
        return knn_graph(where, min(asked, len(where) - 1))

    @cached_property
    def own_values(self) -> OwnValues:
        """G: what each column contributes by its value alone."""
        rows = self.background
        if self.read is None:  # the model is asked
            rows = background_of(rows, N_BACKGROUND, self.seed)
        size = f"{len(rows):,} rows of the background"
        return own_values_of(self.function, self.points, self.labels, rows, size)

    def front(self, aim: Attributions, count: int | None = None) -> NearestFront:
        """That of values, where so many neighbours are similar, beside own values."""
        G = self.own_values.attributions
        return NearestFront(aim, PairwiseRobustness(self.similar(count), beside=G))

    @cached_property
    def own(self) -> NearestFront:
        """That of what came: what less roughness costs."""
        return self.front(self.W)

    @cached_property
    def true(self) -> NearestFront:
        """That of the exact values."""
        return NearestFront(self.E, self.own.robust)

    @cached_property
    def others(self) -> dict[int, NearestFront]:
        """The same with fewer and with more neighbours; none of a given graph."""
        counts = () if self.graph is not None else _OTHER_NEIGHBORS
        fronts = {count: self.front(self.W, count) for count in counts}
        return {count: one for count, one in fronts.items() if one.plain > 0.0}

    @property
    def has_neighbours(self) -> bool:
        """Whether there are similar rows, which differ in something."""
        return len(self.W) > 2 and self.own.plain > 0.0

    @property
    def is_compared(self) -> bool:
        """Whether something of that could go."""
        return self.has_neighbours and self.own.is_rough

    @cached_property
    def is_ours(self) -> bool:
        """Whether what came, made complete, is the exact values."""
        nearest = self.true.completed(self.W)
        return bool((np.abs(nearest - self.E) <= self.tolerance).all())

    def place(self, n: int, j: int) -> str:
        """A row and a column in words."""
        names = self.labels.feature_names(self.W.shape[1])
        return f"row {self.row(n)}, {names[j]}"

    def row(self, n: int) -> str:
        """What the n-th row is called."""
        return str(self.labels.row(n))
