"""GLIME: samples of the weighted neighbourhood itself, with weights of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from propopt._typing import Array, Points, Positions, Values
from propopt.errors import InvalidInput
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.tilt import Tilt
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, eq=False)
class GlimeColumn:
    """A column drawn from its weighted law Q_j, and not weighted any more.

    Parameters
    ----------
    column : LimeColumn
        The column that Q_j is made of.
    kernel_width : float
        ν, the width of Q_j where samples are drawn.
    """

    column: LimeColumn
    kernel_width: float

    @property
    def bins(self) -> Sequence[str]:
        """Those of the column."""
        return self.column.bins

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,)."""
        return self.column.place(x)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """Q_j, with C = 1; of the law's own width where they are infinite."""
        own = np.where(np.isinf(widths), self.kernel_width, widths)
        return replace(self.column.tilt(x, own), log_weight=np.zeros(len(x)))

    def log_kernel(
        self, x: Array | float, values: Array, bits: Array, width: Array | float
    ) -> Array:
        """Zeros: all weights are one."""
        del x, bits, width
        return np.zeros(values.shape)


def without_glime(column: LimeColumn) -> LimeColumn:
    """The column that a neighbourhood is made of, where it is one.

    Both have the same limits, as they have the same weighted law.
    """
    return column.column if isinstance(column, GlimeColumn) else column


@final
@dataclass(frozen=True, eq=False, repr=False)
class GlimeLaw(LimeLaw):
    """The neighbourhood that another law makes by weights, drawn directly.

    LIME draws from P and weights by π; this law draws from Q ∝ π P, with weights of one
    (Tan, Tian and Li 2023, "GLIME", arXiv 2311.15722). It has the limits of the other
    law, whatever f is, and none of its waste: the n samples count as n, where weighted
    ones count as n C(ν)² / E π², which falls exponentially with the number of columns.

    Parameters
    ----------
    law : LimeLaw
        Any other law.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.lime import GaussianLaw
    >>> law = GlimeLaw(GaussianLaw.of(np.zeros(10), scale=1.0, kernel_width=0.5))
    >>> draws = law.draw(np.zeros((1, 10)), 100, np.random.default_rng(0))
    >>> bool((draws.weights == 1.0).all())
    True
    """

    law: LimeLaw
    columns: tuple[GlimeColumn, ...] = field(init=False)
    kernel_width: float = field(init=False)
    labels: Labels = field(init=False)

    def __post_init__(self) -> None:
        law = self.law
        if isinstance(law, GlimeLaw):
            raise InvalidInput("law: expected another law of LIME, got a GlimeLaw")
        if not isinstance(law, LimeLaw):
            raise InvalidInput(
                "law: expected another law of LIME, such as TabularLaw.from_data(X), "
                f"got {type(law).__name__}"
            )
        width = law.kernel_width
        columns = tuple(GlimeColumn(column, width) for column in law.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "kernel_width", width)
        object.__setattr__(self, "labels", law.labels)

    def with_width(self, kernel_width: float) -> GlimeLaw:
        """The neighbourhood of another width."""
        return GlimeLaw(self.law.with_width(kernel_width))

    def squared_widths(self, widths: Values) -> Values:
        """The same: all weights are one."""
        return widths

    def reordered(self, order: Positions) -> GlimeLaw:
        """The neighbourhood of the law in another order."""
        return GlimeLaw(self.law.reordered(order))

    def cells(self, points: Points) -> Points:
        """Those of the law."""
        return self.law.cells(points)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Those of the law."""
        return self.law.notes(points)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.law!r})"
