"""Values of a function at draws around rows, and what they estimate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from propopt._typing import Array, Points
from propopt.batches import row_blocks
from propopt.errors import InvalidInput
from propopt.sampling.drawn.collected import Collected
from propopt.sampling.drawn.cross_fitting import BlockSlopes, KnownTerm, cross_fitted
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
    pairs: PairSums = field(repr=False)

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
        return cls(design, evaluate, np.empty(shape), known, none).extended(n_draws)

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
        Collected(self.design, self.evaluate, values, known, pairs).fill(start, stop)
        return replace(self, values=values, known=known, pairs=pairs)

    def blocks(self) -> BlockSlopes:
        """Means of f and attributions from each block of draws, each unbiased."""
        n_rows, width = self.design.points.shape
        means = np.empty((N_BLOCKS, n_rows))
        slopes = np.empty((N_BLOCKS, n_rows, width))
        for rows in row_blocks(n_rows, width, copies=self.n_draws):
            means[:, rows], slopes[:, rows] = self._fitted(rows)
        by_pairs = self._paired()
        return BlockSlopes(means, np.where(self.design.fitted, slopes, by_pairs))

    def _fitted(self, rows: slice) -> BlockSlopes:
        """Means and slopes by least squares."""
        design = self.design
        points = design.points[rows]
        centers, variances = design.law.moments(points)
        moves = (variances > 0.0) & (not design.paired)
        scales = np.sqrt(np.where(moves, variances, 1.0))
        z = self._standard(points, centers, np.where(moves, 1.0 / scales, 0.0))
        known = None
        if design.control is not None and self.known is not None:
            control = design.control
            known = KnownTerm(
                self.known[rows],
                control.means[rows],
                control.attributions[rows] * scales,
            )
        means, slopes = cross_fitted(z, self.values[rows], known)
        return BlockSlopes(means, slopes / scales)

    def _standard(self, points: Points, centers: Array, inverse: Array) -> Array:
        """Draws z (n, B, s, D); zero in columns that do not move."""
        first, _ = self.design.uniforms(0, self.n_draws // N_BLOCKS)
        V = self.design.law.draws(points, first)
        still = inverse == 0.0
        z = (V - np.where(still, 0.0, centers)[:, None]) * inverse[:, None]
        z[np.broadcast_to(still[:, None], z.shape)] = 0.0
        return z.reshape(len(points), N_BLOCKS, -1, points.shape[1])

    def _paired(self) -> Array:
        """Attributions by pairs, (B, N, D)."""
        n_draws = self.n_draws // N_BLOCKS
        control = self.design.control
        if control is None:
            return self.pairs.means(n_draws)
        return self.pairs.controlled(n_draws, control.attributions)
