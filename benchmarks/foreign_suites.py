"""Tests and tools that others wrote for ``shap.TreeExplainer``, with ours instead.

    python -m benchmarks.foreign_suites CHECKOUT

CHECKOUT is a copy of the repository of the package ``shap`` at the version that is
installed. Its tests of the tree explainer run twice, in processes of their own: as they
are, and with the class exchanged. Each test that passes with ``shap`` alone is printed
with a reason from ``foreign_suites.csv``. The exit code is 1 if one has no reason, or
if one with a reason passes. No text of the tests is stored here.

Tables come from the checkout. That of houses in California, which would be downloaded,
is replaced by random rows with its columns.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree


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
    from propopt.shap import Explainer, TreeExplainer

    for module in (shap, shap.explainers, shap.explainers._tree):
        module.TreeExplainer = TreeExplainer
    shap.explainers.Tree = TreeExplainer
    shap.Explainer = Explainer
'''
"""A plugin of pytest that supplies tables, and exchanges the class."""


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
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
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
    return compare(options.checkout.resolve(), options.k)


if __name__ == "__main__":
    sys.exit(main())
