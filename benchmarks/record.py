"""The record of all measurements, and README's table of speed, which is made from it.

``python -m benchmarks.record`` writes that table; a test compares them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.timing import OURS, Row


ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "background" / "benchmarks.csv"
README = ROOT / "README.md"
BEGIN, END = "<!-- speed: made from the record -->\n", "<!-- speed: end -->\n"

FRONT = (
    "losses for 200 weights: 1,000 rows, 10 columns, 8,450 pairs",
    "losses for 200 weights: 20,000 rows, 3 columns, 8 neighbours",
    "20 weights of ℓ1: 500 rows, 10 columns, all pairs",
    "sum of largest differences over all pairs: 100 rows, 3 columns",
    "Shapley values of 256 rows, 100 background rows: "
    "LightGBM, 100 trees of 31 leaves, 30 columns",
    "Shapley values of 256 rows, 10,000 background rows: "
    "LightGBM, 100 trees of 31 leaves, 30 columns",
    "Shapley values of 100 rows, 5,000 background rows: "
    "forest, 200 trees of 632,492 leaves, 20 columns",
    "Shapley values of 100 rows, 1,000 background rows: "
    "extra trees, 500 trees of 500,000 leaves, 8 columns",
    "interactions of 256 rows, 2,000 background rows: "
    "LightGBM, 100 trees of 31 leaves, 30 columns",
    "slopes of 300 rows, 3,000 reference rows, 13 columns: "
    "LightGBM, 100 trees of 31 leaves",
    "limits of LIME for 500 rows: forest of 100 trees of depth 8, 30 columns",
    "limits of LIME for one text of 1,000 words: linear model of TF-IDF",
    "LIME: 1,000 rows, 30 columns, 1,000 draws each",
)
"""The pieces of work on the front page, once they have been measured."""


def kept(path: Path, rows: dict[str, list[Row]]) -> pd.DataFrame:
    """The rows of these cases, and those of other cases that the file has already."""
    new = pd.DataFrame(
        [{"case": name, **vars(row)} for name, own in rows.items() for row in own]
    )
    if not path.is_file():
        return new
    old = pd.read_csv(path)
    return pd.concat([old[~old["case"].isin(set(rows))], new], ignore_index=True)


def table(rows: list[Row]) -> str:
    """Rows as Markdown, in full."""
    lines = [
        "| work | method | stands for | time | × ours | how | gap | off | MiB | note |",
        "|---|---|---|---:|---:|---|---:|---:|---:|---|",
    ]
    for row in rows:
        peak = "" if row.peak_mib is None else f"{row.peak_mib:.0f}"
        cells = row.work, row.method, row.role, time(row.seconds), two(row.ratio)
        numbers = how(row), small(row.gap), small(row.difference), peak, row.note
        lines.append(f"| {' | '.join([*cells, *numbers])} |")
    return "\n".join(lines) + "\n"


def front(record: pd.DataFrame, works: tuple[str, ...] = FRONT) -> str:
    """README's table: of these works all that the record has."""
    lines = [
        "| work | propopt | best peer | general tool |",
        "|---|---|---|---|",
    ]
    for work in works:
        own = list(record[record["work"] == work].itertuples(index=False))
        if not own:
            continue
        (ours,) = (row for row in own if row.role == OURS)
        best = peer([row for row in own if row.role == "best"])
        others = [row for row in own if row.role == "general"]
        asked = [r for r in own if str(r.note).startswith("another question")]
        proved = "" if pd.isna(ours.gap) else f"gap {ours.gap:.0e}"
        said = ", ".join(filter(None, [proved, *_note(ours)]))
        mine = f"{time(ours.seconds)} ({said})" if said else time(ours.seconds)
        lines.append(f"| {work} | {mine} | {best} | {peer(others or asked)} |")
    return "\n".join(lines) + "\n"


def peer(rows: list[Any]) -> str:
    """The fastest of them: its time as a multiple of ours, and how it was timed."""
    if not rows:
        return "–"
    row = min(rows, key=lambda row: row.ratio)
    said = ", ".join([*filter(None, [how(row)]), *_note(row)])
    return f"{two(row.ratio)} × {row.method}" + (f" ({said})" if said else "")


def _note(row: Any) -> list[str]:
    return [] if pd.isna(row.note) or not row.note else [row.note]


def how(row: Any) -> str:
    """One run, or scaled from some; nothing for medians of several whole runs."""
    if row.made < row.of:
        return f"scaled from {row.made:,} of {row.of:,}"
    return "one run" if row.runs == 1 else ""


def time(seconds: float) -> str:
    """Two digits, in s or ms."""
    return f"{two(seconds)} s" if seconds >= 1 else f"{two(1e3 * seconds)} ms"


def two(number: float) -> str:
    """Two digits, with commas of thousands."""
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def small(number: float | None) -> str:
    return "" if number is None else f"{number:.0e}"


def page(text: str, record: pd.DataFrame) -> str:
    """README with the table of the record."""
    pattern = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise LookupError(f"README.md: expected one table between {BEGIN} and {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n{front(record)}\n{END}", text)


if __name__ == "__main__":
    README.write_text(page(README.read_text("utf-8"), pd.read_csv(RECORD)), "utf-8")
