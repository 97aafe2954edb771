"""How far default contributions move from exact ones, and which differences go.

``python -m benchmarks.default_contributions [--output FILE]`` explains rows that no
model was fitted on, one by one, by ``po.explain(model, rows, data=data)``. It writes
``default_contributions.csv`` beside this file, and prints the table.

=========== =======================================================================
top         share of rows whose largest column is another than that of Φ; columns
            within a tenth of the largest are ties, and not counted
signs       share of large contributions whose sign is another: those of more than a
            tenth of the mean over rows of the largest |Φ|
moved       Σ |W − Φ| / Σ |Φ|
removable   share of the squared differences between similar rows that is neither
            their main effects nor needed for their sums; column d counts by 1/ω_d,
            as in the program that W minimises
gone        share of the removable part that W is without
alike       the same where all columns count alike, with or without joint effects
=========== =======================================================================

Similar are explained rows and their eight nearest among each other. W is made beside
rows of ``data``, and knows of no other explained row. Φ of the first three are exact
for the background of the explanation, by all sets of columns where the explanation drew
them; differences are compared with those of the Φ that the explanation started from.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import datasets
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


MEASURED = Path(__file__).with_suffix(".csv")

N_EXPLAINED = 120
MOST_OTHER_TOPS, MOST_TURNED, LEAST_GONE = 0.05, 0.005, 0.3
"""What is wanted of the default."""

NAMES = ("top", "signs", "moved", "removable", "gone", "alike")

Array = NDArray[np.float64]


class Pair(NamedTuple):
    """A table and a model that was fitted on a part of it."""

    table: str
    model: str
    estimator: Any
    data: pd.DataFrame  # what it was fitted on
    rows: pd.DataFrame  # others
    asked: dict[str, Any]  # of explain


def boosted(kind: str, **settings: Any) -> Any:
    """LightGBM, in one thread and quietly."""
    import lightgbm

    cls = {"value": lightgbm.LGBMRegressor, "class": lightgbm.LGBMClassifier}[kind]
    how: dict[str, Any] = {"n_estimators": 60, "num_leaves": 12, "n_jobs": 1}
    return cls(**how, random_state=0, verbose=-1, **settings)


def hist(kind: str, **settings: Any) -> Any:
    """The histogram boosting of scikit-learn."""
    names = {
        "value": HistGradientBoostingRegressor,
        "class": HistGradientBoostingClassifier,
    }
    how = {"max_iter": 60, "max_leaf_nodes": 12, "random_state": 0}
    return names[kind](**how | settings)


def forest(kind: str) -> Any:
    """Fifty trees."""
    names = {"value": RandomForestRegressor, "class": RandomForestClassifier}
    return names[kind](50, min_samples_leaf=5, max_depth=8, random_state=0)


def split(X: pd.DataFrame, y: Array) -> tuple[pd.DataFrame, Array, pd.DataFrame]:
    """Rows to fit on, and up to 120 others."""
    order = np.random.default_rng(0).permutation(len(X))
    n_rows = min(N_EXPLAINED, len(X) // 3)
    fitted, others = order[n_rows:], order[:n_rows]
    return X.iloc[fitted], np.asarray(y)[fitted], X.iloc[others]


def pair(
    table: str, X: pd.DataFrame, y: Any, name: str, model: Any, **asked: Any
) -> Pair:
    """The model fitted on its part of the table."""
    data, known, rows = split(X, np.asarray(y))
    return Pair(table, name, model.fit(data, known), data, rows, asked)


def bundled() -> Iterator[Pair]:
    """Tables that come with scikit-learn."""
    X, y = datasets.load_breast_cancer(return_X_y=True, as_frame=True)
    yield pair("breast cancer", X, y, "LightGBM", boosted("class"))
    yield pair("breast cancer", X, y, "forest", forest("class"))
    log_odds = {"output": "log_odds"}
    yield pair("breast cancer", X, y, "logistic, log-odds", logistic(), **log_odds)
    X, y = datasets.load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    yield pair("diabetes", X, y, "boosting", hist("value"))
    yield pair("diabetes", X, y, "forest", forest("value"))
    network = MLPRegressor(
        hidden_layer_sizes=(16,), alpha=1.0, max_iter=2000, random_state=0
    )
    steps = make_pipeline(StandardScaler(), network)
    yield pair("diabetes", X, y, "network", steps)
    X, y = datasets.load_wine(return_X_y=True, as_frame=True)
    yield pair("wine, three classes", X, y, "forest", forest("class"), target=1)
    yield pair("wine, three classes", X, y, "LightGBM", boosted("class"), target=1)
    X, y = datasets.load_digits(n_class=3, return_X_y=True, as_frame=True)
    yield pair("digits 0, 1, 2", X, y, "forest", forest("class"), target=2)


def made_up() -> Iterator[Pair]:
    """Tables of a known law."""
    rng = np.random.default_rng(0)
    n = 1_200
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    noise = 0.3 * rng.normal(size=n)
    yield pair("x0·x1", X, X.a * X.b + noise, "boosting", hist("value"))

    shared = rng.normal(size=(n, 1))
    parts = np.sqrt(0.7) * shared + np.sqrt(0.3) * rng.normal(size=(n, 5))
    table = np.column_stack([parts, rng.normal(size=(n, 7))])
    X = pd.DataFrame(table, columns=[f"x{j}" for j in range(12)])
    y = X.x0 + X.x1 * X.x2 + np.maximum(X.x3, 0.0) * X.x5 + noise
    yield pair("correlated, and noise", X, y, "LightGBM", boosted("value"))
    yield pair("correlated, and noise", X, y, "forest", forest("value"))

    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    kinds = rng.choice([*"pqrst"], size=n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    X["kind"] = pd.Categorical(kinds)
    X["plan"] = pd.Categorical(rng.choice(["long", "short"], size=n))
    effect = X["kind"].map(dict(zip("pqrst", (-1, 0, 1, 2, 3), strict=True)))
    y = effect.astype(float) * (1.0 + X.a) + (X["plan"] == "long") * X.b + noise
    yield pair("categories", X, y, "LightGBM", boosted("value"))

    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    y = X.a + X.b * X.c + np.where(X.d > 0.0, X.e, 0.0) + noise
    X = X.mask(rng.random(X.shape) < 0.2)
    yield pair("missing values", X, y, "boosting", hist("value"))

    yield pair(*churn(rng), "LightGBM", boosted("class"))
    share = {"output": "probability"}
    yield pair(*churn(rng), "logistic, probability", logistic(), **share)


def logistic() -> Any:
    """With standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression())


