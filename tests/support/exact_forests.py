"""Forests whose slopes under the data law are known exactly, and by draws."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.losses.faithfulness import Estimate


TABLES = {"diabetes": load_diabetes, "breast cancer": load_breast_cancer}
N_DRAWS = 500


@dataclass(frozen=True)
class ForestCase:
    """A forest of a table of scikit-learn, and some of its rows.

    Draws are common to all rows: their errors go together.
    """

    name: str
    n_rows: int = 120

    @cached_property
    def table(self):
        X, y = TABLES[self.name](return_X_y=True)
        return X, y

    @cached_property
    def forest(self):
        X, y = self.table
        forest = RandomForestRegressor(
            20, max_depth=5, max_features=0.5, random_state=0
        )
        return forest.fit(X, y)

    @cached_property
    def rows(self):
        X, _ = self.table
        return X[np.random.default_rng(0).permutation(len(X))[: self.n_rows]]

    @cached_property
    def sizes(self):
        return self.table[0].std(axis=0)

    @cached_property
    def exact(self) -> Estimate:
        law = po.functions.smoothed(
            po.wrap(self.forest), law="data", data=self.table[0]
        )
        estimate = law.estimate(self.rows).scaled(self.sizes)
        assert estimate.exact
        return estimate

    def drawn(self, seed: int) -> Estimate:
        """Of the same forest, which nobody can read."""
        hidden = po.wrap(lambda X: self.forest.predict(X))
        law = po.functions.smoothed(
            hidden, law="data", data=self.table[0], n_samples=N_DRAWS, rng=seed
        )
        return law.estimate(self.rows).scaled(self.sizes)

    @cached_property
    def robust(self):
        return po.PairwiseRobustness(po.graphs.knn_graph(self.rows / self.sizes, 8))

    def objective(self, target, strength: float):
        """Matching and robustness, 2b·mean degree being the strength."""
        degree = self.robust.graph.similarities.sum() / self.n_rows
        return po.GradientMatching(target) + strength / (2.0 * degree) * self.robust

    def true_excess(self, W, strength: float) -> float:
        """F_G(W) − F_G* for the exact target."""
        objective = self.objective(self.exact, strength)
        return objective.value(W) - po.solve(objective).objective
