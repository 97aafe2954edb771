"""Differences between values of a model: by rounding, and by jumps.

A function jumps if its slopes do not explain its change. Along a segment
φ(τ) = f(x + τd), 0 ≤ τ ≤ 1, a function without jumps satisfies the fundamental theorem
of calculus, φ(1) − φ(0) = ∫ φ'(τ) dτ. With the integral by m nodes
τ_i and weights w_i of Gauss and Legendre, and slopes by central differences of step
h = 1e-3,

J_m = Σ |φ(1) − φ(0) − Σ_i w_i φ'(τ_i)| / Σ |φ(1) − φ(0)|,  over 64 segments,

is the share of the change of f that its local slopes do not explain: 0 for smooth
functions, whatever their number of features, and 1 or more for a tree.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Points, Values
from propopt.base.checks import largest_entry
from propopt.base.errors import InvalidInput
from propopt.base.resources import EvaluationCounter, row_blocks
from propopt.functions.outputs import SINGLE, ValuesWithPrecision, precision_of
from propopt.structures.products.normals import legendre


# ---- Differences by rounding


MOST_DIGITS_LOST: Final = 1e3
MOST_CHANGE: Final = 1e-2
"""Two calls may differ by so many units of rounding, as sums in another order do,
but by no more than this share."""

MOST_TERMS: Final = 1024
MOST_TERMS_SINGLE: Final = 168
"""Terms of a sum for which rounding is allowed; single precision has fewer digits."""


def refuse_unstable_values(
    a: Values, b: Values, epsilon: float, function: object
) -> None:
    """Refuse a model that returns different values for the same row."""
    size = largest_entry(a[np.isfinite(a)])
    most = min(MOST_DIGITS_LOST * epsilon, MOST_CHANGE) * size
    same = np.isclose(a, b, rtol=0.0, atol=most, equal_nan=True)
    if not same.all():
        n = int(np.argmin(same))
        raise InvalidInput(
            f"{function!r}: called twice for the same row, the model returned "
            f"{a[n]:.8g} and then {b[n]:.8g}; fix its seed, switch randomness off, or "
            "explain its mean"
        )


def allowed_difference(
    values: Values, tolerance: float, epsilon: float, terms: Values | None = None
) -> Values:
    """Allowed difference between the exact structure of a model and its values f, (n,).

    tolerance · (max f − min f) + 1024 ε A: a share of the range of f, and the rounding
    of sums of 1024 terms (Higham 2002, Section 4.2), or 168 in single precision.
    """
    size = np.abs(values) if terms is None else np.maximum(terms, np.abs(values))
    most = MOST_TERMS_SINGLE if epsilon >= SINGLE else MOST_TERMS
    return tolerance * np.ptp(values) + most * epsilon * size


# ---- The test for jumps


Along: TypeAlias = Callable[[Points], Values]

JUMP_SEED: Final = 0
"""The seed of the rows between which a model is tested."""

N_SEGMENTS: Final = 64
FEW_NODES = 8
MANY_NODES = 32
STEP: Final = 1e-3
"""The step h, in units of the segment; it is below the first of 32 nodes."""

PART: Final = 0.25
"""The length of a segment, as a share of the way from one row to another."""

TOLERANCE: Final = 0.05
"""Smooth models, ReLU networks and single precision among them, have J_32 ≤ 0.01; a
vote with a forest at a tenth of the weight has 0.1."""

FEWEST: Final = N_SEGMENTS * (2 + 2 * FEW_NODES)
MOST: Final = FEWEST + N_SEGMENTS * 2 * MANY_NODES
"""Evaluations of one test: the fewest for smooth functions, the most for others."""


@final
@dataclass(frozen=True)
class Jumps:
    """Result of the jump test: its kind, and the share of change that slopes miss."""

    # "strongly curved" is smooth between closer nodes
    kind: Literal["smooth", "strongly curved", "jumps", "constant"]
    # the share of the change of f that slopes do not explain; nan if constant
    J: float
    evaluations: int  # evaluated rows

    def in_words(self) -> str:
        """The verdict in one line."""
        if self.kind == "constant":
            return "constant between the tested rows: no verdict"
        missed = round(100.0 * min(self.J, 1.0))
        share = f"its slopes miss {missed} % of its change between rows"
        return f"{self.kind}: {share} (J = {self.J:.3g})"


@final
@dataclass(frozen=True, eq=False)
class Segments:
    """Straight segments between rows, x + τd for 0 ≤ τ ≤ 1."""

    starts: Points  # (n, D): x
    ways: Points  # (n, D): d

    @classmethod
    def between(
        cls, points: Points, numeric: NDArray[np.bool_], rng: np.random.Generator
    ) -> Segments | None:
        """Random segments, a quarter of the way between rows, in numeric columns."""
        n_rows = len(points)
        if n_rows < 2:
            return None
        start = rng.integers(n_rows, size=N_SEGMENTS)
        end = (start + rng.integers(1, n_rows, size=N_SEGMENTS)) % n_rows
        ways = PART * (points[end] - points[start])
        low = np.fmin.reduce(points, axis=0)
        high = np.fmax.reduce(points, axis=0)
        has_three = ((points > low) & (points < high)).any(axis=0)
        moved = numeric & has_three & ~np.isnan(ways)
        ways = np.where(moved, ways, 0.0)
        return cls(points[start], ways) if ways.any() else None

    def values(self, evaluate: Along, times: Array) -> Array:
        """Values φ at the times τ, shape (n, len(times)), in calls of bounded size."""
        n, width = self.starts.shape
        values = np.empty((n, len(times)))
        for block in row_blocks(n, width, copies=len(times)):
            moved = times[:, None] * self.ways[block, None, :]
            points = self.starts[block, None, :] + moved
            values[block] = evaluate(points.reshape(-1, width)).reshape(-1, len(times))
        return values

    def explained(self, evaluate: Along, n_nodes: int) -> Values:
        """The change explained by slopes, Σ_i w_i φ'(τ_i), shape (n,)."""
        times, weights = legendre(n_nodes)
        neighbouring = np.concatenate([times + STEP, times - STEP])
        ahead, behind = np.split(self.values(evaluate, neighbouring), 2, axis=1)
        slopes: Array = (ahead - behind) / (2.0 * STEP)
        return slopes @ weights