def churn(rng: np.random.Generator) -> tuple[str, pd.DataFrame, Array]:
    """Customers who leave: counts, charges, and flags that are rare."""
    n = 2_000
    X = pd.DataFrame(
        {
            "months": rng.exponential(24.0, size=n).round(),
            "charge": rng.gamma(4.0, 15.0, size=n).round(2),
            "minutes": rng.lognormal(5.0, 0.6, size=n).round(1),
            "calls": rng.poisson(1.5, size=n),
            "failures": rng.poisson(0.4, size=n),
            "abroad": (rng.random(n) < 0.1).astype(int),
            "yearly": (rng.random(n) < 0.35).astype(int),
            "age": rng.integers(18, 85, size=n),
        }
    )
    score = 0.02 * X.charge - 0.04 * X.months + 0.5 * X.calls * (X.months < 12)
    score += 0.8 * X.failures - 1.5 * X.yearly + 1.2 * X.abroad * (X.minutes > 150)
    y = rng.random(n) < expit(score - 1.2)
    return "churn, synthetic", X, np.asarray(y).astype(int)


def measured(own: Pair) -> dict[str, Any]:
    """The numbers of a pair."""
    print(f"{own.table}, {own.model}", flush=True)
    began = time.perf_counter()
    best = po.explain(own.estimator, own.rows, data=own.data, **own.asked)
    seconds = time.perf_counter() - began
    W, phi = best.attributions, exact(own, best)
    names = np.arange(len(phi))
    sizes, tops = np.abs(phi), np.abs(W).argmax(axis=1)
    others = sizes[names, tops] < 0.9 * sizes.max(axis=1)
    large = sizes > 0.1 * sizes.max(axis=1).mean()
    turned = (np.sign(W) != np.sign(phi))[large]
    differences = differences_of(own, best)
    return {
        "table": own.table,
        "model": own.model,
        "rows": len(W),
        "columns": W.shape[1],
        "top": others.mean(),
        "signs": turned.mean(),
        "moved": np.abs(W - phi).sum() / sizes.sum(),
        **differences,
        "seconds": seconds,
    }


