"""What is written: a page per figure, an index, and a table of all findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from propopt.files import written_whole
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.findings import Finding
from propopt.reproduce.panels import Result


@dataclass(frozen=True, eq=False, kw_only=True)
class FigureReport:
    """A figure that was run: its panels' results, perhaps not all of them."""

    name: str
    figure: PaperFigure
    results: tuple[Result, ...]
    seconds: float

    @property
    def findings(self) -> list[tuple[str, Finding]]:
        """All findings, with the title of their panel."""
        return [(r.panel.title, f) for r in self.results for f in r.findings]

    @property
    def complete(self) -> bool:
        """True if every panel was run."""
        return len(self.results) == len(self.figure.panels)

    @property
    def n_failed(self) -> int:
        """How many findings are on the wrong side of their limit."""
        return sum(not finding.passed for _, finding in self.findings)

    def statements(self) -> list[tuple[str, Finding, int]]:
        """Each statement once: its narrowest finding, with the panel, and the count."""
        groups: dict[str, list[tuple[str, Finding]]] = {}
        for title, finding in self.findings:
            groups.setdefault(finding.statement, []).append((title, finding))
        return [
            (*min(group, key=lambda pair: _order(pair[1])), len(group))
            for group in groups.values()
        ]


def _order(finding: Finding) -> tuple[bool, float]:
    """Failures first (also those without a number), then the narrowest."""
    return finding.passed, finding.margin


def write_figure(report: FigureReport, folder: Path) -> None:
    """``<name>.svg`` and ``<name>.md``."""
    drawing = report.figure.draw(report.results)
    _write_svg(drawing, folder / f"{report.name}.svg", report.name)
    _write(folder / f"{report.name}.md", _page(report))


def write_index(reports: Sequence[FigureReport], folder: Path) -> None:
    """``README.md``, and ``statements.csv`` with every finding."""
    _write(folder / "README.md", _index(reports))
    with written_whole(folder / "statements.csv") as draft:
        findings_table(reports).to_csv(draft, index=False)


def findings_table(reports: Iterable[FigureReport]) -> pd.DataFrame:
    """One row per finding."""
    rows = [
        {
            "figure": report.name,
            "panel": title,
            "statement": finding.statement,
            "value": finding.value,
            "sense": finding.sense,
            "limit": finding.limit,
            "verdict": finding.verdict,
            "note": finding.note,
        }
        for report in reports
        for title, finding in report.findings
    ]
    return pd.DataFrame(rows)


def _page(report: FigureReport) -> Iterator[str]:
    yield f"# {report.name}: {report.figure.title}"
    yield f"![{report.figure.title}]({report.name}.svg)"
    yield report.figure.about
    yield from _state(report)
    yield "## Statements"
    yield _table(_STATEMENT_HEAD, map(_statement_row, report.statements()))
    yield "## Each panel"
    rows = [
        (title, f.statement.split(":")[0], f.verdict, _number(f.value), f.note)
        for title, f in report.findings
    ]
    yield _table(("panel", "statement", "", "measured", "note"), rows)
    yield "## Distances of the baselines"
    yield (
        "`excess`: the least relative excess of a baseline's objective over the "
        "optimum, over the weights of the sweep (of an inductive explanation: under "
        "its own weights). `saved`: the share of its "
        "faithfulness loss that the optimum saves without being worse in another loss."
    )
    for result in report.results:
        yield from _distances(result)
    yield from _warnings(report)


def _state(report: FigureReport) -> Iterator[str]:
    seconds = sum(result.seconds for result in report.results)
    yield (
        f"{len(report.results)} panels, {report.seconds:.0f} s "
        f"({seconds:.0f} s summed over panels)."
    )
    if not report.complete:
        yield (
            f"**Interrupted**: {len(report.results)} of {len(report.figure.panels)} "
            "panels are here."
        )


def _distances(result: Result) -> Iterator[str]:
    yield f"### {result.panel.title}"
    table = result.distances
    losses = [str(c) for c in table if str(c).startswith("loss.")]
    shares = [name for name in ("excess", "saved") if name in table]
    head = ("method", *(c.removeprefix("loss.") for c in losses), *shares)
    rows = [
        (
            _method(row),
            *(_number(row[c]) for c in losses),
            *(_share(row[name]) for name in shares),
        )
        for _, row in table.iterrows()
    ]
    yield _table(head, rows)


_SETTINGS = {
    "scale": "δ",
    "units": "units",
    "rule": "rule",
    "own_gradients": "own gradients",
    "n_inducing": "inputs",
    "robustness": "robust",
    "smoothness": "smooth",
}


def _method(row: pd.Series) -> str:
    settings = [
        f"{label} = {row[f'parameter.{name}']}"
        for name, label in _SETTINGS.items()
        if f"parameter.{name}" in row and not pd.isna(row[f"parameter.{name}"])
    ]
    return ", ".join([row["method"], *settings])


def _warnings(report: FigureReport) -> Iterator[str]:
    found = [(r.panel.title, w) for r in report.results for w in r.warnings]
    if found:
        yield "## Warnings"
        yield "\n".join(f"- {title}: {text}" for title, text in found)


def _index(reports: Sequence[FigureReport]) -> Iterator[str]:
    yield "# The paper's figures, made anew"
    total = sum(len(report.findings) for report in reports)
    failed = sum(report.n_failed for report in reports)
    seconds = sum(report.seconds for report in reports)
    yield (
        f"{total - failed} of {total} findings PASS, {failed} FAIL, in {seconds:.0f} "
        "s. A statement is checked in every panel of its figure; its row has the "
        "narrowest finding. All findings stand in `statements.csv`."
    )
    rows = [
        (
            f"[{r.name}]({r.name}.md)",
            r.figure.title + ("" if r.complete else " (interrupted)"),
            str(len(r.results)),
            f"{len(r.findings) - r.n_failed} of {len(r.findings)}",
            f"{r.seconds:.0f}",
        )
        for r in reports
    ]
    yield _table(("figure", "", "panels", "PASS", "seconds"), rows)
    for report in reports:
        yield f"## {report.name}: {report.figure.title}"
        yield f"![{report.figure.title}]({report.name}.svg)"
        yield _table(_STATEMENT_HEAD, map(_statement_row, report.statements()))


_STATEMENT_HEAD = ("statement", "", "measured", "has to be", "panels", "narrowest in")


def _statement_row(entry: tuple[str, Finding, int]) -> tuple[str, ...]:
    title, finding, count = entry
    where = f"{title} ({finding.note})" if finding.note else title
    return (
        finding.statement,
        finding.verdict,
        _number(finding.value),
        finding.condition,
        str(count),
        where,
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _share(value: float) -> str:
    """Percent, with digits left where that is very little."""
    return f"{value:.2%}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"


def _number(value: float) -> str:
    return f"{value + 0.0:.4g}"  # no −0


def _write(path: Path, paragraphs: Iterable[str]) -> None:
    with written_whole(path) as draft:
        draft.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")


def _write_svg(drawing: Figure, path: Path, name: str) -> None:
    with (
        rc_context({"svg.hashsalt": name}),  # the same run, the same file
        written_whole(path) as draft,
    ):
        drawing.savefig(draft, format="svg", metadata={"Date": None})
