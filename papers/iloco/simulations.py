"""The three simulations of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
from scipy.special import expit

from papers.iloco.learners import LearningTask
from propopt.base.arrays import Array, Points, Values


SimulationNumber: TypeAlias = Literal["i", "ii", "iii"]
_PRODUCTS: Final[dict[SimulationNumber, tuple[tuple[int, ...], ...]]] = {
    "i": ((0, 1),),
    "ii": ((0, 1), (1, 2), (2, 3), (3, 4)),
    "iii": ((0, 1, 2),),
}
_ACTIVE: Final = 5
Design: TypeAlias = Literal["independent", "falling", "as printed"]


def covariance(design: Design, n_features: int) -> Array:
    """Σ (M, M) of the features.

    Figure A5 has an "autoregressive" design with Σ⁻¹_{j,j+1} = 0.8 and prints no
    diagonal. ``"as printed"`` has that of an autoregression, 1 + 0.8² and 1 at both
    ends: neighbours have the correlation −0.8 and variances 1/(1 − 0.8²).
    ``"falling"`` is Σ_jk = 0.8^|j − k|, the same up to signs and the scale.
    """
    if design == "independent":
        return np.eye(n_features)
    if design == "falling":
        indices = np.arange(n_features)
        return np.asarray(0.8 ** np.abs(indices[:, None] - indices))
    return np.asarray(np.linalg.inv(printed_precision(n_features)))


def printed_precision(n_features: int) -> Array:
    """Σ⁻¹ (M, M): 0.8 beside the diagonal 1, 1 + 0.8², …, 1 + 0.8², 1."""
    beside = np.eye(n_features, k=1) + np.eye(n_features, k=-1)
    diagonal = np.full(n_features, 1.0 + 0.8**2)
    diagonal[[0, -1]] = 1.0
    return np.asarray(np.diag(diagonal) + 0.8 * beside)


@final
@dataclass(frozen=True, kw_only=True)
class Simulation:
    """f(x) = snr · Π_1 + Π_2 + … + x β with products Π, and y of it.

    (i) X1 X2; (ii) X1 X2, X2 X3, X3 X4 and X4 X5, of which the first is multiplied;
    (iii) X1 X2 X3. β_j ~ N(2, 0.5²) for five of M features, the others are 0: whether
    0.5 is a variance the paper does not say. Of regressions y = f + N(0, 1), of
    classes y ~ Bernoulli(sigmoid f).

    Parameters
    ----------
    number : {"i", "ii", "iii"}
        Which.
    task : {"regression", "classification"}
        What is learned.
    tanh : bool
        Whether products are within tanh, which the paper calls nonlinear.
    design : {"independent", "falling", "as printed"}
        Of the features; see :func:`covariance`.
    n_features : int
        M.
    """

    number: SimulationNumber
    task: LearningTask
    tanh: bool
    design: Design = "independent"
    n_features: int = 10

    def draw(
        self, ratio: float, n_rows: int, rng: np.random.Generator
    ) -> tuple[Points, Values]:
        """X (N, M) and y (N,).

        Parameters
        ----------
        ratio : float
            snr.
        n_rows : int
            N.
        rng : numpy.random.Generator
            For all that is random, slopes too.
        """
        X = self._features(n_rows, rng)
        slopes = rng.normal(2.0, 0.5, _ACTIVE)
        f = X[:, :_ACTIVE] @ slopes + self._joint(X, ratio)
        if self.task == "regression":
            return X, f + rng.normal(size=n_rows)
        return X, (rng.random(n_rows) < expit(f)).astype(np.float64)

    def _features(self, n_rows: int, rng: np.random.Generator) -> Points:
        independent = rng.normal(size=(n_rows, self.n_features))
        if self.design == "independent":
            return independent
        scatter = covariance(self.design, self.n_features)
        return np.asarray(independent @ np.linalg.cholesky(scatter).T)

    def _joint(self, X: Points, ratio: float) -> Array:
        products = np.stack([X[:, list(own)].prod(1) for own in self.products])
        if self.tanh:
            products = np.tanh(products)
        products[0] *= ratio
        return np.asarray(products.sum(axis=0))

    @property
    def products(self) -> tuple[tuple[int, ...], ...]:
        """Places of the features of each product."""
        return _PRODUCTS[self.number]
