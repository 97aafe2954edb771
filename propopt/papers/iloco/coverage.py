"""How often intervals hold what they are for: figures 3 and A6."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np
import pandas as pd

from propopt._typing import Values
from propopt.interactions import ILOCO, DataSplit, InteractionScores, Minipatches
from propopt.papers.iloco.learners import LearnerName, paper_learner
from propopt.papers.iloco.methods import FIFTH, LOOKS, SPLIT
from propopt.papers.iloco.scale import Scale
from propopt.papers.iloco.simulations import Simulation
from propopt.papers.lime.lines import DrawnLine, Lines
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.findings import Claim
from propopt.reproduce.studies import Study, draw_charts


_LEVEL: Final = 0.9
_ROWS: Final = (100, 250)
_NULL: Final = (5, 6)
_SIGNAL: Final = (0, 1)


@final
@dataclass(frozen=True, kw_only=True)
class CoverageRun:
    """Intervals of the pairs (1, 2) and (6, 7), again and again.

    Parameters
    ----------
    learner : str
        What learns.
    ratio : float
        snr of simulation (i), linear regression.
    scale : Scale
        How often.
    """

    learner: LearnerName
    ratio: float
    scale: Scale

    def measure(self) -> pd.DataFrame:
        """A row for each number of rows, method and pair.

        Targets have an error of their own, of the new rows: an interval counts as
        holding them if it does within none of it.
        """
        parts = [
            self._covered(n_rows, method)
            for n_rows in _ROWS
            for method in (SPLIT, FIFTH)
        ]
        return pd.concat(parts, ignore_index=True)

    def _covered(self, n_rows: int, method: str) -> pd.DataFrame:
        runs = range(self.scale.n_coverage)
        found = np.array([self._one(n_rows, method, seed) for seed in runs])
        return pd.DataFrame(
            {
                "rows": n_rows,
                "method": method,
                "pair": ["(1, 2)", "(6, 7)"],
                "coverage": found[:, 0].mean(axis=0),
                "width": found[:, 1].mean(axis=0),
                "excludes 0": found[:, 2].mean(axis=0),
            }
        )

    def _one(self, n_rows: int, method: str, seed: int) -> Values:
        """Whether each interval holds its target, its width, whether 0 is out, (3, 2).

        As in the paper: by the standard error of rows alone.
        """
        rng = np.random.default_rng([seed, n_rows, 18])
        simulation = Simulation(number="i", task="regression", tanh=False)
        X, y = simulation.draw(self.ratio, n_rows + self.scale.n_new, rng)
        fitted = self._model(method, seed).fit(X[:n_rows], y[:n_rows])
        target: InteractionScores = fitted.target(
            X[n_rows:], y[n_rows:], sets=[_SIGNAL, _NULL]
        )
        low, high = fitted.result_.intervals(
            level=_LEVEL, adjust="none", errors="rows"
        ).T
        held = (low <= target.estimates) & (target.estimates <= high)
        return np.array([held, high - low, (low > 0) | (high < 0)], dtype=np.float64)

    def _model(self, method: str, seed: int) -> ILOCO:
        patch = method == FIFTH
        learner = paper_learner(self.learner, "regression", patch=patch)
        patches = Minipatches(n_patches=self.scale.n_covered, n_features=0.2, keep=True)
        return ILOCO(
            learner, patches if patch else DataSplit(), sets=[_SIGNAL, _NULL],
            random_state=seed, progress=False,
        )  # fmt: skip


def coverage_figure(scale: Scale) -> PaperFigure:
    """Figure 3."""
    return _figure(scale, 0.0, "Figure 3")


def signal_coverage_figure(scale: Scale) -> PaperFigure:
    """Figure A6."""
    return _figure(scale, 2.0, "Figure A6")


def _figure(scale: Scale, ratio: float, title: str) -> PaperFigure:
    learners: tuple[LearnerName, ...] = ("KRBF", "RF")
    told = f"{scale.n_covered} patches, {scale.n_coverage} replicates, {scale.n_new} "
    told += "new rows for a target, 100 and 250 rows"
    return PaperFigure(
        title=f"{title}: coverage of intervals of 90%, snr {ratio:g}",
        about="Simulation (i), linear regression. The target of an interval is the "
        "score of the same predictors on new rows, and the standard error that of the "
        f"paper, of rows alone. {told}; networks are left out.",
        panels=tuple(_study(learner, ratio, scale, told) for learner in learners),
        draw=partial(draw_charts, size=(5.0, 3.0)),
    )


def _study(
    learner: LearnerName, ratio: float, scale: Scale, told: str
) -> Study[pd.DataFrame]:
    run = CoverageRun(learner=learner, ratio=ratio, scale=scale)
    return Study(
        column=learner,
        row=f"snr {ratio:g}",
        measure=run.measure,
        statements=(
            partial(split_is_nominal, n=scale.n_coverage, difference=told),
            partial(patches_are_above, difference=told),
            partial(nulls_are_not_found, method=SPLIT, difference=told),
            partial(nulls_are_not_found, method=FIFTH, difference=told),
        ),
        charts=partial(_charts, title=f"{learner}, snr {ratio:g}"),
        numbers=lambda found: found,
    )


def _coverage(found: pd.DataFrame, method: str) -> Values:
    """At the most rows, of both pairs."""
    own = found[(found["method"] == method) & (found["rows"] == max(_ROWS))]
    return own["coverage"].to_numpy()


def split_is_nominal(found: pd.DataFrame, *, n: int, difference: str) -> Claim:
    """Two-sided: 2.6 standard errors of a share of n, which one of 50 exceeds."""
    off = np.abs(_coverage(found, SPLIT) - _LEVEL)
    return Claim(
        statement="intervals of iLOCO-Split hold their targets in 90% of replicates at "
        "250 rows: largest distance, in standard errors of the share",
        value=float(off.max() / np.sqrt(_LEVEL * (1.0 - _LEVEL) / n)),
        sense="<=",
        limit=2.6,
        note=_told(found, SPLIT),
        difference=difference,
    )


def patches_are_above(found: pd.DataFrame, *, difference: str) -> Claim:
    """The paper has "slightly above nominal"."""
    return Claim(
        statement="intervals of iLOCO-MP hold their targets slightly more often than "
        "90%, at 250 rows: mean of both pairs",
        value=float(_coverage(found, FIFTH).mean()),
        sense=">=",
        limit=_LEVEL,
        note=_told(found, FIFTH),
        difference=difference,
    )


def nulls_are_not_found(found: pd.DataFrame, *, method: str, difference: str) -> Claim:
    """Coverage of the target does not make it so."""
    own = found[(found["method"] == method) & (found["pair"] == "(6, 7)")]
    shares = own["excludes 0"].to_numpy()
    return Claim(
        statement=f"intervals of {method} exclude 0 in a tenth of replicates for a "
        "pair that does not interact: largest share over N",
        value=float(shares.max()),
        sense="<=",
        limit=0.2,
        note="; ".join(
            f"{share:.2f} at {n}" for n, share in zip(own["rows"], shares, strict=True)
        ),
        difference=difference,
    )


def _told(found: pd.DataFrame, method: str) -> str:
    first, second = _coverage(found, method)
    return f"{first:.2f} of (1, 2), {second:.2f} of (6, 7)"


def _charts(found: pd.DataFrame, *, title: str) -> tuple[Lines, ...]:
    styles = {"(1, 2)": "-", "(6, 7)": "--"}
    curves = [
        DrawnLine(
            label=f"{method}, {pair}",
            x=own["rows"].to_numpy(np.float64),
            y=own["coverage"].to_numpy(np.float64),
            colour=LOOKS[str(method)][0],
            line=styles[str(pair)],
        )
        for (method, pair), own in found.groupby(["method", "pair"], sort=False)
    ]
    nominal = DrawnLine(
        label="90%", x=np.array(_ROWS, float), y=np.full(2, _LEVEL), colour="0.5",
        line=":",
    )  # fmt: skip
    return (
        Lines(
            title=title, x_label="N", y_label="share of intervals",
            curves=(*curves, nominal), y_limits=(0.6, 1.02),
        ),
    )  # fmt: skip
