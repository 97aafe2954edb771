"""Moments of bits, and the constants that follow: figures 9 to 11."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import EXPECTED, OTHER, RUNS, THEORY
from papers.lime.lines import DrawnLine, Lines
from papers.lime.statements import equals
from papers.lime.text_constants import TextConstants
from papers.text_lime import formulas
from propopt.base.arrays import Array, Values
from propopt.lime.text.word_limits import TextLaw


_WORDS: Final = 30
_WIDTHS = np.geomspace(0.05, 20.0, 120)
_COLOURS: Final = (RUNS, THEORY, OTHER, EXPECTED)
_A2: Final = (
    *(0.48441163, 0.33638798, 0.24985253, 0.19419235, 0.15584646, 0.12803622),
    *(0.27028198, 27.12818171, -1.24458160, 11.21927719, -0.33667971),
)
"""α_0, ..., α_5, c_d and σ / c_d of d = 29 and ν = 0.25."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ConstantCurves:
    """Moments and entries of Σ⁻¹ of 30 words at many bandwidths.

    Parameters
    ----------
    alphas : array (K, 4)
        α_0, ..., α_3.
    c : array (K,)
        c_d.
    ratios : array (K, 4)
        σ_0 / c_d, ..., σ_3 / c_d.
    """

    alphas: Array
    c: Values
    ratios: Array


def constants_figure() -> PaperFigure:
    """Figures 9, 10 and 11."""
    return PaperFigure(
        title="Moments, c_d and entries of Σ⁻¹ (figures 9, 10 and 11)",
        about="d = 30, by the bandwidth, with their limits for ν → ∞ dotted.",
        panels=(
            Study(
                column="constants",
                measure=constant_curves,
                statements=(
                    numbers_are_known,
                    inverse_is_inverse,
                    moments_tend,
                    moments_are_bounded,
                    c_tends,
                    c_is_bounded,
                    entries_tend,
                ),
                charts=_constant_charts,
            ),
            Study(
                column="many words",
                measure=c_by_words,
                statements=(c_is_linear_in_words, c_slope_is_known),
                charts=_words_charts,
            ),
        ),
        draw=partial(draw_charts, size=(5.0, 3.2)),
    )


def constant_curves() -> ConstantCurves:
    """As the paper's formulas give them."""
    entries = [formulas.inverse_entries(_WORDS, nu) for nu in _WIDTHS]
    c = np.array([one.c for one in entries])
    sigma = np.array([one.sigma for one in entries])
    return ConstantCurves(
        alphas=np.array([formulas.alphas(_WORDS, nu, 3) for nu in _WIDTHS]),
        c=c,
        ratios=sigma / c[:, None],
    )


def numbers_are_known(curves: ConstantCurves) -> Invariant:
    """Eleven of them, to eight digits."""
    del curves
    c, sigma = formulas.inverse_entries(29, 0.25)
    result = np.r_[formulas.alphas(29, 0.25, 5), c, sigma / c]
    return equals(
        "α_0, ..., α_5, c_d, σ / c_d of d = 29, ν = 0.25 are known",
        result,
        np.asarray(_A2),
        6e-9,
    )


def inverse_is_inverse(curves: ConstantCurves) -> Invariant:
    """Σ of the library times Σ⁻¹ of Proposition 2."""
    off = []
    for k in range(0, len(_WIDTHS), 10):
        inverse = np.full((_WORDS + 1, _WORDS + 1), curves.ratios[k, 3])
        np.fill_diagonal(inverse, curves.ratios[k, 2])
        inverse[0] = inverse[:, 0] = curves.ratios[k, 1]
        inverse[0, 0] = curves.ratios[k, 0]
        product = TextConstants(TextLaw(_WIDTHS[k]), _WORDS).matrix @ inverse
        off.append(np.abs(product - np.eye(_WORDS + 1)).max())
    return equals("Σ Σ⁻¹ is the identity", np.array(off), 0.0, 1e-10)


def moments_tend(curves: ConstantCurves) -> Claim:
    """Of ν = 20."""
    off = np.abs(curves.alphas[-1] / _moment_limits() - 1.0).max()
    return Claim(
        statement="α_p → (d − p) / ((p + 1) d) for ν → ∞: largest relative difference "
        "at ν = 20",
        value=float(off),
        sense="<=",
        limit=1e-3,
    )


def moments_are_bounded(curves: ConstantCurves) -> Claim:
    """At all bandwidths."""
    high = np.tile(_moment_limits(), (len(_WIDTHS), 1))
    low = high * np.exp(-1.0 / (2.0 * _WIDTHS[:, None] ** 2))
    outside = np.maximum(low - curves.alphas, curves.alphas - high)
    return Claim(
        statement="(d − p) / ((p + 1) d) · exp(−1 / (2 ν²)) ≤ α_p ≤ (d − p) / "
        "((p + 1) d): by how much α_p is outside, at most",
        value=float(outside.max()),
        sense="<=",
        limit=1e-15,
    )


