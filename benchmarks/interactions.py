"""Scores of all pairs from minipatches, beside their fits and loops over pairs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from hidimstat import LOCO
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from benchmarks.timing import OURS, Row, in_a_process, with_ratios
from propopt.interactions import ILOCO, DataSplit, Minipatches, fitting


TREE = DecisionTreeRegressor(min_samples_leaf=5)

N_LITERAL = 3
"""Pairs of the loop over rows and pairs that are really scored."""

N_LOOPED = 30
"""Pairs of the loop over pairs."""


def interactions(quick: bool) -> list[Row]:
    """All pairs of 50 features, 10,000 patches, 500 rows; LOCO beside hidimstat's."""
    (rows, peers), peak = in_a_process(_pairs)
    ours = Row(**{**vars(rows[0]), "peak_mib": peak})
    rows = [*with_ratios([ours, *rows[1:], *peers])]
    if not quick:
        rows += [*_larger(100, 2), *_larger(50, 3)]
    return [*rows, *_main_effects(quick)]


def _pairs() -> tuple[list[Row], list[Row]]:
    """All that is done beyond fits, fits, and both loops."""
    n_features, n_patches, n_rows = 50, 10_000, 500
    X, y = product(n_rows, n_features)
    few = Minipatches(n_patches=500, columns="fixed")
    ILOCO(TREE, few).fit(X, y).result_.to_frame()  # everything is imported
    model = ILOCO(TREE, Minipatches(n_patches=n_patches, columns="fixed"))
    with (
        clocks(fitting, "fit_patches") as ensemble,
        clocks(type(TREE), "fit") as fits,
        clocks(type(TREE), "predict") as predictions,
    ):
        whole, _ = seconds(lambda: model.fit(X, y).result_.to_frame())
    work = f"all pairs of {n_features} features, {n_patches:,} patches, {n_rows} rows"
    own = fits.seconds + predictions.seconds
    rows = [
        Row(
            work=work,
            method=OURS,
            seconds=whole - ensemble.seconds,
            solves="patches drawn and counted, main effects, pairs, intervals, table",
            target="< 10% of the ensemble",
        ),
        Row(work=work, method="the ensemble of trees", seconds=ensemble.seconds),
        Row(work=work, method="of it fits and predictions of trees", seconds=own),
    ]
    return rows, _loops(work, model)


def _loops(work: str, model: Any) -> list[Row]:
    """Seconds of both loops, of some pairs, for all of them."""
    scores = model.result_
    peers, n_pairs = [], len(scores.sets)
    for name, loop, n_some, target in [
        ("Algorithm 2, pair by pair and row by row", literal, N_LITERAL, ">= 50x"),
        ("rows at once, pair by pair, no jackknife", pair_by_pair, N_LOOPED, ""),
    ]:
        indices = np.arange(0, n_pairs, n_pairs // n_some)[:n_some]
        took, means = seconds(partial(loop, model, scores.sets[indices]))
        peers.append(
            Row(
                work=work,
                method=name,
                seconds=took * n_pairs / n_some,
                solves=f"{n_some} of {n_pairs} pairs, scaled",
                gap=float(np.abs(means - scores.estimates[indices]).max()),
                target=target,
            )
        )
    return peers


def _larger(n_features: int, order: int) -> list[Row]:
    """More features or larger sets from one ensemble."""
    X, y = product(500, n_features)
    model = ILOCO(TREE, Minipatches(columns="fixed"), order=1)
    fitting, _ = seconds(lambda: model.fit(X, y))
    beyond, scores = seconds(lambda: model.interactions(order=order))
    work = f"{len(scores.sets):,} sets of {order} of {n_features} features"
    return with_ratios(
        [
            Row(work=work, method=OURS, seconds=beyond),
            Row(work=work, method="main effects, with the fits", seconds=fitting),
        ]
    )


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
    took, result = seconds(theirs)
    gap = float(np.abs(result - model.main_effects_.estimates).max())
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


@dataclass
class Clock:
    """Seconds of the processor in a method."""

    seconds: float = 0.0


@contextmanager
def clocks(owner: Any, name: str) -> Iterator[Clock]:
    """Measure a method, or a function of a module, whoever calls it."""
    clock, method = Clock(), getattr(owner, name)

    def measured(*arguments: Any, **settings: Any) -> Any:
        began = time.process_time()
        try:
            return method(*arguments, **settings)
        finally:
            clock.seconds += time.process_time() - began

    with patch.object(owner, name, measured):
        yield clock


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Of this process: others on the machine count as little."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result
