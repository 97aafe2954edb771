"""Samples around rows, with their bits and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from propopt._typing import Array, Points, Values
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import Normals


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """S samples around each of n rows.

    Parameters
    ----------
    samples : array (n, S, D)
        Where f is evaluated.
    bits : array (n, S, D)
        z, 0 or 1.
    weights : array (n, S)
        π.
    """

    samples: Array
    bits: Array
    weights: Array


def draw_samples(
    columns: Sequence[LimeColumn],
    points: Points,
    widths: Values,
    n_samples: int,
    rng: np.random.Generator,
) -> Draws:
    """Samples of the law without weights, which is that of an infinite width."""
    draws = draw_weighted(columns, points, np.full(len(points), np.inf), n_samples, rng)
    logs = np.zeros(draws.weights.shape)
    for j, column in enumerate(columns):
        for n, (x, width) in enumerate(zip(points[:, j], widths, strict=True)):
            values, bits = draws.samples[n, :, j], draws.bits[n, :, j]
            logs[n] += column.log_kernel(x, values, bits, width)
    return Draws(draws.samples, draws.bits, np.exp(logs))


def draw_weighted(
    columns: Sequence[LimeColumn],
    points: Points,
    widths: Values,
    n_samples: int,
    rng: np.random.Generator,
) -> Draws:
    """Samples of the weighted law Q, with weights of one."""
    shape = (len(points), n_samples, len(columns))
    return draws_at(columns, points, widths, rng.random(shape))


def draws_at(
    columns: Sequence[LimeColumn], points: Points, widths: Values, uniforms: Array
) -> Draws:
    """The samples of Q that uniform numbers are, with weights of one.

    Parameters
    ----------
    columns : sequence of LimeColumn (D,)
        The law.
    points, widths : array (n, D) and (n,)
        The rows, and their kernel widths.
    uniforms : array (n, S, D)
        Numbers u in [0, 1), one for each value; the bit is 1 where u < α_j.
    """
    samples, bits = np.empty((2, *uniforms.shape))
    for j, column in enumerate(columns):
        tilt = column.tilt(points[:, j], widths)
        for n in range(len(points)):
            samples[n, :, j], bits[n, :, j] = _of_row(tilt, n, uniforms[n, :, j])
    return Draws(samples, bits, np.ones(uniforms.shape[:2]))


def _of_row(tilt: Tilt, n: int, uniforms: Array) -> tuple[Array, Array]:
    """Values and bits of one column around one row, of uniforms (S,)."""
    masses = np.concatenate(
        [tilt.alpha[n] * tilt.inside[:, n], tilt.complement[n] * tilt.outside[:, n]]
    )
    ends = np.cumsum(masses) / masses.sum()
    ends[np.flatnonzero(masses)[-1] :] = 1.0
    chosen = np.searchsorted(ends, uniforms, side="right")
    starts = np.concatenate([[0.0], ends[:-1]])
    lengths = np.where(masses > 0.0, ends - starts, 1.0)
    where = (uniforms - starts[chosen]) / lengths[chosen]
    piece, bit = chosen % len(tilt.pieces), chosen < len(tilt.pieces)
    pieces = tilt.pieces
    mean, sd, low, high = (
        part[piece] if part.ndim == 1 else part[piece, n]
        for part in (pieces.mean, pieces.sd, pieces.low, pieces.high)
    )
    values = mean.copy()
    some = ~pieces.single[piece]
    normals = Normals(mean[some], sd[some], low[some], high[some])
    values[some] = quantiles(normals, where[some])
    return values, bit.astype(float)


def quantiles(normals: Normals, uniforms: Array) -> Array:
    """F⁻¹(u) of truncated normals (S,), each at its own u."""
    # in the tail where the cdf has digits: reflect what lies right of the mean
    right = normals.low > normals.mean
    sign = np.where(right, -1.0, 1.0)
    low, high = normals.standardised(normals.low), normals.standardised(normals.high)
    start, stop = np.where(right, -high, low), np.where(right, -low, high)
    u = np.where(right, 1.0 - uniforms, uniforms)
    with np.errstate(divide="ignore"):
        parts = log_ndtr(start) + np.log1p(-u), log_ndtr(stop) + np.log(u)
    z = ndtri_exp(np.minimum(np.logaddexp(*parts), 0.0))
    values = normals.mean + normals.sd * sign * z
    return np.asarray(np.clip(values, normals.low, normals.high))
