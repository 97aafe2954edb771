"""Where the paper errs: Proposition 1 and its proof, eq. 13, and LIME for small δ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg as la

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Misprint, Refuted
from papers.engine.studies import Chart, Study, draw_charts
from papers.properties.curves import Entries
from papers.properties.formulas import lime_study, maximum_study, objective_study
from propopt.base.arrays import Array


_COUNTS = (50, 200, 400)
_LENGTHSCALE = 1.5
_ROUNDING = 1e-6
"""Of the precision of a kernel with a condition of 1e9."""
_TRIANGLE = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
"""max(1 − |x − x'|, 0) at 0, 1/2 and 1: positive definite."""


def figure_of_errors() -> PaperFigure:
    """A factor, and a bound in the proof."""
    return PaperFigure(
        title="Proposition 1 and its proof, eq. 13 and LIME for small δ",
        about=_ABOUT,
        panels=(
            Study(
                column="Proposition 1",
                row="factor",
                measure=energies,
                statements=(factor_is_one, factor_is_two),
                charts=lambda _: (),
            ),
            *(
                Study(
                    column="Proposition 1",
                    row=f"proof, N = {count}",
                    measure=partial(row_sums, count),
                    statements=(bounds_hold, limit_holds),
                    charts=_charts,
                )
                for count in _COUNTS
            ),
            Study(
                column="Proposition 1",
                row="proof, three points",
                measure=three_points,
                statements=(bounds_hold, limit_holds),
                charts=_charts,
            ),
            objective_study(grid_kernel()),
            maximum_study(),
            lime_study(),
        ),
        draw=partial(draw_charts, size=(4.6, 2.9)),
    )


_ABOUT = """\
Proposition 1 takes robustness for the energy EᵀΣ⁻¹E of a Gaussian process whose mean is
marginalised out, so that Σ⁻¹1 = 0. Eq. 24 has that energy as
−½Σ‖E_n − E_n'‖²(Σ⁻¹)_nn'; eqs. 8 and 19 lack the ½, and have K⁻¹ in the place of Σ⁻¹.
The proof replaces one by the other with 1/r_upper ≤ (K⁻¹1)_s ≤ 1/r_lower for the
largest and the least row sum r of the kernel matrix K, which does not hold: with K⁻¹
eq. 8 has no minimum, with Σ⁻¹ it has. Eq. 13 recasts a maximum as a sum; eq. 16 has no
intercept, so that LIME does not tend to the gradient.
Points are uniform in (−5, 5)³ and the kernel is gaussian of lengthscale 1.5, as in
figure 5; three points are those of a counterexample."""


def kernel(count: int) -> Array:
    """A gaussian kernel of uniform points in three dimensions."""
    X = np.random.default_rng(0).uniform(-5.0, 5.0, (count, 3))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares / (2.0 * _LENGTHSCALE**2)))


def grid_kernel() -> Array:
    """A gaussian kernel of lengthscale 0.4, of 50 points over [−5, 5]."""
    x = np.linspace(-5.0, 5.0, 50)
    return np.asarray(np.exp(-((x[:, None] - x) ** 2) / (2.0 * 0.4**2)))


def energies() -> float:
    """−Σ|E_n − E_n'|²Σ⁻¹_nn' over EᵀΣ⁻¹E, for E at random."""
    K = kernel(50)
    inverse, ones = np.linalg.inv(K), np.ones(50)
    u = inverse @ ones
    precision = inverse - np.outer(u, u) / (ones @ u)
    E = np.random.default_rng(1).normal(size=50)
    pairs = -((E[:, None] - E[None]) ** 2 * precision).sum()
    return float(pairs / (E @ precision @ E))


def factor_is_one(ratio: float) -> Claim:
    """As it is printed."""
    return Claim(
        statement="−Σ‖E_n − E_n'‖²(Σ⁻¹)_nn', as eqs. 8 and 19 have it, is EᵀΣ⁻¹E: "
        "difference of their ratio from 1",
        value=abs(ratio - 1.0),
        sense="<=",
        limit=_ROUNDING,
        if_false=Misprint(
            "it is 2EᵀΣ⁻¹E: eq. 24 has the factor ½, which eqs. 8 and 19 lack"
        ),
    )


def factor_is_two(ratio: float) -> Invariant:
    """As it is."""
    return Invariant(
        statement="−Σ‖E_n − E_n'‖²(Σ⁻¹)_nn' = 2EᵀΣ⁻¹E: difference of their ratio from "
        "2",
        value=abs(ratio - 2.0),
        sense="<=",
        limit=_ROUNDING,
    )


@dataclass(frozen=True, eq=False)
class RowSums:
    """K⁻¹1, and the row sums of K.

    Parameters
    ----------
    K : array (N, N)
        A kernel matrix.
    """

    K: Array

    @property
    def solution(self) -> Array:
        """K⁻¹1, (N,)."""
        return np.asarray(la.solve(self.K, np.ones(len(self.K)), assume_a="pos"))

    @property
    def band(self) -> tuple[float, float]:
        """1/r_upper and 1/r_lower."""
        sums = self.K.sum(axis=1)
        return float(1.0 / sums.max()), float(1.0 / sums.min())

    @property
    def outside(self) -> float:
        """The share of entries that are not between them, by more than rounding."""
        low, high = self.band
        u = self.solution
        return float(np.mean((u < low - _ROUNDING) | (u > high + _ROUNDING)))


def row_sums(count: int) -> RowSums:
    """Those of uniform points."""
    return RowSums(kernel(count))


def three_points() -> RowSums:
    """Those of a counterexample."""
    return RowSums(_TRIANGLE)


def bounds_hold(own: RowSums) -> Claim:
    """As the proof has it."""
    return Claim(
        statement="1/r_upper ≤ (K⁻¹1)_s ≤ 1/r_lower: share of entries for which it is "
        "false",
        value=own.outside,
        sense="<=",
        limit=0.0,
        if_false=Refuted(
            "k = max(1 − |x − x'|, 0) at 0, 1/2 and 1: K⁻¹1 = (1, 0, 1), row sums "
            "are 3/2, 2 and 3/2, and neither 0 nor 1 is between 1/2 and 2/3; the step "
            "turns Σ⁻¹ into K⁻¹, with which eq. 8 has no minimum"
        ),
    )


def limit_holds(own: RowSums) -> Invariant:
    """Σ⁻¹1 = K⁻¹1/(1 + σ²1ᵀK⁻¹1) for Σ = K + σ²11ᵀ: it falls as 1/σ²."""
    variance = 1e3
    sigma = own.K + variance
    ones = np.ones(len(own.K))
    u = own.solution
    exact = u / (1.0 + variance * (ones @ u))
    error = np.abs(la.solve(sigma, ones) - exact).max()
    return Invariant(
        statement="Σ⁻¹1 = K⁻¹1/(1 + σ²1ᵀK⁻¹1), which vanishes as σ² grows: largest "
        "error of an entry, of the largest",
        value=float(error / np.abs(exact).max()),
        sense="<=",
        limit=1e-3,
    )


def _charts(own: RowSums) -> Sequence[Chart]:
    return (
        Entries(
            title=f"K⁻¹1, N = {len(own.K)}",
            entries=np.sort(own.solution),
            band=own.band,
        ),
    )
