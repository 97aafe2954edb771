"""Exact limits of LIME for a forest, beside runs of the lime package."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from lime.lime_tabular import LimeTabularExplainer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import propopt as po
from benchmarks.timing import OURS, Row, median_seconds, with_ratios
from propopt.lime.expectations import ExactLimits
from propopt.lime.paths import bandwidth_path, sign_changes


N_SAMPLES = 5000
"""Of one run of the package, as by default."""


def lime_limits(quick: bool) -> list[Row]:
    """A forest of 100 trees of depth 8 on breast cancer: one row, many, 50 widths."""
    data = load_breast_cancer()
    X = data.data
    forest = RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=1)
    forest.fit(X, data.target)
    n_rows = 50 if quick else 500
    law = po.lime.TabularLaw.from_data(X)
    began = time.perf_counter()
    exact = ExactLimits(po.wrap(forest, data=X).products, law)
    exact.of(X[:1])
    reading = time.perf_counter() - began
    run = _run_seconds(forest, X, 3 if quick else 10)
    return [
        *_one_row(exact, X, reading, run),
        *_calls(forest, X, run),
        *_many_rows(exact, X[:n_rows], run),
        *_widths(exact, X, run),
        *_roots(exact, X),
    ]


def _one_row(exact: ExactLimits, X: Any, reading: float, run: float) -> list[Row]:
    work = "limits of LIME at one row, forest 100 x depth 8, D=30"
    seconds, _ = median_seconds(lambda: exact.of(X[:1]), 5)
    target = "faster than one run"
    rows = [
        Row(work=work, method=OURS, seconds=seconds, target=target),
        Row(work=work, method=f"{OURS}, trees read anew", seconds=reading),
        Row(work=work, method=f"lime, one run of {N_SAMPLES:,}", seconds=run),
    ]
    return with_ratios(rows)


def _calls(forest: Any, X: Any, run: float) -> list[Row]:
    """What a user calls, with reading, checks and words."""
    work = "calls for one row, forest 100 x depth 8, D=30"
    lime = po.lime.LimeExplainer(forest, X)
    calls = {
        OURS: lambda: lime.limits(X[:1]),  # of a model that was read before
        f"{OURS}, po.lime.limits": lambda: po.lime.limits(forest, X[:1], data=X),
        f"{OURS}, with diagnose": lambda: lime.limits(X[:1]).diagnose(),
    }
    rows = [
        Row(work=work, method=name, seconds=median_seconds(call, 5)[0])
        for name, call in calls.items()
    ]
    rows[0] = replace(rows[0], target="faster than one run")
    run_of_package = Row(
        work=work, method=f"lime, one run of {N_SAMPLES:,}", seconds=run
    )
    return with_ratios([*rows, run_of_package])


def _many_rows(exact: ExactLimits, X: Any, run: float) -> list[Row]:
    work = f"limits of LIME at {len(X)} rows, forest 100 x depth 8, D=30"
    seconds, _ = median_seconds(lambda: exact.of(X), 3)
    rows = [
        Row(work=work, method=OURS, seconds=seconds, target=">= 50x one run each"),
        Row(
            work=work,
            method="lime, one run each",
            seconds=len(X) * run,
            solves="scaled",
        ),
    ]
    return with_ratios(rows)


def _widths(exact: ExactLimits, X: Any, run: float) -> list[Row]:
    work = "50 kernel widths of one row, forest 100 x depth 8, D=30"
    widths = np.geomspace(0.4, 40.0, 50)
    seconds, _ = median_seconds(lambda: bandwidth_path(exact, X[0], widths), 5)
    return with_ratios(
        [
            Row(work=work, method=OURS, seconds=seconds, target="about 0.1 s"),
            Row(
                work=work,
                method="lime, one run each",
                seconds=50 * run,
                solves="scaled",
            ),
        ]
    )


def _roots(exact: ExactLimits, X: Any) -> list[Row]:
    work = "widths at which coefficients of one row are 0, forest 100 x depth 8, D=30"
    seconds, result = median_seconds(lambda: sign_changes(exact, X[0]), 5)
    widths = np.geomspace(0.1, 100.0, 5000)
    rows = np.repeat(X[:1], len(widths), axis=0)
    grid, coarse = median_seconds(lambda: exact.of(rows, widths).coefficients, 1)
    turns = int((np.sign(coarse[1:]) != np.sign(coarse[:-1])).sum())
    roots = sum(len(column.crossings) for column in result.columns)
    return with_ratios(
        [
            Row(work=work, method=OURS, seconds=seconds, solves=f"all {roots}"),
            Row(work=work, method="5,000 widths", seconds=grid, solves=f"{turns}"),
        ]
    )


def _run_seconds(forest: Any, X: Any, repeats: int) -> float:
    """One run of the package, its explainer made anew, as its seed demands."""
    seeds = iter(range(repeats))
    return median_seconds(lambda: _coefficients(forest, X, next(seeds)), repeats)[0]


def _coefficients(forest: Any, X: Any, seed: int) -> Any:
    explainer = LimeTabularExplainer(
        X, feature_selection="none", random_state=seed, mode="classification"
    )
    fit = explainer.explain_instance(
        X[0], forest.predict_proba, num_features=X.shape[1], num_samples=N_SAMPLES
    )
    return np.array([slope for _, slope in sorted(fit.as_map()[1])])
