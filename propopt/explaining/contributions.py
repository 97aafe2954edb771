"""Targets in units of the output: contributions that add up to f(x) less a base."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, final

import numpy as np

from propopt._typing import Array, Attributions, Points, Values
from propopt.checks import as_floats, read_rng
from propopt.errors import InvalidInput, Refused
from propopt.estimates import Estimate
from propopt.explaining.target import LawChoice, target_rule
from propopt.functions import Function
from propopt.functions.smoothing.checked import CheckedBoxes
from propopt.results.explanation import Explanation
from propopt.sampling.laws import Reference
from propopt.sampling.orders import Orders
from propopt.structures.boxes import Boxes
from propopt.structures.boxes.shapley import BoxShapley
from propopt.tables.alignment import aligned, is_shap
from propopt.tables.names import Labels


ContributionsLike: TypeAlias = Any
"""``"shapley"``, ``"slopes"``, or attributions given as a table or an explanation."""

N_BACKGROUND = 100
"""Rows of the reference table that stand for "feature unknown"."""

_FLOOR = 1e-6
"""Of the largest mean square of a column: less counts as this much in the metric."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """What each feature contributes to f(x) − base, as a target.

    Parameters
    ----------
    estimate : Estimate
        Φ (N, D), in units of the output.
    base : array (N,)
        What f is without x.
    prediction : array (N,)
        f(x).
    """

    estimate: Estimate
    base: Array
    prediction: Values

    @property
    def total(self) -> Array:
        """The totals t = f(x) − base, shape (N,)."""
        return self.prediction - self.base

    @property
    def missed(self) -> float:
        """rms(Φ1 − t)/rms(t): what contributions leave out; zero for Shapley values."""
        gap = np.linalg.norm(self.estimate.values.sum(axis=1) - self.total)
        size = np.linalg.norm(self.total)
        return float(gap / size) if size > 0.0 else float(gap > 0.0)

    def metric(self) -> Array:
        """ω_d = mean_n Φ_nd², at least 1e-6 of the largest, shape (D,)."""
        squares = (self.estimate.values**2).mean(axis=0)
        return np.maximum(squares, _FLOOR * (squares.max() or 1.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class ContributionRule:
    """How contributions are made of a function.

    Parameters
    ----------
    function : Function
        f.
    reference : Reference
        The rows that backgrounds, means and laws are made of.
    law : {"auto", "data", "gaussian", "none"}
        Of the slopes, if they are asked for.
    n_pairs : int
        Orders that are drawn for each point, where Shapley values are sampled.
    rng : int, numpy.random.Generator or None
        For all draws.
    """

    function: Function
    reference: Reference
    law: LawChoice = "auto"
    n_pairs: int = 100
    rng: int | np.random.Generator | None = None

    def of(self, X: Any, contributions: ContributionsLike) -> Contributions:
        """Those of the rows of X.

        Raises
        ------
        InvalidInput
            If ``contributions`` is no such name, and no table of the shape of X.
        """
        points, labels = self.function.read(X)
        if not isinstance(contributions, str):
            known = self.given(contributions, points, labels)
        elif contributions == "shapley":
            known = self.shapley(points, labels)
        elif contributions == "slopes":
            known = self.slopes(X, points, labels)
        else:
            raise InvalidInput(
                "contributions: expected 'shapley', 'slopes' or a table, got "
                f"{contributions!r}"
            )
        told = replace(known.estimate, quantity=self.function.quantity)
        return replace(known, estimate=told)

    def shapley(self, points: Points, labels: Labels) -> Contributions:
        """Shapley values against a sample of the reference rows: exact for trees."""
        generator = read_rng(self.rng)
        background = self._background(generator)
        before = self.function.calls.rows
        known = self._known(points, labels, self._base(background))
        exact = self._exact(points, labels, background)
        if exact is None:
            estimate = self._sampled(points, labels, background, known, generator)
        else:
            estimate = Estimate(
                values=exact,
                source=f"exact (TreeSHAP, {len(background)} background rows)",
                exact=True,
                labels=labels,
                units="output",
            )
        rows = self.function.calls.rows - before
        return replace(known, estimate=replace(estimate, evaluations=rows))

    def slopes(self, X: Any, points: Points, labels: Labels) -> Contributions:
        """Slopes times steps from the mean reference row; effects as they are."""
        ones = np.ones(points.shape[1])
        rule = target_rule(
            self.function, self.reference, ones, law=self.law, rng=self.rng
        )
        slopes = rule.of(X)
        steps = self._steps(points)
        known = self._known(points, labels, self._base(self.reference.points))
        estimate = replace(
            slopes,
            values=slopes.values * steps,
            blocks=None if slopes.blocks is None else slopes.blocks * steps,
            source=f"{slopes.source}, times steps from the mean",
            units="output",
        )
        return replace(known, estimate=estimate)

    def given(self, carrier: Any, points: Points, labels: Labels) -> Contributions:
        """Attributions made elsewhere, with their base where they know it."""
        phi = aligned(carrier, labels, "contributions", "X")
        if phi.shape != points.shape:
            raise InvalidInput(
                f"contributions: expected the shape of X, {points.shape}, got "
                f"{phi.shape}"
            )
        base = _base_of(carrier, len(points))
        if base is None:
            base = np.full(
                len(points), self._base(self._background(read_rng(self.rng)))
            )
        known = self._known(points, labels, base)
        return replace(
            known,
            estimate=Estimate(
                values=np.array(phi), source="given", labels=labels, units="output"
            ),
        )

    def _known(
        self, points: Points, labels: Labels, base: float | Array
    ) -> Contributions:
        """All but the contributions, which are zero."""
        zero = Estimate(
            values=np.zeros(points.shape), source="none", labels=labels, units="output"
        )
        return Contributions(
            estimate=zero,
            base=np.broadcast_to(base, len(points)).copy(),
            prediction=self.function.value_at(points, labels),
        )

    def _background(self, rng: np.random.Generator) -> Points:
        rows = self.reference.points
        if len(rows) <= N_BACKGROUND:
            return rows
        return rows[np.sort(rng.choice(len(rows), N_BACKGROUND, replace=False))]

    def _base(self, background: Points) -> float:
        names = self.reference.labels.of_columns()
        return float(self.function.value_at(background, names).mean())

    def _exact(
        self, points: Points, labels: Labels, background: Points
    ) -> Attributions | None:
        boxes: Boxes | None = CheckedBoxes.of(self.function).at(points, labels)
        if boxes is None:
            return None
        try:
            return BoxShapley.of(boxes, background).values(points)
        except Refused:  # paths of more columns than a word has bits
            return None

    def _sampled(
        self,
        points: Points,
        labels: Labels,
        background: Points,
        known: Contributions,
        rng: np.random.Generator,
    ) -> Estimate:
        """By drawn orders; each block adds up, for that is known of what is drawn."""
        value = partial(self.function.value_at, labels=labels.of_columns())
        orders = Orders(value=value, background=background, n_pairs=self.n_pairs)
        blocks = orders.blocks(points, rng)
        used = blocks.any(axis=(0, 1))
        missed = known.total - blocks.sum(axis=2)
        blocks += missed[:, :, None] * (used / max(int(used.sum()), 1))
        estimate = Estimate.of_blocks(
            blocks,
            source=f"orders of the features, {len(background)} background rows",
            n_draws=2 * self.n_pairs,
            labels=labels,
        )
        return replace(estimate, units="output")

    def _steps(self, points: Points) -> Array:
        """Of numbers x − mean; 1 for categories, and where a number is missing."""
        rows = self.reference.points
        there = ~np.isnan(rows)
        means = np.where(there, rows, 0.0).sum(axis=0)
        means /= np.maximum(there.sum(axis=0), 1)
        schema = self.function.schema
        numeric = ~np.isnan(points)
        if schema is not None:
            numeric &= ~schema.categorical
        return np.where(numeric, points - means, 1.0)


def _base_of(carrier: Any, n_points: int) -> Array | None:
    """The base values that an explanation knows."""
    base = None
    if isinstance(carrier, Explanation):
        base = carrier.details.get("base_value")
    elif is_shap(carrier):
        base = carrier.base_values
    if base is None:
        return None
    values = as_floats(base, "base_values")
    if values.ndim > 1 or values.size not in (1, n_points):
        raise InvalidInput(
            f"base_values: expected one number, or one for each of {n_points} rows, "
            f"got the shape {values.shape}"
        )
    return np.broadcast_to(values, n_points).copy()


FeatureMetric: TypeAlias = Literal["uniform", "effects"]