def differences_of(own: Pair, best: po.results.Explanation) -> dict[str, float]:
    """What was removable of the differences between similar rows, and what went."""
    metric, W, phi = best.metric, best.attributions, np.asarray(best.contributions)
    fitted = po.Explainer(own.estimator, data=own.data, **own.asked).fit().fitted_
    points, names = fitted.function.read(own.rows, "rows")
    G = fitted.problem.main_effect_rule.at(points, names)  # of the same background
    assert metric is not None
    moves = metric > 0.0
    if not moves.any():
        return {"removable": 0.0, "gone": np.nan, "alike": np.nan}
    near = po.functions.TableSchema.of(own.data).coordinates(own.rows)
    S = po.graphs.knn_graph(near, 8).similarities.toarray()
    first, second = np.nonzero(S)
    weights = S[first, second][:, None]

    def rough(V: Array, omega: Array) -> float:
        apart = (V[first] - V[second])[:, moves]
        return float((weights * apart**2 / omega[moves]).sum())

    found = []
    for omega in (metric, moves.astype(float)):
        # what sums need, in proportion to ω, has the least differences
        needed = np.outer((phi - G).sum(axis=1), omega / omega.sum())
        could_go = rough(phi - G, omega) - rough(needed, omega)
        gone = (rough(phi - G, omega) - rough(W - G, omega)) / could_go
        found.append((could_go / rough(phi, omega), gone))
    (removable, gone), (_, alike) = found
    return {"removable": removable, "gone": gone, "alike": alike}


def exact(own: Pair, best: po.results.Explanation) -> Array:
    """Φ against the background of an explanation; by all sets where it was drawn."""
    if best.target is None or best.target.value == 0.0:
        return np.asarray(best.contributions)
    fitted = po.Explainer(own.estimator, data=own.data, **own.asked).fit()
    drawn = fitted.fitted_.rule.background.points
    background = pd.DataFrame(drawn, columns=own.data.columns)  # of numbers alone
    shap = po.explainers.Shap(data=background, algorithm="exact")
    function = po.wrap(own.estimator, data=own.data, **own.asked)
    return np.asarray(shap.explain(function, own.rows).attributions)


def in_markdown(found: pd.DataFrame) -> str:
    """The table in per cent."""
    lines = [
        "| table | model | other top column | large signs turned | moved | removable | "
        "gone | gone, columns alike |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found.to_dict("records"):
        rest = [share(row[name]) for name in NAMES]
        lines.append(f"| {row['table']} | {row['model']} | {' | '.join(rest)} |")
    return "\n".join(lines) + "\n"


def share(number: float) -> str:
    """In per cent; a dash where there is none."""
    return "–" if np.isnan(number) else f"{100.0 * number:.1f} %".replace("-", "−")


def missed(found: pd.DataFrame) -> Iterator[str]:
    """What is wanted, where it does not hold."""
    for row in found.to_dict("records"):
        name = f"{row['table']}, {row['model']}"
        if row["top"] > MOST_OTHER_TOPS:
            yield f"{name}: {share(row['top'])} of rows have another top column"
        if row["signs"] > MOST_TURNED:
            yield f"{name}: {share(row['signs'])} of large signs turned"
        if row["gone"] < LEAST_GONE:
            yield f"{name}: {share(row['gone'])} of the removable differences gone"


def main() -> None:
    """Measure all pairs, write a CSV and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default=str(MEASURED), help="the CSV")
    options = parser.parse_args()
    pairs: list[Callable[[], Iterator[Pair]]] = [bundled, made_up]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [measured(own) for some in pairs for own in some()]
    found = pd.DataFrame(rows)
    found.round(5).to_csv(options.output, index=False)
    print(in_markdown(found))
    print(*missed(found), sep="\n")


if __name__ == "__main__":
    main()
