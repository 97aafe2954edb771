"""How often a method gives the pair (1, 2) the largest score: figures 2, A2 to A5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import pandas as pd

from propopt._typing import Points, Values
from propopt.interactions import ILOCO, Minipatches
from propopt.papers.iloco.learners import LearnerName, paper_learner
from propopt.papers.iloco.methods import (
    COMPARED,
    FAITH,
    FIFTH,
    HALF,
    LOOKS,
    RIVALS,
    SPLIT,
    quiet_networks,
    schemes,
    with_seed,
)
from propopt.papers.iloco.scale import Scale
from propopt.papers.iloco.simulations import Simulation
from propopt.papers.lime.lines import DrawnLine, Lines
from propopt.reproduce.findings import Claim
from propopt.reproduce.studies import Study


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Successes:
    """The share of replicates in which each method finds what it should.

    Parameters
    ----------
    places : array (K,)
        What varies, such as snr, ascending.
    shares : mapping of arrays (K,)
        By method.
    n_replicates : int
        Of each share.
    """

    places: Values
    shares: Mapping[str, Values]
    n_replicates: int

    def to_frame(self) -> pd.DataFrame:
        """One row for each place, one column for each method."""
        return pd.DataFrame({"at": self.places, **self.shares})


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
        """Replicate r has the seed r at each snr."""
        with quiet_networks():
            found = [
                [self._found(ratio, seed) for seed in range(self.n_replicates)]
                for ratio in self.scale.ratios
            ]
        return successes_of(self.scale.places, found)

    @property
    def n_replicates(self) -> int:
        """How many draws each share is of."""
        return self.scale.n_replicates[self.learner]

    def _found(self, ratio: float, seed: int) -> Mapping[str, bool]:
        """By method, whether (1, 2) has the largest score."""
        rng = np.random.default_rng([seed, 14])
        X, y = self.simulation.draw(ratio, self.scale.n_rows, rng)
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


def successes_of(places: Values, found: list[list[Mapping[str, bool]]]) -> Successes:
    """Shares over the replicates (inner list) at each place (outer list)."""
    return Successes(
        places=places,
        shares={
            method: np.array([np.mean([one[method] for one in own]) for own in found])
            for method in found[0][0]
        },
        n_replicates=len(found[0]),
    )


def study_of_curve(curve: SuccessCurve, row: str) -> Study[Successes]:
    """The panel of a learner and a simulation."""
    told = curve.scale.told
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


def grows(found: Successes, *, method: str, difference: str) -> Claim:
    """From chance to certainty."""
    shares = found.shares[method]
    return Claim(
        statement=f"{method} finds (1, 2) where snr is large and not where it is 0: "
        "share of replicates at the largest less that at 0",
        value=float(shares[-1] - shares[0]),
        sense=">=",
        limit=0.7,
        note=shares_in_words(found, method),
        difference=difference,
    )


def beats_rivals(found: Successes, *, method: str, difference: str) -> Claim:
    """At all snr together."""
    best = max(RIVALS, key=lambda rival: float(found.shares[rival].mean()))
    return Claim(
        statement=f"{method} finds (1, 2) at least as often as H-statistic and "
        "Faith-Shap: mean share over snr, less that of the better one",
        value=float(found.shares[method].mean() - found.shares[best].mean()),
        sense=">=",
        limit=0.0,
        note=f"{best}: {shares_in_words(found, best)}",
        difference=difference,
    )


def early(found: Successes, *, difference: str) -> Claim:
    """At the lowest snr above 0."""
    lowest = float(found.places[found.places > 0][0])
    return Claim(
        statement="Faith-Shap finds (1, 2) at a low snr already: share of replicates "
        "at the lowest above 0",
        value=float(found.shares[FAITH][found.places == lowest][0]),
        sense=">=",
        limit=0.5,
        note=f"snr {lowest:g}",
        difference=difference,
    )


def success_charts(found: Successes, *, title: str) -> tuple[Lines, ...]:
    """One chart, by snr."""
    return (success_lines(found, title=title, x_label="snr"),)


def success_lines(found: Successes, *, title: str, x_label: str) -> Lines:
    """A line for each method."""
    lines = tuple(
        DrawnLine(
            label=method, x=found.places, y=shares,
            colour=LOOKS[method][0], line=LOOKS[method][1],
        )
        for method, shares in found.shares.items()
    )  # fmt: skip
    return Lines(
        title=title, x_label=x_label, y_label="share of replicates", curves=lines,
        y_limits=(-0.05, 1.05),
    )  # fmt: skip


def shares_in_words(found: Successes, method: str) -> str:
    """Of one method, place by place."""
    return ", ".join(f"{share:.2f}" for share in found.shares[method])
