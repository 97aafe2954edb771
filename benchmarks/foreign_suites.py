"""Tests and tools that others wrote for ``shap.TreeExplainer``, with ours instead.

    python -m benchmarks.foreign_suites CHECKOUT

CHECKOUT is a copy of the repository of the package ``shap`` at the version that is
installed. Its tests of the tree explainer run twice, in processes of their own: as they
are, and with the class exchanged. Each test that passes with ``shap`` alone is printed
with a reason from ``foreign_suites.csv``. The exit code is 1 if one has no reason, or
if one with a reason passes. No text of the tests is stored here.

Then tools that call the class compute their numbers twice, also in processes of their
own: those of shapash, probatus, arfs and explainerdashboard that are installed. Values
and interactions against a background are compared with all subsets of the columns.

Tables come from the checkout. That of houses in California, which would be downloaded,
is replaced by random rows with its columns.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from itertools import combinations
from math import comb
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np
import pandas as pd


SUITE = "tests/explainers/test_tree.py"

REASONS = Path(__file__).with_suffix(".csv")
"""The tests that do not pass with the class exchanged, each with the reason."""

SETTINGS = '[pytest]\naddopts = -m "not xslow"\nmarkers = xslow: very slow\n'

PLUGIN = '''
from pathlib import Path

import numpy as np
import shap
import shap.datasets
import sklearn.datasets
from sklearn.utils import Bunch

download = shap.datasets.cache


def stored(url, file_name=None):
    """A table of the checkout; others are downloaded."""
    path = Path({checkout!r}, "data", file_name or url.rpartition("/")[2])
    return str(path) if path.is_file() else download(url, file_name)


def houses():
    """Random rows with the columns of the table of houses in California."""
    rng = np.random.default_rng(0)
    n = 20_640
    columns = {{
        "MedInc": rng.gamma(4.0, 1.0, n),
        "HouseAge": rng.integers(1, 53, n).astype(float),
        "AveRooms": rng.gamma(9.0, 0.6, n),
        "AveBedrms": rng.gamma(100.0, 0.011, n),
        "Population": np.round(rng.gamma(1.6, 900.0, n)) + 3.0,
        "AveOccup": rng.gamma(10.0, 0.3, n),
        "Latitude": np.round(rng.uniform(32.5, 42.0, n), 2),
        "Longitude": np.round(rng.uniform(-124.3, -114.3, n), 2),
    }}
    X = np.column_stack(list(columns.values()))
    price = 0.4 * X[:, 0] + 0.01 * X[:, 1] - 0.05 * X[:, 5] * (X[:, 6] > 37.0)
    y = np.clip(price + rng.normal(0.0, 0.3, n), 0.15, 5.0)
    return Bunch(data=X, target=y, feature_names=list(columns))


shap.datasets.cache = stored
sklearn.datasets.fetch_california_housing = houses
shap.initjs = lambda: None  # of notebooks
if {exchanged}:
    from benchmarks.foreign_suites import exchange

    exchange()
'''
"""A plugin of pytest that supplies tables, and exchanges the class."""


def exchange() -> None:
    """Put our classes in the place of those of ``shap``."""
    import shap

    from propopt.shap import Explainer, TreeExplainer

    for module in (shap, shap.explainers, shap.explainers._tree):  # noqa: SLF001
        module.TreeExplainer = TreeExplainer
    shap.explainers.Tree = TreeExplainer
    shap.Explainer = Explainer


# ---- shap's own tests


def outcomes(checkout: Path, exchanged: bool, chosen: str) -> dict[str, str]:
    """Each test with its outcome: "passed", or what it failed with."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plugin = PLUGIN.format(checkout=str(checkout), exchanged=exchanged)
        (folder / "exchanged_class.py").write_text(plugin)
        settings = folder / "pytest.ini"
        settings.write_text(SETTINGS)
        report = folder / "report.xml"
        how = ["-q", "-c", settings, "-p", "exchanged_class", "-p", "no:cacheprovider"]
        how += ["--junitxml", report, "-k", chosen, checkout / SUITE]
        root = str(Path(__file__).parents[1])
        paths = [str(folder), root, *filter(None, [os.environ.get("PYTHONPATH")])]
        subprocess.run(
            [sys.executable, "-m", "pytest", *map(str, how)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if not report.is_file():
            raise SystemExit(f"{checkout / SUITE}: pytest did not run")
        cases = ElementTree.parse(report).iter("testcase")
        return dict(map(_outcome, cases))


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    owner = case.get("classname", "").rpartition("test_tree")[2].strip(".")
    name = f"{owner}.{case.get('name')}".strip(".")
    for problem in case:
        if problem.tag in ("failure", "error", "skipped"):
            message = problem.get("message", "").partition("\n")[0]
            return name, f"{problem.tag}: {message:.150}"
    return name, "passed"


def compare(checkout: Path, chosen: str) -> int:
    """Print the table of tests; 1 if a reason is missing, or no longer needed."""
    theirs = outcomes(checkout, False, chosen)
    ours = outcomes(checkout, True, chosen)
    with REASONS.open(encoding="utf-8", newline="") as file:
        reasons = {row["test"]: row["reason"] for row in csv.DictReader(file)}
    passed = [name for name, outcome in theirs.items() if outcome == "passed"]
    failed = [name for name in passed if ours[name] != "passed"]
    print(f"shap {version('shap')}, {SUITE}")
    print(f"  with shap           {_counts(theirs)}")
    print(f"  with propopt.shap   {_counts(ours)}")
    print(f"  of {len(passed)} that pass with shap, {len(passed) - len(failed)} pass")
    for name, outcome in theirs.items():
        if outcome.startswith("skipped"):
            print(f"{name}\n    {outcome}")
    for name in failed:
        print(f"{name}\n    {reasons.get(name, 'NO REASON: ' + ours[name])}")
    better = [n for n, x in ours.items() if x == "passed" and theirs[n] != "passed"]
    for name in better:
        print(f"{name}\n    only with propopt.shap; with shap {theirs[name]}")
    needless = [name for name in reasons if ours.get(name) == "passed"]
    for name in needless:
        print(f"{name}\n    passes, but has the reason: {reasons[name]}")
    return int(bool(needless or not set(failed) <= reasons.keys()))


def _counts(outcomes: dict[str, str]) -> str:
    kinds = Counter(outcome.partition(":")[0] for outcome in outcomes.values())
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


# ---- Tools

Numbers: TypeAlias = dict[str, Any]
"""What a tool computes: those "against ..." are compared with all subsets."""

N_COLUMNS = 5


def fitted() -> tuple[Any, pd.DataFrame, pd.Series]:
    """Boosting, a table with missing values, and its classes."""
    from lightgbm import LGBMClassifier

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, N_COLUMNS)), columns=list("abcde"))
    X.loc[::9, "b"] = np.nan
    y = pd.Series((X["a"] * X["b"].fillna(1.0) + X["c"] > 0.0).astype(int))
    settings = {"n_estimators": 20, "num_leaves": 6, "min_child_samples": 5}
    model = LGBMClassifier(**settings, n_jobs=1, random_state=0, verbosity=-1)
    return model.fit(X, y), X, y


