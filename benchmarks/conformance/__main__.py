"""Every case by every installed library: a table, and its record as CSV."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.conformance.cases import cases
from benchmarks.conformance.judging import WORDS, Bench
from benchmarks.conformance.libraries import LIBRARIES


RECORD = Path(__file__).parents[2] / "docs" / "background" / "conformance.csv"


def installed() -> Iterator[str]:
    """The libraries that are there."""
    for name, (module, _, _) in LIBRARIES.items():
        if importlib.util.find_spec(module) is not None:
            yield name


def run(names: list[str], seeds: int, only: str = "") -> pd.DataFrame:
    """One line for each case, seed and library."""
    lines = []
    benches = [Bench(name) for name in names]
    for situation, library, seed in cases(seeds):
        if only not in f"{situation}, {library}":
            continue
        print(f"\r{situation}, {library}, {seed} ".ljust(79), end="", file=sys.stderr)
        for bench in benches:
            line: dict[str, Any] = {"situation": situation, "model": library}
            line |= {"seed": seed, "library": bench.name}
            lines.append(line | asdict(bench.ask(situation, library, seed)))
    for bench in benches:
        bench.close()
    print("\r".ljust(80) + "\r", end="", file=sys.stderr)
    return pd.DataFrame(lines)


def summed_up(lines: pd.DataFrame) -> pd.DataFrame:
    """One line for each case and library: the worst of its seeds."""
    rank = lines.word.map({"right": 0, "another question": 1, "refuses": 2}).fillna(3)
    rank += lines.off.fillna(0.0).clip(upper=1e9) / 1e10
    lines = lines.assign(rank=rank)
    found = []
    for key, group in lines.groupby(["situation", "model", "library"], sort=False):
        worst = group.loc[group["rank"].idxmax()]
        line = dict(zip(("situation", "model", "library"), key, strict=True))
        line |= {"verdict": worst.word, "seeds": len(group)}
        line |= {"right": int((group.word == "right").sum())}
        line |= {"off": group.off.max(), "base_off": group.base_off.max()}
        found.append(line | {"note": worst.note})
    return pd.DataFrame(found)


def shown(row: Any) -> str:
    """A cell of the table."""
    if row.verdict == "wrong":
        return f"wrong by {row.off:.1%}"
    if row.verdict == "base wrong":
        return f"base wrong by {row.base_off:.1%}"
    return str(row.verdict)


def table(record: pd.DataFrame) -> pd.DataFrame:
    """Cases in lines, libraries in columns."""
    cells = record.assign(cell=[shown(row) for row in record.itertuples()])
    wide = cells.pivot(index=["model", "situation"], columns="library", values="cell")
    order = [name for name in LIBRARIES if name in wide]
    keys = record[["model", "situation"]].drop_duplicates()
    return wide.loc[list(map(tuple, keys.to_numpy())), order]


def versions(names: list[str]) -> str:
    packages = [LIBRARIES[name][1] for name in names]
    packages += ["scikit-learn", "lightgbm", "xgboost", "catboost"]
    there = {x.metadata["Name"]: x.version for x in importlib.metadata.distributions()}
    there = {name.lower().replace("_", "-"): told for name, told in there.items()}
    return ", ".join(f"{name} {there[name]}" for name in packages if name in there)


def main(arguments: list[str] | None = None) -> int:
    """Run all, print the table and write the record; 1 if ours is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conformance")
    parser.add_argument("--seeds", type=int, default=3, help="models of each case")
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, metavar="NAME")
    parser.add_argument("--output", type=Path, help=f"the record, such as {RECORD}")
    options = parser.parse_args(arguments)
    names = options.libraries or list(installed())
    record = summed_up(run(names, options.seeds, options.only))
    with pd.option_context(
        "display.max_rows", None, "display.width", 160, "display.max_columns", None
    ):
        print(table(record))
    for name in names:
        counts = record[record.library == name].verdict.value_counts()
        counts = counts.reindex([word for word in WORDS if word in counts])
        told = ", ".join(f"{n} {word}" for word, n in counts.items())
        print(f"{name}: {told}")
    print(versions(names))
    if options.output:
        record.to_csv(options.output, index=False, float_format="%.3g")
    ours = record[record.library == "propopt"].verdict
    return int(ours.isin(["wrong", "base wrong", "crashes"]).any())


if __name__ == "__main__":
    sys.exit(main())
