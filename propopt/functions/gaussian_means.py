"""Smoothed functions: means under gaussian noise, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import row_blocks
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.functions.differences import missing_rows, refuse_missing
from propopt.functions.function import DerivedFunction, Function
from propopt.functions.means import EXACT_SOURCE, CheckedStructure
from propopt.functions.models import CATEGORY_EFFECT
from propopt.laws.data_law import Means, NoiseLaw
from propopt.laws.draws import N_BLOCKS
from propopt.laws.perturbations import AntitheticPairs
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import ClosedFactors
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.columns import CategoricalColumn, observed_values_of
from propopt.tables.frames import Labels


Effects: TypeAlias = tuple[int, slice | NDArray[np.intp], Array]
"""A column, some of the rows, and its effects there over each pair (n, S)."""

_NONE = np.zeros(0, dtype=np.intp)


def _slopes(
    pairs: AntitheticPairs,  # S pairs
    odd: Array,  # (n, S): (f(x + e_s) − f(x − e_s))/2
    effects: Sequence[Effects],  # of categories and missing numbers
    left_out: NDArray[np.intp],  # some of the pairs
) -> Attributions:
    """Slopes and effects at n rows, (n, D), without some of the pairs."""
    slopes = pairs.slopes(odd, left_out)
    for column, rows, changes in effects:
        slopes[rows, column] = np.delete(changes, left_out, axis=1).mean(axis=1)
    return slopes


Evaluate: TypeAlias = Callable[[Points], Values]


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class SmoothedFunction(DerivedFunction):
    """The mean of a function under noise, f_δ(x) = E f(x + δ ∘ ε), ε ~ N(0, I).

    It is smooth for any f, and its gradient needs only values of f: Stein's identity
    with antithetic pairs is

    ∇f_δ(x) = E [(f(x + δε) − f(x − δε)) ε / 2δ].

    Over S pairs this mean is estimated by the least squares fit of the odd differences
    (f(x + δε_s) − f(x − δε_s)) / 2 by a linear function of δε_s, which is the mean with
    the linear part of f as control variate: linear functions have no sampling error.
    The pairs are the same for all points and in all calls, so that the function is
    deterministic, and differences between points are not noise. If the function is a
    sum of products (``function.products``) of indicators, as trees are, bumps, powers
    and exponentials, value and gradient are exact, without draws.

    The gradient of a categorical column is the effect of its category on the smoothed
    value, f_δ(x) − Σ_c p_c f_δ(x with c); only numeric columns get noise. A missing
    number gets no noise either, and its gradient is the effect
    f_δ(x) − Σ_v p_v f_δ(x with v) over the observed values v: one of them is drawn for
    each pair. Make it by :func:`smoothed`.

    Parameters
    ----------
    function : Function
        The function f.
    scale : array (D,) or ()
        δ > 0; 0 leaves a column as it is, and its slope is 0.
    n_samples : int
        The number S of pairs.
    seed : int
        The seed of the draws.
    """

    function: Function
    scale: Array
    n_samples: int
    seed: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, {self._settings})"

    @property
    def gradient_method(self) -> str:
        """How gradients are computed: exactly, or by sampling with Stein's identity."""
        if isinstance(self.checked.structure, SumOfProducts):
            return f"{EXACT_SOURCE}, gaussian noise, scale={self._scale_in_words}"
        rule = f"Stein's identity over antithetic pairs, {self._settings}"
        if self.schema is None or not self.schema.categorical.any():
            return rule
        return f"{rule}; {CATEGORY_EFFECT}"

    @cached_property
    def checked(self) -> CheckedStructure:
        """The function as a sum of products, if all means have a closed form."""
        structure = self.function.products
        if isinstance(structure, SumOfProducts):
            closed = [
                isinstance(family, Sets | ClosedFactors) for family in structure.factors
            ]
            if not all(closed):
                structure = Reason(f"{self.function!r} has means without a closed form")
        return CheckedStructure(self.function, structure)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        if self._exact(points, labels) is None:
            return self._estimate(points, labels)
        return Estimate(
            values=self.gradient_at(points, labels),
            source=EXACT_SOURCE,
            exact=True,
            labels=labels,
            effects=self.effects_at(points),
        )

    def _value(self, points: Points, labels: Labels, /) -> Values:
        exact = self._exact(points, labels)
        if exact is not None:
            return exact.of(points)[0]
        evaluate = self._evaluator("perturbed points", labels)
        pairs = self._pairs(points.shape[1])
        values = np.empty(len(points))
        for rows in row_blocks(len(points), self.n_samples, copies=2):
            values[rows] = _even(*pairs.sides(evaluate, points[rows])).mean(axis=1)
        return values

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        self._refuse_missing(points, labels)
        exact = self._exact(points, labels)
        if exact is not None:
            return exact.of(points)[1]
        slopes = np.empty(points.shape)
        for rows, slopes_without in self._drawn(points, labels):
            slopes[rows] = slopes_without(_NONE)
        return slopes

    def _estimate(self, points: Points, labels: Labels) -> Estimate:
        """The slopes, and blocks by leaving out a tenth of the pairs at a time."""
        self._refuse_missing(points, labels)
        before = self.calls.rows
        slopes = np.empty(points.shape)
        without = np.empty((N_BLOCKS, *points.shape))
        tenths = np.array_split(np.arange(self.n_samples), N_BLOCKS)
        for rows, slopes_without in self._drawn(points, labels):
            slopes[rows] = slopes_without(_NONE)
            for block, pairs in zip(without, tenths, strict=True):
                block[rows] = slopes_without(pairs)
        # pseudo-values of the jackknife
        blocks = slopes - (N_BLOCKS - 1) * (without - without.mean(axis=0))
        enough = self.n_samples >= N_BLOCKS
        return Estimate(
            values=slopes,
            source=self.gradient_method,
            blocks=blocks if enough else None,
            n_draws=2 * self.n_samples,
            evaluations=self.calls.rows - before,
            labels=labels,
            effects=self.effects_at(points),
        )

    def _drawn(
        self, points: Points, labels: Labels
    ) -> Iterator[tuple[slice, Callable[[NDArray[np.intp]], Attributions]]]:
        """Blocks of rows, with their slopes as a function of the pairs left out."""
        evaluate = self._evaluator("perturbed points", labels)
        pairs = self._pairs(points.shape[1])
        for rows in row_blocks(len(points), self.n_samples, copies=4):
            ahead, behind = pairs.sides(evaluate, points[rows])
            effects = self._effects(evaluate, points[rows], _even(ahead, behind), pairs)
            yield rows, partial(_slopes, pairs, 0.5 * (ahead - behind), list(effects))

    def _refuse_missing(self, points: Points, labels: Labels) -> None:
        if self.function.observed is None:
            refuse_missing(points, self.missing_columns(points, labels), repr(self))

    def _effects(
        self, evaluate: Evaluate, points: Points, even: Array, pairs: AntitheticPairs
    ) -> Iterator[Effects]:
        """Effects of categories, and of missing numbers."""
        columns = () if self.schema is None else self.schema.columns
        for j, column in enumerate(columns):
            if not isinstance(column, CategoricalColumn):
                continue
            effects = np.zeros(even.shape)
            for code, share in enumerate(column.frequencies):
                # Σ_c p_c = 1, and the present category contributes nothing
                others = (points[:, j] != code) & (share > 0.0)
                changed = points[others]
                changed[:, j] = code
                with_code = _even(*pairs.sides(evaluate, changed))
                effects[others] += share * (even[others] - with_code)
            yield j, slice(None), effects
        for j, rows in missing_rows(points):
            atoms = observed_values_of(self.function.observed or (), j)
            if len(atoms.values) == 0:
                yield j, rows, np.zeros((len(rows), self.n_samples))
                continue
            rng = np.random.default_rng((self.seed, j))
            values = rng.choice(atoms.values, self.n_samples, p=atoms.shares)
            instead = _even(*pairs.sides(evaluate, points[rows], {j: values}))
            yield j, rows, even[rows] - instead

    def _exact(self, points: Points, labels: Labels) -> Means | None:
        """Exact means of the function's structure, once it agrees with the model."""
        agrees = isinstance(self.checked.at(points, labels), SumOfProducts)
        return self._means if agrees else None

    @cached_property
    def _means(self) -> Means:
        structure = self.checked.structure
        assert isinstance(structure, SumOfProducts), "it agrees with the model"
        return Means(structure, self._law(structure.n_columns))

    def _law(self, n_features: int) -> NoiseLaw:
        columns = (None,) * n_features if self.schema is None else self.schema.columns
        shares = tuple(
            column.frequencies if isinstance(column, CategoricalColumn) else None
            for column in columns
        )
        return NoiseLaw(self._widths(n_features), shares, self.function.observed)

    def _pairs(self, n_features: int) -> AntitheticPairs:
        """The antithetic pairs, equal in every call."""
        widths = self._widths(n_features)
        moved = widths > 0.0
        if self.schema is not None:
            moved &= ~self.schema.categorical
        rng = np.random.default_rng(self.seed)
        noise = widths * rng.standard_normal((self.n_samples, n_features))
        return AntitheticPairs(noise * moved, moved)

    def _widths(self, n_features: int) -> Array:
        """The scale of each feature, shape (D,)."""
        if self.scale.ndim == 1 and len(self.scale) != n_features:
            raise InvalidInput(
                f"scale: expected one number, or {n_features}, one for each column of "
                f"X, got {len(self.scale)}"
            )
        return np.broadcast_to(self.scale, n_features)

    @property
    def _settings(self) -> str:
        return f"scale={self._scale_in_words}, n_samples={self.n_samples}"

    @property
    def _scale_in_words(self) -> str:
        return f"{self.scale:.4g}" if self.scale.ndim == 0 else "per feature"


def _even(ahead: Array, behind: Array) -> Array:
    return 0.5 * (ahead + behind)
