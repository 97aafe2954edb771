"""The three learners of the paper, with hyper-parameters of ours: it states none."""

from __future__ import annotations

from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from propopt.base.arrays import Array, Points, Values


LearnerName: TypeAlias = Literal["KRBF", "MLP", "RF"]
LEARNERS: Final[tuple[LearnerName, ...]] = ("KRBF", "MLP", "RF")
LearningTask: TypeAlias = Literal["regression", "classification"]


def paper_learner(
    name: LearnerName, task: LearningTask, *, patch: bool = False, layers: int = 1
) -> Any:
    """An estimator that is not fitted.

    KRBF is kernel ridge regression with a gaussian kernel, in place of a support vector
    machine, which takes ten times as long in a patch; of classes it learns 0 and 1, and
    cuts to [0, 1]. The MLP has hidden layers of 16, and 20 steps of L-BFGS for each. In
    a patch a tree stands for the forest, since all patches are one.

    Parameters
    ----------
    name : {"KRBF", "MLP", "RF"}
        As the paper calls it.
    task : {"regression", "classification"}
        What it learns.
    patch : bool
        Whether it is one of many.
    layers : int
        Hidden layers of the MLP: three in figure 1A, else one.
    """
    classes = task == "classification"
    if name == "KRBF":
        return KernelClassifier() if classes else KernelRegressor()
    if name == "MLP":
        network = MLPClassifier if classes else MLPRegressor
        return network(
            hidden_layer_sizes=(16,) * layers, solver="lbfgs", max_iter=20 * layers,
            alpha=1.0,
        )  # fmt: skip
    if patch:
        tree = DecisionTreeClassifier if classes else DecisionTreeRegressor
        return tree(min_samples_leaf=5)
    forest = RandomForestClassifier if classes else RandomForestRegressor
    return forest(10, min_samples_leaf=5)


class _KernelMachine(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """(K + I/10)⁻¹ (y − ȳ) with K = exp(−‖x − x'‖² / (2 D)), of D standard columns."""

    def _fitted(self, X: Points, y: Values) -> None:
        self.n_features_in_ = X.shape[1]
        self.points_, self.mean_ = X, float(y.mean())
        kernel = self._kernel(X)
        kernel.flat[:: len(X) + 1] += 0.1
        self.weights_ = np.linalg.solve(kernel, y - self.mean_)

    def _values(self, X: Points) -> Values:
        return np.asarray(self.mean_ + self._kernel(X) @ self.weights_)

    def _kernel(self, X: Points) -> Array:
        squares = cdist(X, self.points_, "sqeuclidean")
        return np.asarray(np.exp(squares / (-2.0 * X.shape[1])))


class KernelRegressor(RegressorMixin, _KernelMachine):  # type: ignore[misc]
    """Kernel ridge regression, without the checks that would take most of its time."""

    def fit(self, X: Points, y: Values) -> Self:
        """Learn y (n,) of X (n, D)."""
        self._fitted(X, y)
        return self

    def predict(self, X: Points) -> Values:
        """Predictions (n,)."""
        return self._values(X)


class KernelClassifier(ClassifierMixin, _KernelMachine):  # type: ignore[misc]
    """Kernel ridge regression of two classes, cut to probabilities."""

    def fit(self, X: Points, y: Any) -> Self:
        """Learn two classes (n,) of X (n, D)."""
        self.classes_ = np.unique(y)
        self._fitted(X, (y == self.classes_[-1]).astype(np.float64))
        return self

    def predict_proba(self, X: Points) -> Array:
        """Probabilities (n, 2)."""
        second = np.clip(self._values(X), 0.0, 1.0)
        return np.column_stack([1.0 - second, second])

    def predict(self, X: Points) -> Any:
        """The likelier class (n,)."""
        return self.classes_[(self._values(X) > 0.5).astype(np.intp)]
