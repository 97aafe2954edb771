"""``python -m benchmarks [--quick] [--output DIR] [CASE ...]``."""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmarks.baselines import perturbation
from benchmarks.cases import (
    all_pairs,
    complete_curve,
    curve,
    lattice,
    many_rows,
    max_difference,
    sparse_path,
)
from benchmarks.forests import forests
from benchmarks.inductive import inductive, inductive_images
from benchmarks.interactions import interactions
from benchmarks.lime_limits import lime_limits
from benchmarks.lime_texts import lime_texts
from benchmarks.record import kept, table
from benchmarks.rows import rows
from benchmarks.shapley_values import shapley_values
from benchmarks.slopes import slopes
from benchmarks.timing import Row
from benchmarks.tree_games import tree_games
from benchmarks.trees import tree_slopes


CASES: dict[str, Callable[[bool], list[Row]]] = {
    case.__name__: case
    for case in (
        *(curve, complete_curve, many_rows, sparse_path, max_difference, all_pairs),
        *(lattice, shapley_values, forests, rows, tree_slopes, slopes, perturbation),
        *(lime_limits, lime_texts, inductive, inductive_images, interactions),
        tree_games,
    )
}


def main() -> None:
    """Run the cases named, or all; the file keeps the rows of other cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes, minutes")
    parser.add_argument("--output", default="results", help="folder; default: results")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no case is called {sorted(unknown)[0]}; there are {list(CASES)}")
    path = Path(options.output) / "benchmarks.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = platform.processor() or platform.machine()
    print(f"{machine}, Python {platform.python_version()}, one thread")
    for name in options.cases or CASES:
        print(f"\n{name}: {CASES[name].__doc__}\n", flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gaps stand in the table
            measured = CASES[name](options.quick)
        print(table(measured), flush=True)
        kept(path, {name: measured}).to_csv(path, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
