"""Interaction indices of the games of rows, by the packages that define them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from propopt._typing import Array, Values
from propopt.extras import require
from propopt.interactions.comparisons.games import RowGames, read_games
from propopt.interactions.comparisons.pairs import PairScores


def shap_interactions(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    groups: Mapping[Hashable, Sequence[Hashable]] | None = None,
    n_rows: int = 20,
    n_background: int = 20,
    rng: int | np.random.Generator | None = None,
) -> PairScores:
    """Mean size over rows of Shapley-Taylor interactions, by the package ``shap``.

    φ_jk = (2 / M) Σ_{A ∌ j,k} [v(A ∪ jk) − v(A ∪ j) − v(A ∪ k) + v(A)] / C(M − 1, |A|),

    both halves that the package gives together, of the game v(A) = mean over background
    rows b of f(x on A, b elsewhere). It takes all 2^M subsets of the features. This is
    what the package has for any model (Dhamdhere, Agarwal and Sundararajan, 2020); what
    it has for trees weighs sets as the interaction index of Shapley does.

    Parameters
    ----------
    model : estimator, callable or Function
        Fitted; see :func:`propopt.wrap` for what is explained of a classifier.
    X : array or DataFrame (N, D)
        Rows are drawn from it.
    target : class label or int, optional
        The class, as in :func:`propopt.wrap`.
    groups : mapping of a feature to its columns, optional
        Columns that are one feature.
    n_rows, n_background : int
        Rows x and b, drawn apart; 2^M times their product evaluations.
    rng : int, numpy.random.Generator or None
        For the draws; None is seed 0.

    Returns
    -------
    PairScores
        Of all pairs.

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or M is above 15.
    MissingExtra
        If ``shap`` is not installed.

    Examples
    --------
    Against a row b φ_01 of x_0 x_1 is (x_0 − b_0)(x_1 − b_1), here 0 or 2.

    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0, 5.0], [0.0, 0.0, 0.0]])
    >>> product = lambda X: X[:, 0] * X[:, 1]
    >>> shap_interactions(product, X).matrix()[0, 1]  # doctest: +SKIP
    1.0
    """
    package = require("shap")
    games = read_games(
        model, X, target=target, groups=groups,
        n_rows=n_rows, n_background=n_background, rng=rng,
    )  # fmt: skip

    def matrix(game: Callable[[Any], Values], n_players: int) -> Array:
        explainer = package.explainers.ExactExplainer(game, np.zeros((1, n_players)))
        every = 2**n_players
        found = explainer(
            np.ones((1, n_players)), interactions=2, max_evals=every, silent=True
        )
        values = np.asarray(found.values[0], dtype=np.float64)
        return values + values.T

    return _mean_sizes(games, matrix, "SHAP interactions")


def faith_shap(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    groups: Mapping[Hashable, Sequence[Hashable]] | None = None,
    n_rows: int = 20,
    n_background: int = 20,
    rng: int | np.random.Generator | None = None,
) -> PairScores:
    """Mean size over rows of Faith-Shap values of order 2, by the package ``shapiq``.

    Of the game v(A) = mean over background rows b of f(x on A, b elsewhere) it is the
    coefficient of the pair in the polynomial of order 2 that is nearest to v under
    Shapley's weights, equal to v at no and at all features (Tsai, Yeh and Ravikumar,
    2023). It takes all 2^M subsets of the features.

    Parameters
    ----------
    model : estimator, callable or Function
        Fitted; see :func:`propopt.wrap` for what is explained of a classifier.
    X : array or DataFrame (N, D)
        Rows are drawn from it.
    target : class label or int, optional
        The class, as in :func:`propopt.wrap`.
    groups : mapping of a feature to its columns, optional
        Columns that are one feature.
    n_rows, n_background : int
        Rows x and b, drawn apart; 2^M times their product evaluations.
    rng : int, numpy.random.Generator or None
        For the draws; None is seed 0.

    Returns
    -------
    PairScores
        Of all pairs.

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or M is above 15.
    MissingExtra
        If ``shapiq`` is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> product = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    >>> faith_shap(product, X).top(1)  # doctest: +SKIP
       feature_1  feature_2  estimate
    0          0          1   1.38...
    """
    package = require("shapiq")
    games = read_games(
        model, X, target=target, groups=groups,
        n_rows=n_rows, n_background=n_background, rng=rng,
    )  # fmt: skip

    def matrix(game: Callable[[Any], Values], n_players: int) -> Array:
        computer = package.ExactComputer(game, n_players=n_players)
        found = computer("FSII", order=2).get_n_order_values(2)
        return np.asarray(found, dtype=np.float64)

    return _mean_sizes(games, matrix, "Faith-Shap")


def _mean_sizes(
    games: RowGames,
    matrix: Callable[[Callable[[Any], Values], int], Array],
    method: str,
) -> PairScores:
    """mean_i |matrix of v_i|: a package evaluates v_i by its table."""
    pairs = games.features.all_sets(2)
    n_players = len(games.features)
    sizes = [
        np.abs(matrix(_game_of(values), n_players)[pairs[:, 0], pairs[:, 1]])
        for values in games.table
    ]
    return PairScores(
        sets=pairs,
        names=games.features.names,
        estimates=np.mean(sizes, axis=0),
        method=method,
        units="units of the output",
        n_rows=len(games.points),
    )


def _game_of(table: Values) -> Callable[[Any], Values]:
    """From subsets as bits (q, M) to their values."""

    def game(subsets: Any) -> Values:
        bits = np.asarray(subsets).astype(np.intp)
        return table[bits @ (1 << np.arange(bits.shape[1]))]

    return game