def c_tends(curves: ConstantCurves) -> Claim:
    """Of ν = 20."""
    return Claim(
        statement="c_d → (d² − 1) / (12 d) for ν → ∞: relative difference at ν = 20",
        value=float(abs(curves.c[-1] / _c_limit(_WORDS) - 1.0)),
        sense="<=",
        limit=1e-3,
    )


def c_is_bounded(curves: ConstantCurves) -> Claim:
    """In logarithms: at ν = 0.05 the bound is below the least number."""
    room = np.log10(curves.c) + np.log10(40.0) + 2.0 / _WIDTHS**2 / np.log(10.0)
    return Claim(
        statement="c_d ≥ exp(−2 / ν²) / 40: decimal digits between them, at least",
        value=float(room.min()),
        sense=">=",
        limit=0.0,
        note=f"at ν = 0.25 {np.interp(0.25, _WIDTHS, room):.1f}",
    )


def entries_tend(curves: ConstantCurves) -> Claim:
    """To O(1 / d²): 36 / d² is enough for all four."""
    d = _WORDS
    known = np.array([4.0 - 6.0 / d, -6.0 / d, 6.0 - 12.0 / d, -6.0 / d])
    return Claim(
        statement="σ / c_d → 4 − 6/d, −6/d, 6 − 12/d, −6/d up to O(1/d²) for ν → ∞: "
        "largest difference at ν = 20, times d²",
        value=float(np.abs(curves.ratios[-1] - known).max() * d**2),
        sense="<=",
        limit=36.0,
    )


def c_by_words() -> Array:
    """d, and c_d / d at ν = 0.25, (2, K)."""
    d = np.array([5, 10, 20, 50, 100, 200, 500, 1000])
    c = [formulas.inverse_entries(int(n), 0.25).c for n in d]
    return np.stack([d, c / d])


def c_is_linear_in_words(result: Array) -> Claim:
    """Remark 1, as a conjecture."""
    return Claim(
        statement="Remark 1: c_d grows like d at fixed ν: c_d / d of 1000 words over "
        "that of 100, off from 1",
        value=float(abs(result[1, -1] / result[1, 4] - 1.0)),
        sense="<=",
        limit=0.1,
        note=f"{result[1, 4]:.5f} and {result[1, -1]:.5f}",
    )


def c_slope_is_known(result: Array) -> Invariant:
    """∫ψ ∫t²ψ − (∫tψ)² is 0.0104 at ν = 0.25."""
    t = (np.arange(100_000) + 0.5) / 100_000
    whole, one, two = (float(np.mean(t**k * formulas.psi(t, 0.25))) for k in range(3))
    limit = whole * two - one**2
    extrapolated = 2.0 * result[1, -1] - result[1, -2]
    return equals(
        f"c_d / d tends to ∫ψ ∫t²ψ − (∫tψ)² = {limit:.4f}: of 500 and 1000 words",
        extrapolated,
        limit,
        1e-6,
    )


def _moment_limits() -> Values:
    p = np.arange(4.0)
    return np.asarray((_WORDS - p) / ((p + 1.0) * _WORDS))


def _c_limit(d: int) -> float:
    return (d**2 - 1.0) / (12.0 * d)


def _constant_charts(curves: ConstantCurves) -> tuple[Lines, ...]:
    d, limits = _WORDS, _moment_limits()
    moments = [
        line
        for p in range(4)
        for line in _with_limit(f"α_{p}", curves.alphas[:, p], limits[p], _COLOURS[p])
    ]
    own, other = 6.0 * (d**2 - 2 * d + 3), -6.0 * (d - 3)
    known = (4.0 * d - 2.0, -6.0, own / (d - 1), other / (d - 1))
    entries = [
        line
        for i in range(4)
        for line in _with_limit(
            f"σ_{i} / c", curves.ratios[:, i], known[i] / (d + 1), _COLOURS[i]
        )
    ]
    c = _with_limit("c", curves.c, _c_limit(d), RUNS)
    return (
        Lines(title="moments", x_label="ν", y_label="α", curves=moments, log=True),
        Lines(title="c", x_label="ν", y_label="c", curves=c, log=True),
        Lines(
            title="entries of Σ⁻¹", x_label="ν", y_label="σ / c", curves=entries,
            log=True, y_limits=(-5.0, 40.0),
        ),
    )  # fmt: skip


def _with_limit(
    label: str, curve: Values, limit: float, colour: str
) -> tuple[DrawnLine, DrawnLine]:
    level = np.full(len(_WIDTHS), limit)
    return (
        DrawnLine(label=label, x=_WIDTHS, y=curve, colour=colour),
        DrawnLine(label="", x=_WIDTHS, y=level, colour=colour, line=":"),
    )


def _words_charts(result: Array) -> tuple[Lines, ...]:
    return (
        Lines(
            title="c over the number of words, ν = 0.25",
            x_label="d",
            y_label="c / d",
            curves=(DrawnLine(label="", x=result[0], y=result[1], line="o-"),),
            log=True,
        ),
    )
