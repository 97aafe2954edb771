"""A function, an explanation of it, and what metrics draw: for loops to check them."""

import numpy as np

import propopt as po
from propopt.explaining import metrics
from propopt.explaining.metrics import (
    CompletenessGap,
    FaithfulnessCorrelation,
    Infidelity,
    MaxSensitivity,
)
from propopt.explaining.metrics.metric import metric_rng
from propopt.laws.perturbations import Perturbations


S = 9  # samples

EXACT = {"rtol": 1e-12, "atol": 1e-14}


def f(points: np.ndarray) -> np.ndarray:
    points = np.asarray(points)
    return np.sin(points[:, 0]) * points[:, 1] + (points[:, 2:] ** 2).sum(axis=1)


def explain(points: np.ndarray) -> np.ndarray:
    points = np.asarray(points)
    return np.cos(points) + 0.3 * points[:, ::-1] ** 2


FUNCTION = po.wrap(f)


def noise(metric: metrics.Metric, shape: tuple[int, int]) -> np.ndarray:
    """What a metric draws for seed 0, (N, S, D)."""
    law = Perturbations(
        scale=metric.scale, n_samples=S, distribution=metric.distribution
    )
    return law.draw((shape[0], S, shape[1]), metric_rng(0))


def norm(vector: np.ndarray) -> float:
    return float(sum(entry**2 for entry in vector) ** 0.5)


def value(point: np.ndarray) -> float:
    return float(f(point[None])[0])


def attribution(point: np.ndarray) -> np.ndarray:
    return explain(point[None])[0]


def distances(metric: metrics.Metric, X: np.ndarray) -> list[list[float]]:
    return [
        [norm(attribution(x) - attribution(x + e)) for e in draws]
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]


ROBUST = [MaxSensitivity(n_samples=S), MaxSensitivity(n_samples=S, units="absolute")]

FAITHFUL = [
    Infidelity(n_samples=S),
    Infidelity(n_samples=S, rescaling="best"),
    FaithfulnessCorrelation(n_samples=S, baseline=np.zeros(4)),
    CompletenessGap(data=np.zeros((1, 4))),
]


def asked(metric: metrics.Metric, X: np.ndarray, rng: object = None) -> np.ndarray:
    """A metric of the same function and method."""
    if isinstance(metric, MaxSensitivity):
        return metric(explain, X, rng=rng)
    return metric(explain(X), FUNCTION, X, rng=rng)
