"""Propositions 1 to 3, by enumeration of independent features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Final, TypeAlias, final

import numpy as np

from papers.engine.findings import Claim
from papers.engine.studies import Study
from propopt.base.arrays import Array, Values


_Set: TypeAlias = tuple[int, ...]
_Error: TypeAlias = Callable[[Values, Values], float]
_FEATURES: Final = 4
_PAIR: Final = (0, 1)
_TRIPLE: Final = (0, 1, 2)
_ROUNDING: Final = 1e-12


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PopulationScores:
    """iLOCO* of population models, from errors and from squared terms.

    Parameters
    ----------
    regression, classification, triple : array (2,)
        What errors give, and what the propositions say, of the pair (1, 2) by squared
        and by absolute errors, and of (1, 2, 3) by squared errors.
    means, products : array
        E g_u, and E g_u g_v for u ≠ v, of the terms of proposition 3.
    """

    regression: Values
    classification: Values
    triple: Values
    means: Values
    products: Values


def propositions_study() -> Study[PopulationScores]:
    """All three."""
    return Study(
        column="propositions",
        measure=population_scores,
        statements=(squared_terms, twice_squared_terms, higher_order, orthogonal_terms),
        charts=lambda _: (),
    )


def population_scores() -> PopulationScores:
    """Of four features that are −1 or 1, and of three with three values."""
    rng = np.random.default_rng(0)
    sets = subsets(range(_FEATURES))
    weights = dict(zip(sets, rng.uniform(-1.0, 1.0, len(sets)), strict=True))
    X = np.array(list(product((-1.0, 1.0), repeat=_FEATURES)))
    scale = 0.4 / sum(map(abs, weights.values()))
    small = {u: scale * c for u, c in weights.items()}

    def of(own: dict[_Set, float], group: _Set) -> float:
        return sum(c**2 for u, c in own.items() if set(group) <= set(u))

    means, products = _hoeffding(rng)
    return PopulationScores(
        regression=np.array([_score(weights, X, _PAIR, _squared), of(weights, _PAIR)]),
        classification=np.array(
            [_score(small, X, _PAIR, _absolute), 2.0 * of(small, _PAIR)]
        ),
        triple=np.array([_score(weights, X, _TRIPLE, _squared), of(weights, _TRIPLE)]),
        means=means,
        products=products,
    )


def squared_terms(own: PopulationScores) -> Claim:
    """Squared errors of regressions."""
    return _equal(
        own.regression,
        "proposition 1 (a): iLOCO* of a pair is Σ E g_u² over u with both, by squared "
        "errors: difference",
    )


def twice_squared_terms(own: PopulationScores) -> Claim:
    """Absolute errors of classes."""
    return _equal(
        own.classification,
        "proposition 1 (b): iLOCO* of a pair is 2 Σ E g_u², by absolute errors of "
        "probabilities: difference",
    )


def higher_order(own: PopulationScores) -> Claim:
    """Of three features."""
    return _equal(
        own.triple,
        "proposition 2: iLOCO* of three features is Σ E g_u² over u with all three: "
        "difference",
    )


def orthogonal_terms(own: PopulationScores) -> Claim:
    """Means and products of terms are zero."""
    return Claim(
        statement="proposition 3: terms by conditional means of independent features "
        "have means and products of zero: largest",
        value=float(np.abs(np.r_[own.means, own.products]).max()),
        sense="<=",
        limit=_ROUNDING,
        note=f"{len(own.products)} products",
    )


def _equal(both: Values, statement: str) -> Claim:
    return Claim(
        statement=statement,
        value=float(abs(both[0] - both[1])),
        sense="<=",
        limit=_ROUNDING,
        note=f"{both[1]:.6f}",
    )


def _score(weights: dict[_Set, float], X: Array, group: _Set, error: _Error) -> float:
    """Σ_T (−1)^(|T| + 1) Δ_T over the parts of a group of features."""
    full = _model(weights, X, ())
    base = error(full, full)
    parts = [part for part in subsets(group) if part]
    return float(
        sum(
            (-1) ** (len(part) + 1) * (error(full, _model(weights, X, part)) - base)
            for part in parts
        )
    )


def _model(weights: dict[_Set, float], X: Array, left_out: _Set) -> Values:
    """1/2 and the terms without any of some features."""
    kept = {u: c for u, c in weights.items() if not set(u) & set(left_out)}
    terms = [c * X[:, list(u)].prod(axis=1) for u, c in kept.items()]
    return np.asarray(0.5 + np.sum(terms, axis=0))


def _squared(mean: Values, predicted: Values) -> float:
    """E (Y − Ŷ)² less the variance of noise."""
    return float(np.mean((mean - predicted) ** 2))


def _absolute(probability: Values, predicted: Values) -> float:
    """E |Y − Ŷ| of classes 0 and 1."""
    one, other = probability * (1.0 - predicted), (1.0 - probability) * predicted
    return float(np.mean(one + other))


def _hoeffding(rng: np.random.Generator) -> tuple[Values, Values]:
    """E g_u and E g_u g_v of any function of three independent features."""
    shares = [rng.dirichlet(np.ones(3)) for _ in range(3)]
    law = np.einsum("i,j,k->ijk", *shares)
    f = rng.normal(size=(3, 3, 3))
    terms: dict[_Set, Array] = {}
    for u in subsets(range(3)):
        mean = f
        for axis in range(3):
            if axis not in u:
                weighted = np.moveaxis(mean, axis, -1) @ shares[axis]
                mean = np.expand_dims(weighted, axis)
        below = [own for v, own in terms.items() if set(v) < set(u)]
        terms[u] = mean - sum(below)
    means = [float((law * own).sum()) for u, own in terms.items() if u]
    pairs = combinations(terms.values(), 2)
    return np.array(means), np.array([float((law * a * b).sum()) for a, b in pairs])


def subsets(places: range | _Set) -> list[_Set]:
    """All subsets, smaller ones first."""
    sizes = range(len(places) + 1)
    return list(chain.from_iterable(combinations(places, size) for size in sizes))
