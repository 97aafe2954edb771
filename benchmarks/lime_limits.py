"""Exact limits of LIME for a forest, beside samples: one batched pass, and lime."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

import numpy as np
from lime.lime_tabular import LimeTabularExplainer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import propopt as po
from benchmarks.peers import batched_bins
from benchmarks.timing import OURS, Method, Row, race
from propopt.base.arrays import Array
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.paths import path_of_row


N_SAMPLES = 5000
"""For one run of the package, as by default."""

FOREST = "forest of 100 trees of depth 8, 30 columns"


def lime_limits(quick: bool) -> list[Row]:
    """A forest of 100 trees of depth 8 on breast cancer: one row, many, 50 widths."""
    data = load_breast_cancer()
    X = data.data
    forest = RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=1)
    forest.fit(X, data.target)
    law = po.lime.TabularLaw.from_data(X)
    exact = ExactLimits(po.wrap(forest, data=X).products, law)
    exact.of(X[:1])  # the trees are read once
    rows = X[: 50 if quick else 500]
    few = rows[: len(rows) // 50]
    widths = np.geomspace(0.4, 40.0, 50)
    lime = po.lime.LimeExplainer(forest, X)
    return [
        *race(
            f"limits of LIME for one row: {FOREST}",
            Method(
                name=OURS,
                role="propopt",
                run=partial(exact.of, X[:1]),
                answer=lambda result: result.coefficients,
                note="exact, the trees read before",
            ),
            Method(
                name=f"{OURS}, LimeExplainer.limits with its diagnosis",
                role="other",
                run=lambda: lime.limits(X[:1]).diagnose(),
            ),
            Method(
                name=f"{OURS}, po.lime.limits",
                role="other",
                run=lambda: po.lime.limits(forest, X[:1], data=X),
                note="reads and checks the trees",
            ),
            _batched(forest, X, X[:1]),
            _package(forest, X),
        ),
        *race(
            f"limits of LIME for {len(rows)} rows: {FOREST}",
            Method(
                name=OURS,
                role="propopt",
                run=lambda: exact.of(rows).coefficients[: len(few)],
                runs=3,
                answer=np.asarray,
                note="exact, the trees read before",
            ),
            _batched(forest, X, few, len(rows)),
            _package(forest, X, len(rows)),
        ),
        *race(
            f"limits of LIME for 50 kernel widths of one row: {FOREST}",
            Method(
                name=OURS,
                role="propopt",
                run=partial(path_of_row, exact, X[0], widths),
                note="exact, the trees read before",
            ),
            Method(
                name=f"one batched pass of {N_SAMPLES:,} samples, then 50 fits, NumPy",
                run=partial(
                    batched_bins, forest_score(forest), X, X[:1], N_SAMPLES, widths
                ),
                note="sampled; values of a bin come from the table",
            ),
            _package(forest, X, 50),
        ),
        *race(
            f"widths at which coefficients of one row are 0: {FOREST}",
            Method(
                name=OURS,
                role="propopt",
                run=partial(_sign_changes, exact, X[0]),
            ),
            Method(
                name="a grid of 5,000 widths by our own limits",
                role="other",
                run=partial(_on_grid, exact, X),
                runs=1,
                note="misses pairs of roots between two widths",
            ),
        ),
    ]


def forest_score(forest: Any) -> Any:
    return lambda rows: forest.predict_proba(rows)[:, 1]


def _batched(forest: Any, X: Any, rows: Any, of: int = 1) -> Method:
    """At some of the rows."""
    width = (0.75 * np.sqrt(X.shape[1]),)
    return Method(
        name=f"one batched pass of {N_SAMPLES:,} samples a row, NumPy",
        run=lambda: batched_bins(forest_score(forest), X, rows, N_SAMPLES, width)[0],
        made=len(rows),
        of=of,
        runs=3,
        answer=np.asarray,
        note="sampled; values of a bin come from the table",
    )


def _package(forest: Any, X: Any, of: int = 1) -> Method:
    seeds = count()
    return Method(
        name=f"lime, {N_SAMPLES:,} samples a run",
        role="general",
        run=lambda: _coefficients(forest, X, next(seeds)),
        of=of,
        note="sampled",
    )


def _sign_changes(exact: ExactLimits, point: Array) -> object:
    return path_of_row(exact, point).sign_changes


def _on_grid(exact: ExactLimits, X: Any) -> Any:
    widths = np.geomspace(0.1, 100.0, 5000)
    return exact.of(np.repeat(X[:1], len(widths), axis=0), widths).coefficients


def _coefficients(forest: Any, X: Any, seed: int) -> Any:
    """One run of the package, its explainer made anew, as its seed demands."""
    explainer = LimeTabularExplainer(
        X, feature_selection="none", random_state=seed, mode="classification"
    )
    fit = explainer.explain_instance(
        X[0], forest.predict_proba, num_features=X.shape[1], num_samples=N_SAMPLES
    )
    return np.array([slope for _, slope in sorted(fit.as_map()[1])])
