"""Weights of samples: figures 3 and 8."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Misprint
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import EXPECTED, OTHER, RUNS, THEORY
from papers.lime.lines import DrawnLine, Lines
from papers.lime.statements import equals
from papers.text_lime import formulas
from propopt.base.arrays import Array
from propopt.lime.text.word_limits import TextLaw


_SHOWN: Final = (0.1, 0.25, 0.35, 1.0)
_COLOURS: Final = (RUNS, THEORY, OTHER, EXPECTED)


def psi_figure() -> PaperFigure:
    """Figures 3 and 8."""
    return PaperFigure(
        title="The weight of a sample (figures 3 and 8)",
        about="ψ(s / d) of the share of words that are deleted, at four bandwidths, "
        "with the bounds exp(−t² / (2 ν²)) and exp(−t² / (8 ν²)) at ν = 0.25, the "
        "package's default; and at the left end, ψ for wider kernels.",
        panels=(
            Study(
                column="ψ",
                measure=psi_curves,
                statements=(
                    law_has_psi,
                    lies_between_bounds,
                    falls_to_its_least,
                    wide_kernels_weigh_nothing,
                ),
                charts=_psi_charts,
            ),
        ),
        draw=partial(draw_charts, size=(5.0, 3.2)),
    )


def psi_curves() -> Array:
    """ψ at 101 shares, for the bandwidths shown, (4, 101)."""
    t = np.linspace(0.0, 1.0, 101)
    return np.array([formulas.psi(t, nu) for nu in _SHOWN])


def law_has_psi(curves: Array) -> Invariant:
    """Weights of 2000 draws, from cosines of their bits."""
    del curves
    bits, weights = TextLaw(0.25).draw(29, 2000, np.random.default_rng(0))
    cosines = np.sqrt(bits.sum(axis=1) / 29.0)
    package = np.exp(-((100.0 * (1.0 - cosines)) ** 2) / 25.0**2)
    return equals(
        "weights of draws are those of the package with kernel width 25",
        weights / np.sqrt(package) - 1.0,
        0.0,
        1e-12,
    )


def lies_between_bounds(curves: Array) -> Claim:
    """At all shares and bandwidths that are shown."""
    t = np.linspace(0.0, 1.0, 101)
    low = [np.exp(-(t**2) / (2.0 * nu**2)) for nu in _SHOWN]
    high = [np.exp(-(t**2) / (8.0 * nu**2)) for nu in _SHOWN]
    return Claim(
        statement="exp(−t² / (2 ν²)) ≤ ψ(t) ≤ exp(−t² / (8 ν²)): by how much ψ is "
        "outside, at most",
        value=float(np.maximum(low - curves, curves - high).max()),
        sense="<=",
        limit=1e-15,
    )


def falls_to_its_least(curves: Array) -> Claim:
    """From 1."""
    least = np.exp(-1.0 / (2.0 * np.square(_SHOWN)))
    ends = np.abs(curves[:, [0, -1]] - np.column_stack([np.ones(4), least])).max()
    return Claim(
        statement="ψ decreases from 1 to exp(−1 / (2 ν²)): largest step, and how far "
        "its ends are off",
        value=float(max(np.diff(curves, axis=1).max(), ends)),
        sense="<=",
        limit=1e-15,
    )


def wide_kernels_weigh_nothing(curves: Array) -> Claim:
    """It tends to 1; a misprint."""
    del curves
    return Claim(
        statement="ψ → 0 for ν → ∞ (as printed): ψ(1/2) at ν = 1000",
        value=float(formulas.psi(np.array([0.5]), 1000.0)[0]),
        sense="<=",
        limit=0.01,
        if_false=Misprint("ψ → 1 for ν → ∞"),
    )


def _psi_charts(curves: Array) -> tuple[Lines, ...]:
    t = np.linspace(0.0, 1.0, 101)
    shown = tuple(
        DrawnLine(label=f"ν = {nu}", x=t, y=curve, colour=colour)
        for nu, curve, colour in zip(_SHOWN, curves, _COLOURS, strict=True)
    )
    bounds = tuple(
        DrawnLine(
            label="bounds" * (k == 8),
            x=t,
            y=np.exp(-(t**2) / (k * 0.25**2)),
            colour="0.3",
            line=":",
        )
        for k in (8, 2)
    )
    return (
        Lines(title="weights", x_label="s / d", y_label="ψ", curves=shown),
        Lines(
            title="ν = 0.25, with bounds",
            x_label="s / d",
            y_label="ψ",
            curves=(shown[1], *bounds),
        ),
    )
