"""Two formulas that are not to be computed with as they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from papers.engine.findings import Claim, Invariant, Misprint
from papers.engine.studies import Study
from papers.lime.charts import RUNS, THEORY
from papers.lime.gaussian_theory import gains
from papers.lime.lines import DrawnLine, Lines
from papers.lime.statements import FORMULA, equals
from papers.tabular_lime.formulas import printed_smooth_step
from propopt.base.arrays import Array, Values
from propopt.lime import GaussianLaw


_MEAN, _SCALE, _WIDTH = 0.5, 1.3, 0.8
_ROWS = np.linspace(-1.9, 2.9, 97)
_CHECKED: Final = slice(None, None, 12)
"""Rows where steps are integrated."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothSteps:
    """θ of Example 11 at rows of one column.

    Parameters
    ----------
    exact, printed : array (K,)
        As the library has it, and by the formula of the paper.
    integrated : array (K / 12,)
        −(E_Q[x | bin] − E_Q[x | outside]) α (1 − α) by quadrature, at some of the rows.
    """

    exact: Values
    printed: Values
    integrated: Values


def steps_study() -> Study[SmoothSteps]:
    """Example 11: weights by distance, bins between quantiles of a normal law."""
    return Study(
        column="Example 11",
        measure=smooth_steps,
        statements=(steps_are_integrals, factor_is_known, steps_as_printed),
        charts=_step_charts,
    )


def smooth_steps() -> SmoothSteps:
    """Of N(0.5, 1.3²), ν = 0.8."""
    law = GaussianLaw.of(np.array([_MEAN]), _SCALE, _WIDTH)
    return SmoothSteps(
        exact=gains(law, _ROWS[:, None]).theta[:, 0],
        printed=printed_smooth_step(_ROWS, _MEAN, _SCALE, _WIDTH),
        integrated=np.array([_integrated(x) for x in _ROWS[_CHECKED]]),
    )


def steps_are_integrals(steps: SmoothSteps) -> Invariant:
    """With s̃ / √(2π) in front."""
    result, known = steps.exact[_CHECKED], steps.integrated
    off = (result - known) / np.abs(known).max()
    return equals("Example 11: θ with s̃ / √(2π) is what integrals give", off, 0.0, 1e-9)


def factor_is_known(steps: SmoothSteps) -> Invariant:
    """At the row where it is largest; both would be zero where one is."""
    at = int(np.abs(steps.exact).argmax())
    squared = _WIDTH**2 * _SCALE**2 / (_WIDTH**2 + _SCALE**2)
    ratio = steps.printed[at] / steps.exact[at]
    return equals(
        f"as printed θ is too large by 1 / s̃² = {1 / squared:.4f}",
        float(ratio * squared),
        1.0,
        1e-9,
    )


def steps_as_printed(steps: SmoothSteps) -> Claim:
    """With 1 / (s̃ √(2π)) in front."""
    result, known = steps.printed[_CHECKED], steps.integrated
    off = np.abs(result - known)
    worst = int(off.argmax())
    return Claim(
        statement="Example 11: θ with 1 / (s̃ √(2π)) as printed is what integrals give: "
        "largest difference, of the largest θ",
        value=float(off[worst] / np.abs(known).max()),
        sense="<=",
        limit=FORMULA,
        note=f"{result[worst]:.4f} against {known[worst]:.4f}",
        if_false=Misprint("the factor is s̃ / √(2π)"),
    )


def _integrated(row: float) -> float:
    """From the definition, on SciPy's normals: quantile bins, density, weight."""
    ends = norm(_MEAN, _SCALE).ppf(np.arange(5) / 4)
    b = int(np.searchsorted(ends, row, side="right"))
    low, high = np.clip(ends[b - 1 : b + 1], _MEAN - 12.0, _MEAN + 12.0)

    def weight(x: float) -> float:
        return float(norm.pdf(x, _MEAN, _SCALE) * norm.pdf(x, row, _WIDTH))

    def moments(start: float, stop: float) -> Array:
        return np.array(
            [
                quad(lambda x, k=k: x**k * weight(x), start, stop, epsabs=1e-13)[0]
                for k in (0, 1)
            ]
        )

    inside = moments(low, high)
    outside = moments(_MEAN - 12.0, low) + moments(high, _MEAN + 12.0)
    alpha = inside[0] / (inside[0] + outside[0])
    gap = inside[1] / inside[0] - outside[1] / outside[0]
    return float(-gap * alpha * (1.0 - alpha))


def _step_charts(steps: SmoothSteps) -> tuple[Lines, ...]:
    return (
        Lines(
            title="Example 11: N(0.5, 1.3²), ν = 0.8",
            x_label="ξ",
            y_label="θ",
            curves=(
                DrawnLine(label="as printed", x=_ROWS, y=steps.printed, colour=THEORY),
                DrawnLine(label="mended", x=_ROWS, y=steps.exact, colour=RUNS),
                DrawnLine(
                    label="integrals",
                    x=_ROWS[_CHECKED],
                    y=steps.integrated,
                    colour="black",
                    line="o",
                ),
            ),
        ),
    )
