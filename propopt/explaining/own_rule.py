"""How own values of any row are made: centred partial dependence over a background.

g_j(x) = mean_b f(x_j, b elsewhere) − mean_b f(b). Of a sum of products Σ_l v_l Π_u g_u
it is Σ_{u of j} c_u g_u(x_j) less its mean, with c_u = mean_b Σ_{l with u} v_l Π_{w≠u}
g_w(b), exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.functions import Function
from propopt.functions.means import Checked
from propopt.laws.background import Background
from propopt.laws.perturbations import PERTURBED_POINTS
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


@final
@dataclass(frozen=True, eq=False)
class OwnValueRule:
    """How own values of any row are made, with the means that all rows share."""

    function: Function  # f
    background: Background
    checked: Checked  # what f is read as

    @classmethod
    def of(cls, function: Function, background: Background, labels: Labels) -> Self:
        """Of a function that is compared with what it is read as, on its background."""
        checked = Checked.of(function, background.points.shape[1])
        checked.at(background.points, labels.of_columns())
        return cls(function, background, checked)

    @property
    def by(self) -> str:
        """Where they come from."""
        is_read = isinstance(self.checked.read, SumOfProducts)
        return "read from the model" if is_read else "by its answers"

    def at(self, points: Points, labels: Labels) -> Attributions:
        """G (N, D); of f that is read the same for a row whatever stands beside it."""
        read = self.checked.at(points, labels)
        if isinstance(read, SumOfProducts):
            return self._of_products(read, points)
        names = labels.of_columns()
        G = replaced(
            lambda x, _: self.function.value_at(x, names),
            points,
            self.background.points,
        )
        return np.asarray(G - self._base)

    @cached_property
    def _base(self) -> float:
        return float(self.function.value_at(self.background.points, Labels()).mean())

    @cached_property
    def _shared(self) -> tuple[Array, Array]:
        """Of each factor u its mean slope c_u, and the mean of slope times factor."""
        read, rows = self.checked.read, self.background.points
        assert isinstance(read, SumOfProducts), "it is read"
        c, mean = np.zeros((2, read.n_factors))
        for _, known in read.factors_at(rows):
            slopes = read.slopes(known)[1]
            c += slopes.sum(axis=1) / len(rows)
            mean += (slopes * known).sum(axis=1) / len(rows)
        return c, mean

    def _of_products(self, read: SumOfProducts, points: Points) -> Attributions:
        """Σ_{u of j} c_u g_u(x_j) less its mean over the background, exactly."""
        c, mean = self._shared
        G = np.zeros(points.shape)
        for j, numbers, factors in read.by_column:
            distinct, place = distinct_values(points[:, j])
            # sums along rows of their own: no product of matrices, which adds in
            # another order for other numbers of rows
            parts = np.ascontiguousarray((c[numbers][:, None] * factors.at(distinct)).T)
            G[:, j] += (parts.sum(axis=1) - mean[numbers].sum())[place]
        return G


def distinct_values(values: Values) -> tuple[Values, Positions]:
    """The distinct values of a column, missing ones as one, and where each stands."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(values.shape)


def replaced(
    ask: Callable[[Points, int], Values], points: Points, background: Points
) -> Attributions:
    """The mean over the background with each column's value of each point, (N, D)."""
    G = np.empty(points.shape)
    for j in range(points.shape[1]):
        distinct, place = distinct_values(points[:, j])
        means = np.empty(len(distinct))
        for some in PERTURBED_POINTS.blocks(len(distinct), 8 * background.size):
            rows = np.repeat(background[None], len(distinct[some]), axis=0)
            rows[:, :, j] = distinct[some, None]
            asked = ask(rows.reshape(-1, rows.shape[2]), j)
            means[some] = asked.reshape(rows.shape[:2]).mean(axis=1)
        G[:, j] = means[place]
    return G
