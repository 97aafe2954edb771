"""Signs of one coefficient along the widths, and brackets of its roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from propopt._typing import Array, Positions, Values
from propopt.lime.paths.chebyshev import Piece
from propopt.lime.paths.curve import CoefficientCurve


class SignRun(NamedTuple):
    """The signs that one function takes, one after the other."""

    low: Values
    """Brackets of crossings begin, (C,)."""

    high: Values
    """And end, (C,)."""

    touches: Values
    """Where it touches zero, (T,)."""

    signs: Positions
    """Between crossings, (C + 1,); empty if it is zero everywhere."""


def sign_runs(curve: CoefficientCurve, pieces: Sequence[Piece], j: int) -> SignRun:
    """The signs of column j between places at which its polynomials may turn."""
    parts = [_signs_on(curve, piece, j) for piece in pieces]
    u, signs, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    certain = np.flatnonzero(signs)
    before, after = certain[:-1], certain[1:]
    changes = signs[before] != signs[after]
    gaps = (after - before > 1) & ~changes
    touches = [
        u[a + 1 + np.argmin(sizes[a + 1 : b])]
        for a, b in zip(before[gaps], after[gaps], strict=True)
    ]
    first = signs[certain[:1]]
    return SignRun(
        u[before[changes]],
        u[after[changes]],
        np.array(touches),
        np.concatenate([first, signs[after[changes]]]).astype(np.intp),
    )


def _signs_on(
    curve: CoefficientCurve, piece: Piece, j: int
) -> tuple[Values, Array, Array]:
    """Places on a piece in their order, the signs there (0 unknown), and sizes."""
    turns = piece.turns(j)
    values = piece.value(turns, j)
    rounding = np.full(len(turns), piece.rounding[j])
    near = np.abs(values) <= rounding
    if near.any():
        exact = curve.at(turns[near], 1.0 - turns[near])
        values[near], rounding[near] = exact.values[:, j], exact.rounding[:, j]
    ends = np.array([piece.low, piece.high])
    u = np.concatenate([ends[:1], piece.nodes, turns, ends[1:]])
    at_ends = piece.value(ends, j)
    found = np.concatenate(
        [at_ends[:1], piece.at_nodes.values[:, j], values, at_ends[1:]]
    )
    bounds = np.concatenate(
        [
            piece.rounding[[j]],
            piece.at_nodes.rounding[:, j],
            rounding,
            piece.rounding[[j]],
        ]
    )
    order = np.argsort(u, kind="stable")
    signs = np.where(np.abs(found) > bounds, np.sign(found), 0.0)
    return u[order], signs[order], np.abs(found)[order]
