"""Where the bins of rows lie, and the normal law of weighted samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.errors import InvalidInput
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.gaussian import GaussianLaw, NormalColumn
from propopt.lime.laws.glime import GlimeLaw
from propopt.tables.names import Labels, read_points


class Near(NamedTuple):
    """Rows among their bins, (n, D) each, NaN where a value is not a number."""

    low: Array
    """q⁻."""

    high: Array
    """q⁺."""

    mean: Array
    """μ̃ = (ν²μ + σ²ξ) / (ν² + σ²)."""

    deviation: Array
    """σ̃ = νσ / √(ν² + σ²)."""

    log_weight: Array
    """log c_j."""


@final
@dataclass(frozen=True, eq=False)
class Geometry:
    """The numbers of a gaussian law, by columns, for closed forms.

    Parameters
    ----------
    law : GaussianLaw
        The law.
    normal : array of bool (D,)
        Which columns are of normal numbers that are never missing.
    mean, scale : array (D,)
        μ and σ; NaN for other columns.
    width : array (D,)
        u_j ν, the width of the kernel in units of the column.
    """

    law: GaussianLaw
    normal: Truths
    mean: Array
    scale: Array
    width: Array

    @classmethod
    def of(cls, law: LimeLaw) -> Geometry:
        """That of a gaussian law, or of GLIME's law of one."""
        gaussian = gaussian_of(law)
        columns = [
            column
            if isinstance(column, NormalColumn) and column.missing == 0.0
            else None
            for column in gaussian.columns
        ]
        rows = [
            (np.nan, np.nan, np.nan)
            if column is None
            else (column.mean, column.scale, column.unit * law.kernel_width)
            for column in columns
        ]
        normal = np.array([column is not None for column in columns])
        return cls(gaussian, normal, *np.array(rows).T)

    def ends(self, points: Points) -> tuple[Array, Array]:
        """q⁻ and q⁺ of the bins of rows, (n, D)."""
        low, high = np.full((2, *points.shape), np.nan)
        for j, column in enumerate(self.law.columns):
            if self.normal[j] and isinstance(column, NormalColumn):
                known = ~np.isnan(points[:, j])
                place = column.place(points[known, j])
                low[known, j] = column.ends[place]
                high[known, j] = column.ends[place + 1]
        return low, high

    def near(self, points: Points) -> Near:
        """Rows (n, D) among their bins, under the weighted law."""
        total = self.width**2 + self.scale**2
        mean = (self.width**2 * self.mean + self.scale**2 * points) / total
        deviation = self.width * self.scale / np.sqrt(total)
        apart = (points - self.mean) ** 2 / total
        return Near(
            *self.ends(points),
            mean,
            np.broadcast_to(deviation, points.shape),
            -0.5 * (np.log1p((self.scale / self.width) ** 2) + apart),
        )


def gaussian_of(law: LimeLaw) -> GaussianLaw:
    """The law whose samples are normal, refused if there is none."""
    inner = law.law if isinstance(law, GlimeLaw) else law
    if not isinstance(inner, GaussianLaw):
        raise InvalidInput(
            f"law: expected a GaussianLaw, or a GlimeLaw of one, got {law.method}"
        )
    return inner


def rows_of_law(law: LimeLaw, X: Any) -> tuple[LimeLaw, Points, Labels]:
    """Rows with their names, and the law of their columns, in the order of X.

    Raises
    ------
    InvalidInput
        If X is no table of the law's columns.
    """
    points, labels = read_points(X, "X")
    own = law.aligned(labels, points.shape[1])
    return own, points, labels.or_else(own.labels)
