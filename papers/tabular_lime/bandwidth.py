"""Coefficients as functions of the kernel width: where they change their sign."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Refuted
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import EXPECTED, THEORY
from papers.lime.lines import DrawnLine, Lines
from papers.lime.runs import fit_bits
from papers.lime.statements import BAND, equals
from papers.tabular_lime.setups import uniform_law
from papers.tabular_lime.wine import WineMachine
from propopt.base.arrays import Array, Values
from propopt.lime.exact_limits import ExactLimits, Limits
from propopt.lime.finite_samples import expected
from propopt.lime.paths import path_of_row


_WIDTHS: Final = np.linspace(0.001, 4.0, 50)
_FIELD: Final = 0.5
"""From this width on samples have weight enough for the means of their equations."""
_ASH, _PROANTHOCYANINS = 2, 8


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class WidthCurves:
    """Coefficients at many kernel widths.

    Parameters
    ----------
    limits, expected, means, spreads : array (K, D)
        Of infinitely many samples; of n in their mean; of runs; and the standard
        deviation of a run.
    changes : tuple of arrays
        All widths where limits change their sign.
    mean_roots : mapping
        Those where the mean of runs of n samples does, for ash, by n.
    labels : tuple of str (D,)
        Names of the columns.
    n_runs : int
        R.
    """

    limits: Array
    expected: Array
    means: Array
    spreads: Array
    changes: tuple[Values, ...]
    mean_roots: dict[int, float]
    labels: tuple[str, ...]
    n_runs: int

    @property
    def scores(self) -> Array:
        """Z of the means over runs, where widths are not too small."""
        some = _WIDTHS >= _FIELD
        errors = self.spreads[some] / np.sqrt(self.n_runs)
        return np.asarray((self.means[some] - self.expected[some]) / errors)

    @property
    def roots(self) -> dict[str, float]:
        """Widths where coefficients are zero, by what they are of."""
        of_limits = {
            label: float(width)
            for label, widths in zip(self.labels, self.changes, strict=True)
            for width in widths
        }
        of_means = {
            f"ash in the mean of runs of {n}": root
            for n, root in self.mean_roots.items()
        }
        return of_limits | of_means

    def to_frame(self) -> pd.DataFrame:
        """The roots."""
        return pd.DataFrame({"zero of": list(self.roots), "ν": [*self.roots.values()]})


def bandwidth_figure() -> PaperFigure:
    """Fifty widths."""
    roots = {
        "ash": 0.654,
        "proanthocyanins": 0.568,
        "ash in the mean of runs of 1000": 1.081,
        "ash in the mean of runs of 5000": 0.902,
    }
    return PaperFigure(
        title="The kernel width changes signs (figures 7 and 20)",
        about="Kernel ridge (gaussian kernel of scale 5, α = 1) on the classes of 142 "
        "of the standardised wines, at the first wine; 50 widths in [0.001, 4], "
        "n = 1000, 100 runs. Theory has neither ridge nor the row itself as a sample; "
        "with them, in green, coefficients fall to zero with the width.",
        panels=(
            Study(
                column="50 widths",
                measure=partial(width_curves, n_samples=1000, n_runs=100),
                statements=(
                    means_are_expected,
                    *(
                        partial(is_root, name=name, known=known)
                        for name, known in roots.items()
                    ),
                    no_other_changes,
                    changes_sign,
                    runs_vanish,
                    theory_vanishes,
                    theory_settles,
                ),
                charts=_charts,
                numbers=WidthCurves.to_frame,
            ),
        ),
        draw=partial(draw_charts, columns=3, size=(4.4, 3.0)),
    )


def width_curves(n_samples: int, n_runs: int) -> WidthCurves:
    """The same samples are weighted for all widths."""
    exact, machine, row = _setup()
    at_widths = _at(exact, row, _WIDTHS)
    value = machine(row[None, :])
    estimates = _runs(exact, machine, row, n_samples, n_runs)
    return WidthCurves(
        limits=at_widths.coefficients,
        expected=_in_mean(at_widths, value, n_samples),
        means=estimates.mean(axis=1)[:, 1:],
        spreads=estimates.std(axis=1, ddof=1)[:, 1:],
        changes=path_of_row(exact, row).sign_changes,
        mean_roots={n: _mean_root(exact, row, value, n) for n in (1000, 5000)},
        labels=exact.law.labels.feature_names(len(row)),
        n_runs=n_runs,
    )


def means_are_expected(curves: WidthCurves) -> Invariant:
    """At all widths where the mean equations can be trusted."""
    return Invariant(
        statement=f"means over runs are the expected output at n for all ν ≥ {_FIELD}: "
        "largest |z| of all coefficients",
        value=float(np.abs(curves.scores).max()),
        sense="<=",
        limit=BAND,
        note=f"{curves.scores.size} of them, rms {_rms(curves.scores):.2f}",
    )


def is_root(curves: WidthCurves, *, name: str, known: float) -> Invariant:
    """Where a coefficient is zero."""
    root = curves.roots.get(name, math.nan)
    return equals(f"zero of {name} at ν = {known}", root, known, 5.1e-4)


def no_other_changes(curves: WidthCurves) -> Invariant:
    """On a grid of widths a sixteenth of an octave apart."""
    counts = np.array([len(widths) for widths in curves.changes])
    others = np.delete(counts, [_ASH, _PROANTHOCYANINS]).sum()
    return equals("limits of other columns change signs nowhere", others, 0.0, 0.0)


def changes_sign(curves: WidthCurves) -> Claim:
    """Feature 3 of the paper's figure."""
    ash = curves.limits[:, _ASH]
    low, high = (float(np.interp(width, _WIDTHS, ash)) for width in (0.5, 1.0))
    return Claim(
        statement="the coefficient of ash (feature 3) changes its sign with ν: its "
        "value at ν = 1/2 over that at ν = 1",
        value=low / high,
        sense="<=",
        limit=0.0,
        note=f"{low:.4f} and {high:.4f}",
    )


