"""Learners that are fitted to blocks of minipatches by a formula, for studies.

The patches, their means and scores are those of the package. Only the loop over
learners of scikit-learn's kind is passed by, which is nearly all of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from propopt.base.resources import Budget
from propopt.interactions import InteractionScores, Minipatches
from propopt.interactions.features import Features, FeatureSets
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import Patches
from propopt.interactions.refits import SQUARED, RowError, set_scores


Array = NDArray[np.float64]
Rows = NDArray[np.intp]

BATCH_BUDGET = Budget(2**25)
"""Bytes of the kernels of a block of patches."""


@dataclass(frozen=True, eq=False)
class Block:
    """Patches that are fitted at once, and where they predict.

    Parameters
    ----------
    X, y : array (b, n, M) and (b, n)
        Own rows of each patch; features that it does not see are zero.
    shown : array (b, M)
        1 of features that it sees, else 0.
    new : array (N, M)
        Rows at which all predict.
    """

    X: Array
    y: Array
    shown: Array
    new: Array


Learner = Callable[[Block], Array]
"""To predictions (b, N)."""


@dataclass(frozen=True)
class KnownEffects:
    """The ideal learner: Σ_{j ∈ F} β_j x_j, whatever the rows."""

    effects: Array

    def __call__(self, block: Block) -> Array:
        return (block.shown * self.effects) @ block.new.T


def least_squares(block: Block) -> Array:
    """Linear fits with an intercept."""
    centre = block.X.mean(axis=1, keepdims=True)
    level = block.y.mean(axis=1, keepdims=True)
    own = block.X - centre
    gram = own.transpose(0, 2, 1) @ own + 1e-6 * np.eye(own.shape[2])
    right = own.transpose(0, 2, 1) @ (block.y - level)[..., None]
    slopes = np.linalg.solve(gram, right)
    return (slopes[..., 0] @ block.new.T) + level - (centre @ slopes)[..., 0]


def kernel_ridge(block: Block) -> Array:
    """Kernel ridge, exp(−|x − z|²/|F|), a penalty of 1; without features the mean."""
    width = np.maximum(block.shown.sum(axis=1), 1.0)[:, None, None]
    norms = (block.X**2).sum(axis=2)[:, None, :]

    def kernel(at: Array, squares: Array) -> Array:
        result = at @ block.X.transpose(0, 2, 1)
        result *= 2.0
        result -= norms
        result -= squares[..., None]
        result /= width
        return np.asarray(np.exp(result, out=result))

    gram = kernel(block.X, norms[:, 0]) + np.eye(block.X.shape[1])
    weights = np.linalg.solve(gram, block.y[..., None])
    squares = block.shown @ (block.new**2).T
    result = (kernel(block.new[None], squares) @ weights)[..., 0]
    level = block.y.mean(axis=1, keepdims=True)
    return np.where(block.shown.any(axis=1, keepdims=True), result, level)


def trees(block: Block) -> Array:
    """Trees with leaves of five rows or more; of a patch without features the mean."""
    own, new = block.X.astype(np.float32), block.new.astype(np.float32)
    result = np.empty((len(own), len(new)))
    for row, X, y, shown in zip(result, own, block.y, block.shown > 0.0, strict=True):
        if not shown.any():
            row[:] = y.mean()
            continue
        model = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
        model.fit(np.asarray(X[:, shown], order="C"), y, check_input=False)
        at = np.ascontiguousarray(new[:, shown])
        row[:] = model.predict(at, check_input=False)
    return result


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A learner fitted to patches of a table.

    Parameters
    ----------
    learner : Learner
        From a block to predictions.
    scheme : Minipatches
        How patches are drawn.
    X, y : array (N, M) and (N,)
        The table.
    seed : int
        Of the patches.
    error : RowError
        Err.
    """

    learner: Learner
    scheme: Minipatches
    X: Array
    y: Array
    seed: int
    error: RowError = SQUARED

    @property
    def features(self) -> Features:
        """All columns."""
        return Features.of(list(range(self.X.shape[1])))

    def fit(self) -> PatchErrors:
        """Errors at the rows of the table, each by the patches without it."""
        drawn = self._drawn
        return self._errors(drawn, self.X, self.y, drawn)

    def scores(self) -> InteractionScores:
        """Of all pairs."""
        source = self.fit()
        return source.scores(source.features.all_sets(2), source.main_effects())

    def judged(self, new: Array, y_new: Array, sets: FeatureSets) -> dict[str, Array]:
        """The same patches on new rows: what intervals are for."""
        drawn = self._drawn
        beside = drawn.for_new_rows(len(new))
        return set_scores(self._errors(drawn, new, y_new, beside), sets)

    @property
    def _drawn(self) -> Patches:
        return self.scheme.draw(len(self.X), self.features, self.seed)

    def _errors(
        self, fitted: Patches, new: Array, y_new: Array, judging: Patches
    ) -> PatchErrors:
        return PatchErrors(
            patches=judging,
            predictions=self._predictions(fitted, new),
            y=y_new,
            error=self.error,
            features=self.features,
            row_weights=np.ones(len(new)),
            coverage=self.scheme.coverage(len(self.X), self.features),
        )

    def _predictions(self, fitted: Patches, new: Array) -> Array:
        """Of all patches at all rows, (B, N, 1)."""
        result = np.empty((len(fitted), len(new), 1))
        entries = 8 * len(new) * fitted.rows.shape[1]
        for own in BATCH_BUDGET.blocks(len(fitted), entries):
            rows, shown = fitted.rows[own], fitted.features[own].astype(np.float64)
            block = Block(self.X[rows] * shown[:, None, :], self.y[rows], shown, new)
            result[own, :, 0] = self.learner(block)
        return result
