"""What a user calls: rows by an ``Explainer`` that was fitted before."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

import propopt as po
from benchmarks.peers import path_dependent
from benchmarks.timing import OURS, Method, Row, Timed, race


N_BACKGROUND, N_COLUMNS, N_BLOCK = 2000, 30, 500
TURN: Final = 20
"""Single rows of one run, so that a busy machine slows all methods."""


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


def one_by_one(ask: Callable[[Any], Any], table: pd.DataFrame) -> Timed:
    """The median of single rows."""
    rows = [table.iloc[[n]] for n in range(TURN)]
    ask(rows[0])  # what is made once
    spent = []
    for row in rows:
        began = time.process_time_ns()
        ask(row)
        spent.append((time.process_time_ns() - began) / 1e9)
    return Timed(statistics.median(spent), None)


def rows(quick: bool) -> list[Row]:
    """One row of a DataFrame, and a block of 500, beside the model's own prediction."""
    model, background, table = model_and_tables()
    margin = po.wrap(model, data=background).value
    by_shap = path_dependent(model, table)
    found = []
    for kind in ("contributions", "slopes"):
        ours = po.Explainer(model, data=background, kind=kind).fit().explain
        ours(table)  # what is made once
        methods: list[tuple[str, Any, Any, str]] = [
            (OURS, "propopt", ours, "robust, with a certificate"),
            (by_shap.name, "other", by_shap.run.func, by_shap.note),
            ("the model's own margin, by propopt", "other", margin, ""),
            ("the model's own predict_proba", "other", model.predict_proba, ""),
        ]
        for what, way, runs in [
            ("one row", one_by_one, 3 if quick else 10),
            (f"{N_BLOCK} rows", lambda ask, some: ask(some), 5),
        ]:
            found += race(
                f"po.Explainer, {kind} of {what}, 2,000 background rows: LightGBM",
                *(
                    Method(
                        name=name,
                        role=role,
                        run=partial(way, ask, table),
                        runs=runs,
                        note=note,
                    )
                    for name, role, ask, note in methods
                ),
            )
    return found
