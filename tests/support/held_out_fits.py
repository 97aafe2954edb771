"""Least squares without any set of columns, on held-out rows, all sets in one solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import hadamard

from propopt.interactions import DataSplit, InteractionScores
from propopt.interactions.errors_of_rows import SQUARED
from propopt.interactions.features import Features
from propopt.interactions.iloco import Scoring
from propopt.interactions.inference import set_scores
from propopt.interactions.left_out import LeftOutErrors


@dataclass(frozen=True, eq=False)
class LeastSquaresErrors:
    """Squared errors at some rows of linear fits with an intercept to others.

    Parameters
    ----------
    X, y : array (n, M) and (n,)
        Fitted.
    new, y_new : array (N, M) and (N,)
        Judged.
    """

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    y_new: np.ndarray

    @property
    def features(self) -> Features:
        return Features.of(list(range(self.X.shape[1])))

    @property
    def row_weights(self) -> np.ndarray:
        return np.ones(len(self.new))

    @property
    def row_groups(self) -> None:
        return None

    @property
    def used(self) -> None:
        return None

    def errors(self, sets: np.ndarray) -> LeftOutErrors:
        kept = np.ones((len(sets), self.X.shape[1]))
        np.put_along_axis(kept, sets, 0.0, axis=1)
        centre, level = self.X.mean(axis=0), self.y.mean()
        own = self.X - centre
        # without T rows and columns of XᵀX are those of the identity, and Xᵀy is 0
        gram = kept[:, :, None] * (own.T @ own) * kept[:, None, :]
        gram += (1.0 - kept)[:, :, None] * np.eye(self.X.shape[1])
        right = kept * (own.T @ (self.y - level))
        slopes = np.linalg.solve(gram, right[..., None])[..., 0]
        residuals = (self.y_new - level)[:, None] - (self.new - centre) @ slopes.T
        none = np.zeros((0, len(sets)))
        return LeftOutErrors(residuals**2, none, np.ones(len(sets)))


def held_out_scores(
    X: np.ndarray, y: np.ndarray, seed: int, pairs: np.ndarray
) -> tuple[InteractionScores, LeastSquaresErrors]:
    """What ``ILOCO(LinearRegression(), DataSplit(), random_state=seed)`` has of pairs.

    And what it fitted.
    """
    (fold,) = DataSplit().drawn_folds(len(X), seed)
    source = LeastSquaresErrors(
        X[fold.training], y[fold.training], X[fold.test], y[fold.test]
    )
    scoring = Scoring(source, DataSplit(), SQUARED)
    return scoring.of(pairs, None, n_candidates=len(pairs)), source


def orthogonal_rows(n_columns: int) -> np.ndarray:
    """32 rows of −1 and 1 in which all products of three columns or fewer are balanced.

    Means over them of products of two functions, each linear or x_0 x_1, are those of
    independent columns with mean zero and variance one.
    """
    square = hadamard(16).astype(float)
    return np.concatenate([square, -square])[:, 1 : n_columns + 1]


def exact_target(
    fitted: LeastSquaresErrors, y_new: np.ndarray, pairs: np.ndarray
) -> np.ndarray:
    """The mean score over all rows, from y without noise at :func:`orthogonal_rows`."""
    rows = orthogonal_rows(fitted.X.shape[1])
    judged = LeastSquaresErrors(fitted.X, fitted.y, rows, y_new)
    return set_scores(judged, pairs).estimates
