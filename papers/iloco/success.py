"""How often a method gives the pair (1, 2) the largest score: figures 2, A2 to A5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, final

import numpy as np

from papers.engine.findings import Claim, Finding, Refuted
from papers.engine.studies import Study
from papers.iloco.learners import LearnerName, paper_learner
from papers.iloco.methods import (
    FAITH,
    FAITH_OF_MEANS,
    LOOKS,
    PATCHES,
    SIZES,
    SPLIT,
    H,
    comparison_scores,
    quietly,
    schemes,
    signed_and_sized,
    with_seed,
)
from papers.iloco.scale import Scale
from papers.iloco.shares import (
    ERROR,
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
_PAIRS: Final = 45
_NEGATIVE: Final = (
    "the score of two correlated features is negative, as section 2.5 says, and that "
    "of (1, 2) is not the highest at any snr, in either design with 0.8"
)
_TIE: Final = "both find it in every replicate, so that neither outperforms the other"
_HIGHEST: Final = "largest score"
"""What has to be that of (1, 2), "the highest interaction score" of section 4.1."""
_CLOSE: Final = 0.1
"""A share that is lower by no more than this is as high, for 72 replicates."""
_RISE: Final = 0.05
"""The least rise of a share that 24 replicates tell from none: 9 of them against 0."""
_BY_ROWS: Final = {FAITH: "mean |Faith-Shap|", FAITH_OF_MEANS: "|mean Faith-Shap|"}


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
            yield from signed_and_sized(method, fitted.result_.scores)
        model = with_seed(self._learner(), seed).fit(X, y)
        yield from comparison_scores(model, X, seed).items()

    def _learner(self, *, patch: bool = False) -> Any:
        return paper_learner(self.learner, self.simulation.task, patch=patch)


def study_of_curve(curve: SuccessCurve, row: str, few: str) -> Study[Successes]:
    """The panel of a learner and a simulation; ``few`` is how many patches it has."""
    is_correlated = curve.simulation.design != "independent"
    statements: list[Callable[[Successes], Finding]] = []
    for method, scarce in ((SPLIT, ""), (PATCHES, few)):
        found = finds if is_correlated else grows
        statements.append(partial(found, method=method, few=scarce))
        statements += [
            partial(
                beats_rivals,
                method=method,
                by=by,
                few=scarce,
                is_correlated=is_correlated,
            )
            for by in range(len(_BY_ROWS))
        ]
    if curve.simulation.task == "classification" and curve.simulation.tanh:  # figure 2
        statements += [partial(inflated, method=method) for method in _BY_ROWS]
    return Study(
        column=curve.learner,
        row=row,
        measure=curve.measure,
        statements=tuple(statements),
        charts=partial(success_charts, title=f"{curve.learner}, {row}"),
        numbers=Successes.to_frame,
    )


def grows(result: Successes, *, method: str, few: str = "") -> Claim:
    """As the paper says of success: it rises."""
    shares = result.shares[method]
    runs = result.found[method]
    claim = Claim(
        statement=f"{method} finds (1, 2) more often as snr rises: share of "
        "replicates at the largest minus that at 0",
        value=float(shares[-1] - shares[0]),
        sense=">=",
        limit=_RISE,
        note=result.told(method),
        between=difference_between(runs[-1], runs[0]),
    )
    return _with_few([claim], few)[0]


def finds(result: Successes, *, method: str, few: str = "") -> Claim:
    """Of correlated features, whose scores are not 0 at snr 0 either."""
    claim = Claim(
        statement=f"{method} finds (1, 2): share of replicates at the largest snr",
        value=float(result.shares[method][-1]),
        sense=">=",
        limit=0.5,
        note=result.told(method),
        choice=_HIGHEST,
        between=share_between(result.found[method][-1]),
        if_false=Refuted(_NEGATIVE),
    )
    return _with_few([claim], few * (not _is_shown_by_size(result, method)))[0]


def beats_rivals(
    result: Successes,
    *,
    method: str,
    by: int,
    few: str = "",
    is_correlated: bool = False,
) -> Claim:
    """Above snr 0, against either mean of Faith-Shap over rows."""
    above = result.places > 0
    own = result.found[method][above]

    def claim(faith: str) -> Claim:
        means = {one: float(result.found[one][above].mean()) for one in (H, faith)}
        best = max(means, key=means.__getitem__)
        is_tie = bool(own.all() and result.found[best][above].all())
        return Claim(
            statement=f"{method} finds (1, 2) as often as H-statistic and "
            "Faith-Shap, or more often: mean share over snr above 0, minus that of the "
            "better one",
            value=float(own.mean() - means[best]),
            sense=">=",
            limit=-_CLOSE,
            note=f"{result.told(method)}; {best}: {result.told(best)}",
            choice=f"{_HIGHEST}, {_BY_ROWS[faith]}",
            between=excess_between(own, result.found[best][above], ERROR / 2),
            difference=_TIE * is_tie,
            if_false=Refuted(_NEGATIVE) if is_correlated else None,
        )

    if is_correlated and _is_shown_by_size(result, method):
        few = ""
    return _with_few([claim(faith) for faith in _BY_ROWS], few)[by]


def _is_shown_by_size(result: Successes, method: str) -> bool:
    """Whether the largest |score| is that of (1, 2): patches are enough to show it."""
    low, _ = share_between(result.found[SIZES[method]][-1])
    return low >= 0.5


def _with_few(claims: Sequence[Claim], few: str) -> list[Claim]:
    """The claims; with the number of patches, if they may be too few.

    Few patches add noise, which hides a pair: what is found with them is found with
    more.
    """
    found = all(one.holds and one.decided for one in claims)
    difference = "" if found else few
    return [replace(one, difference=difference or one.difference) for one in claims]


def inflated(result: Successes, *, method: str) -> Claim:
    """Without a product one of 45 pairs is as good as another."""
    return Claim(
        statement="Faith-Shap has inflated success at a low snr: share of replicates "
        "at snr 0, where chance has one of 45",
        value=float(result.shares[method][0]),
        sense=">=",
        limit=2.0 / _PAIRS,
        note="inflated is twice the chance",
        choice=_BY_ROWS[method],
        between=share_between(result.found[method][0]),
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