def _shapash() -> Iterator[tuple[str, Any]]:
    import shap
    from shapash import SmartExplainer
    from shapash.backend.shap_backend import get_shap_interaction_values

    model, X, _ = fitted()
    against = {"explainer": shap.TreeExplainer, "model": model, "data": X}
    for name, given in (("path-dependent", {}), ("against", against)):
        explainer = SmartExplainer(model, backend="shap", explainer_args=given)
        explainer.compile(x=X)
        explained = explainer.explainer
        yield f"{name} values", explained.contributions[1]
        pairs = get_shap_interaction_values(X, explained.backend.explainer)
        yield f"{name} interactions", pairs
        bars = explainer.plot.features_importance().data[0]
        yield f"{name} bars of a chart", np.array(bars.x, float)


def _probatus() -> Iterator[tuple[str, Any]]:
    from probatus.interpret import ShapModelInterpreter

    model, X, y = fitted()
    settings = {"feature_perturbation": "tree_path_dependent"}
    for name, given in (("path-dependent", settings), ("against", {})):
        interpreter = ShapModelInterpreter(model, random_state=0)
        importance = interpreter.fit_compute(X, X, y, y, **given)
        yield f"{name} values", interpreter.shap_values_test
        yield f"{name} importance", importance.to_numpy(float)


