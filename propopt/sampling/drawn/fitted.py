"""Means and slopes at rows, by cross-fitted least squares on what was drawn there."""

from __future__ import annotations

import numpy as np

from propopt._typing import Array, Truths
from propopt.sampling.drawn.cross_fitting import BlockSlopes, KnownTerm, cross_fitted
from propopt.sampling.drawn.design import Design


def fitted(
    design: Design, rows: slice, V: Array, values: Array, known: Array | None
) -> BlockSlopes:
    """Those of each block, (B, n) and (B, n, D); 0 in columns that do not move.

    Parameters
    ----------
    design : Design
        What is drawn.
    rows : slice
        Which rows.
    V : array (n, B, s, D)
        The draws around them.
    values : array (n, B, s)
        f(V).
    known : array (n, B, s) or None
        Those of the control.
    """
    columns = np.flatnonzero(design.moving)
    means, variances = design.law.moments(design.points[rows])
    centers, squares = means[:, columns], variances[:, columns]
    moves = squares > 0.0
    scales = np.sqrt(np.where(moves, squares, 1.0))
    z = _standard(V[..., columns], moves, centers, scales)
    term = None
    if design.control is not None and known is not None:
        exact = design.control.attributions[rows][:, columns]
        term = KnownTerm(known, design.control.means[rows], exact * scales)
    fit = cross_fitted(z, values, term)
    slopes = np.zeros((*fit.means.shape, V.shape[-1]))
    slopes[..., columns] = fit.slopes / scales
    return BlockSlopes(fit.means, slopes)


def _standard(V: Array, moves: Truths, centers: Array, scales: Array) -> Array:
    """Draws of mean 0 and variance 1 under the law; 0 where nothing moves."""
    places = np.where(moves, centers, 0.0)[:, None, None]
    z = (V - places) / scales[:, None, None]
    return np.where(moves[:, None, None], z, 0.0)
