"""What a law of LIME is: how samples are drawn, coded as bits and weighted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from propopt._typing import Points, Positions, Values
from propopt.errors import InvalidInput
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.draws import Draws, draw_samples, draw_weighted
from propopt.lime.laws.tilt import Tilt
from propopt.tables.alignment import order_of
from propopt.tables.names import Labels


class LimeLaw(ABC):
    """Independent columns, a bit for each, and weights that are products.

    A sample x̃ has bits z_j, 1 where it is in the bin of the row in column j, and the
    weight π = Π_j k_j. Under Q, the law of the samples weighted by π, columns are
    independent, so that weighted least squares of f on the bits tends to

    β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0],  β_0 = E_Q f − Σ_j α_j β_j,

    with α_j = Q(z_j = 1), for any f (after Garreau and von Luxburg 2020).

    Subclasses have ``columns`` (D,), the law of each; ``kernel_width``, ν; and
    ``labels``, the names of the columns.
    """

    columns: tuple[LimeColumn, ...]
    kernel_width: float
    labels: Labels

    @abstractmethod
    def with_width(self, kernel_width: float) -> Self:
        """The same law with another kernel width."""

    @property
    def method(self) -> str:
        """What it is called in files."""
        return type(self).__name__

    def widths(self, points: Points, widths: Values | None = None) -> Values:
        """Those given, or the law's own for each point, (n,)."""
        if widths is not None:
            return widths
        return np.full(len(points), self.kernel_width)

    def squared_widths(self, widths: Values) -> Values:
        """The widths of π², (n,): gaussian kernels of ν / √2."""
        return np.asarray(widths / np.sqrt(2.0))

    def aligned(self, labels: Labels, n_columns: int) -> Self:
        """This law of the columns of a table, in the order that they have there.

        Parameters
        ----------
        labels : Labels
            Names of its columns; where one side has none, position decides.
        n_columns : int
            D, of the table.

        Raises
        ------
        InvalidInput
            If the law has other columns.
        """
        if len(self.columns) != n_columns:
            raise InvalidInput(
                f"law: it has {len(self.columns)} columns, and X has {n_columns}"
            )
        own = self.labels.features
        order = order_of(own, labels.features, "law: its columns", "X")
        return self if order is None else self.reordered(order)

    @abstractmethod
    def reordered(self, order: Positions) -> Self:
        """The same law of columns in another order, (D,)."""

    def cells(self, points: Points) -> Points:
        """What the weighted law around each row depends on, besides the width, (n, D).

        Rows that are equal there have the same limits, and these are computed once. The
        rows themselves, if nothing better is known.
        """
        return points

    def tilts(self, points: Points, widths: Values) -> tuple[Tilt, ...]:
        """The weighted law of each column around rows, (D,)."""
        columns = zip(self.columns, points.T, strict=True)
        return tuple(column.tilt(x, widths) for column, x in columns)

    def log_weights(self, points: Points, widths: Values) -> Values:
        """Log C, the logarithm of the mean weight around rows, (n,)."""
        tilts = self.tilts(points, widths)
        return np.asarray(np.sum([tilt.log_weight for tilt in tilts], axis=0))

    def draw(
        self,
        points: Points,
        n_samples: int,
        rng: np.random.Generator,
        *,
        first_row: bool = False,
    ) -> Draws:
        """Samples of the law itself, with their bits and weights: what LIME draws.

        Parameters
        ----------
        points : array (n, D)
            The rows.
        n_samples : int
            S, for each row.
        rng : numpy.random.Generator
            Where the draws come from.
        first_row : bool
            Whether the first sample is the row itself with weight 1, as in the package.
        """
        widths = self.widths(points)
        draws = draw_samples(self.columns, points, widths, n_samples, rng)
        return draws.with_rows_first(points) if first_row else draws

    def draw_weighted(
        self, points: Points, n_samples: int, rng: np.random.Generator
    ) -> Draws:
        """Samples of Q, all with weight 1: the same limits, and less scatter."""
        return draw_weighted(self.columns, points, self.widths(points), n_samples, rng)

    def notes(self, points: Points) -> tuple[str, ...]:
        """What a reader of explanations of these rows has to know, a sentence each."""
        del points
        return ()
