"""Our attributions by the synthetic data and the metrics of XAI-Bench.

Liu et al. (2021, arXiv 2106.12543) publish tables whose law is known, and metrics of
attributions: https://github.com/abacusai/xai-bench. The script takes the path of a
checkout, as nothing of it is part of this project, and downloads nothing::

    python -m benchmarks.conformance.xai_bench PATH_OF_CHECKOUT

It prints each metric for our contributions by default, for our Shapley values, for
those of ``shap``, and for the exact conditional Shapley values that the checkout calls
the ground truth. Modules are loaded one by one, without the explainers that need other
packages. The metrics are random: all methods see the same draws.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeRegressor

import propopt as po


DATA = {
    "linear": "GaussianLinearRegression",
    "nonlinear, additive": "GaussianNonlinearAdditiveRegression",
    "piecewise constant": "GaussianPiecewiseConstantRegression",
}
METRICS = {
    "faithfulness": "Faithfulness",
    "monotonicity": "Monotonicity",
    "shapley": "Shapley",
    "shapley_corr": "ShapleyCorr",
    "infidelity": "Infidelity",
    "roar_faithfulness": "ROARFaithfulness",
    "roar_monotonicity": "ROARMonotonicity",
}
SMALLER_IS_BETTER = ("shapley", "infidelity")
N_TRAIN, N_EXPLAINED, DIM, NOISE, BACKGROUND = 1000, 100, 5, 0.01, 100
"""As the checkout has them; the background of shap is what it takes by default."""


class Models(NamedTuple):
    """A model of the checkout's kind: one that is not fitted, and one that is."""

    name: str
    fresh: Any
    fitted: Any


class Trainer:
    """What ROAR fits again."""

    def __init__(self, estimator: Any) -> None:
        self.train = estimator.fit


# ---- The checkout


def packages_of(checkout: Path) -> None:
    """Make its packages importable without what their ``__init__`` imports."""
    for name in ("synthetic_datasets", "custom_metrics", "custom_explainers"):
        package = types.ModuleType(name)
        package.__path__ = [str(checkout / name)]
        sys.modules[name] = package
    for name, kind in (("int", int), ("float", float), ("bool", bool)):
        if name not in np.__dict__:  # names that NumPy 1.24 removed
            setattr(np, name, kind)


def data_of(name: str, rho: float, n_rows: int) -> Any:
    """One of its tables, of five columns with equal correlations."""
    module = importlib.import_module("synthetic_datasets.synthetic_gaussian")
    return getattr(module, DATA[name])(
        mu=np.zeros(DIM),
        dim=DIM,
        weight=np.arange(DIM, 0.0, -1.0) - 1.0,
        noise=NOISE,
        rho=rho,
        num_train_samples=N_TRAIN,
        num_val_samples=n_rows,
    )


def metrics() -> Iterator[tuple[str, Any, str]]:
    """By name its metrics, or why one cannot be loaded."""
    for name, kind in METRICS.items():
        try:
            module = importlib.import_module(f"custom_metrics.{name}")
            yield name, getattr(module, kind), ""
        except Exception as error:  # noqa: BLE001 of whatever it imports
            yield name, None, f"{type(error).__name__}: {error}"


# ---- Methods


def by_default(model: Any, rows: Any, data: Any) -> Any:
    return po.explain(model, rows, data=data, kind="contributions").attributions


def shapley_values(model: Any, rows: Any, data: Any) -> Any:
    found = po.explain(model, rows, data=data, kind="contributions", robustness=0)
    return found.attributions


def by_shap(model: Any, rows: Any, data: Any) -> Any:
    import shap

    background = shap.maskers.Independent(data, max_samples=BACKGROUND)
    return shap.Explainer(model.predict, background)(rows, silent=True).values


METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "propopt": by_default,
    "propopt, robustness=0": shapley_values,
    "shap": by_shap,
}


# ---- Scores


