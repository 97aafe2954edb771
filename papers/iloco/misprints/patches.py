"""What is said of the patches: shares, bounds and sizes."""

from __future__ import annotations

import numpy as np

from papers.engine.findings import Claim, Invariant, Refuted
from papers.engine.studies import Study
from papers.iloco.methods import PatchesOfOneSize
from papers.iloco.theory import FixedColumns, ideal_scores
from papers.lime.statements import equals
from propopt.base.arrays import Mask, Values
from propopt.interactions.features import Features


def patches_study() -> Study[Values]:
    """The panel of patches."""
    return Study(
        column="patches",
        measure=patch_shares,
        statements=(
            shares_are_exact,
            triples_are_together,
        ),
        charts=lambda _: (),
    )


def patch_shares() -> Values:
    """Mean shares of 500 patches without a row and a set, of 0, 1 and 2 features."""
    scheme = PatchesOfOneSize(n_patches=500, rows=30, n_features=3)
    patches = scheme.draw(120, Features.of(range(8)), 0)
    absent = ~patches.features
    shares = [1.0, absent.mean(), _mean_of_pairs(absent)]
    return np.array([patches.out.mean() * share for share in shares])


def _mean_of_pairs(absent: Mask) -> float:
    first, second = Features.of(range(8)).all_sets(2).T
    return float((absent[:, first] & absent[:, second]).mean())


def shares_are_exact(result: Values) -> Invariant:
    """Every patch has n rows and m features: nothing is left to chance."""
    return equals(
        "the mean share of patches without a row and 0, 1, 2 features, n/N = 1/4, "
        "m/M = 3/8",
        result,
        np.array([0.75, 0.46875, 0.75 * 20 / 56]),
        1e-12,
    )


def triples_are_together(result: Values) -> Claim:
    """Figure 1A at M = 10, by the closed form."""
    del result
    triples = Features.of(range(10)).all_sets(3)
    terms: dict[tuple[int, ...], float] = {(j,): 4.0 for j in range(5)}
    scores = ideal_scores({**terms, (0, 1, 2): 9.0}, triples, FixedColumns(10, 2))
    of_main_effects = (triples < 5).all(axis=1)
    return Claim(
        statement="patches of a fifth of ten features find a product of three (figure "
        "1A, M = 10): score of (1, 2, 3) minus the mean of the other triples of "
        "features 1 to 5, ideal learners",
        value=float(scores[0] - scores[of_main_effects][1:].mean()),
        sense=">=",
        limit=1e-9,
        note="snr 3",
        if_false=Refuted(
            "a patch of two features has no three together: no learner knows "
            "x1 x2 x3, and its triple has the score of each triple of three main "
            "effects"
        ),
    )
