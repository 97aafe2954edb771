"""What is said of the patches: shares, and triples that no patch has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.special import expit

from papers.engine.findings import Claim, Invariant, Refuted
from papers.engine.studies import Study
from papers.iloco.methods import PatchesOfOneSize
from papers.iloco.propositions import subsets
from papers.iloco.theory import FixedColumns, Refitted, ideal_scores
from papers.lime.statements import equals
from propopt.base.arrays import Array, Mask, Values
from propopt.interactions.features import Features
from propopt.interactions.refits import PROBABILITY


_PRODUCT: Final = (0, 1, 2)


def patches_study() -> Study[Values]:
    """The panel of patches."""
    return Study(
        column="patches",
        measure=patch_shares,
        statements=(shares_are_exact,),
        charts=lambda _: (),
    )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TripleScores:
    """Third-order iLOCO of ideal learners, of 120 triples of ten features.

    Parameters
    ----------
    regression, classes : array (120,)
        By patches of two features, of a linear regression and of the nonlinear
        classes of figure 1A, simulation (iii).
    refitted : array (120,)
        Of the classes, by refits.
    """

    regression: Values
    classes: Values
    refitted: Values

    @property
    def main_effects(self) -> Mask:
        """Triples of features 1 to 5, of which (1, 2, 3) is the first."""
        within = Features.of(range(10)).all_sets(3) < 5
        return np.asarray(within.all(axis=1))


def triples_study() -> Study[TripleScores]:
    """The panel of a product of three."""
    return Study(
        column="triples",
        measure=triple_scores,
        statements=(
            triples_of_regressions_are_alike,
            refits_find_the_triple,
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


def triple_scores() -> TripleScores:
    """At snr 3, with slopes of 2."""
    triples = Features.of(range(10)).all_sets(3)
    shares = FixedColumns(10, 2)
    terms: dict[tuple[int, ...], float] = {(j,): 4.0 for j in range(5)}
    classes = class_variances(3.0)
    return TripleScores(
        regression=ideal_scores({**terms, _PRODUCT: 9.0}, triples, shares),
        classes=ideal_scores(classes, triples, shares, PROBABILITY),
        refitted=ideal_scores(classes, triples, Refitted(), PROBABILITY),
    )


def class_variances(ratio: float) -> dict[tuple[int, ...], float]:
    """V_u of P(y = 1) = sigmoid(snr tanh(x1 x2 x3) + 2 (x1 + ... + x5)), by quadrature.

    The variances V_v of all v ⊆ u add up to Var E[f* | X_u].
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    x = np.meshgrid(*[nodes] * 5, indexing="ij", sparse=True)
    probability = expit(ratio * np.tanh(x[0] * x[1] * x[2]) + 2.0 * sum(x))
    found: dict[tuple[int, ...], float] = {}
    for u in subsets(range(5)):
        square = _mean(probability, weights, set(range(5)) - set(u)) ** 2
        whole = float(_mean(square, weights, set(range(len(u)))))
        below = sum(own for v, own in found.items() if set(v) < set(u))
        found[u] = max(whole - below, 0.0)
    del found[()]
    return found


def _mean(values: Array, weights: Values, axes: set[int]) -> Array:
    """Over some axes."""
    for axis in sorted(axes, reverse=True):
        values = np.tensordot(values, weights, (axis, 0))
    return values


def triples_of_regressions_are_alike(result: TripleScores) -> Invariant:
    """A product that no learner knows changes no score of squared errors."""
    own, *others = result.regression[result.main_effects]
    return equals(
        "(1, 2, 3) has the score of the other triples of features 1 to 5, by patches "
        "of 2 of 10 features and squared errors",
        np.array(others), np.full(len(others), own), 1e-12,
    )  # fmt: skip


def refits_find_the_triple(result: TripleScores) -> Invariant:
    """The same probabilities, by refits: third-order iLOCO works there."""
    return Invariant(
        statement="by refits (1, 2, 3) has the largest score of triples, of classes: "
        "the largest of the others, over it",
        value=float(result.refitted[1:].max() / result.refitted[0]),
        sense="<=",
        limit=1.0,
    )


def triples_are_together(result: TripleScores) -> Claim:
    """Figure 1A at M = 10, which has classes."""
    own, *others = result.classes[result.main_effects]
    return Claim(
        statement="patches of a fifth of ten features find a product of three (figure "
        "1A, M = 10): score of (1, 2, 3) over the mean of the other triples of "
        "features 1 to 5, ideal learners of classes",
        value=float(own / np.mean(others)),
        sense=">=",
        limit=1.0 + 1e-9,
        note=f"snr 3, {own:.6f} for {np.mean(others):.6f}",
        if_false=Refuted(
            "a patch of two features has no three together, so that no learner knows "
            "x1 x2 x3; of classes, as in the figure, it weakens the main effects of "
            "its features, and (1, 2, 3) is below the other triples of features 1 to "
            "5 (0.00038 for 0.00061); of a regression it is equal to them"
        ),
    )
