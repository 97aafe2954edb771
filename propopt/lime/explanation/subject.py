"""What LIME is asked about: a function, a law, rows; kept so that more can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Points, Values
from propopt.functions import Function
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.explanation.estimated import Estimated, estimate
from propopt.lime.laws import LimeLaw
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, eq=False)
class LimeSubject:
    """A function, a law and rows; not saved with what was found about them.

    Parameters
    ----------
    function : Function
        f.
    law : LimeLaw
        Of the samples.
    products : SumOfProducts or NoProducts
        What f was read as, and found to be at the rows at hand.
    points : array (N, D)
        The rows, encoded.
    labels : Labels
        Their names.
    reference : array (R, D)
        Rows of the table that the law was made of, encoded; those of X where no table
        is known.
    has_table : bool
        Whether a table is known, and ``reference`` is not X.
    n_draws : int
        Samples for each row of whatever is estimated.
    seed : int
        Of these samples.
    """

    function: Function
    law: LimeLaw
    products: SumOfProducts | NoProducts
    points: Points
    labels: Labels
    reference: Points
    has_table: bool
    n_draws: int
    seed: int

    @property
    def reason(self) -> str:
        """Why limits are estimated; empty where they are exact."""
        read = self.products
        return read.reason if isinstance(read, NoProducts) else ""

    @cached_property
    def exact(self) -> ExactLimits | None:
        """The limits of a sum of products; None of other functions."""
        read = self.products
        return None if isinstance(read, NoProducts) else ExactLimits(read, self.law)

    def limits(
        self,
        points: Points | None = None,
        widths: Values | None = None,
        *,
        progress: bool | None = False,
    ) -> Limits | Estimated:
        """The limits at these rows, or at others, with widths of their own.

        Parameters
        ----------
        points : array (n, D), optional
            Encoded rows.
        widths : array (n,), optional
            A kernel width for each.
        progress : bool, optional
            Show a bar while rows are estimated; None for only on a terminal.
        """
        points = self.points if points is None else points
        if self.exact is not None:
            return self.exact.of(points, widths)
        return estimate(
            self.function,
            self.law,
            points,
            self.law.widths(points, widths),
            n_samples=self.n_draws,
            rng=np.random.default_rng(self.seed),
            progress=progress,
        )
