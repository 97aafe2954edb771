"""How often a method gives the pair (1, 2) the largest score: figures 2, A2 to A5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np

from papers.engine.findings import Claim
from papers.engine.studies import Study
from papers.iloco.learners import LearnerName, paper_learner
from papers.iloco.methods import (
    COMPARED,
    FAITH,
    FIFTH,
    HALF,
    LOOKS,
    RIVALS,
    SPLIT,
    quietly,
    schemes,
    with_seed,
)
from papers.iloco.scale import Scale
from papers.iloco.shares import (
    Successes,
    difference_between,
    excess_between,
    share_between,
)
from papers.iloco.simulations import Simulation
from papers.lime.lines import DrawnLine, Lines
from propopt.base.arrays import Points, Values
from propopt.interactions import ILOCO, Minipatches


_APART: Final = 0.01


@final
@dataclass(frozen=True, kw_only=True)
class SuccessCurve:
    """Replicates of a simulation, at each snr.

    Parameters
    ----------
    simulation : Simulation
        What is drawn.
    learner : str
        What learns it.
    scale : Scale
        How often.
    """

    simulation: Simulation
    learner: LearnerName
    scale: Scale

    def measure(self) -> Successes:
        """All replicates are independent, those at another snr too."""
        with quietly():
            runs = [
                [self._found(place, run) for run in range(self.n_replicates)]
                for place in range(len(self.scale.ratios))
            ]
        return Successes.of(self.scale.places, runs)

    @property
    def n_replicates(self) -> int:
        """How many draws each share is of."""
        return self.scale.n_replicates[self.learner]

    def _found(self, place: int, run: int) -> Mapping[str, bool]:
        """By method, whether (1, 2) has the largest score."""
        rng = np.random.default_rng([run, 14, place])
        X, y = self.simulation.draw(self.scale.ratios[place], self.scale.n_rows, rng)
        seed = run + self.n_replicates * place
        return {
            method: int(np.argmax(scores)) == 0
            for method, scores in self._scores(X, y, seed)
        }

    def _scores(self, X: Points, y: Values, seed: int) -> Iterator[tuple[str, Values]]:
        """Of all pairs, by method; (1, 2) is the first of them."""
        for method, scheme in schemes(self.scale.n_patches[self.learner]).items():
            own = self._learner(patch=isinstance(scheme, Minipatches))
            fitted = ILOCO(own, scheme, random_state=seed, progress=False).fit(X, y)
            yield method, fitted.result_.estimates
        model = with_seed(self._learner(), seed).fit(X, y)
        for method, score in COMPARED.items():
            yield method, score(model, X, rng=seed).estimates

    def _learner(self, *, patch: bool = False) -> Any:
        return paper_learner(self.learner, self.simulation.task, patch=patch)


def study_of_curve(curve: SuccessCurve, row: str, told: str) -> Study[Successes]:
    """The panel of a learner and a simulation; ``told`` is in what they differ."""
    return Study(
        column=curve.learner,
        row=row,
        measure=curve.measure,
        statements=(
            partial(grows, method=SPLIT, difference=told),
            partial(grows, method=FIFTH, difference=told),
            partial(grows, method=HALF, difference=f"m = 50% M; {told}"),
            partial(beats_rivals, method=SPLIT, difference=told),
            partial(beats_rivals, method=FIFTH, difference=told),
            partial(early, difference=told),
        ),
        charts=partial(success_charts, title=f"{curve.learner}, {row}"),
        numbers=Successes.to_frame,
    )


def grows(result: Successes, *, method: str, difference: str) -> Claim:
    """From chance to certainty."""
    shares, runs = result.shares[method], result.found[method]
    return Claim(
        statement=f"{method} finds (1, 2) where snr is large and not where it is 0: "
        "share of replicates at the largest less that at 0",
        value=float(shares[-1] - shares[0]),
        sense=">=",
        limit=0.5,
        note=result.told(method),
        difference=difference,
        between=difference_between(runs[-1], runs[0]),
    )


def beats_rivals(result: Successes, *, method: str, difference: str) -> Claim:
    """At all snr together; not to be worse than either is decided of each."""
    own = result.found[method]
    ends = [excess_between(own, result.found[one], len(RIVALS)) for one in RIVALS]
    means = {one: float(result.shares[one].mean()) for one in RIVALS}
    best = max(RIVALS, key=means.__getitem__)
    return Claim(
        statement=f"{method} finds (1, 2) at least as often as H-statistic and "
        "Faith-Shap: mean share over snr, less that of the better one",
        value=float(own.mean() - means[best]),
        sense=">=",
        limit=0.0,
        note=f"{result.told(method)}; {best}: {result.told(best)}",
        difference=difference,
        between=(min(low for low, _ in ends), min(high for _, high in ends)),
    )


def early(result: Successes, *, difference: str) -> Claim:
    """At the lowest snr above 0."""
    place = int(np.flatnonzero(result.places > 0)[0])
    return Claim(
        statement="Faith-Shap finds (1, 2) at a low snr already: share of replicates "
        "at the lowest above 0",
        value=float(result.shares[FAITH][place]),
        sense=">=",
        limit=0.5,
        note=f"snr {result.places[place]:g}",
        difference=difference,
        between=share_between(result.found[FAITH][place]),
    )


def success_charts(result: Successes, *, title: str) -> tuple[Lines, ...]:
    """One chart, by snr."""
    return (success_lines(result, title=title, x_label="snr"),)


def success_lines(result: Successes, *, title: str, x_label: str) -> Lines:
    """A line for each method, a little apart, so that none hides another."""
    middle = len(result.found) / 2
    lines = tuple(
        DrawnLine(
            label=method, x=result.places, y=shares + _APART * (k - middle),
            colour=LOOKS[method][0], line=LOOKS[method][1],
        )
        for k, (method, shares) in enumerate(result.shares.items())
    )  # fmt: skip
    return Lines(
        title=title, x_label=x_label, y_label="share of replicates", curves=lines,
        y_limits=(-0.06, 1.06),
    )  # fmt: skip