def _arfs() -> Iterator[tuple[str, Any]]:
    from arfs.feature_selection.allrelevant import Leshy

    model, X, y = fitted()
    settings = {"importance": "shap", "max_iter": 10, "random_state": 0, "verbose": 0}
    selection = Leshy(model, n_estimators=20, **settings).fit(X.fillna(0.0), y)
    yield "path-dependent importance", selection.imp_real_hist
    yield "ranks of columns", selection.ranking_


def _explainerdashboard() -> Iterator[tuple[str, Any]]:
    from explainerdashboard import ClassifierExplainer

    model, X, y = fitted()
    logits = {"model_output": "logodds", "precision": "float64"}
    for name, given in (
        ("path-dependent", logits),
        ("probability", {"X_background": X, "precision": "float64"}),
        ("against", {"X_background": X, **logits}),
    ):
        explainer = ClassifierExplainer(model, X, y, **given)
        yield f"{name} values", explainer.get_shap_values_df()
        yield f"{name} base", explainer.shap_base_value()
        if name != "probability":
            yield f"{name} interactions", explainer.shap_interaction_values()
        bars = explainer.plot_importances().data[0]
        yield f"{name} bars of a chart", np.array(bars.x, float)


TOOLS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "shapash": _shapash,
    "probatus": _probatus,
    "arfs": _arfs,
    "explainerdashboard": _explainerdashboard,
}


def numbers_of(tool: str, exchanged: bool) -> Numbers:
    """The numbers of a tool, in a process of its own."""
    logging.disable()
    warnings.simplefilter("ignore")
    if exchanged:
        exchange()
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        return {name: np.asarray(found, float) for name, found in TOOLS[tool]()}


def all_subsets() -> Numbers:
    """Values and interactions of the log-odds against all rows, by all subsets."""
    model, X, _ = fitted()
    N, D = X.shape
    rows = np.repeat(X.to_numpy(), N, axis=0)
    background = np.tile(X.to_numpy(), (N, 1))
    v = {}
    for size in range(D + 1):
        for chosen in map(list, combinations(range(D), size)):
            mixed = background.copy()
            mixed[:, chosen] = rows[:, chosen]
            margins = model.booster_.predict(mixed, raw_score=True)
            v[frozenset(chosen)] = margins.reshape(N, N).mean(axis=1)
    phi = np.zeros((N, D))
    pairs = np.zeros((N, D, D))
    for S in v:
        for i in set(range(D)) - S:
            step = v[S | {i}] - v[S]
            phi[:, i] += step / (D * comb(D - 1, len(S)))
            for j in set(range(D)) - S - {i}:
                second = v[S | {i, j}] - v[S | {j}] - step
                pairs[:, i, j] += second / (2 * (D - 1) * comb(D - 2, len(S)))
    each = np.arange(D)
    pairs[:, each, each] = phi - pairs.sum(axis=2)
    return {"against values": phi, "against interactions": pairs}


ALLOWED = 2e-6
"""Differences relative to the largest number: shap sums in single precision."""


def compare_tools() -> int:
    """Print the largest difference of each number of each tool; 1 if one is large."""
    exact = all_subsets()
    wrong = 0
    for tool in TOOLS:
        if find_spec(tool) is None:
            print(f"{tool}: not installed")
            continue
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as run:
            theirs, ours = run.map(numbers_of, [tool, tool], [False, True])
        print(f"{tool} {version(tool)}, largest differences, of the largest number")
        for name, found in ours.items():
            apart = _apart(found, exact.get(name, theirs[name]))
            words = f"from shap {apart:.1g}"
            if name in exact:
                of_shap = _apart(theirs[name], exact[name])
                words = f"from all subsets {apart:.1g}, of shap {of_shap:.1g}"
            print(f"  {name:32} {words}")
            wrong += not apart <= ALLOWED
    return int(wrong > 0)


def _apart(found: Any, expected: Any) -> float:
    """The largest difference, as a share of the largest number; NaN is expected."""
    differences = np.where(np.isnan(found) & np.isnan(expected), 0.0, found - expected)
    return float(np.abs(differences).max() / np.nanmax(np.abs(expected)))


def main() -> int:
    """Run the tests of a checkout, or the tools."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.foreign_suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkout", type=Path, help="of the repository of shap")
    parser.add_argument("-k", default="", help="only tests of these words, as pytest")
    options = parser.parse_args()
    failed = compare(options.checkout.resolve(), options.k)
    return max(failed, compare_tools())


if __name__ == "__main__":
    sys.exit(main())
