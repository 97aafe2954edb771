"""Features that stand in for each other: figures 1B and A1B."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study
from papers.iloco.learners import LearnerName, paper_learner
from papers.iloco.methods import PATCHES, SPLIT, halves, quietly, schemes
from papers.iloco.scale import Scale
from papers.iloco.shares import Successes, share_between
from papers.iloco.success import success_lines
from papers.lime.lines import Lines
from papers.lime.statements import BAND
from propopt.base.arrays import Array, Points, Values
from propopt.interactions import ILOCO


CORRELATIONS: Final = (0.0, 0.6, 0.97)
_SLOPES: Final = (2.0, 2.0)
_N_EXACT: Final = 4000
_N_REPEATS: Final = 20


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Masked:
    """What is found of two correlated features, and the closed form of their score.

    Parameters
    ----------
    jointly, alone : Successes
        Of "iLOCO of (1, 2) is the least", and of LOCO "1 and 2 are the largest two".
    scores : array (R, 3)
        Of least squares, at each correlation.
    """

    jointly: Successes
    alone: Successes
    scores: Array

    @property
    def exact(self) -> Values:
        """−2 ρ b_1 b_2 − ρ² (b_1² + b_2²), (3,)."""
        rho, (b, c) = np.array(CORRELATIONS), _SLOPES
        return np.asarray(-2.0 * rho * b * c - rho**2 * (b**2 + c**2))

    def to_frame(self) -> pd.DataFrame:
        """One row for each correlation."""
        both = {"iLOCO": self.jointly, "LOCO": self.alone}
        shares = {
            f"{name} by {method}": share
            for name, result in both.items()
            for method, share in result.shares.items()
        }
        return pd.DataFrame(
            {
                "correlation": list(map(str, CORRELATIONS)),
                **shares,
                "least squares": self.scores.mean(axis=0),
                "closed form": self.exact,
            }
        )


def masked_study(scale: Scale, learner: LearnerName) -> Study[Masked]:
    """The panel of a learner."""
    return Study(
        column=learner,
        row="correlated pair",
        measure=partial(masked_pairs, scale, learner),
        statements=(
            scores_are_exact,
            partial(finds_masked, method=SPLIT),
            partial(finds_masked, method=PATCHES),
            partial(fails_alone, method=SPLIT),
            partial(fails_alone, method=PATCHES),
        ),
        charts=partial(_charts, title=learner),
        numbers=Masked.to_frame,
    )


def masked_pairs(scale: Scale, learner: LearnerName) -> Masked:
    """Replicates at each correlation of features 1 and 2."""
    with quietly():
        runs = [
            [
                _found(place, scale, learner, run)
                for run in range(scale.n_replicates[learner])
            ]
            for place in range(len(CORRELATIONS))
        ]
    jointly, alone = (
        Successes.of(np.array(CORRELATIONS), [[one[k] for one in own] for own in runs])
        for k in (0, 1)
    )
    scores = [
        [least_squares_score(correlation, seed) for correlation in CORRELATIONS]
        for seed in range(_N_REPEATS)
    ]
    return Masked(jointly=jointly, alone=alone, scores=np.array(scores))


def _found(
    place: int, scale: Scale, learner: LearnerName, run: int
) -> tuple[Mapping[str, bool], Mapping[str, bool]]:
    rng = np.random.default_rng([run, 15, place])
    seed = run + scale.n_replicates[learner] * place
    X = correlated_pair(CORRELATIONS[place], scale.n_rows, 10, rng)
    y = X[:, :5] @ rng.normal(2.0, 0.5, 5) + rng.normal(size=scale.n_rows)
    jointly, alone = {}, {}
    for method, scheme in schemes(scale.n_patches[learner]).items():
        own: Any = paper_learner(learner, "regression", patch=method != SPLIT)
        fitted = ILOCO(own, scheme, random_state=seed, progress=False).fit(X, y)
        jointly[method] = int(np.argmin(fitted.result_.scores)) == 0
        first = np.argsort(-fitted.main_effects_.scores)[:2]
        alone[method] = set(first.tolist()) == {0, 1}
    return jointly, alone


def correlated_pair(
    correlation: float, n_rows: int, n_features: int, rng: np.random.Generator
) -> Points:
    """Standard normal columns (N, M), of which the first two are correlated."""
    X = rng.normal(size=(n_rows, n_features))
    X[:, 1] = correlation * X[:, 0] + np.sqrt(1.0 - correlation**2) * X[:, 1]
    return X


def least_squares_score(correlation: float, seed: int) -> float:
    """Of two features with slopes 2, by a split of 4000 rows."""
    rng = np.random.default_rng([seed, 16])
    X = correlated_pair(correlation, _N_EXACT, 2, rng)
    y = X @ np.array(_SLOPES) + rng.normal(size=_N_EXACT)
    fitted = ILOCO(LinearRegression(), halves(), progress=False).fit(X, y)
    return float(fitted.result_.scores[0])


def scores_are_exact(result: Masked) -> Invariant:
    """|z| ≤ 5 of three means over twenty draws: a false alarm once in 4000."""
    error = result.scores.std(axis=0, ddof=1) / np.sqrt(_N_REPEATS)
    z = (result.scores.mean(axis=0) - result.exact) / error
    told = zip(result.scores.mean(axis=0), result.exact, strict=True)
    return Invariant(
        statement="least squares have iLOCO_12 = −2 ρ b_1 b_2 − ρ² (b_1² + b_2²) for "
        "ρ = 0, 0.6 and 0.97: largest |z| of means over 20 draws",
        value=float(np.abs(z).max()),
        sense="<=",
        limit=BAND,
        note="; ".join(f"{mean:.3f} for {exact:.3f}" for mean, exact in told),
    )


def finds_masked(result: Masked, *, method: str) -> Claim:
    """At the largest correlation."""
    return Claim(
        statement="iLOCO finds two features that stand in for each other, by the least "
        "score: share of replicates at the largest correlation",
        value=float(result.jointly.shares[method][-1]),
        sense=">=",
        limit=0.5,
        note=f"{method}: {result.jointly.told(method)}",
        choice=f"by {method}",
        between=share_between(result.jointly.found[method][-1]),
    )


def fails_alone(result: Masked, *, method: str) -> Claim:
    """By patches it need not fail: either feature is often alone in one."""
    return Claim(
        statement="LOCO does not find them where correlation is high: share of "
        "replicates at the largest in which they are the first two",
        value=float(result.alone.shares[method][-1]),
        sense="<=",
        limit=0.5,
        note=f"{method}: {result.alone.told(method)}",
        choice=f"by {method}",
        between=share_between(result.alone.found[method][-1]),
    )


def _charts(result: Masked, *, title: str) -> tuple[Lines, ...]:
    both = {"least iLOCO": result.jointly, "two largest LOCO": result.alone}
    return tuple(
        success_lines(own, title=f"{title}: {name}", x_label="correlation of 1 and 2")
        for name, own in both.items()
    )
