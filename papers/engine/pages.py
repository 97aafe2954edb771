"""What is written: a page per figure, an index, and a table of all findings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from papers.engine.findings import WORDS, Claim, Finding, Verdict
from papers.engine.panels import PanelResult
from papers.engine.studies import StudyResult
from papers.engine.tally import (
    Conclusion,
    FigureReport,
    Tally,
    claims_table,
    findings_table,
    told_method,
    values_table,
)
from propopt.base.files import (
    atomic_write,
    write_svg,
)
from propopt.base.text import printable


def write_figure(report: FigureReport, folder: Path) -> None:
    """``<name>.svg`` and ``<name>.md``."""
    drawing = report.figure.draw(report.results)
    write_svg(drawing, folder / f"{report.name}.svg", salt=report.name)
    write_markdown(folder / f"{report.name}.md", _page(report))


def write_index(reports: Sequence[FigureReport], folder: Path, title: str = "") -> None:
    """``README.md``, ``claims.csv``, ``statements.csv`` and ``values.csv``."""
    write_markdown(folder / "README.md", _index(reports, title))
    for name, table in (
        ("claims", claims_table(reports)),
        ("statements", findings_table(reports)),
        ("values", values_table(reports)),
    ):
        with atomic_write(folder / f"{name}.csv") as draft:
            digits = "%.8g" if name == "values" else None  # beyond what is compared
            table.to_csv(draft, index=False, float_format=digits)


def written_files(names: Iterable[str]) -> list[str]:
    """What a run of these figures writes."""
    pages = [f"{name}{suffix}" for name in names for suffix in (".svg", ".md")]
    return [*pages, "README.md", "claims.csv", "statements.csv", "values.csv"]


def _page(report: FigureReport) -> Iterator[str]:
    yield f"# {report.name}: {report.figure.title}"
    yield f"![{report.figure.title}]({report.name}.svg)"
    yield report.figure.about
    yield from _state(report)
    yield from _statements(report, "##")
    yield "## Each panel"
    rows = [
        (
            in_markdown(title),
            f.statement.rsplit(": ", 1)[0],
            str(f.verdict),
            _value(f),
            f.note,
        )
        for title, f in report.findings
    ]
    yield markdown_table(("panel", "statement", "verdict", "measured", "note"), rows)
    yield from _sweeps([r for r in report.results if isinstance(r, PanelResult)])
    yield from _studies([r for r in report.results if isinstance(r, StudyResult)])
    yield from _warnings(report)


def _sweeps(results: Sequence[PanelResult]) -> Iterator[str]:
    if not results:
        return
    yield "## Distances of the baselines"
    yield (
        "`excess`: the least relative excess of a baseline's objective over the "
        "optimum, over the weights of the sweep (of an inductive explanation: under "
        "its own weights). `saved`: the share of its "
        "faithfulness loss that the optimum saves without being worse in another loss. "
        "Where the optimum is 0 there is no relative distance, and the absolute one is "
        "told."
    )
    for result in results:
        yield from _distances(result)
    with_totals = [result for result in results if len(result.totals) > 0]
    if with_totals:
        yield "## Lowest total loss of each method"
        yield (
            "F/F* − 1 at three weights of the sweep, the faithfulness loss having "
            "weight one. Each method has the setting with the lowest total loss there."
        )
    for result in with_totals:
        yield f"### {in_markdown(result.panel.title)}"
        yield _plain_table(result.totals)


def _studies(results: Sequence[StudyResult]) -> Iterator[str]:
    told = [result for result in results if len(result.numbers) > 0]
    if told:
        yield "## Numbers"
    for result in told:
        yield f"### {in_markdown(result.panel.title)}"
        yield _plain_table(result.numbers)


def _plain_table(table: pd.DataFrame) -> str:
    rows = table.itertuples(index=False, name=None)
    head = [in_markdown(str(name)) for name in table]
    return markdown_table(head, ([_told_cell(cell) for cell in r] for r in rows))


def _told_cell(value: object) -> str:
    return _number(value) if isinstance(value, float) else in_markdown(str(value))


def _state(report: FigureReport) -> Iterator[str]:
    seconds = sum(result.seconds for result in report.results)
    n = len(report.results)
    yield (
        f"{n} panel{'s' if n > 1 else ''}, {report.seconds:.0f} s "
        f"({seconds:.0f} s summed over panels)."
    )
    if not report.complete:
        yield (
            f"**Interrupted**: {len(report.results)} of {len(report.figure.panels)} "
            "panels are here."
        )


def _distances(result: PanelResult) -> Iterator[str]:
    yield f"### {in_markdown(result.panel.title)}"
    table = result.distances
    losses = [str(c) for c in table if str(c).startswith("loss.")]
    shares = [name for name in ("excess", "saved") if name in table]
    head = ("method", *(c.removeprefix("loss.") for c in losses), *shares)
    rows = [
        (
            told_method(row),
            *(_number(row[c]) for c in losses),
            *(_told_share(row, name) for name in shares),
        )
        for _, row in table.iterrows()
    ]
    yield markdown_table(head, rows)
    if "not_compared" in table:
        apart = table.dropna(subset="not_compared")
        yield markdown_list(
            f"{told_method(row)} is not compared: {row['not_compared']}."
            for _, row in apart.iterrows()
        )


def _told_share(row: pd.Series, name: str) -> str:
    """A share; in place of an excess over nothing the absolute distance."""
    if name == "excess" and row["excess"] in (0.0, math.inf) and "distance" in row:
        return f"{_number(row['distance'])} (absolute)"
    return _share(row[name])


def _warnings(report: FigureReport) -> Iterator[str]:
    lines = [
        f"{in_markdown(r.panel.title)}: {in_markdown(text)}"
        for r in report.results
        for text in r.warnings
    ]
    if lines:
        yield "## Warnings"
        yield markdown_list(lines)


def _index(reports: Sequence[FigureReport], title: str) -> Iterator[str]:
    yield "# The paper's figures, made anew"
    yield f"**{Tally.of(reports).in_words()}**"
    if title:
        yield f"The paper: {title}."
    yield from _remarkable(reports)
    yield _LEGEND
    rows = [
        (
            f"[{r.name}]({r.name}.md)",
            r.figure.title + ("" if r.complete else " (interrupted)"),
            str(len(r.results)),
            *_counts(r),
            f"{r.seconds:.0f}",
        )
        for r in reports
    ]
    yield markdown_table(
        ("figure", "", "panels", "PASS", *map(str, WORDS), "seconds"), rows
    )
    for report in reports:
        yield f"## {report.name}: {report.figure.title}"
        yield f"![{report.figure.title}]({report.name}.svg)"
        yield from _statements(report, "###")


_LEGEND = """\
A check of ours is a promise (certificates, optimality, closed forms), tested in every
panel; if one fails, something of ours is broken. A statement of the paper is
*confirmed* if it holds in every panel, under the paper's assumptions. It holds *in
part* if it holds in some panels. It *depends on a choice* if it holds under one choice
and not under another, and the paper names none. It is *refuted* by a counterexample or
a proof, and a *misprint* if the right form is known. It is *not tested* where something
stands in for the paper's set-up, or where repetitions are too few to decide. A row has
what the paper says, in our words, and the panel where it is narrowest; rows that test
the same claim count once. Every finding stands in `statements.csv`."""


def _remarkable(reports: Sequence[FigureReport]) -> Iterator[str]:
    """What must not be overlooked: failures, changes, and what is false."""
    failed = [
        f"{s.figure}: {s.text}: {_measured(s)}"
        for report in reports
        for s in report.invariants
        if s.verdict is Verdict.FAIL
    ]
    changed = [
        f"{s.figure}: {s.text}: {_told(s)}"
        for report in reports
        for s in report.changed
    ]
    refuted = [
        f"{s.figure}: {s.text}: {s.verdict}{_aside(s.reason)}: {_measured(s)}"
        for report in reports
        for s in report.claims
        if s.verdict in (Verdict.REFUTED, Verdict.MISPRINT)
    ]
    drifted = [drift.in_words() for report in reports for drift in report.drifted]
    for title, lines in (
        ("Checks that fail", failed),
        ("Statements that are not as on record", changed),
        ("Values that are not those on record", drifted),
        ("Statements of the paper that are false", refuted),
    ):
        if lines:
            yield f"{title}:"
            yield markdown_list(lines)


def _counts(report: FigureReport) -> Iterator[str]:
    tally = Tally.of([report])
    yield f"{tally.n_invariants - tally.n_failed} of {tally.n_invariants}"
    for verdict in WORDS:
        yield str(tally.claims.get(verdict, 0))


def _statements(report: FigureReport, level: str) -> Iterator[str]:
    """What the paper states, then what theory promises."""
    if report.claims:
        yield f"{level} Statements of the paper"
        yield markdown_table(
            ("statement", "the paper says", "verdict", *_HEAD, "why"),
            (
                (s.text, _said(s), _told(s), *_decided(s), s.reason or "–")
                for s in report.claims
            ),
        )
    if report.invariants:
        yield f"{level} Checks of ours"
        yield markdown_table(
            ("check", "verdict", *_HEAD),
            ((s.text, str(s.verdict), *_decided(s)) for s in report.invariants),
        )


_HEAD = ("measured", "has to be", "panels", "narrowest in")


def _decided(statement: Conclusion) -> tuple[str, ...]:
    title, finding = statement.narrowest
    return (
        _value(finding),
        finding.condition,
        f"{statement.n_holding} of {len(statement.findings)}",
        in_markdown(title) + _aside(finding.note),
    )


def _said(statement: Conclusion) -> str:
    """Where the paper says it, and what."""
    return "–" if statement.sentence is None else statement.sentence.in_words()


def _told(statement: Conclusion) -> str:
    """The verdict, loudly if it is not the one on record."""
    recorded = statement.recorded
    if statement.now == recorded:
        return str(statement.verdict)
    told = "none" if recorded is None else recorded.in_words()
    return f"**{statement.verdict}** (on record: {told})"


def _measured(statement: Conclusion) -> str:
    value, condition, panels, where = _decided(statement)
    return f"{value}, expected {condition}; holds in {panels} panels; {where}"


def _aside(text: str) -> str:
    return f" ({text})" if text else ""


def _share(value: float) -> str:
    """Percent, with digits left where that is very little."""
    if math.isnan(value):
        return "–"
    return f"{value:.2%}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"


def _value(finding: Finding) -> str:
    """With its interval, if it has one."""
    if not isinstance(finding, Claim) or finding.between is None:
        return _number(finding.value)
    low, high = map(_number, finding.between)
    return f"{_number(finding.value)} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value + 0.0:.4g}"  # no −0


# ---- Markdown: paragraphs and tables, written whole


_MARKDOWN = re.compile(r"[\\`*_\[\]<&$~]")


def in_markdown(text: object) -> str:
    """The text for a Markdown page, where nothing in it is markup or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table; bars within cells are no edges."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_edged, line))} |" for line in lines)


def markdown_list(items: Iterable[str]) -> str:
    """One line for each item."""
    return "\n".join(f"- {item}" for item in items)


def write_markdown(path: str | Path, paragraphs: Iterable[str]) -> None:
    """Write a page of paragraphs, whole or not at all."""
    with atomic_write(path) as draft:
        draft.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")


def _edged(text: str) -> str:
    return text.replace("|", "\\|")
