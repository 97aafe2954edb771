"""A diagnosis as a table, as text for a terminal and as a card."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from propopt.lime.diagnosis.finding import LimeFinding, QuietRule
from propopt.output.html import html_card, html_table
from propopt.output.text import in_html, printable
from propopt.results.conclusions.words import plural


if TYPE_CHECKING:
    from propopt.lime.diagnosis.result import LimeDiagnosis


_WIDTH = 88


def frame_of(diagnosis: LimeDiagnosis) -> pd.DataFrame:
    """One row for each finding and note, then for each rule that found nothing."""
    rows = [_record(diagnosis, item) for item in diagnosis.told]
    rows += [_record(diagnosis, item) for item in diagnosis.quiet]
    columns = [
        "rule",
        "found",
        "row",
        "feature",
        "number",
        "threshold",
        "severity",
        "sentence",
        "remedy",
        "kind",
    ]
    cells = dict(zip(columns, zip(*rows, strict=True), strict=True))
    named = {key: pd.Series(cells.pop(key), dtype=object) for key in ("row", "feature")}
    return pd.DataFrame({**cells, **named})[columns]


def _record(diagnosis: LimeDiagnosis, item: LimeFinding | QuietRule) -> list[Any]:
    row, feature = _where(diagnosis, item)
    kind = "quiet"
    if isinstance(item, LimeFinding):
        kind = "note" if item.is_note else "finding"
    return [
        item.rule,
        kind == "finding",
        row,
        feature,
        item.number,
        item.threshold,
        item.severity if isinstance(item, LimeFinding) else np.nan,
        item.sentence,
        item.remedy if isinstance(item, LimeFinding) else "",
        kind,
    ]


def _where(
    diagnosis: LimeDiagnosis, item: LimeFinding | QuietRule
) -> tuple[Hashable | None, str | None]:
    """Names of the row and the column; None for all of them."""
    N, D = diagnosis.shape
    rows = range(N) if diagnosis.labels.points is None else diagnosis.labels.points
    names = diagnosis.labels.feature_names(D)
    return (
        None if item.row is None else rows[item.row],
        None if item.column is None else names[item.column],
    )


def _groups(diagnosis: LimeDiagnosis) -> Iterator[tuple[str, tuple[LimeFinding, ...]]]:
    """Findings by rules, what misleads most first."""
    for rule in diagnosis.rules:
        yield rule, tuple(item for item in diagnosis.findings if item.rule == rule)


def title(diagnosis: LimeDiagnosis) -> str:
    """What it is about."""
    N, D = diagnosis.shape
    return (
        f"{plural(N, 'row')}, {plural(D, 'feature')}; coefficients {diagnosis.source}, "
        f"runs of {diagnosis.n_samples:,} samples: "
        f"{plural(len(diagnosis.findings), 'finding')} of "
        f"{plural(len(diagnosis.rules), 'rule')}"
    )


def head(diagnosis: LimeDiagnosis, found: tuple[LimeFinding, ...]) -> str:
    """Where the worst of some findings is, and how many others there are."""
    row, feature = _where(diagnosis, found[0])
    parts = [] if row is None or diagnosis.shape[0] == 1 else [f"row {row}"]
    parts += [] if feature is None else [feature]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{', '.join(parts) or 'all'}{more}"


def diagnosis_text(diagnosis: LimeDiagnosis, *, in_full: bool = False) -> str:
    """Several lines: each rule that found something with its worst, then the others."""
    lines = [f"LimeDiagnosis({printable(title(diagnosis))})"]
    for rule, found in _groups(diagnosis):
        lines.append(printable(f"- {rule}: {head(diagnosis, found)}"))
        lines += _wrapped(f"{found[0].sentence}.")
        lines += _wrapped(f"What would do: {found[0].remedy}.")
    if in_full:
        for rule, notes in _notes(diagnosis).items():
            lines.append(printable(f"- note, {rule}: {head(diagnosis, notes)}"))
            lines += _wrapped(f"{notes[0].sentence}.")
        lines += [printable(line) for line in _quiet_lines(diagnosis)]
    else:
        lines += [printable(f"- {line}") for line in _other_rules(diagnosis)]
    return "\n".join(lines)


def _notes(diagnosis: LimeDiagnosis) -> dict[str, tuple[LimeFinding, ...]]:
    """Notes by rules."""
    rules = dict.fromkeys(item.rule for item in diagnosis.notes)
    return {
        rule: tuple(item for item in diagnosis.notes if item.rule == rule)
        for rule in rules
    }


def _other_rules(diagnosis: LimeDiagnosis) -> Iterator[str]:
    """A line for notes, and one for rules that found nothing."""
    notes = _notes(diagnosis)
    if notes:
        each = ", ".join(f"{rule} ({len(items)})" for rule, items in notes.items())
        yield f"notes, which hardly mislead: {each}"
    quiet = {item.rule for item in diagnosis.quiet}
    if quiet:
        other = "other " if diagnosis.told else ""
        yield f"{len(quiet)} {other}rule{'s'[: len(quiet) > 1]} found nothing"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        printable(text), _WIDTH, initial_indent="    ", subsequent_indent="    "
    )


def _quiet_lines(diagnosis: LimeDiagnosis) -> Iterator[str]:
    """Rules that found nothing, with how near they came."""
    for item in diagnosis.quiet:
        if np.isnan(item.number):
            continue
        row, feature = _where(diagnosis, item)
        named = [] if row is None or diagnosis.shape[0] == 1 else [f"row {row}"]
        named += [] if feature is None else [feature]
        place = f" ({', '.join(named)})" if named else ""
        yield (f"- {item.rule}: {item.sentence}{place}, threshold {item.threshold:.3g}")


def diagnosis_html(diagnosis: LimeDiagnosis) -> str:
    """A card: a title, a table of what was found, and what was not."""
    rows = [
        [
            in_html(rule),
            f"{found[0].number:.3g}",
            f"{found[0].threshold:.3g}",
            f"<b>{in_html(head(diagnosis, found))}</b>: {in_html(found[0].sentence)}. "
            f"<i>{in_html(found[0].remedy)}</i>",
        ]
        for rule, found in _groups(diagnosis)
    ]
    table = html_table(("rule", "number", "threshold", ""), rows) if rows else ""
    others = "<br>".join(map(in_html, _other_rules(diagnosis)))
    in_full = "<br>".join(
        [
            *(
                in_html(f"note, {rule}: {head(diagnosis, notes)}: {notes[0].sentence}")
                for rule, notes in _notes(diagnosis).items()
            ),
            *map(in_html, _quiet_lines(diagnosis)),
        ]
    )
    details = f"<details><summary>{others}</summary>{in_full}</details>"
    return html_card([f"<b>{in_html(title(diagnosis))}</b>", table, details])
