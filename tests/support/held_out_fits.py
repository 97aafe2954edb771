"""Least squares without any set of columns, on held-out rows, all sets in one solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import hadamard

from propopt.interactions import DataSplit, InteractionScores
from propopt.interactions.errors_of_rows import SQUARED
from propopt.interactions.features import Features
from propopt.interactions.left_out import LeftOut, LeftOutErrors, set_scores


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastSquaresErrors(LeftOut):
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

    @classmethod
    def of(cls, X, y, new, y_new) -> LeastSquaresErrors:
        """Of all columns, and rows that count alike."""
        return cls(
            features=Features.of(list(range(X.shape[1]))),
            error=SQUARED,
            row_weights=np.ones(len(new)),
            method="least squares",
            X=X,
            y=y,
            new=new,
            y_new=y_new,
        )

    def predict(self, table) -> np.ndarray:
        raise NotImplementedError("nobody asks these fits")

    def judged_on(self, table, y) -> LeastSquaresErrors:
        return self.of(self.X, self.y, table, y)

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
    source = LeastSquaresErrors.of(
        X[fold.training], y[fold.training], X[fold.test], y[fold.test]
    )
    return source.scores(pairs, None), source


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
    return set_scores(fitted.judged_on(rows, y_new), pairs)["estimates"]
