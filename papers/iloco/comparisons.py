"""Scores of pairs by other definitions: H-statistic, Shapley-Taylor, Faith-Shap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.resources import MODEL_CALLS
from propopt.functions.function import Function
from propopt.functions.wrapping import wrap
from propopt.tables.frames import Labels, is_frame


_MOST_FEATURES: Final = 15
"""Features of which all 2^D subsets are evaluated, at most."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalGames:
    """v_i(A) = mean over background rows b of f(x_i on A, b elsewhere), for n rows.

    For one or two features it is the partial dependence at the row (Friedman 2001).
    v_i is also the game of Shapley values with a marginal background.
    """

    function: Function  # f
    points: Points  # (n, D): the rows x_i
    background: Points  # (B, D): values of features outside A
    labels: Labels

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,  # shape (N, D)
        target: Any,
        n_rows: int,
        n_background: int,
        rng: int = 0,
    ) -> MarginalGames:
        """The games of a sample of rows of X, against another sample of rows."""
        function = wrap(model, target, data=X if is_frame(X, "X") else None)
        points, labels = function.read(X)
        generator = np.random.default_rng(rng)

        def sample(count: int) -> Points:
            if count >= len(points):
                return points
            return points[np.sort(generator.choice(len(points), count, replace=False))]

        return cls(
            function=function,
            points=sample(n_rows),
            background=sample(n_background),
            labels=labels.of_columns(),
        )

    @property
    def pairs(self) -> Indices:
        """All pairs of features, (Q, 2)."""
        return np.array(list(combinations(range(self.points.shape[1]), 2)))

    def values(self, known: Mask) -> Array:
        """Of q sets A of features, shape (n, q); known (q, D)."""
        (n_rows, n_columns), n_background = self.points.shape, len(self.background)
        result = np.empty((n_rows, len(known)))
        copies = n_rows * n_background
        for block in MODEL_CALLS.blocks(len(known), 8 * n_columns, copies):
            own_columns = known[block, None, None]
            # of q sets, n rows, B background rows and D columns
            mixed = np.where(own_columns, self.points[:, None], self.background)
            values = self.function.value_at(mixed.reshape(-1, n_columns), self.labels)
            values = values.reshape(len(own_columns), n_rows, -1)
            result[:, block] = values.mean(axis=2).T
        return result

    @cached_property
    def table(self) -> Array:
        """Of all subsets, shape (n, 2^D): the place of A is Σ_{j ∈ A} 2^j."""
        n_columns = self.points.shape[1]
        if n_columns > _MOST_FEATURES:
            raise InvalidInput(
                f"X: 2^{n_columns} subsets of features are too many to evaluate; give "
                f"at most {_MOST_FEATURES} columns"
            )
        indices = np.arange(2**n_columns)[:, None]
        return self.values((indices >> np.arange(n_columns)) % 2 == 1)

    def of_rows(
        self, matrix: Callable[[Callable[[Any], Values], int], Array], method: str
    ) -> RowScores:
        """The matrix of each v_i: a package evaluates v_i by its table."""
        pairs, n_players = self.pairs, self.points.shape[1]
        powers = 1 << np.arange(n_players)

        def of_row(table: Values) -> Values:
            def game(subsets: Any) -> Values:
                """From subsets as bits (q, D) to their values."""
                return table[np.asarray(subsets).astype(np.intp) @ powers]

            return matrix(game, n_players)[pairs[:, 0], pairs[:, 1]]

        return RowScores(pairs, np.array(list(map(of_row, self.table))), method)


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores of all pairs of features of one fitted model, by a method."""

    sets: Indices  # (Q, 2)
    estimates: Values  # (Q,), none negative
    method: str


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores of all pairs at each row, with signs.

    A score of a pair is a mean over rows; the paper does not say of what, and for a
    product of centred features it is the sizes that do not cancel.
    """

    sets: Indices  # (Q, 2)
    at_rows: Array  # (n, Q)
    method: str

    @property
    def estimates(self) -> Values:
        """mean_i |score at row i|, (Q,)."""
        return np.asarray(np.abs(self.at_rows).mean(axis=0))

    @property
    def sizes_of_means(self) -> Values:
        """|mean_i score at row i|, (Q,)."""
        return np.asarray(np.abs(self.at_rows.mean(axis=0)))


_ROUNDING: Final = 1e-12
"""Of centred partial dependences, over the largest of them."""


def h_statistic(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    n_rows: int = 50,
    n_background: int = 50,
    rng: int = 0,
) -> PairScores:
    """The share of the joint effect of two features that is no sum of their effects.

    H²_jk = Σ_i [PD_jk(x_i) − PD_j(x_i) − PD_k(x_i)]² / Σ_i PD_jk(x_i)²

    with partial dependences PD_S(x_i) = mean over background rows b of f(x_i on S, b
    elsewhere), each less its mean over the rows i (Friedman and Popescu, 2008,
    Predictive learning via rule ensembles). A pair without any effect has 0.
    """
    games = MarginalGames.of(model, X, target, n_rows, n_background, rng)
    pairs = games.pairs
    alone: Mask = np.eye(games.points.shape[1], dtype=np.bool_)
    either = alone[pairs[:, 0]] | alone[pairs[:, 1]]
    single, both = (
        own - own.mean(axis=0) for own in map(games.values, (alone, either))
    )
    beyond = both - single[:, pairs].sum(axis=2)
    joint, shares = (both**2).sum(axis=0), np.zeros(len(pairs))
    # 0 where the joint effect is rounding
    floor = len(both) * (_ROUNDING * np.abs(both).max(initial=0.0)) ** 2
    np.divide((beyond**2).sum(axis=0), joint, out=shares, where=joint > floor)
    return PairScores(pairs, shares, "H-statistic")


def shap_interactions(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    n_rows: int = 20,
    n_background: int = 20,
    rng: int = 0,
) -> RowScores:
    """Shapley-Taylor interactions at each row, by the package ``shap``.

    φ_jk = (2 / D) Σ_{A ∌ j,k} [v(A ∪ jk) − v(A ∪ j) − v(A ∪ k) + v(A)] / C(D − 1, |A|),

    both halves that the package gives together (Dhamdhere, Agarwal and Sundararajan,
    2020). It takes all 2^D subsets of the features.
    """
    package = require("shap")
    games = MarginalGames.of(model, X, target, n_rows, n_background, rng)

    def matrix(game: Callable[[Any], Values], n_players: int) -> Array:
        explainer = package.explainers.ExactExplainer(game, np.zeros((1, n_players)))
        every = 2**n_players
        result = explainer(
            np.ones((1, n_players)), interactions=2, max_evals=every, silent=True
        )
        values = np.asarray(result.values[0], dtype=np.float64)
        return values + values.T

    return games.of_rows(matrix, "SHAP interactions")


def faith_shap(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    n_rows: int = 20,
    n_background: int = 20,
    rng: int = 0,
) -> RowScores:
    """Faith-Shap values of order 2 at each row, by the package ``shapiq``.

    It is the coefficient of the pair in the polynomial of order 2 that is nearest to v
    under Shapley's weights, equal to v at no and at all features (Tsai, Yeh and
    Ravikumar, 2023). It takes all 2^D subsets of the features.
    """
    package = require("shapiq")
    games = MarginalGames.of(model, X, target, n_rows, n_background, rng)

    def matrix(game: Callable[[Any], Values], n_players: int) -> Array:
        computer = package.ExactComputer(game, n_players=n_players)
        result = computer("FSII", order=2).get_n_order_values(2)
        return np.asarray(result, dtype=np.float64)

    return games.of_rows(matrix, "Faith-Shap")
