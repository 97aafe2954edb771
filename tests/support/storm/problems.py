"""Random problems: an objective, perhaps with a bound, beside its definitions."""

from dataclasses import dataclass

import numpy as np

import propopt as po
from storm import definitions, graphs
from storm.targets import gradients


LEAST = 1e-100  # a product of similarities below this may be zero


@dataclass(frozen=True, eq=False)
class Term:
    """A loss of the library with its weight, and what it should be."""

    weight: float
    loss: po.losses.PropertyLoss
    definition: definitions.Definition


@dataclass(frozen=True, eq=False)
class Limit:
    """A bound of the library, and what it should be."""

    bound: po.losses.Bound
    definition: definitions.Definition

    def holds(self, W: np.ndarray) -> bool:
        """True if W respects the bound, in extended precision."""
        return bool(self.definition.value(W) <= self.bound.limit)


@dataclass(frozen=True, eq=False)
class StormProblem:
    """What is solved and what it should be."""

    number: int
    shape: tuple[int, int]
    terms: tuple[Term, ...]
    limits: tuple[Limit, ...]
    G: np.ndarray

    @property
    def objective(self) -> po.losses.Objective:
        return sum(term.weight * term.loss for term in self.terms)

    @property
    def bounds(self) -> list[po.losses.Bound]:
        return [limit.bound for limit in self.limits]

    def value(self, W: np.ndarray, weights: dict[str, float]) -> np.longdouble:
        """The objective with these weights, from the definitions."""
        parts = [
            definitions.Long(weights[term.loss.name]) * term.definition.value(W)
            for term in self.terms
        ]
        return sum(parts, definitions.Long(0))


def draw(number: int) -> StormProblem:
    """Problem ``number``: the same one in every run."""
    rng = np.random.default_rng([2026, number])
    shape = _shape(rng)
    X = graphs.points(rng, shape[0])
    G = gradients(rng, shape)
    size = float(np.abs(G).max()) or 1.0
    terms = [_matching(rng, G, size)]
    for chance, maker in _MAKERS:
        if rng.random() < chance:
            terms += maker(rng, X, shape, size)
    limits = ()
    if len(terms) > 1 and rng.random() < 0.2:
        limited = terms.pop(int(rng.integers(len(terms))))
        limits = (_limit(rng, limited, G),)
    return StormProblem(number, shape, tuple(terms), limits, G)


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    size = rng.random()
    if size < 0.02:
        n_points = rng.integers(400, 900) if size < 0.003 else rng.integers(60, 250)
        return int(n_points), int(rng.integers(1, 4))
    n_points = 1 if rng.random() < 0.03 else int(rng.integers(2, 25))
    return n_points, int(rng.integers(1, 7))


def _weight(rng: np.random.Generator) -> float:
    """Mostly within three decades of one, at times within eight."""
    return float(10.0 ** (rng.uniform(-3, 3) if rng.random() < 0.6 else _far(rng)))


def _far(rng: np.random.Generator) -> float:
    return rng.uniform(-8, 8)


def _matching(rng, G, size):
    kind = rng.random()
    if kind < 0.08:
        weight = _weight(rng) * size  # as a square would weigh
        return Term(weight, po.GradientMatching(G, norm="l1"), definitions.Distances(G))
    if kind < 0.16:
        return _function(rng, G)
    return Term(_weight(rng), po.GradientMatching(G), definitions.Squares(G))


def _function(rng, G):
    n_points, n_features = G.shape
    if rng.random() < 0.5:  # locally, over perturbations
        Z = rng.normal(size=(n_points, n_features + 2, n_features))
        changes = (Z @ G[:, :, None].astype(float))[:, :, 0]
        changes += 0.1 * rng.normal(size=changes.shape)
        loss = po.losses.FunctionMatching(np.zeros(G.shape), changes, perturbations=Z)
        return Term(_weight(rng), loss, definitions.Regressions(Z, changes))
    Z = rng.normal(size=G.shape) + rng.choice([0.0, 10.0])
    values = (Z * G).sum(axis=1)
    definition = definitions.Regressions(Z[:, None], values[:, None])
    return Term(_weight(rng), po.losses.FunctionMatching(Z, values), definition)


def _robustness(rng, X, shape, size):
    del shape, size
    if rng.random() < 0.12:
        K = np.exp(-graphs.squared_distances(X) / 2) + 0.01 * np.eye(len(X))
        mean = str(rng.choice(["per_feature", "none"]))
        loss = po.losses.KernelRobustness(K, mean=mean)
        return [
            Term(_weight(rng), loss, definitions.Precision(K, mean == "per_feature"))
        ]
    graph, S = graphs.over_points(rng, X)
    return [Term(_weight(rng), po.PairwiseRobustness(graph), definitions.Pairs(S))]


def _smoothness(rng, X, shape, size):
    del X, size
    graph, S = graphs.over_features(rng, shape[1])
    return [
        Term(_weight(rng), po.Smoothness(graph), definitions.Pairs(S, of_columns=True))
    ]


def _largest(rng, X, shape, size):
    del shape, size
    graph, S = graphs.over_points(rng, X)
    if not S.any() or (0 < np.abs(S[S != 0]).min() < LEAST):
        return []  # refused: no difference to bound; or an edge that is one by rounding
    aggregate = str(rng.choice(["max", "sum"]))
    loss = po.losses.MaxDifferenceRobustness(graph, aggregate)
    return [Term(_weight(rng), loss, definitions.Largest(S != 0, aggregate))]


def _sparsity(rng, X, shape, size):
    del X, shape
    return [Term(size * _weight(rng), po.Sparsity(), definitions.Distances())]


_MAKERS = ((0.75, _robustness), (0.3, _smoothness), (0.25, _sparsity), (0.2, _largest))


def _limit(rng: np.random.Generator, term: Term, G: np.ndarray) -> Limit:
    """A limit: a share of what gradients or zero attributions cost."""
    costs = [term.definition.value(definitions.long(W)) for W in (G, np.zeros(G.shape))]
    share = float(rng.choice([1e-9, 1e-6, 0.1, 0.5, 0.99, 1.5]))
    return Limit(term.loss <= share * float(max(costs) or 1.0), term.definition)