def jumps_along(evaluate: Along, segments: Segments, function: object) -> Jumps:
    """The verdict: smooth if J ≤ 0.05 with 8 nodes, strongly curved if with 32."""
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
    refuse_unstable_values(first.ravel(), again.ravel(), epsilon, function)
    return Jumps("jumps", share, MOST + first.size)


def _unexplained(ends: Array, explained: Values) -> float:
    """The share J; nan if the change is within the rounding errors of slopes."""
    with np.errstate(invalid="ignore"):  # ∞ − ∞: such segments are left out
        change = ends[:, 1] - ends[:, 0]
        missed = np.abs(change - explained)
    finite = np.isfinite(missed)
    total = float(np.abs(change[finite]).sum())
    rounding = precision_of(ends) / STEP * float(np.abs(ends[finite]).sum())
    return float(missed[finite].sum()) / total if total > rounding else float("nan")


# ---- Facts about a model from a few test rows


SHORTEST = 1e-9
"""Seconds, if the clock did not advance."""


TRIAL_ROWS = 3
"""Rows that are evaluated twice at the first call of a model."""


@final
@dataclass
class Trial:
    """Facts about a model from a few test rows."""

    done: bool = False  # whether two calls agreed
    # whether a call succeeded: it accepts such tables
    answered: bool = False
    # the relative rounding of its values at points that are no integers
    epsilon: float | None = None
    jumps: Jumps | None = None  # whether it jumps between rows
    warned: bool = False  # whether a warning about jumps was issued
    seconds: float = 0.0  # the time of one row, in a call of a few

    def call_twice(
        self,
        call: Callable[[], ValuesWithPrecision],
        n_rows: int,
        calls: EvaluationCounter,
        function: object,
    ) -> float:
        """The precision ε of values at a few rows, which must agree in two calls."""
        calls.trials += 2 * n_rows
        first, epsilon = call()
        start = time.perf_counter()
        again, _ = call()
        self.seconds = max(time.perf_counter() - start, SHORTEST) / n_rows
        refuse_unstable_values(first, again, epsilon, function)
        self.done = True
        return epsilon
