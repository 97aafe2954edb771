"""The functional tests of Compare-xAI, scored for contributions by default.

Belaid et al. (2022) publish small models with scores of what their explanations should
be: https://github.com/Karim-53/Compare-xAI. The script takes the path of a checkout, as
nothing of it is part of this project::

    python -m benchmarks.compare_xai PATH_OF_CHECKOUT

It prints each score next to that of the exact Shapley values over all background rows,
and for each score that falls short whether the exact values fall short, too. Modules
are loaded one by one, without the packages that the checkout imports for other tests.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import itertools
import math
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import propopt as po


def contributions(model: Any, data: Any, rows: Any) -> np.ndarray:
    """Contributions of one model in some rows, by default: the only call of propopt."""
    return po.explain(model, rows, data=data).attributions


MODULES = (
    "cough_and_fever",
    "cough_and_fever_10_90",
    "x0_plus_x1",
    "a_and_b_or_c",
    "dummy_axiom",
    "correlated_features",
)
"""Modules of tests that bring their own data."""

DOWNLOADING = ("fooling_perturbation_alg", "stress_nb_features", "mnist")
"""Modules of tests that load other data: COMPAS, IMDB and MNIST."""

ENOUGH = 0.999
"""A lower score falls short."""

GOAL = 0.92
"""The mean that contributions should reach."""


@dataclass(frozen=True)
class Score:
    """One score of one test, for contributions by default and for the exact ones."""

    test: str
    name: str
    here: float
    exact: float
    apart: float  # the largest difference of the values, over the largest exact one

    @property
    def why(self) -> str:
        """Why it falls short; empty where it does not."""
        if self.here >= ENOUGH:
            return ""
        if self.exact <= self.here + 1e-9:
            return "the exact values have no higher score: it asks for other values"
        return (
            f"the exact values have {self.exact:.3f}; these differ from them by up to "
            f"{100.0 * self.apart:.2g} % of the largest"
        )


# ---- The tests of a checkout


def packages_of(checkout: Path) -> None:
    """Make its packages importable without what their ``__init__`` imports."""
    for name in ("tests", "src", "explainers"):
        package = types.ModuleType(name)
        package.__path__ = [str(checkout / name)]
        sys.modules[name] = package


def tests_of(module: str) -> Iterator[tuple[str, Any, str]]:
    """By name the tests of a module, or why one cannot be run."""
    try:
        found = importlib.import_module(f"tests.{module}")
    except Exception as error:  # noqa: BLE001 of whatever it imports
        yield module, None, f"{type(error).__name__}: {error}"
        return
    for _, kind in inspect.getmembers(found, inspect.isclass):
        is_own = kind.__module__ == found.__name__ and not kind.__name__.startswith("_")
        name = getattr(kind, "name", None)
        if not is_own or not isinstance(name, str) or not hasattr(kind, "score"):
            continue
        np.random.seed(0)  # noqa: NPY002 one of them draws its rows
        try:
            yield name, kind(), ""
        except Exception as error:  # noqa: BLE001 of whatever it fits
            yield name, None, f"{type(error).__name__}: {error}"


def scores_of(name: str, test: Any) -> Iterator[Score]:
    """The scores of one test."""
    model = test.trained_model
    predict = model.predict if hasattr(model, "predict") else test.predict_func
    data = getattr(test, "X_reference", None)
    data = test.X if data is None else data
    rows = test.dataset_to_explain
    here = contributions(model, data, rows)
    exact = shapley_values(predict, data, rows)
    apart = np.abs(here - exact).max() / np.abs(exact).max()
    both = [marks_of(test, np.asarray(values)) for values in (here, exact)]
    for key, value in both[0].items():
        yield Score(name, key, value, both[1][key], float(apart))


def marks_of(test: Any, values: np.ndarray) -> dict[str, float]:
    """What a test gives, which has taken its arguments under two names."""
    importance = np.abs(values).mean(axis=0)
    told = {"attribution": values, "importance": importance}
    told |= {"attribution_values": values, "feature_importance": importance}
    known = inspect.signature(test.score).parameters.values()
    if not any(one.kind is one.VAR_KEYWORD for one in known):
        told = {one.name: told[one.name] for one in known if one.name in told}
    marks = test.score(**told)
    return {key: float(value) for key, value in marks.items() if value is not None}


def shapley_values(predict: Any, data: Any, rows: Any) -> np.ndarray:
    """Exact Shapley values over all background rows, summed over all sets of columns.

    Independent of propopt. Equal background rows are evaluated once.
    """
    table = pd.DataFrame(data)
    counts = table.value_counts()
    background = pd.DataFrame([*counts.index], columns=table.columns)
    background = background.astype(table.dtypes.to_dict())
    share = counts.to_numpy() / counts.sum()
    points = pd.DataFrame(rows, columns=table.columns)
    D = table.shape[1]
    sets = [s for k in range(D + 1) for s in itertools.combinations(range(D), k)]
    values = np.zeros(points.shape)
    for n in range(len(points)):
        means = {}
        for known in sets:
            mixed = background.copy()
            for j in known:
                mixed.iloc[:, j] = points.iloc[n, j]
            means[known] = float(share @ np.asarray(predict(mixed), float))
        for known in sets:
            for j in known:
                size = len(known) - 1
                weight = math.factorial(size) * math.factorial(D - size - 1)
                without = tuple(x for x in known if x != j)
                gain = means[known] - means[without]
                values[n, j] += weight / math.factorial(D) * gain
    return values


# ---- The table


def main(arguments: list[str] | None = None) -> int:
    """Score all tests that can be run, and print what falls short and why."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a checkout of Compare-xAI")
    parser.add_argument(
        "--download", action="store_true", help="also tests that load other data"
    )
    options = parser.parse_args(arguments)
    if not (options.checkout / "tests" / "util.py").is_file():
        parser.error(f"{options.checkout} has no tests/util.py: it is no checkout")
    packages_of(options.checkout.resolve())
    scores, omitted = list[Score](), dict[str, str]()
    for module in MODULES + (DOWNLOADING if options.download else ()):
        for name, test, problem in tests_of(module):
            if test is None:
                omitted[name] = problem
                continue
            try:
                scores += scores_of(name, test)
            except Exception as error:  # noqa: BLE001 it is told, and others go on
                omitted[name] = f"{type(error).__name__}: {error}"
    if not options.download:
        omitted |= dict.fromkeys(DOWNLOADING, "loads other data: --download")
    if not scores:
        print("No test could be run.", *map(": ".join, omitted.items()), sep="\n")
        return 1
    wide = max(len(f"{x.test} {x.name}") for x in scores)
    print(f"{'test and score':<{wide}}   here  exact")
    for x in scores:
        label = f"{x.test} {x.name}"
        print(f"{label:<{wide}}  {x.here:.3f}  {x.exact:.3f}  {x.why}".rstrip())
    means = [float(np.mean([getattr(x, key) for x in scores])) for key in _COLUMNS]
    count = f"mean of {len(scores)} scores"
    print(f"{count:<{wide}}  {means[0]:.3f}  {means[1]:.3f}  goal {GOAL}")
    for name, problem in omitted.items():
        print(f"not run: {name}: {problem.splitlines()[0]}")
    return 0 if means[0] >= GOAL else 1


_COLUMNS = ("here", "exact")


if __name__ == "__main__":
    sys.exit(main())
