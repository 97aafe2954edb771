"""Shapley values within few calls: games of the package shapiq, and its approximators.

    python -m benchmarks.few_calls [--output FILE] [--seeds 60]

takes shapiq 1.8 with its games, which need Python 3.12 or later, and xgboost and
lightgbm, the boosters that its approximators fit if they are installed. The value of
each of the 2^D coalitions of a game is computed once, and gives exact Shapley values;
then each method has 200 or 500 coalitions, by 60 seeds. It writes ``few_calls.csv``
beside this file and prints the table of ``docs/background/few_calls.md``.

=========== ========================================================================
error       root mean square of the errors, relative to that of the values
held        share of intervals of 1.96 standard errors that hold the exact value
stated      root mean square of the standard errors, relative to that of the values
=========== ========================================================================

Methods have the settings that they have without any. Two constants of ours were chosen
on these games. Our calls never exceed those of the others, all sets and no set among
them.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from propopt.base.resources import DrawPlan
from propopt.laws.background import Background
from propopt.laws.shapley_draws import ShapleyDraws
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.subsets.sets import all_sets, shapley_of_coalitions


MEASURED = Path(__file__).with_suffix(".csv")

BUDGETS = (200, 500)

Array = NDArray[np.float64]


# ---- Games


def games() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and games of 10 to 14 players: models, data, ensembles, and sums."""
    import shapiq_games

    scaled = StandardScaler().fit_transform
    diabetes, progress = datasets.load_diabetes(return_X_y=True)
    wine, kinds = datasets.load_wine(return_X_y=True)
    cancer, benign = datasets.load_breast_cancer(return_X_y=True)
    tables = {
        "diabetes": (scaled(diabetes), progress),
        "wine": (scaled(wine), (kinds == 1).astype(int)),
        "cancer": (scaled(cancer)[:, :12], benign),
    }
    network = MLPRegressor(hidden_layer_sizes=(32,), max_iter=1000, random_state=0)
    forest = partial(RandomForestClassifier, random_state=0)
    models = [
        ("diabetes", "network", network),
        ("diabetes", "forest", RandomForestRegressor(20, random_state=0)),
        ("wine", "SVM", SVC(probability=True, random_state=0)),
        ("cancer", "boosting", GradientBoostingClassifier(n_estimators=50)),
    ]
    local = shapiq_games.TabularLocalExplanation
    for table, kind, model in models:
        X, y = tables[table]
        fitted = model.fit(X, y)
        yield f"a row of {table}, {kind}", partial(local, fitted, X, 7, sample_size=50)
    X, y = tables["diabetes"]
    of_all = shapiq_games.TabularGlobalExplanation
    yield "error of a network", partial(of_all, network, X, n_samples=50)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    parts = X[:300], y[:300], X[300:], y[300:]
    yield "features of a tree", partial(shapiq_games.FeatureSelection, tree, *parts)
    few = X[:12], y[:12], X[12:112], y[12:112]
    of_data = partial(shapiq_games.DataValuation, Ridge(1.0), *few)
    yield "rows of a ridge regression", partial(of_data, metric="neg_mae")
    cluster = partial(shapiq_games.ClusterExplanation, X[:100], n_clusters=3)
    yield "columns of clusters", partial(cluster, method="agglomerative")
    X, y = tables["wine"]
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    few = X[:12], y[:12], X[12:112], y[12:112]
    logistic = LogisticRegression(max_iter=200)
    yield "rows of a classifier", partial(shapiq_games.DataValuation, logistic, *few)
    yield (
        "columns of a table",
        partial(shapiq_games.UnsupervisedData, X[:, :12], n_bins=6),
    )
    X, y = tables["cancer"]
    trees = forest(12, max_depth=4).fit(X[:200], y[:200])
    votes = shapiq_games.RandomForestEnsembleSelection
    yield "trees of a forest", partial(votes, trees, X[200:400], y[200:400])
    doubt = shapiq_games.TabularUncertaintyExplanation
    fitted = forest(20).fit(X, y)
    yield "doubt of a forest", partial(doubt, fitted, X, 11, sample_size=30)
    sums = partial(shapiq_games.SOUM, random_state=0)
    yield "30 unanimity games", partial(sums, n=12, n_basis_games=30)
    yield (
        "60 small unanimity games",
        partial(sums, n=14, n_basis_games=60, max_interaction_size=5),
    )


