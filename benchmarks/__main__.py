"""``python -m benchmarks [--quick] [--output DIR] [CASE ...]``."""

from __future__ import annotations

import argparse
import platform
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.cases import CASES, growth
from benchmarks.timing import Row
from propopt.base.files import write_svg


def main() -> None:
    """Run the cases named, or all, and write a CSV and a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute")
    parser.add_argument("--output", default="results", help="folder; default: results")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no case is called {sorted(unknown)[0]}; there are {list(CASES)}")
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in options.cases or CASES:
        print(f"{name}: {CASES[name].__doc__}", flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gaps stand in the table
            measured = CASES[name](options.quick)
        print(table(measured), flush=True)
        rows += measured
    frame = pd.DataFrame([vars(row) for row in rows])
    frame.to_csv(folder / "benchmarks.csv", index=False)
    machine = platform.processor() or platform.machine()
    head = f"{machine}, Python {platform.python_version()}"
    (folder / "benchmarks.md").write_text(f"# Benchmarks\n\n{head}\n\n{table(rows)}")
    if not options.cases:
        draw_growth(folder / "growth.svg", options.quick)


def table(rows: list[Row]) -> str:
    """The rows as Markdown; a ratio is a multiple of our time."""
    lines = [
        "| work | method | seconds | ratio | gap | peak MiB | solves | target |",
        "|---|---|---:|---:|---:|---:|---|---|",
    ]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        gap = "" if row.gap is None else f"{row.gap:.0e}"
        peak = "" if row.peak_mib is None else f"{row.peak_mib:.0f}"
        lines.append(
            f"| {row.work} | {row.method} | {row.seconds:.3g} | {ratio} | {gap} | "
            f"{peak} | {row.solves} | {row.target} |"
        )
    return "\n".join(lines) + "\n"


def draw_growth(path: Path, quick: bool) -> None:
    """Seconds of a curve against N, D and the number of weights."""
    figure = Figure(figsize=(9.0, 2.8), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, (name, sizes, seconds) in zip(panels, growth(quick), strict=True):
        axes.loglog(sizes, seconds, "o-", color="#1f4e79")
        decades = 10.0 ** np.array(
            [np.floor(np.log10(min(seconds))), np.ceil(np.log10(max(seconds)))]
        )
        axes.set(xlabel=name, ylabel="seconds", ylim=decades)
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.yaxis.set_major_formatter("{x:g}")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        axes.grid(True, color="0.92")
    write_svg(figure, path, salt="growth")


if __name__ == "__main__":
    main()
