"""The share of mixed rows that are far from the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import propopt as po
from propopt.base.text import Reason
from propopt.laws.background import FAR_QUANTILE, OffData
from propopt.losses.graphs.distances import distances_between


def rows_of(rho: float, D: int = 6, n: int = 500, seed: int = 0) -> Any:
    """Rows of unit variance, of which all pairs of columns have one correlation."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 1))
    return math.sqrt(rho) * shared + math.sqrt(1.0 - rho) * rng.normal(size=(n, D))


def off(X: Any, players: Any = None, weights: Any = None) -> OffData:
    own = np.arange(X.shape[1]) if players is None else np.asarray(players)
    result = OffData.of(X, X, X, lambda points: points, own, weights)
    assert isinstance(result, OffData)
    return result


def test_one_in_a_hundred_is_far_where_columns_are_independent() -> None:
    """Of ten tables: |z| < 5 with their own scatter, which has nine degrees: 7e-4."""
    shares = [off(rows_of(0.0, seed=seed)).share for seed in range(10)]
    error = np.std(shares, ddof=1) / math.sqrt(10)
    assert abs(np.mean(shares) - (1.0 - FAR_QUANTILE)) < 5.0 * error
    assert np.mean(shares) < 0.03


def test_correlation_makes_more_of_them_far() -> None:
    shares = [off(rows_of(rho)).share for rho in (0.0, 0.5, 0.9, 0.99)]
    assert shares == sorted(shares)
    assert shares[0] < 0.05
    assert shares[-1] > 0.6


def test_columns_that_move_together_are_near_as_one_player() -> None:
    X = np.repeat(rows_of(0.0, D=3), 2, axis=1)  # pairs of equal columns
    assert off(X).share > 0.15
    assert off(X, [0, 0, 1, 1, 2, 2]).share < 0.05


def test_the_share_is_that_of_its_definition_by_other_draws() -> None:
    """|z| < 5 for a share whose errors of both draws are known: 6e-7."""
    X = rows_of(0.8)
    result, rng, n = off(X), np.random.default_rng(99), 3000
    own = distances_between(X, X)
    np.fill_diagonal(own, np.inf)
    limit = np.quantile(own.min(axis=1), 0.99)
    far = 0
    for _ in range(n):
        i, j = rng.integers(500, size=2)
        order = rng.permutation(6)
        known = order[: rng.integers(1, 6)]
        row = X[j].copy()
        row[known] = X[i, known]
        apart = np.linalg.norm(X - row, axis=1)
        apart[[i, j]] = np.inf
        far += int(apart.min() > limit)
    error = math.hypot(result.standard_error, math.sqrt(far / n * (1 - far / n) / n))
    assert abs(result.share - far / n) < 5.0 * error
    assert result.standard_error == pytest.approx(
        math.sqrt(result.share * (1 - result.share) / 400), rel=1e-9
    )


def test_missing_numbers_and_weights_have_a_share_too() -> None:
    X = rows_of(0.9)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    assert 0.0 < off(holes).share < 1.0
    weights = np.zeros(500)
    weights[7] = 1.0  # all mixed rows have the columns of one row
    one = off(X, weights=weights)
    assert one.share != off(X).share


def test_few_rows_and_one_player_have_none() -> None:
    X = rows_of(0.0, n=60)
    for rows, players in ((X, np.arange(6)), (rows_of(0.0), np.zeros(6, int))):
        result = OffData.of(rows, rows, rows, lambda points: points, players)
        assert isinstance(result, Reason)


def test_a_card_says_it_and_groups_lower_it() -> None:
    X = pd.DataFrame(rows_of(0.0, D=2), columns=["a", "b"])
    X["c"] = X["a"] + 0.01 * rows_of(0.0, D=1, seed=3)[:, 0]
    model = LinearRegression().fit(X, X["a"] * X["b"])
    plain = po.explain(model, X[:5], data=X)
    told = str(plain.parameters["mixed rows"])
    assert "estimated from 400" in told
    assert told in str(plain.document())
    share = float(told.partition(" %")[0])
    grouped = po.explain(model, X[:5], data=X, groups={"both": ["a", "c"]})
    assert share > 30.0 > float(str(grouped.parameters["mixed rows"]).split(" %")[0])
    slopes = po.explain(model, X[:5], data=X, kind="slopes")
    assert "mixed rows" not in slopes.parameters
