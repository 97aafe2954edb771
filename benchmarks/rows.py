"""One row by a fitted ``Explainer``: p50 beyond the model's own prediction.

``python -m benchmarks.rows`` prints a table: milliseconds of processor time of one
thread for a row, the medians of 200 rows, and of five blocks of 500. Methods take turns
of 20 rows, so that a busy machine slows all of them.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import shap
from lightgbm import LGBMClassifier

import propopt as po
from propopt.base.resources import one_thread


N_BACKGROUND, N_COLUMNS, N_ROWS, N_BLOCK = 2000, 30, 200, 500
TURN: Final = 20
MILLISECONDS: Final = 1.0
"""For one row beyond the model's own prediction, at most."""


def model_and_tables() -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """LightGBM of 100 trees of 31 leaves, its background, and rows to explain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_BACKGROUND + N_BLOCK, N_COLUMNS))
    margin = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.3 * X[:, 3:].sum(axis=1)
    labels = margin + 0.5 * rng.normal(size=len(X)) > 0.0
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_COLUMNS)])
    model = LGBMClassifier(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1)
    model.fit(table, labels)
    return model, table[:N_BACKGROUND], table[N_BACKGROUND:]


def medians(
    methods: Mapping[str, Callable[[Any], Any]], tables: list[Any]
) -> dict[str, float]:
    """Milliseconds of each method, the median of all tables."""
    spent: dict[str, list[float]] = {name: [] for name in methods}
    for ask in methods.values():
        ask(tables[0])  # what is made once
    for start in range(0, len(tables), TURN):
        for name, ask in methods.items():
            for table in tables[start : start + TURN]:
                began = time.process_time_ns()
                ask(table)
                spent[name].append((time.process_time_ns() - began) / 1e6)
    return {name: statistics.median(times) for name, times in spent.items()}


def measured() -> dict[str, dict[str, float]]:
    """Milliseconds a row, of single rows and of rows in blocks."""
    model, background, table = model_and_tables()
    asked = {"slopes": "slopes", "contributions beside own values": "contributions"}
    methods: dict[str, Callable[[Any], Any]] = {
        name: po.Explainer(model, data=background, kind=kind).fit().explain
        for name, kind in asked.items()
    }
    function = po.wrap(model, data=background)
    methods["the model's own margin, by propopt"] = function.value
    methods["the model's own predict_proba"] = model.predict_proba
    methods["shap, path-dependent"] = shap.TreeExplainer(model).shap_values
    rows = [table.iloc[[n]] for n in range(N_ROWS)]
    single = medians(methods, rows)
    blocks = medians(methods, [table] * 5)
    return {
        name: {
            "one row": single[name],
            "beyond the model": single[name] - _own(name, single),
            "of a block": blocks[name] / len(table),
        }
        for name in methods
    }


def _own(name: str, single: Mapping[str, float]) -> float:
    """What the model's own prediction takes, where a method asks for it."""
    asks = name == "contributions beside own values"
    return single["the model's own margin, by propopt"] if asks else 0.0


def main() -> None:
    """Print the table, and whether the target is met."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measured()
    print(pd.DataFrame(found).T.to_string(float_format="{:.3f}".format))
    ours = max(one["beyond the model"] for one in list(found.values())[:2])
    met = "met" if ours <= MILLISECONDS else "missed"
    print(f"target, at most {MILLISECONDS:g} ms a row beyond the model: {met}")


if __name__ == "__main__":
    main()
