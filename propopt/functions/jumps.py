"""Does a function jump? What its slopes leave unexplained of its change tells.

Along a segment φ(τ) = f(x + τd), 0 ≤ τ ≤ 1, a function without jumps keeps the
fundamental theorem of calculus, φ(1) − φ(0) = ∫ φ'(τ) dτ. With the integral by m nodes
τ_i and weights w_i of Gauss and Legendre, and slopes by central differences of step
h = 1e-3,

J_m = Σ |φ(1) − φ(0) − Σ_i w_i φ'(τ_i)| / Σ |φ(1) − φ(0)|,  over 64 segments,

is the share of the change of f that its local slopes do not explain: 0 for smooth
functions, whatever their number of features, and 1 or more for a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points, Values
from propopt.batches import row_blocks
from propopt.functions.answers import Answers, precision_of, refuse_other_answers


JumpKind: TypeAlias = Literal["smooth", "strongly curved", "jumps", "constant"]
Along: TypeAlias = Callable[[Points], Values]

N_SEGMENTS: Final = 64
FEW_NODES, MANY_NODES = 8, 32
STEP: Final = 1e-3
"""h, in units of the segment; it is below the first of 32 nodes."""

PART: Final = 0.25
"""A segment is this part of the way from one row to another."""

TOLERANCE: Final = 0.05
"""Smooth models, ReLU networks and single precision among them, have J_32 ≤ 0.01; a
vote in which a forest has a tenth of the weight has 0.1."""

FEWEST: Final = N_SEGMENTS * (2 + 2 * FEW_NODES)
MOST: Final = FEWEST + N_SEGMENTS * 2 * MANY_NODES
"""Evaluations of one test, where smooth and where not."""


@final
@dataclass(frozen=True)
class Jumps:
    """What the jump test found.

    Parameters
    ----------
    kind : {"smooth", "strongly curved", "jumps", "constant"}
        ``"strongly curved"`` is smooth too, between nodes that are closer; of a
        function that is ``"constant"`` on all segments nothing is known.
    J : float
        The share of the change of f that its slopes do not explain; nan if constant.
    evaluations : int
        Rows that f was evaluated at.

    Examples
    --------
    >>> from propopt.functions.jumps import Jumps
    >>> Jumps("jumps", 0.431, 5248).in_words()
    'jumps: its slopes miss 43 % of its change between rows (J = 0.431)'
    """

    kind: JumpKind
    J: float
    evaluations: int

    def in_words(self) -> str:
        """The verdict in one line."""
        if self.kind == "constant":
            return "constant between the rows that were tried: no verdict"
        missed = round(100.0 * min(self.J, 1.0))
        share = f"its slopes miss {missed} % of its change between rows"
        return f"{self.kind}: {share} (J = {self.J:.3g})"


@final
@dataclass(frozen=True, eq=False)
class Segments:
    """Straight ways between rows, x + τd for 0 ≤ τ ≤ 1.

    Parameters
    ----------
    starts : array (n, D)
        x.
    ways : array (n, D)
        d.
    """

    starts: Points
    ways: Points

    @classmethod
    def between(
        cls, points: Points, numeric: NDArray[np.bool_], rng: np.random.Generator
    ) -> Segments | None:
        """From rows drawn at random, a quarter of the way to others.

        Only numeric columns of at least three values move, where both rows have one;
        None if that is nowhere.
        """
        n_rows = len(points)
        if n_rows < 2:
            return None
        start = rng.integers(n_rows, size=N_SEGMENTS)
        end = (start + rng.integers(1, n_rows, size=N_SEGMENTS)) % n_rows
        ways = PART * (points[end] - points[start])
        moved = numeric & _has_three_values(points) & ~np.isnan(ways)
        ways = np.where(moved, ways, 0.0)
        return cls(points[start], ways) if ways.any() else None

    def values(self, evaluate: Along, times: Array) -> Array:
        """φ at the times τ, shape (n, len(times)), in calls of bounded size."""
        n, width = self.starts.shape
        values = np.empty((n, len(times)))
        for block in row_blocks(n, width, copies=len(times)):
            moved = times[:, None] * self.ways[block, None, :]
            points = self.starts[block, None, :] + moved
            values[block] = evaluate(points.reshape(-1, width)).reshape(-1, len(times))
        return values

    def explained(self, evaluate: Along, n_nodes: int) -> Values:
        """Σ_i w_i φ'(τ_i), shape (n,)."""
        nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
        times, weights = 0.5 * (1.0 + nodes), 0.5 * weights
        around = np.concatenate([times + STEP, times - STEP])
        ahead, behind = np.split(self.values(evaluate, around), 2, axis=1)
        slopes: Array = (ahead - behind) / (2.0 * STEP)
        return slopes @ weights


def jumps_along(evaluate: Along, segments: Segments, name: str) -> Jumps:
    """The verdict on a function from its values between rows.

    Parameters
    ----------
    evaluate : callable
        (n, D) to (n,); segments on which it is not finite do not count.
    segments : Segments
        The ways between rows.
    name : str
        For the error.

    Raises
    ------
    InvalidInput
        If a function that seems to jump answers differently when it is asked again.
    """
    ends = np.array([0.0, 1.0])
    first = segments.values(evaluate, ends)
    share = _unexplained(first, segments.explained(evaluate, FEW_NODES))
    if np.isnan(share) or share <= TOLERANCE:
        return Jumps("constant" if np.isnan(share) else "smooth", share, FEWEST)
    share = _unexplained(first, segments.explained(evaluate, MANY_NODES))
    if share <= TOLERANCE:
        return Jumps("strongly curved", share, MOST)
    again = segments.values(evaluate, ends)
    epsilon = precision_of(first)
    refuse_other_answers(
        Answers(first.ravel(), epsilon), Answers(again.ravel(), epsilon), name
    )
    return Jumps("jumps", share, MOST + first.size)


def _unexplained(ends: Array, explained: Values) -> float:
    """J; nan where what changes is no more than what rounding may do to slopes."""
    with np.errstate(invalid="ignore"):  # ∞ − ∞: such segments are left out
        change = ends[:, 1] - ends[:, 0]
        missed = np.abs(change - explained)
    known = np.isfinite(missed)
    total = float(np.abs(change[known]).sum())
    rounding = precision_of(ends) / STEP * float(np.abs(ends[known]).sum())
    return float(missed[known].sum()) / total if total > rounding else float("nan")


def _has_three_values(points: Points) -> NDArray[np.bool_]:
    """Whether a column has at least three distinct numbers."""
    low = np.fmin.reduce(points, axis=0)
    high = np.fmax.reduce(points, axis=0)
    return np.asarray(((points > low) & (points < high)).any(axis=0))
