"""Limits of LIME for functions that can only be called, with standard errors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from propopt._typing import Array, Attributions, Points, Values
from propopt.batches import Budget
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions.base import Function
from propopt.functions.cost import cost_of
from propopt.lime.expectations.limits import Limits
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.draws import draws_at
from propopt.lime.surrogates.estimated import EstimatedLimits
from propopt.lime.surrogates.evaluated import evaluated
from propopt.lime.surrogates.stratified import (
    MOST_OUTSIDE,
    stratified_uniforms,
    terms,
)
from propopt.memory import require_memory
from propopt.output.progress import progress_bar
from propopt.sampling.drawn.cross_fitting import cross_fitted
from propopt.tables.names import Labels


_BLOCKS: Final = 20
"""Each with an estimate of its own: their scatter is the error, known to a sixth."""

_DRAWS_PER_TERM: Final = 4
"""A fit on fewer takes less scatter off than it adds."""

_WORTH_TIMING: Final = 10_000
"""Evaluations from which a few are timed, to say what all of them cost."""

_TABLES: Final = Budget(2**26)


def estimate_limits(
    function: Function,
    law: LimeLaw,
    points: Points,
    labels: Labels | None = None,
    n_samples: int = 5000,
    rng: np.random.Generator | None = None,
    progress: bool | None = None,
    widths: Values | None = None,
) -> EstimatedLimits:
    """What LIME tends to for any function, from samples of the weighted law itself.

    Samples of Q need no weights, and fill each column evenly. Each of 20 blocks gives
    an estimate that is unbiased: what the least squares fit of the other blocks, on
    bits and on what varies beside them, says, and what it leaves over. Of functions
    with few interactions little is left over, so that a sample tells more than one of
    LIME; never much less.

    All rows have the same uniform numbers: rows with the same bins get the same
    answers, and the answers of one row do not depend on the others.

    Parameters
    ----------
    function : Function
        f.
    law : LimeLaw
        Of the samples, bits and weights.
    points : array (n, D)
        Encoded rows, as ``function.read`` gives them.
    labels : Labels, optional
        Their names.
    n_samples : int
        Evaluations for each row, rounded up to a multiple of 20.
    rng : numpy.random.Generator, optional
        Where draws come from; by default of the seed 0.
    progress : bool, optional
        Show a bar on standard error; by default only on a terminal.
    widths : array (n,), optional
        Kernel widths; by default the law's own for all rows.

    Returns
    -------
    EstimatedLimits
        As limits are, with standard errors.

    Raises
    ------
    InvalidInput
        If the samples are too few for so many columns, or f is not finite somewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> from propopt.lime.laws import TabularLaw
    >>> from propopt.lime.laws.binned import BinnedColumn
    >>> from propopt.structures.products import Normals, Pieces
    >>> halves = Normals.of(0.0, 1.0, [-9.0, 0.0], [0.0, 9.0])
    >>> shares, edges = np.array([0.5, 0.5]), np.zeros(1)
    >>> column = BinnedColumn(Pieces.of_normals(halves), shares, edges, ("low", "high"))
    >>> law, points = TabularLaw.of((column,)), np.ones((1, 1))
    >>> found = estimate_limits(Power(1), law, points)
    >>> bool(abs(found.coefficients[0, 0] - 2 * np.sqrt(2 / np.pi)) < 0.001)
    True
    """
    generator = np.random.default_rng(0) if rng is None else rng
    size = _block_size(n_samples, points.shape[1])
    uniforms = stratified_uniforms(_BLOCKS, size, points.shape[1], generator)
    names = Labels() if labels is None else labels.of_columns()
    expected = len(points) * _BLOCKS * size
    announced: AbstractContextManager[None] = nullcontext()
    if expected >= _WORTH_TIMING:
        cost = cost_of(function, points, names, expected)
        announced = cost.announced("lime", function.calls, progress)
    evaluate = partial(function.value_at, labels=names)
    widths = law.widths(points, widths)
    sampler = _Sampler(evaluate, law, uniforms, _n_outside(size, points.shape[1]))
    with progress_bar("lime", len(points), progress) as bar, announced:
        parts = []
        for rows in sampler.blocks(len(points)):
            parts.append(sampler.estimates(points[rows], widths[rows]))
            bar.advance(bar.task_ids[0], rows.stop - rows.start)
    return _joined(parts, expected)


def _block_size(n_samples: int, n_columns: int) -> int:
    fewest = 2 * (n_columns + 1) + _BLOCKS
    if read_count(n_samples, "n_samples") < fewest:
        raise InvalidInput(
            f"n_samples: {n_samples} samples are too few for the coefficients of "
            f"{n_columns} columns; give at least {fewest}"
        )
    return -(-n_samples // _BLOCKS)


def _n_outside(size: int, n_columns: int) -> int:
    """How many terms of what varies beside bits there are draws for."""
    n_others = (_BLOCKS - 1) * size
    room = n_others // (_DRAWS_PER_TERM * n_columns) - 2
    return max(0, min(room, MOST_OUTSIDE))


@final
@dataclass(frozen=True, eq=False)
class _Sampler:
    """Draws of Q around rows, and what each block of them says.

    Parameters
    ----------
    evaluate : callable
        f at points (m, D).
    law : LimeLaw
        Of them.
    uniforms : array (B, s, D)
        What is made samples, around each row.
    n_outside : int
        See :func:`terms`.
    """

    evaluate: Callable[[Points], Values]
    law: LimeLaw
    uniforms: Array
    n_outside: int

    def blocks(self, n_rows: int) -> list[slice]:
        n_terms = 1 + (self.n_outside > 0) * (1 + self.n_outside)
        row_bytes = 3 * n_terms * self.uniforms.nbytes
        width = n_terms * self.uniforms.shape[2]
        what = f"fits of {width} terms to {self.uniforms[..., 0].size} samples"
        require_memory(row_bytes + 24.0 * _BLOCKS * width**2, what, "use fewer samples")
        return list(_TABLES.blocks(n_rows, row_bytes))

    def estimates(
        self, points: Points, widths: Values
    ) -> tuple[Limits, Attributions, Values]:
        """Limits at rows, and their errors."""
        n_blocks, size, width = self.uniforms.shape
        shape = len(points), n_blocks, size, width
        uniforms = np.broadcast_to(self.uniforms, shape)
        tilts = self.law.tilts(points, widths)
        alpha = np.stack([tilt.alpha for tilt in tilts], axis=1)
        drawn = draws_at(
            self.law.columns, points, widths, uniforms.reshape(len(points), -1, width)
        )
        values = evaluated(self.evaluate, drawn.samples).reshape(shape[:3])
        fit = cross_fitted(terms(uniforms, alpha, self.n_outside), values)
        # E f z̃_j with z̃_j = (z_j − α_j) / √(α_j (1 − α_j)) is β_j √(α_j (1 − α_j))
        spread = np.sqrt(alpha * (1.0 - alpha))
        slopes = fit.slopes[..., :width] / np.where(spread > 0.0, spread, 1.0)
        intercepts = fit.means - (alpha * slopes).sum(axis=-1)
        limits = Limits(
            slopes.mean(axis=0),
            fit.means.mean(axis=0),
            alpha,
            np.sum([tilt.log_weight for tilt in tilts], axis=0),
        )
        return limits, _error(slopes), _error(intercepts)


def _error(blocks: Array) -> Array:
    """Of the mean of independent blocks."""
    return np.asarray(blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks)))


def _joined(
    parts: list[tuple[Limits, Attributions, Values]], evaluations: int
) -> EstimatedLimits:
    limits, errors, intercept_errors = zip(*parts, strict=True)
    return EstimatedLimits(
        Limits(
            *(
                np.concatenate([getattr(part, name) for part in limits])
                for name in ("coefficients", "mean", "alpha", "log_weight")
            )
        ),
        np.concatenate(errors),
        np.concatenate(intercept_errors),
        evaluations,
    )