def runs_vanish(curves: WidthCurves) -> Claim:
    """What the paper's figure shows, and ridge makes."""
    return Claim(
        statement="runs with ridge 1 go to zero as ν → 0: largest mean at ν = 0.001, "
        "over that at ν = 4",
        value=_largest_ratio(curves.means),
        sense="<=",
        limit=0.01,
    )


def theory_vanishes(curves: WidthCurves) -> Claim:
    """It does not: E[f | bins of the row] less E[f | another bin in column j]."""
    return Claim(
        statement="β^f → 0 as ν → 0, without ridge: largest at ν = 0.001, over that at "
        "ν = 4",
        value=_largest_ratio(curves.limits),
        sense="<=",
        limit=0.01,
        if_false=Refuted(
            "β^f is without ridge by assumption 2, and keeps 96% of its size here; for "
            "a linear f it is the same at every ν (corollary 4)"
        ),
    )


def theory_settles(curves: WidthCurves) -> Claim:
    """From two wide kernels on, to where the figure ends."""
    scale = np.abs(curves.limits[-1]).max()
    place = int(np.searchsorted(_WIDTHS, 3.0))
    change = np.abs(curves.limits[place] - curves.limits[-1]).max()
    return Claim(
        statement="coefficients settle as ν grows: largest change from ν = 3 to ν = 4, "
        "of the largest",
        value=float(change / scale),
        sense="<=",
        limit=0.05,
    )


def _rms(scores: Array) -> float:
    return float(np.sqrt(np.mean(scores**2)))


def _largest_ratio(curves: Array) -> float:
    first, last = np.abs(curves[[0, -1]]).max(axis=1)
    return float(first / last)


def _setup() -> tuple[ExactLimits, WineMachine, Values]:
    fitted_on, _ = train_test_split(np.arange(178), test_size=0.2, random_state=5)
    machine = WineMachine.learned(5.0, 13, fitted_on)
    law = uniform_law(machine.table, 4, 1.0)
    return ExactLimits(machine.exact, law), machine, machine.table.to_numpy()[0]


def _at(exact: ExactLimits, row: Values, widths: Values) -> Limits:
    return exact.of(np.tile(row, (len(widths), 1)), widths)


def _in_mean(limits: Limits, value: Values, n_samples: int) -> Array:
    values = np.repeat(value, len(limits.mean))
    return expected(limits, values, n_samples).coefficients


def _mean_root(exact: ExactLimits, row: Values, value: Values, n_samples: int) -> float:
    """Where ash has the mean zero: ridge and the row itself are in it."""

    def mean(width: float) -> float:
        result = _in_mean(_at(exact, row, np.array([width])), value, n_samples)
        return float(result[0, _ASH])

    return functions.zero_between(mean, 0.7, 2.0)


def _runs(
    exact: ExactLimits,
    values_of: Callable[[Array], Values],
    row: Values,
    n_samples: int,
    n_runs: int,
) -> Array:
    """Intercepts and coefficients, (K, R, D + 1)."""
    rng = np.random.default_rng(0)
    rows = np.tile(row, (n_runs, 1))
    draws = exact.law.draw(rows, n_samples, rng, first_row=True)
    values = values_of(draws.samples.reshape(-1, len(row)))
    mismatches = len(row) - draws.bits.sum(axis=2)
    return np.stack(
        [
            fit_bits(
                draws.bits,
                kernel_weights(mismatches, width),
                values.reshape(mismatches.shape),
                1.0,
            )
            for width in _WIDTHS
        ]
    )


def kernel_weights(mismatches: Array, width: float) -> Array:
    """Exp(−‖1 − z‖² / (2 ν²))."""
    return np.asarray(np.exp(-0.5 * mismatches / width**2))


def _charts(curves: WidthCurves) -> tuple[Lines, ...]:
    return tuple(_curves_of(curves, j) for j in range(len(curves.labels)))


def _default(factor: float, n_columns: int) -> float:
    """A width that grows with the root of the number of columns."""
    return factor * math.sqrt(n_columns)


def _curves_of(curves: WidthCurves, j: int) -> Lines:
    mean, spread = curves.means[:, j], curves.spreads[:, j]
    runs = DrawnLine(
        label=f"{curves.n_runs} runs: mean, ± sd",
        x=_WIDTHS,
        y=mean,
        band=(mean - spread, mean + spread),
    )
    theory = DrawnLine(label="theory", x=_WIDTHS, y=curves.limits[:, j], colour=THEORY)
    at_n = DrawnLine(
        label="expected at n",
        x=_WIDTHS,
        y=curves.expected[:, j],
        colour=EXPECTED,
        line="--",
    )
    return Lines(
        title=curves.labels[j],
        x_label="ν",
        y_label="coefficient",
        curves=(runs, theory, at_n),
        marks={
            "theory is zero": curves.changes[j].tolist(),
            "default of the package": [_default(0.75, len(curves.labels))],
            "default as printed": [_default(math.sqrt(0.75), len(curves.labels))],
        },
        legend=j in (0, _ASH),
    )
