"""What is said of the patches: shares, bounds and sizes."""

from __future__ import annotations

import numpy as np

from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study
from papers.lime.statements import equals
from propopt.base.arrays import Mask, Values
from propopt.interactions.features import Features
from propopt.interactions.patch_draws import draw_patches


def patches_study() -> Study[Values]:
    """The panel of patches."""
    return Study(
        column="patches",
        measure=patch_shares,
        statements=(
            shares_are_exact,
            count_is_a_bound,
            small_enough,
            triples_are_together,
        ),
        charts=lambda _: (),
    )


def patch_shares() -> Values:
    """Mean shares of 500 patches without a row and a set, of 0, 1 and 2 features."""
    patches = draw_patches(500, 120, 30, 8, 3, "fixed", 0)
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


def count_is_a_bound(result: Values) -> Claim:
    """(1 − n/N) (1 − m/M) (1 − m/(M − 1))."""
    bound = 0.75 * (1 - 3 / 8) * (1 - 3 / 7)
    return Claim(
        statement="the printed lower bound of the mean share of patches without a row "
        "and two features is a bound and no equality: share less bound",
        value=float(result[2] - bound),
        sense=">=",
        limit=1e-3,
        note="it is equal",
    )


def small_enough(result: Values) -> Claim:
    """Assumption 6 against the simulations."""
    del result
    growth = (0.2 * 1000 / np.sqrt(1000)) / (0.2 * 250 / np.sqrt(250))
    return Claim(
        statement="patches of a fifth of the rows are n = o(√N): n/√N at N = 1000, "
        "over that at N = 250",
        value=float(growth),
        sense="<=",
        limit=0.99,
        note="intervals are proved for the former",
    )


def triples_are_together(result: Values) -> Claim:
    """Figure 1A at M = 10."""
    del result
    kept = 0.2 * 10
    return Claim(
        statement="patches of a fifth of ten features can learn a product of three: "
        "features in a patch",
        value=kept,
        sense=">=",
        limit=3.0,
    )
