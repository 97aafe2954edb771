"""Scores of all pairs from minipatches, beside their fits and loops over pairs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from hidimstat import LOCO
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from benchmarks.timing import OURS, Method, Row, Timed, race
from propopt.interactions import ILOCO, DataSplit, Minipatches, minipatches


TREE = DecisionTreeRegressor(min_samples_leaf=5)

N_LITERAL = 3
"""Pairs of the loop over rows and pairs that are really scored."""

N_LOOPED = 30
"""Pairs of the loop over pairs."""


def interactions(quick: bool) -> list[Row]:
    """All pairs of 50 features, 10,000 patches, 500 rows; LOCO beside hidimstat's."""
    n_patches = 1000 if quick else 10_000
    rows = _pairs(50, n_patches)
    if not quick:
        rows += [*_larger(100, 2), *_larger(50, 3)]
    return [*rows, *_main_effects(quick)]


def fitted(n_features: int, n_patches: int) -> tuple[Any, Timed, Timed]:
    """A model of 500 rows; seconds beyond fitting its ensemble, and of the ensemble."""
    X, y = product(500, n_features)
    few = Minipatches(n_patches=500)
    ILOCO(TREE, few, n_jobs=1).fit(X, y).result_.to_frame()  # everything is imported
    model = ILOCO(TREE, Minipatches(n_patches=n_patches), n_jobs=1)
    with clocked_fits() as fits:
        whole, _ = seconds(lambda: model.fit(X, y).result_.to_frame())
    own = Timed(whole - sum(fits), model.result_)
    return model, own, Timed(sum(fits), None)


def fitted_and_scored(n_features: int, n_patches: int) -> Timed:
    """The part of that beyond the ensemble."""
    return fitted(n_features, n_patches)[1]


def _pairs(n_features: int, n_patches: int) -> list[Row]:
    """All that is done beyond fits; loops of some pairs, for all of them."""
    model, own, ensemble = fitted(n_features, n_patches)
    pairs = model.result_.sets
    indices = np.arange(0, len(pairs), len(pairs) // N_LOOPED)[:N_LOOPED]
    few = indices[:N_LITERAL]

    def loop(name: str, way: Any, some: Any) -> Method:
        return Method(
            name=name,
            role="other",
            run=partial(way, model, pairs[some]),
            made=len(some),
            of=len(pairs),
            runs=1,
            note="no intervals",
        )

    return race(
        f"all pairs of {n_features} features, {n_patches:,} patches, 500 rows",
        Method(
            name=OURS,
            role="propopt",
            run=lambda: own,
            runs=1,
            answer=lambda result: result.scores,
            apart=partial(fitted_and_scored, n_features, n_patches),
            note="with intervals, after the ensemble is fitted",
        ),
        Method(
            name="a Gram matrix for each row, NumPy",
            run=partial(gram_of_rows, model, pairs),
            runs=1,
            answer=np.asarray,
            note="no intervals",
        ),
        loop("all rows at once, pair by pair, NumPy", pair_by_pair, indices),
        loop("pair by pair and row by row, NumPy", literal, few),
        Method(
            name="fitting the ensemble of trees",
            role="other",
            run=lambda: ensemble,
            runs=1,
            note="comes before any of them",
        ),
    )


def _larger(n_features: int, order: int) -> list[Row]:
    """More features or larger sets from one ensemble."""
    X, y = product(500, n_features)
    model = ILOCO(TREE, Minipatches(n_patches=10_000), order=1)
    ensemble, _ = seconds(lambda: model.fit(X, y))
    n_sets = len(model.interactions(order=order).sets)
    return race(
        f"{n_sets:,} sets of {order} of {n_features} features, 500 rows",
        Method(
            name=OURS,
            role="propopt",
            run=partial(model.interactions, order=order),
            runs=3,
        ),
        Method(
            name="main effects, with the fits",
            role="other",
            run=lambda: Timed(ensemble, None),
            runs=1,
        ),
    )


def gram_of_rows(model: Any, pairs: Any) -> Any:
    """Mean scores: sums over patches without two features are Gram matrices."""
    source = model.refit_errors_
    without = 1.0 * ~source.patches.features  # (B, D)
    predictions = source.predictions[:, :, 0]
    j, k = pairs.T
    total = np.zeros(len(pairs))
    for i, y in enumerate(source.y):
        own = source.patches.out[:, i]
        kept, values = without[own], predictions[own, i]
        both = (y - (kept.T * values) @ kept / (kept.T @ kept)) ** 2
        one, none = np.diagonal(both), (y - values.mean()) ** 2
        total += one[j] + one[k] - both[j, k] - none
    return total / len(source.y)


def literal(model: Any, pairs: Any) -> Any:
    """Mean scores: a mean over patches for each pair, row and subset of the pair."""
    source = model.refit_errors_
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
    source = model.refit_errors_
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
    model.fit(X, y)
    whole = next(own for own in Recorded.tables if own.shape[1] == n_features)
    train = np.isin(X[:, 0], whole[:, 0])

    def theirs() -> Any:
        fitted = LinearRegression().fit(X[train], y[train])
        loco = LOCO(fitted).fit(X[train], y[train])
        return loco.importance(X[~train], y[~train])

    theirs()  # everything is imported
    return race(
        f"LOCO of {n_features} features, least squares, {n_rows:,} rows, one split",
        Method(
            name=OURS,
            role="propopt",
            run=lambda: ILOCO(Recorded(), DataSplit(), order=1).fit(X, y),
            runs=3,
            answer=lambda fit: fit.main_effects_.scores,
            note="with intervals",
        ),
        Method(name="hidimstat", run=theirs, runs=3, answer=np.asarray),
    )


def product(n_rows: int, n_features: int) -> tuple[Any, Any]:
    """Five important features, of which two interact."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    noise = rng.normal(size=n_rows)
    return X, 2.0 * X[:, :5].sum(axis=1) + 3.0 * X[:, 0] * X[:, 1] + noise


@contextmanager
def clocked_fits() -> Iterator[list[float]]:
    """Seconds of the processor in which learners are fitted to patches and predict."""
    taken: list[float] = []
    parts = minipatches.fitted_parts

    def measured(*arguments: Any, **settings: Any) -> Iterator[Any]:
        fits = parts(*arguments, **settings)
        while True:
            took, part = seconds(lambda: next(fits, None))
            taken.append(took)
            if part is None:
                return
            yield part

    with patch.object(minipatches, "fitted_parts", measured):
        yield taken


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Of this process: others on the machine count as little."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result
