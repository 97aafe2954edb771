"""``python -m benchmarks.shapley [--quick]``: Shapley values of trees beside packages.

Processor time of one thread, by rows in one block and for one row. Each pair of ours
and a peer is timed in turn in one process, and the ratio is of medians. shap is given
all background rows: by default it draws 100 of them. Beside each peer stands the
largest difference from our values, over the largest value.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import shap
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestRegressor
from woodelf import WoodelfExplainer
from xgboost import XGBRegressor

import propopt as po
from propopt.base.kernels import kernels_in_words
from propopt.structures.boxes.shapley import RECENT, BoxShapley
from propopt.structures.products.sums import Game


Run = Callable[[], Any]

N_TABLE, N_COLUMNS = 12_000, 30
REPEATS: Final = 3


@dataclass(frozen=True)
class Line:
    """One line of the table: processor milliseconds a row."""

    work: str
    method: str
    milliseconds: float
    ratio: float | None = None  # of the peer to ours, beside each other
    apart: float | None = None
    prepared: float | None = None  # seconds, once

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}"
        apart = "" if self.apart is None else f"{self.apart:.0e}"
        prepared = "" if self.prepared is None else f"{self.prepared:.2g}"
        numbers = f"{self.milliseconds:.3g} | {ratio} | {apart} | {prepared}"
        return f"| {self.work} | {self.method} | {numbers} |"


HEAD: Final = """\
| work | method | ms a row | ratio to ours | apart | prepared in s |
|---|---|---:|---:|---:|---:|"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapley")
    parser.add_argument("--quick", action="store_true", help="LightGBM alone")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    print(kernels_in_words(), HEAD, sep="\n\n", flush=True)
    for line in lines(quick):
        print(line, flush=True)


def lines(quick: bool) -> Iterator[Line]:
    """Models by increasing depth, backgrounds by increasing size."""
    X, y = table()
    boosted = LGBMRegressor(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1)
    yield from compared("LightGBM 100 x 31", boosted.fit(X, y), X, (100, 1_000, 10_000))
    if not quick:
        other = XGBRegressor(n_estimators=500, max_depth=6, n_jobs=1)
        yield from compared("XGBoost 500 x 6", other.fit(X, y), X, (100, 1_000, 10_000))
        forest = RandomForestRegressor(10, random_state=0)
        yield from compared(
            "forest of 10 whole trees", forest.fit(X, y), X, (100, 1_000)
        )


def table() -> tuple[Any, Any]:
    """Normal columns, and a response with interactions and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_TABLE, N_COLUMNS))
    linear = X[:, 3:] @ rng.normal(size=N_COLUMNS - 3)
    noise = 0.3 * rng.normal(size=N_TABLE)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + linear + noise
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(N_COLUMNS)]), y


def compared(name: str, model: Any, X: Any, sizes: tuple[int, ...]) -> Iterator[Line]:
    """Ours with either kind of kernel, and the packages."""
    boxes = po.wrap(model, data=X).boxes
    block, few = X[-1_024:], X[-32:]
    for size in sizes:
        background, work = X[:size], f"{name}, background {size:,}"
        game = Game(background.to_numpy())
        RECENT.clear()
        ours = BoxShapley.of(boxes, game)
        prepared, _ = seconds(lambda ours=ours: ours.values(X[:1].to_numpy()))

        def own(rows: Any, ours: Any = ours) -> Run:
            return lambda: ours.values(rows.to_numpy())

        ms = 1e3 * seconds(own(block))[0] / len(block)
        yield Line(work, "propopt, block of 1,024", ms, prepared=prepared)
        one = 1e3 * statistics.median(seconds(own(X[-1:]))[0] for _ in range(20))
        yield Line(work, "propopt, one row", one)
        yield beside(work, "propopt by NumPy, block", by_numpy(own(block)), own(block))
        exact = shap.TreeExplainer(
            model, shap.maskers.Independent(background, max_samples=size)
        )
        some = few if size <= 1_000 else few[-4:]
        theirs = of_shap(exact, some)
        yield beside(work, "shap, interventional, block", theirs, own(block), some)
        woodelf = WoodelfExplainer(model, background)
        asked = of_woodelf(woodelf, block)
        yield beside(work, "woodelf-explainer, block", asked, own(block))
        if size == sizes[0]:
            paths = shap.TreeExplainer(model)
            one_row = of_shap(paths, X[-1:])
            yield beside(
                work, "shap, path-dependent, one row", one_row, own(X[-1:]), X[-1:]
            )


def by_numpy(run: Run) -> Run:
    """The same without compiled kernels."""

    def values() -> Any:
        before = os.environ.get("PROPOPT_KERNELS", "")
        os.environ["PROPOPT_KERNELS"] = "numpy"
        try:
            return run()
        finally:
            os.environ["PROPOPT_KERNELS"] = before

    return values


def of_shap(explainer: Any, rows: Any) -> Run:
    """Without the check of its sums, which costs it time."""
    return lambda: explainer.shap_values(rows, check_additivity=False)


def of_woodelf(explainer: Any, rows: Any) -> Run:
    """Without its bar."""
    return lambda: explainer.shap_values(rows, verbose=False)


def beside(work: str, method: str, theirs: Run, ours: Run, rows: Any = None) -> Line:
    """A peer at some of the last rows of ours, or at all of them, in turn."""
    pairs = [(seconds(theirs), seconds(ours)) for _ in range(REPEATS)]
    theirs_all, ours_all = pairs[-1][0][1], pairs[-1][1][1]
    count = len(ours_all) if rows is None else len(rows)
    ms = 1e3 * statistics.median(own[0] for own, _ in pairs) / count
    mine = 1e3 * statistics.median(own[0] for _, own in pairs) / len(ours_all)
    apart = np.abs(np.asarray(theirs_all) - ours_all[-count:]).max()
    return Line(work, method, ms, ms / mine, apart / np.abs(ours_all).max())


def seconds(run: Run) -> tuple[float, Any]:
    """Processor time, and what was found."""
    began = time.process_time()
    found = run()
    return time.process_time() - began, found


if __name__ == "__main__":
    main()
