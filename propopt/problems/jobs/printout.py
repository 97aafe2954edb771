"""What a run prints: its subject, its front, and warnings once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from propopt.output.gaps import targets_in_words
from propopt.output.html import N_FEATURES, explanation_card
from propopt.output.progress import PlainConsole
from propopt.output.terminal import print_table
from propopt.output.text import in_percent, printable, printable_lines
from propopt.problems.pick import Pick
from propopt.problems.section import Section
from propopt.problems.subject.subject import Subject
from propopt.results.deferred import is_deferred
from propopt.results.explanation import Explanation
from propopt.tradeoffs.distances import UNITS_UNKNOWN
from propopt.tradeoffs.table import TradeOffs


_SHARES = ("kept", "removed.")


@contextmanager
def warnings_printed() -> Iterator[None]:
    """Print each warning once, on standard error, also before an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(w.message) for w in caught):
                print(f"warning: {printable_lines(message)}", file=sys.stderr)


def print_title(name: str, files: Sequence[Path], console: PlainConsole) -> None:
    """The name of a problem, and the file that it was read from."""
    console.print(printable(name), style="bold", end=" ")
    console.print(f"({printable(files[0])})" if files else "")


def print_subject(subject: Subject, console: PlainConsole, *others: str | None) -> None:
    """Sizes, what else there is to say, what is explained, the score of a model."""
    rows, columns = "points", "features"
    if subject.is_text:
        rows, columns = "documents", "words"
    size = f"{len(subject.points)} {rows} × {subject.n_features} {columns}"
    parts = (size, *others)
    console.print(", ".join(filter(None, parts)))
    console.print(f"explained: {printable(subject.function.quantity)}", markup=False)
    score = subject.score
    if score is not None:
        console.print(f"the model: {score.in_words()}", markup=False)


def settings_in_words(
    section: Section | None, exclude: frozenset[str] = frozenset()
) -> str:
    """All settings of a model or a scheme, defaults too, but some."""
    if section is None:
        return ""
    return _settings(section.model_dump(exclude_none=True, exclude=set(exclude)))


def _settings(values: dict[str, Any]) -> str:
    """The kind, and each setting; a section in it stands in brackets."""
    told = [
        f"{name} ({_settings(value)})" if isinstance(value, dict) else f"{name} {value}"
        for name, value in values.items()
        if name != "kind"
    ]
    return ", ".join([str(values["kind"]), *told] if "kind" in values else told)


def print_trade_offs(
    trade_offs: TradeOffs, swept: Sequence[str], console: PlainConsole
) -> None:
    """The front, and how far the baselines lie above it."""
    losses = [f"loss.{name}" for name in trade_offs.losses]
    weights = [f"weight.{name}" for name in swept]
    table = _with_settings(trade_offs.to_frame())
    shares = list(trade_offs.share_columns.values())
    columns = ["method", *weights, *losses, *shares, "gap", "target_error"]
    front = table.loc[trade_offs.on_front, columns]
    _show("The front", front, console)
    for words in targets_in_words(trade_offs.optimized):
        console.print(words, markup=False)
    if trade_offs.baselines and trade_offs.optimized:
        distances = _with_settings(trade_offs.distances())
        title = "Baselines: above the best possible objective by at least the excess"
        _show(title, distances[["method", *losses, "excess"]], console)
        for words in _not_compared(distances):
            console.print(words, markup=False)


def print_finding(
    trade_offs: TradeOffs, picked: Explanation | None, pick: Pick, console: PlainConsole
) -> None:
    """What was found at the knee, or at the pick, if attributions of it are known."""
    if picked is None:
        return
    where = "At the knee" if pick == "knee" else "At the pick"
    console.print()
    if not is_deferred(picked):
        console.print(explanation_card(picked, N_FEATURES).text(), markup=False)
        console.print()
    words = trade_offs.in_words(picked)
    if words:
        console.print(f"{where}: {words}", markup=False)


def _not_compared(distances: pd.DataFrame) -> Iterator[str]:
    """Why baselines have no excess, a sentence each; what is assumed of the others."""
    if (distances["units"] == UNITS_UNKNOWN).any():
        yield "Units of the target are unknown; baselines are taken to be in the same."
    if "not_compared" not in distances:
        return
    told = distances[["method", "not_compared"]].dropna()
    for method, reason in told.itertuples(index=False):
        yield f"{method} is not compared: {reason}"


def _with_settings(frame: pd.DataFrame) -> pd.DataFrame:
    """The method of each row together with those settings that vary within it."""
    columns = [c for c in map(str, frame) if c.startswith("parameter.")]
    parts = []
    for _, rows in frame.groupby("method", sort=False):
        names = rows["method"]
        for column in columns:
            if rows[column].nunique(dropna=False) > 1:
                setting = column.removeprefix("parameter.")
                names = names + f" {setting}=" + rows[column].map(_plain)
        parts.append(names)
    return frame.assign(method=pd.concat(parts)) if parts else frame


def _show(title: str, frame: pd.DataFrame, console: PlainConsole) -> None:
    columns = list(map(str, frame))
    names = [_head(column) for column in columns]
    rows = (list(map(_cell, columns, row)) for row in frame.itertuples(index=False))
    print_table(console, title, names, rows)


def _head(column: str) -> str:
    name = column.removeprefix("loss.").replace("weight.", "weight of_")
    return name.replace("kept.", "kept of_").replace("removed.", "removed of_")


def _plain(value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a scalar of any kind
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(column: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a scalar of any kind
        return "–"
    if column == "excess":
        return f"{value:.1%}"
    if column.startswith(_SHARES):
        return in_percent(float(value))  # type: ignore[arg-type]  # a number
    if column == "gap":
        return f"{value:.0e}" if value else "0"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
