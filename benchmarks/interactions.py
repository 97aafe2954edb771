"""Scores of all pairs from minipatches, beside their fits and loops over pairs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from hidimstat import LOCO
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from benchmarks.timing import OURS, Row, in_a_process, with_ratios
from propopt.interactions import ILOCO, DataSplit, Minipatches


N_LITERAL = 3
"""Pairs of the loop over rows and pairs that are really scored."""

N_LOOPED = 30
"""Pairs of the loop over pairs."""


def interactions(quick: bool) -> list[Row]:
    """All pairs of 50 features, 10,000 patches, 500 rows; LOCO beside hidimstat's."""
    (rows, literal, looped), peak = in_a_process(_quick if quick else _whole)
    ours = Row(**{**vars(rows[0]), "peak_mib": peak})
    return [*with_ratios([ours, *rows[1:], literal, looped]), *_main_effects(quick)]


def _quick() -> tuple[list[Row], Row, Row]:
    return _pairs(20, 2000, 300)


def _whole() -> tuple[list[Row], Row, Row]:
    return _pairs(50, 10_000, 500)


def _pairs(n_features: int, n_patches: int, n_rows: int) -> tuple[list[Row], Row, Row]:
    """Everything beyond fits, fits, and both loops, in seconds of the processor."""
    X, y = product(n_rows, n_features)
    scheme = Minipatches(n_patches=n_patches)
    model = ILOCO(DecisionTreeRegressor(min_samples_leaf=5), scheme, order=1)
    few = Minipatches(n_patches=500)
    ILOCO(DecisionTreeRegressor(), few, order=1).fit(X, y)  # everything is imported
    fitting, _ = seconds(lambda: model.fit(X, y))
    beyond, scores = seconds(lambda: model.interactions(order=2))
    beside, _ = seconds(lambda: model.interactions(order=1))
    work = f"all pairs of {n_features} features, {n_patches:,} patches, {n_rows} rows"
    n_pairs = len(scores.sets)
    peers = []
    for name, loop, n_some in [
        ("Algorithm 2, pair by pair and row by row", literal, N_LITERAL),
        ("Algorithm 2, pair by pair, no jackknife", pair_by_pair, N_LOOPED),
    ]:
        some = scores.sets[:: n_pairs // n_some][:n_some]
        took, means = seconds(partial(loop, model, some))
        gap = np.abs(means - scores.estimates[:: n_pairs // n_some][:n_some]).max()
        peers.append(
            Row(
                work=work,
                method=name,
                seconds=took * n_pairs / n_some,
                solves=f"{n_some} of {n_pairs} pairs, scaled",
                gap=float(gap),
                target=">= 50x",
            )
        )
    rows = [
        Row(work=work, method=OURS, seconds=beyond, target="< 10% of the fits"),
        Row(
            work=work,
            method="the fits of trees, once for all orders",
            seconds=fitting - beside,
        ),
    ]
    return rows, peers[0], peers[1]


def literal(model: Any, pairs: Any) -> Any:
    """Mean scores: a mean over patches for each pair, row and subset of the pair."""
    source = model.left_out_
    out, features = source.patches.out, source.patches.features
    predictions = source.predictions[:, :, 0]

    def error(i: int, left_out: list[int]) -> float:
        used = out[:, i] & ~features[:, left_out].any(axis=1)
        return float((source.y[i] - predictions[used, i].mean()) ** 2)

    return np.array(
        [
            np.mean(
                [
                    error(i, [j]) + error(i, [k]) - error(i, [j, k]) - error(i, [])
                    for i in range(len(source.y))
                ]
            )
            for j, k in pairs
        ]
    )


def pair_by_pair(model: Any, pairs: Any) -> Any:
    """Mean scores: all rows at once, for each pair."""
    source = model.left_out_
    out, features = source.patches.out, source.patches.features
    sums = np.where(out, source.predictions[:, :, 0], 0.0)
    counts = out.astype(np.float64)

    def errors(left_out: list[int]) -> Any:
        used = (~features[:, left_out].any(axis=1)).astype(np.float64)
        return (source.y - (used @ sums) / (used @ counts)) ** 2

    return np.array(
        [
            (errors([j]) + errors([k]) - errors([j, k]) - errors([])).mean()
            for j, k in pairs
        ]
    )


class Recorded(LinearRegression):  # type: ignore[misc]
    """Least squares that tells which rows it was fitted to."""

    tables: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.tables.append(X)
        return super().fit(X, y, sample_weight)


def _main_effects(quick: bool) -> list[Row]:
    """LOCO of least squares on one split: ours with intervals."""
    n_rows, n_features = (500, 20) if quick else (2000, 100)
    X, y = product(n_rows, n_features)
    model = ILOCO(Recorded(), DataSplit(), order=1)
    Recorded.tables.clear()
    ours, _ = seconds(lambda: model.fit(X, y))
    whole = next(own for own in Recorded.tables if own.shape[1] == n_features)
    train = np.isin(X[:, 0], whole[:, 0])

    def theirs() -> Any:
        fitted = LinearRegression().fit(X[train], y[train])
        loco = LOCO(fitted).fit(X[train], y[train])
        return loco.importance(X[~train], y[~train])

    theirs()  # everything is imported
    took, found = seconds(theirs)
    gap = float(np.abs(found - model.main_effects_.estimates).max())
    work = f"LOCO of {n_features} features, least squares, {n_rows} rows, one split"
    return with_ratios(
        [
            Row(work=work, method=OURS, seconds=ours),
            Row(work=work, method="hidimstat", seconds=took, gap=gap),
        ]
    )


def product(n_rows: int, n_features: int) -> tuple[Any, Any]:
    """Five important features, of which two interact."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    noise = rng.normal(size=n_rows)
    return X, 2.0 * X[:, :5].sum(axis=1) + 3.0 * X[:, 0] * X[:, 1] + noise


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Of this process: others on the machine count as little."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result
