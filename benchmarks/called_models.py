"""Sampled Shapley values of models that can only be called: errors and intervals.

    python -m benchmarks.called_models [--output FILE] [--kinds KIND ...]

writes ``called_models.csv`` beside this file and prints the second table of
``docs/background/few_calls.md``, in some five minutes. Models are given as callables,
so that nothing is read. Columns are correlated, every fourth is a category of four
codes, and the text pipeline has two columns of words. Explained rows are neither fitted
nor in the background.

========== =========================================================================
before     root mean square of the errors of version 0.2.0, relative to the values:
           random orders, forwards and backwards, over background rows in turn, as
           many as our calls pay for
error      the same for ours, with 100 orders a row (the default) or 400
stated     root mean square of the standard errors, relative to the values
held       share of intervals of 1.96 standard errors that hold the exact value
by t       the same for ``Explanation.intervals()``, of 2.26 standard errors
truth      error of the exact values themselves, relative: long runs have one
========== =========================================================================

Lines of 100 and more background rows have a table for each seed. Exact values come from
all sets of columns, up to 14; from the products and trees of which models are sums, and
from terms of few columns, for any number. For the network of 40 columns they are a run
of 100,000 orders for each row.

    python -m benchmarks.called_models --surrogates

prints the third table of the page: what surrogates of all answers could save.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from propopt.base.arrays import Array
from propopt.shap import Explainer
from propopt.structures.subsets.sets import all_sets, shapley_of_coalitions


MEASURED = Path(__file__).with_suffix(".csv")

ORDERS = (100, 400)

N_POINTS = 5

FEW_ROWS = 20
"""Background rows that all have several orders."""

MOST_ROWS = 100
"""Background rows of which none is left out."""

_MOST_ENUMERATED = 14
"""Columns of all of whose sets values are computed."""

LONG_RUN = 100_000
"""Orders for each explained row."""

_QUANTILES = {"held": 1.96, "by t": 2.262}
"""Half-widths of 95 % intervals in standard errors: normal, and t for ten blocks."""

_AT_ONCE = 2**15
"""Rows in one call, of exact values and of version 0.2.0."""

CASES = (  # kinds, columns, background rows, seeds
    ("network", 10, 20, 20),
    ("network", 14, 20, 20),
    ("network, probability", 10, 100, 20),
    ("network, probability", 40, 20, 10),
    ("support vectors", 10, 20, 20),
    ("support vectors", 20, 100, 10),
    ("support vectors", 40, 20, 10),
    ("neighbours", 10, 20, 20),
    ("neighbours", 14, 20, 10),
    ("stack", 14, 20, 20),
    ("stack", 60, 20, 10),
    ("stack, probability", 10, 20, 10),
    ("text pipeline", 5, 20, 8),
    ("text pipeline", 10, 20, 8),
    ("service", 14, 100, 20),
    ("service", 20, 20, 20),
    ("service", 60, 20, 10),
    ("network, probability", 10, 500, 20),
    ("support vectors", 20, 500, 20),
    ("stack", 20, 500, 20),
    ("service", 20, 500, 20),
)

SHARED = (  # kinds, columns and background rows where many triples have effects
    ("network, probability", 40, 20),
    ("support vectors", 20, 100),
    ("support vectors", 40, 20),
    ("stack", 60, 20),
)

SURROGATES = {
    "booster": HistGradientBoostingRegressor(max_iter=300, random_state=0),
    "kernel": make_pipeline(
        StandardScaler(), Nystroem(n_components=500, random_state=0), Ridge(1e-3)
    ),
    "network": make_pipeline(
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=20, random_state=0),
    ),
}
"""Functions that are fitted to all answers, of all rows."""

Truth = Callable[[Array, Array], Array]
"""Shapley values of points (N, D) against background rows (M, D)."""


# ---- Shapley values


def of_sets(f: Callable[[Array], Array], points: Array, rows: Array) -> Array:
    """Exact values by all sets, (N, D)."""
    sets = all_sets(points.shape[1])
    worths = np.empty((len(points), len(sets)))
    step = max(_AT_ONCE // len(rows), 1)
    for n, point in enumerate(points):
        for first in range(0, len(sets), step):
            some = sets[first : first + step]
            mixed = np.where(some[:, None], point, rows)
            values = f(mixed.reshape(-1, len(point))).reshape(len(some), -1)
            worths[n, first : first + step] = values.mean(axis=1)
    return np.asarray(shapley_of_coalitions(worths))


def of_orders(
    f: Callable[[Array], Array], points: Array, rows: Array, n_orders: int, seed: int
) -> tuple[Array, Array]:
    """Values by version 0.2.0, and their standard errors for these rows, (N, D)."""
    rng = np.random.default_rng(seed)
    width = points.shape[1]
    turns = -(-n_orders // len(rows))
    used = np.concatenate([rng.permutation(len(rows)) for _ in range(turns)])[:n_orders]
    values = np.empty((len(points), n_orders, width))
    for n, point in enumerate(points):
        for first in range(0, n_orders, max(_AT_ONCE // (2 * width), 1)):
            some = slice(first, first + max(_AT_ONCE // (2 * width), 1))
            row = rows[used[some]]
            ranks = rng.random(row.shape).argsort(axis=1).argsort(axis=1)
            total = 0.0
            for rank in (ranks, width - 1 - ranks):  # forwards and backwards
                taken = rank[:, None] < np.arange(width + 1)[:, None]
                mixed = np.where(taken, point, row[:, None]).reshape(-1, width)
                along = np.diff(f(mixed).reshape(len(row), -1), axis=1)
                total = total + np.take_along_axis(along, rank, axis=1)
            values[n, some] = total / 2.0
    members = used == np.arange(len(rows))[:, None]
    counts = np.maximum(members.sum(axis=1), 1)
    means = members @ values / counts[:, None]
    squares = (members @ values**2 / counts[:, None] - means**2).mean(axis=1)
    is_used = members.any(axis=1)
    return means[:, is_used].mean(axis=1), np.sqrt(np.maximum(squares, 0.0) / n_orders)


def of_parts(parts: Iterable[tuple[float, Any]], points: Array, rows: Array) -> Array:
    """Exact values of a weighted sum of models that are read, (N, D)."""
    few = [rows[first : first + 100] for first in range(0, len(rows), 100)]
    values = np.zeros(points.shape)
    for weight, part in parts:
        results = [Explainer(part, some)(points) for some in few]  # of more, some
        assert all(result.error_std is None for result in results)
        values += weight * np.mean([result.values for result in results], axis=0)
    return values


def of_terms(terms: Any, points: Array, rows: Array) -> Array:
    """Exact values of a sum of functions of few columns, (N, D)."""
    values = np.zeros(points.shape)
    for columns, term in terms:
        values[:, columns] += of_sets(term, points[:, columns], rows[:, columns])
    return values


# ---- Models


@dataclass(frozen=True)
class Called:
    """A model as a callable of rows, and its exact values; None for a long run."""

    kind: str
    f: Callable[[Any], Array]
    table: Callable[[int, int], Any]  # of rows, by their number and a seed
    truth: Truth | None

    def exact(self, points: Array, rows: Array) -> Array:
        """Shapley values without an error, (N, D)."""
        if self.truth is None:
            return of_sets(self.f, points, rows)
        return self.truth(points, rows)


def numbers(width: int, n_rows: int, seed: int) -> Array:
    """Correlated columns, of which some are codes."""
    rng = np.random.default_rng([width, seed])
    X = rng.normal(size=(n_rows, width))
    X[:, 1::3] = 0.7 * X[:, :1] + 0.7 * X[:, 1::3]
    X[:, 2::4] = rng.integers(0, 4, size=X[:, 2::4].shape)
    return X


def texts(width: int, n_rows: int, seed: int) -> pd.DataFrame:
    """Two columns of words beside numbers."""
    X = numbers(width - 2, n_rows, seed)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(width - 2)])
    rng = np.random.default_rng([width, seed, 1])
    words = ["late", "paid", "refund", "broken", "thanks", "slow", "great"]
    for name in ("note", "reply"):
        lengths = rng.integers(2, 6, n_rows)
        frame[name] = [" ".join(rng.choice(words, length)) for length in lengths]
    return frame


def outcome(X: Array) -> Array:
    """Effects of single columns, of pairs and of three."""
    width = X.shape[1]
    sizes = np.random.default_rng(0).normal(size=width) / np.sqrt(
        1.0 + np.arange(width)
    )
    pairs = np.sin(X[:, 0] * X[:, 1]) + X[:, 2] * np.abs(X[:, -1]) / 2.0
    return np.asarray(X @ sizes + pairs + X[:, 0] * X[:, 2] * (X[:, -2] > 0.0))


@cache
def called(kind: str, width: int) -> Called:
    """A fitted model of one kind."""
    table = partial(numbers, width)
    X = table(1000, 0)
    y = outcome(X)
    above = y > np.median(y)
    f: Callable[[Any], Array]
    truth: Truth | None = None
    if kind == "network":
        network = MLPRegressor(
            hidden_layer_sizes=(32, 32), alpha=0.1, max_iter=200, random_state=0
        )
        f = make_pipeline(StandardScaler(), network).fit(X, y).predict
    elif kind == "network, probability":
        network = MLPClassifier(hidden_layer_sizes=(32,), max_iter=150, random_state=0)
        f = second(make_pipeline(StandardScaler(), network).fit(X, above))
    elif kind == "support vectors":
        model = make_pipeline(StandardScaler(), SVR(C=3.0, gamma=1.0 / width))
        f = model.fit(X[:300], y[:300]).predict
        truth = partial(of_parts, [(1.0, model)])
    elif kind == "neighbours":
        neighbours = KNeighborsRegressor(10, algorithm="brute")
        f = make_pipeline(StandardScaler(), neighbours).fit(X[:300], y[:300]).predict
    elif kind == "stack":
        forest = RandomForestRegressor(20, min_samples_leaf=3, random_state=0)
        boosting = GradientBoostingRegressor(n_estimators=50, random_state=0)
        parts = [("forest", forest), ("boosting", boosting), ("ridge", Ridge())]
        stack = StackingRegressor(parts, Ridge(), cv=3).fit(X, y)
        f = stack.predict
        weights = stack.final_estimator_.coef_
        truth = partial(of_parts, [*zip(weights, stack.estimators_, strict=True)])
    elif kind == "stack, probability":
        forest = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
        svm = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
        classifiers = [("forest", forest), ("vectors", svm)]
        stacked = StackingClassifier(classifiers, LogisticRegression(), cv=3)
        f = second(stacked.fit(X[:300], above[:300]))
    elif kind == "text pipeline":
        table = partial(texts, width)
        frame = table(1000, 0)
        others = [*frame][:-2]
        target = outcome(frame[others].to_numpy()) + 2.0 * (
            frame["note"].str.contains("refund") & frame["reply"].str.contains("slow")
        )
        columns = make_column_transformer(
            (TfidfVectorizer(), "note"),
            (TfidfVectorizer(), "reply"),
            (StandardScaler(), others),
        )
        pipeline = make_pipeline(columns, SVR(C=3.0)).fit(frame[:300], target[:300])
        f = partial(with_names, pipeline, [*frame])
    else:
        terms = service(width)
        f = partial(scored, terms)
        truth = partial(of_terms, terms)
    return Called(kind, f, table, truth)


def second(model: Any) -> Callable[[Array], Array]:
    """The probability of the second class."""
    return lambda rows: model.predict_proba(rows)[:, 1]


def with_names(model: Any, names: list[str], rows: Any) -> Array:
    """The predictions for rows without names."""
    return model.predict(pd.DataFrame(rows, columns=names))


def scored(terms: Any, rows: Array) -> Array:
    """The sum of terms of few columns."""
    return sum(term(rows[:, columns]) for columns, term in terms)


def service(width: int) -> list[tuple[list[int], Callable[[Array], Array]]]:
    """Rules of a score, each of three neighbouring columns."""
    shapes: list[Callable[[Array], Array]] = [
        lambda z: np.tanh(z[:, 0] + z[:, 1] * z[:, 2]),
        lambda z: np.where(z[:, 1] > 0.5, z[:, 0], z[:, 2]),
        lambda z: np.minimum(np.minimum(z[:, 0], z[:, 1]), z[:, 2]),
        lambda z: np.exp(-((z[:, 0] - z[:, 1]) ** 2)) * (z[:, 2] > 0.0),
    ]
    return [
        ([j, (j + 1) % width, (j + 4) % width], shapes[j % len(shapes)])
        for j in range(width)
    ]


# ---- The record


def sampled(case: Called, points: Any, rows: Any, n_orders: int, seed: int) -> Any:
    """Our values and standard errors (N, D), and the rows that the model was given."""
    calls = [0]

    def f(table: Any) -> Array:
        calls[0] += len(table)
        return case.f(table)

    evaluations = n_orders * (2 * points.shape[1] + 1)
    result = Explainer(f, rows, seed=seed)(points, max_evals=evaluations)
    errors = getattr(result, "error_std", None)
    errors = np.zeros(points.shape) if errors is None else errors
    return np.asarray(result.values), np.asarray(errors), calls[0]


def measured(kind: str, width: int, n_rows: int, n_seeds: int) -> list[dict[str, Any]]:
    """Errors for the same points by all seeds, for each budget.

    Seeds have the same background rows if these are few. Of more, the same ones would
    have a second order, or be drawn: there is a table for each seed. If some are drawn,
    the budget is the default.
    """
    case = called(kind, width)
    points = case.table(N_POINTS, 1)
    n_tables = 1 if n_rows <= FEW_ROWS else n_seeds
    tables = [case.table(n_rows, 2 + seed) for seed in range(n_tables)]
    arrays = [np.asarray(rows) for rows in tables]
    explained = np.asarray(points)
    off = np.zeros(points.shape)
    if case.truth is None and width > _MOST_ENUMERATED:
        values, off = of_orders(case.f, explained, arrays[0], LONG_RUN, n_seeds)
        truths = values[None]
    else:
        truths = np.array([case.exact(explained, rows) for rows in arrays])
    lines = []
    for n_orders in ORDERS if n_rows <= MOST_ROWS else ORDERS[:1]:
        results = []
        for seed in range(n_seeds):
            table = seed % n_tables
            exact = truths[table]
            phi, stated, calls = sampled(case, points, tables[table], n_orders, seed)
            paid = (calls - N_POINTS - n_rows) // (2 * (width - 1) * N_POINTS)
            before, _ = of_orders(case.f, explained, arrays[table], paid, seed)
            results.append((phi - exact, stated, before - exact, calls))
        line = {"model": kind, "columns": width, "rows": n_rows, "orders": n_orders}
        lines.append({**line, **summary(results, truths), "truth": size(off, truths)})
        print(lines[-1], flush=True)
    return lines


def left_by(surrogate: Any, line: tuple[str, int, int], n_orders: int) -> float:
    """Error of orders minus those of a surrogate of all answers, relative to orders.

    The surrogate has the best scale, and the orders are not those that it is fitted to.
    """
    kind, width, n_rows = line
    case = called(kind, width)
    points, rows = case.table(N_POINTS, 1), case.table(n_rows, 2)
    tables, answers = [], []

    def f(table: Array) -> Array:
        tables.append(table)
        answers.append(case.f(table))
        return answers[-1]

    of_orders(f, points, rows, n_orders, 0)
    g = clone(surrogate).fit(np.concatenate(tables), np.concatenate(answers)).predict
    functions = case.f, g, lambda table: case.f(table) - g(table)
    of_f, of_g, apart = (
        (of_orders(function, points, rows, 4 * n_rows, 1)[1] ** 2).sum()
        for function in functions
    )
    shared = (of_f + of_g - apart) / 2.0
    return float(np.sqrt(1.0 - shared**2 / (of_f * of_g)))


def summary(results: list[Any], exact: Array) -> dict[str, Any]:
    """Relative errors and the share of intervals that hold, over seeds or tables."""
    error, stated, before, calls = map(np.array, zip(*results, strict=True))
    sizes = np.abs(error) - 1e-9 * np.abs(exact).max()
    return {
        "calls": int(calls.mean()),
        "before": size(before, exact),
        "error": size(error, exact),
        "stated": size(stated, exact),
        **{name: (sizes <= t * stated).mean() for name, t in _QUANTILES.items()},
        "intervals": error.size,
    }


def size(errors: Array, exact: Array) -> float:
    """The root mean square of errors, relative to the values."""
    return float(np.sqrt(np.mean(errors**2) / np.mean(exact**2)))


_FORMATS = {
    **dict.fromkeys(("model", "columns", "rows", "orders"), ""),
    "calls": ",",
    **dict.fromkeys(("before", "error", "stated"), ".4f"),
    "ratio": ".2f",
    **dict.fromkeys(("held", "by t"), ".3f"),
    "intervals": ",",
}
"""The columns of the table of the documentation."""


def in_markdown(record: pd.DataFrame) -> str:
    """The table of the documentation."""
    record = record.assign(ratio=record["error"] / record["before"])
    rows = [
        [format(row[name], form) for name, form in _FORMATS.items()]
        for row in record.to_dict("records")
    ]
    lines = [[*_FORMATS], ["---", *["---:"] * (len(_FORMATS) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def of_surrogates() -> str:
    """The table of what surrogates leave, in Markdown."""
    cells = [
        ["model", "columns", "rows", "orders", "sets", "of three", *SURROGATES],
        ["---", *["---:"] * (5 + len(SURROGATES))],
    ]
    for kind, width, n_rows in SHARED:
        for n_orders in (max(n, 2 * n_rows) for n in ORDERS):  # as ours
            n_sets = n_orders // n_rows * (width - 1)
            counts = [width, n_rows, n_orders, n_sets, math.comb(width, 3)]
            left = [
                left_by(surrogate, (kind, width, n_rows), n_orders)
                for surrogate in SURROGATES.values()
            ]
            cells.append(
                [kind, *(f"{n:,}" for n in counts), *(f"{x:.2f}" for x in left)]
            )
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def main() -> None:
    """Measure all models, write a CSV and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.called_models")
    parser.add_argument("--output", default=str(MEASURED), help="the CSV")
    parser.add_argument("--kinds", nargs="*", help="some of the kinds of models")
    parser.add_argument(
        "--surrogates", action="store_true", help="what surrogates could save instead"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.surrogates:
        print(of_surrogates())
        return
    some = [case for case in CASES if not options.kinds or case[0] in options.kinds]
    record = pd.DataFrame([line for case in some for line in measured(*case)])
    record.round(6).to_csv(options.output, index=False)
    print(in_markdown(record))


if __name__ == "__main__":
    main()