def scores_of(
    law: Any, X: pd.DataFrame, y: Any, train: tuple[pd.DataFrame, Any], models: Models
) -> Iterator[tuple[str, str, float | str]]:
    """Method, metric and score of one model; a message where there is none."""
    module = importlib.import_module("custom_explainers.ground_truth_shap")
    truth = module.GroundTruthShap(models.fitted.predict, law, n=2000)
    exact = np.array([np.squeeze(truth.explain(row)[1]) for row in X.to_numpy()])
    found = {"ground truth": (exact, exact)}
    for name, method in METHODS.items():
        here, there = (
            method(models.fitted, table.to_numpy(), train[0].to_numpy())
            for table in (X, train[0][: len(X)])
        )
        found[name] = here, there
    for metric, kind, problem in metrics():
        for name, (values, of_train) in found.items():
            if kind is None:
                yield name, metric, problem
                continue
            np.random.seed(0)  # noqa: NPY002 the checkout draws from it
            try:
                score = kind(Trainer(models.fresh), models.fitted, law).evaluate(
                    X,
                    y,
                    values,
                    exact,
                    X_train=train[0][: len(X)],
                    y_train=train[1][: len(X)],
                    X_train_feature_weights=of_train,
                )
                yield name, metric, float(score)
            except Exception as error:  # noqa: BLE001 it is told, and others go on
                yield name, metric, f"{type(error).__name__}: {error}"


def models_of(X: Any, y: Any) -> Iterator[Models]:
    kinds = {
        "linear": lambda: LinearRegression(),
        "tree": lambda: DecisionTreeRegressor(random_state=0),
        "network": lambda: MLPRegressor(random_state=0),
    }
    for name, make in kinds.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence
            yield Models(name, make(), make().fit(X, y))


def run(rhos: list[float], n_rows: int) -> pd.DataFrame:
    """All tables, correlations, models, methods and metrics."""
    lines = []
    for table in DATA:
        for rho in rhos:
            np.random.seed(0)  # noqa: NPY002 the checkout draws from it
            law = data_of(table, rho, n_rows)
            train = law.get_dataset()
            X, y = law.get_dataset(law.num_val_samples)
            for models in models_of(train[0].to_numpy(), train[1].ravel()):
                with (
                    warnings.catch_warnings(),
                    contextlib.redirect_stdout(io.StringIO()),
                ):
                    warnings.simplefilter("ignore")
                    scores = [*scores_of(law, X, y, train, models)]
                for method, metric, score in scores:
                    line = {"table": table, "rho": rho, "model": models.name}
                    lines.append(
                        line | {"method": method, "metric": metric, "score": score}
                    )
                print(f"{table}, rho {rho:g}, {models.name}: done", file=sys.stderr)
    return pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run all metrics that can be run, and print them by method."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a checkout of XAI-Bench")
    parser.add_argument("--rho", type=float, nargs="+", default=[0.0, 0.5, 0.9])
    parser.add_argument("--rows", type=int, default=N_EXPLAINED, help="explained")
    parser.add_argument("--output", type=Path, help="every score, as CSV")
    options = parser.parse_args(arguments)
    if not (options.checkout / "custom_metrics" / "faithfulness.py").is_file():
        parser.error(f"{options.checkout} has no custom_metrics: it is no checkout")
    packages_of(options.checkout.resolve())
    lines = run(options.rho, options.rows)
    is_score = lines.score.map(lambda score: isinstance(score, float))
    scores = lines[is_score].astype({"score": float})
    wide = scores.pivot_table(
        index="metric", columns="method", values="score", sort=False
    )
    wide.insert(
        0, "best", ["least" if m in SMALLER_IS_BETTER else "most" for m in wide.index]
    )
    print(f"Means of {scores.groupby(['table', 'rho', 'model']).ngroups} models")
    print(wide.round(3).to_string())
    ours = scores[scores.method == "propopt"]
    for metric, group in ours.groupby("metric", sort=False):
        least = metric in SMALLER_IS_BETTER
        worst = group.loc[group.score.idxmax() if least else group.score.idxmin()]
        where = f"{worst.table}, rho {worst.rho:g}, {worst.model}"
        print(f"our worst {metric}: {worst.score:.3f} ({where})")
    for line in lines[~is_score].drop_duplicates(["metric", "score"]).itertuples():
        print(f"not run: {line.metric}: {str(line.score).splitlines()[0]}")
    if options.output:
        lines.to_csv(options.output, index=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
