"""Values of a function at draws around rows, and what they estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.sampling.drawn.collected import Collected
from propopt.sampling.drawn.cross_fitting import BlockSlopes
from propopt.sampling.drawn.design import Design, Evaluator
from propopt.sampling.drawn.pair_sums import PairSums
from propopt.sampling.drawn.uniforms import N_BLOCKS


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """Draws around rows, and the values of f there; more can be drawn without waste.

    The numbers that are drawn are those of the first ``n_draws`` of streams that never
    change, so that a sample that has grown is the sample that was large at once.

    Parameters
    ----------
    design : Design
        What is drawn.
    evaluate : callable
        f at points (n, D).
    values : array (N, B, s)
        f(V) in each draw of each block.
    known : array (N, B, s) or None
        Those of the control.
    pairs : PairSums
        Contrasts by pairs.
    fit : BlockSlopes
        Means and slopes by least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.sampling.laws import DataLaw, Reference
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> design = Design(DataLaw(Reference.of(X)), X[:3], seed=0)
    >>> sample = Sample.of(design, lambda P: P @ [2.0, -1.0], n_draws=50)
    >>> sample.blocks().slopes.mean(axis=0).round(9)
    array([[ 2., -1.],
           [ 2., -1.],
           [ 2., -1.]])
    """

    design: Design
    evaluate: Evaluator
    values: Array
    known: Array | None
    pairs: PairSums
    fit: BlockSlopes

    @classmethod
    def of(cls, design: Design, evaluate: Evaluator, n_draws: int) -> Sample:
        """The first draws.

        Raises
        ------
        InvalidInput
            If there are fewer than :attr:`Design.fewest`, or if they are not a multiple
            of the number of blocks, 10.
        """
        if n_draws < design.fewest:
            raise InvalidInput(
                f"n_draws: {n_draws} draws are too few for the slopes of "
                f"{design.points.shape[1]} features; give at least {design.fewest}"
            )
        shape = (len(design.points), N_BLOCKS, 0)
        known = None if design.control is None else np.empty(shape)
        none = PairSums.empty(*design.points.shape)
        fit = BlockSlopes(np.empty(0), np.empty(0))
        return cls(design, evaluate, np.empty(shape), known, none, fit).extended(
            n_draws
        )

    @property
    def n_draws(self) -> int:
        """Draws around each row, all blocks together."""
        return N_BLOCKS * self.values.shape[2]

    @property
    def evaluations(self) -> int:
        """Rows that f was evaluated at."""
        return self.n_draws * self.design.per_draw

    def extended(self, n_draws: int) -> Sample:
        """The sample with more draws, so that there are ``n_draws`` around each row."""
        if n_draws % N_BLOCKS or n_draws < self.n_draws:
            raise InvalidInput(
                f"n_draws: expected a multiple of {N_BLOCKS} from {self.n_draws} on, "
                f"got {n_draws}"
            )
        start, stop = self.n_draws // N_BLOCKS, n_draws // N_BLOCKS
        shape = (len(self.values), N_BLOCKS, stop)
        values, pairs = np.empty(shape), self.pairs.copy()
        values[:, :, :start] = self.values
        known = None if self.known is None else np.empty(shape)
        if known is not None:
            known[:, :, :start] = self.known
        n_rows, width = self.design.points.shape
        fit = BlockSlopes(
            np.empty((N_BLOCKS, n_rows)), np.empty((N_BLOCKS, n_rows, width))
        )
        Collected(self.design, self.evaluate, values, known, pairs, *fit).fill(
            start, stop
        )
        return replace(self, values=values, known=known, pairs=pairs, fit=fit)

    def blocks(self) -> BlockSlopes:
        """Means of f and attributions from each block of draws, each unbiased."""
        slopes = np.where(self.design.fitted, self.fit.slopes, self._paired())
        return BlockSlopes(self.fit.means, slopes)

    def _paired(self) -> Array:
        """Attributions by pairs, (B, N, D)."""
        n_draws = self.n_draws // N_BLOCKS
        control = self.design.control
        if control is None:
            return self.pairs.means(n_draws)
        return self.pairs.controlled(n_draws, control.attributions)