def worths(game: Any) -> Array:
    """The value of each coalition, (2^D,); player j is bit j."""
    sets = all_sets(game.n_players)
    parts = [game(sets[first : first + 1024]) for first in range(0, len(sets), 1024)]
    return np.concatenate(parts).astype(float)


# ---- Methods: values (D,), and standard errors or None


def peers(values: Array, budget: int, seed: int) -> Iterator[tuple[str, Array]]:
    """The estimates of shapiq."""
    import shapiq

    n = len(values).bit_length() - 1
    game = partial(looked_up, values)
    methods = {
        "KernelSHAP": partial(shapiq.KernelSHAP),
        "permutations": partial(shapiq.PermutationSamplingSV),
        "ProxySHAP": partial(shapiq.ProxySHAP, max_order=1, index="SV"),
        "OddSHAP": partial(shapiq.OddSHAP),
    }
    for name, method in methods.items():
        result = method(n=n, random_state=seed).approximate(budget=budget, game=game)
        yield name, np.array(result.get_n_order_values(1))


def ours(values: Array, budget: int, seed: int) -> tuple[Array, Array]:
    """Values and standard errors by at most as many coalitions."""
    n = len(values).bit_length() - 1
    calls = [2]

    def f(rows: Array) -> Array:
        calls[0] += len(rows)
        return looked_up(values, rows)

    draws = ShapleyDraws.of(
        f,
        Background.of_points(np.zeros((1, n))),
        np.ones((1, n)),
        np.random.default_rng(seed),
        DrawPlan(10**4, max_evaluations=budget),
        ends=(values[-1:], values[:1]),
    )
    assert calls[0] <= budget
    blocks = draws.blocks()
    return blocks.mean(axis=0)[0], error_of_blocks(blocks)[0]


def looked_up(values: Array, coalitions: Any) -> Array:
    bits = 1 << np.arange(len(values).bit_length() - 1)
    return values[np.atleast_2d(np.asarray(coalitions, bool)) @ bits]


# ---- The record


def measured(name: str, values: Array, budget: int, n_seeds: int) -> dict[str, Any]:
    """Errors of all methods for one game."""
    exact = shapley_of_coalitions(values)
    size = np.sqrt((exact**2).mean())
    errors: dict[str, list[Array]] = {}
    held, stated = [], []
    for seed in range(n_seeds):
        phi, error = ours(values, budget, seed)
        errors.setdefault("propopt", []).append(phi - exact)
        held.append(np.abs(phi - exact) <= 1.96 * error)
        stated.append(error)
        for method, other in peers(values, budget, seed):
            errors.setdefault(method, []).append(other - exact)
    sizes = {key: np.sqrt(np.mean(np.square(e))) / size for key, e in errors.items()}
    print(name, budget, {k: round(float(v), 4) for k, v in sizes.items()}, flush=True)
    return {
        "game": name,
        "players": len(exact),
        "coalitions": budget,
        **sizes,
        "stated": np.sqrt(np.mean(np.square(stated))) / size,
        "held": np.mean(held),
    }


def in_markdown(record: pd.DataFrame) -> str:
    """The table of the documentation."""
    methods = ["KernelSHAP", "permutations", "ProxySHAP", "OddSHAP", "propopt"]
    lines = [
        f"| game | players | coalitions | {' | '.join(methods)} | stated | held |",
        f"|---|---:|---:|{'---:|' * (len(methods) + 2)}",
    ]
    for row in record.to_dict("records"):
        sizes = [f"{row[key]:.4f}" for key in (*methods, "stated")]
        first = f"| {row['game']} | {row['players']} | {row['coalitions']} | "
        lines.append(f"{first}{' | '.join(sizes)} | {row['held']:.3f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all games, write a CSV and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_calls")
    parser.add_argument("--output", default=str(MEASURED), help="the CSV")
    parser.add_argument("--seeds", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, game in games():
        values = worths(game())
        rows += [measured(name, values, budget, options.seeds) for budget in BUDGETS]
    record = pd.DataFrame(rows)
    record.round(6).to_csv(options.output, index=False)
    print(in_markdown(record))


if __name__ == "__main__":
    main()
