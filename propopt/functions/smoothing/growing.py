"""Estimates that can be drawn on: until they are precise, or a budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

from propopt.checks import read_count, read_positive
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.memory import require_memory
from propopt.sampling.drawn import Sample
from propopt.sampling.drawn.uniforms import N_BLOCKS
from propopt.tables.names import Labels


_MARGIN: Final = 1.2
"""Errors are estimates: so much more is drawn than they ask for."""

_LEAST_GROWTH, _MOST_GROWTH = 1.5, 4.0
"""Factors on the number of draws, from one look at the error to the next."""


@final
@dataclass(frozen=True, eq=False)
class GrowingEstimate:
    """An estimate from draws, to which more can be added; none of them are wasted.

    Parameters
    ----------
    sample : Sample
        The draws, and the values there.
    source : str
        How the estimate is made, without the number of draws.
    labels : Labels
        Names of points and features.
    notes : tuple of str
        What a reader has to know.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> steps = po.wrap(lambda X: np.round(2 * X).sum(axis=1))
    >>> mean = po.smoothed(steps, law="data", data=X, n_samples=50)
    >>> few = mean.growing(X[:5])
    >>> more = few.extended(200)
    >>> bool(more.estimate.standard_errors.mean() < few.estimate.standard_errors.mean())
    True
    >>> few.evaluations, more.evaluations
    (250, 1000)
    """

    sample: Sample
    source: str
    labels: Labels
    notes: tuple[str, ...]

    @property
    def n_draws(self) -> int:
        """Draws around each row."""
        return self.sample.n_draws

    @property
    def evaluations(self) -> int:
        """Rows that the model was given, from the first draw on."""
        return self.sample.evaluations

    @cached_property
    def estimate(self) -> Estimate:
        """What the draws say, with blocks that tell its error."""
        blocks = self.sample.blocks().slopes
        design = self.sample.design
        return Estimate(
            values=blocks.mean(axis=0),
            source=f"{self.n_draws} draws, {self.source}",
            blocks=blocks,
            n_draws=self.n_draws,
            evaluations=self.evaluations,
            labels=self.labels,
            effects=design.law.has_effects(design.points),
            notes=self.notes,
        )

    def extended(self, n_draws: int) -> GrowingEstimate:
        """The same with more draws: equal, bit for bit, to so many drawn at once.

        Parameters
        ----------
        n_draws : int
            Around each row, those that are there included; a multiple of 10.

        Raises
        ------
        InvalidInput
            If it is no such number, or smaller than what is there.
        """
        require_draws(len(self.sample.values), n_draws)
        grown = self.sample.extended(n_draws)
        return GrowingEstimate(grown, self.source, self.labels, self.notes)

    def until(
        self,
        error: Callable[[Estimate], float],
        precision: float,
        max_evaluations: int | None = None,
    ) -> GrowingEstimate:
        """Draw on until an error is small enough, or evaluations would be too many.

        The error is taken to fall as 1/draws, as that of an objective does; it is
        looked at again whenever the draws have grown by a factor of 1.5 to 4.

        Parameters
        ----------
        error : callable
            Of an estimate, such as the relative target error of the explanation that is
            optimal for it.
        precision : float
            Where to stop: the first time that the error is not larger.
        max_evaluations : int, optional
            The most rows that the model is given, all draws together.

        Returns
        -------
        GrowingEstimate
            The last one; ``error`` of its estimate tells whether it is precise.
        """
        goal = read_positive(precision, "precision")
        affordable = self._affordable(max_evaluations)
        growing, size = self, error(self.estimate)
        while size > goal and growing.n_draws < affordable:
            factor = min(max(_MARGIN * size / goal, _LEAST_GROWTH), _MOST_GROWTH)
            wanted = N_BLOCKS * -int(-growing.n_draws * factor // N_BLOCKS)
            growing = growing.extended(int(min(wanted, affordable)))
            size = error(growing.estimate)
        return growing

    def _affordable(self, max_evaluations: int | None) -> float:
        """The most draws that a budget allows."""
        if max_evaluations is None:
            return float("inf")
        return affordable_draws(self.sample.design.per_draw, max_evaluations)


def affordable_draws(per_draw: int, max_evaluations: int) -> int:
    """The largest multiple of 10 of draws that take no more evaluations."""
    most = read_count(max_evaluations, "max_evaluations")
    return most // per_draw // N_BLOCKS * N_BLOCKS


def require_affordable(per_draw: int, n_draws: int, max_evaluations: int) -> None:
    """Refuse a budget that is too small for the first draws."""
    if affordable_draws(per_draw, max_evaluations) < n_draws:
        raise InvalidInput(
            f"max_evaluations: {n_draws} draws take {n_draws * per_draw:,} "
            f"evaluations, and {max_evaluations:,} are allowed; give more, or explain "
            "fewer rows"
        )


def require_draws(n_rows: int, n_draws: int) -> None:
    """Refuse more draws than fit into memory."""
    require_memory(
        16.0 * n_rows * n_draws,
        f"keeping {n_draws:,} draws of {n_rows:,} rows",
        "explain fewer rows at a time, or draw less",
    )
