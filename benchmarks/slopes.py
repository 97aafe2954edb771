"""Slopes of trees under the data law, as the reference rows grow.

``python -m benchmarks.slopes [--quick]``: LightGBM, 100 trees of 31 leaves, 30 columns.
Milliseconds of processor time for a row, in one process: methods take turns, and each
number is the median of its turns. Threads are those of the environment; give
``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import shap
from lightgbm import LGBMRegressor

import propopt as po
from propopt.base.kernels import why_none
from propopt.laws.data_law import DataLaw, Means, Reference
from propopt.laws.panels import Panels


N_ROWS = 200


def table(skewed: bool) -> tuple[Any, Any]:
    """30 columns of 12,000 rows, normal or of many kinds, and a response."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 30))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3:] @ rng.normal(size=27)
    if skewed:
        n = len(X)
        X[:, 5], X[:, 6] = np.exp(1.5 * X[:, 5]), rng.poisson(3, n)
        X[:, 7], X[:, 8] = rng.standard_cauchy(n), X[:, 8] > 0
        X[:, 9] = np.where(X[:, 9] < 0.3, 0.0, X[:, 9])
        X[:, 10] += 5.0 * np.sign(X[:, 10])
    return X, y + 0.3 * rng.normal(size=len(X))


def medians(runs: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """The median processor time of each run; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            began = time.process_time()
            run()
            seconds[name].append(time.process_time() - began)
    return {name: statistics.median(each) for name, each in seconds.items()}


def by_kernels(choice: str, means: Means, rows: list[Any]) -> Any:
    """Slopes of blocks of rows, by compiled kernels or by NumPy."""
    os.environ["PROPOPT_KERNELS"] = choice
    return np.concatenate([means.of(block)[1] for block in rows])


def measured(skewed: bool, n_reference: int, turns: int) -> Iterator[str]:
    """Lines of a table: a row in a block, and a row alone."""
    X, y = table(skewed)
    model = LGBMRegressor(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1)
    model.fit(X[:5000], y[:5000])
    P, law = X[-N_ROWS:], DataLaw(Reference.of(X[:n_reference]))
    read = po.wrap(model, data=X[:n_reference]).boxes
    tabled, by_value = Means(read, law), Means(read, law)
    vars(by_value)["panels"] = Panels(())
    peer = shap.TreeExplainer(model)
    for blocks in ([P], [P[[n]] for n in range(20)]):
        n_rows = sum(map(len, blocks))
        choices = ("numpy",) if why_none() else ("c", "numpy")
        runs = {c: partial(by_kernels, c, tabled, blocks) for c in choices}
        runs["value by value"] = partial(by_kernels, "numpy", by_value, blocks)
        runs["path-dependent"] = partial(
            lambda blocks: [peer.shap_values(block) for block in blocks], blocks
        )
        exact = runs["value by value"]()
        off = np.abs(runs[choices[0]]() - exact).max() / np.abs(exact).max()
        found = medians(runs, turns)
        each = " | ".join(
            f"{1e3 * found[name] / n_rows:.3f}" if name in found else "–"
            for name in ("c", "numpy", "value by value", "path-dependent")
        )
        ratio = found["path-dependent"] / found[choices[0]]
        what = "many kinds" if skewed else "normal"
        size = "one by one" if len(blocks) > 1 else f"{N_ROWS} at once"
        work = f"{what} | {n_reference:,} | {size}"
        yield f"| {work} | {each} | {ratio:.1f} | {off:.0e} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slopes")
    parser.add_argument("--quick", action="store_true", help="one size, three turns")
    quick = parser.parse_args().quick
    head = "columns", "reference rows", "rows", "C", "NumPy", "value by value"
    head += "TreeSHAP, path-dependent", "TreeSHAP / first", "off"
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for skewed in (False,) if quick else (False, True):
        for n_reference in (10_000,) if quick else (500, 2000, 10_000):
            for line in measured(skewed, n_reference, 3 if quick else 5):
                print(line, flush=True)


if __name__ == "__main__":
    main()
