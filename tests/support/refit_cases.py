"""Tables, targets and learners that are fitted without features, for tests."""

from itertools import combinations

import numpy as np
from sklearn.base import clone

from propopt.interactions.refits import Refits


def product_table(n_rows=60, n_features=4, seed=0, noise=0.3):
    """X and y = 2 x0 x1 + x2 + noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = 2 * X[:, 0] * X[:, 1] + X[:, 2] + noise * rng.normal(size=n_rows)
    return X, y


def read(estimator, X, y, **settings):
    """Refits of them."""
    return Refits.of(estimator, X, y, **settings)


def worth(estimator, training, test):
    """v(A) = −mean squared error of the learner refitted on columns A, of all A."""
    (X, y), (new, target) = training, test
    game: dict[frozenset[int], float] = {}
    for size in range(X.shape[1] + 1):
        for columns in combinations(range(X.shape[1]), size):
            predicted = np.full(len(target), y.mean())
            if columns:
                model = clone(estimator).fit(X[:, columns], y)
                predicted = model.predict(new[:, columns])
            game[frozenset(columns)] = -float(np.mean((target - predicted) ** 2))
    return game


def co_moebius(game, own):
    """Σ_{T ⊆ S} (−1)^|T| v(all without T): the co-Möbius transform at S."""
    everyone = max(game, key=len)
    return sum(
        (-1) ** size * game[everyone - set(left_out)]
        for size in range(len(own) + 1)
        for left_out in combinations(own, size)
    )
