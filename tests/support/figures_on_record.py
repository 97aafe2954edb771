"""Figures of papers, computed: their verdicts are those on record."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from papers.engine.paper import Paper
from papers.engine.tally import FigureReport


def drawn_as_on_record(paper: Paper, name: str) -> tuple[Any, ...]:
    """The panels of a figure, after all that is known of it was found again."""
    made, record = paper.figures[name](), paper.record
    results = tuple(one.run() for one in made.panels)
    report = FigureReport(
        name=name, figure=made, results=results, seconds=0.0, record=record
    )
    assert [f for _, f in report.findings if str(f.verdict) == "FAIL"] == []
    known = {key for key in record if key[0] == name}
    assert {(name, c.text, c.difference) for c in report.claims} == known
    assert report.changed == []
    picture = BytesIO()
    drawing = made.draw(results)
    drawing.set_layout_engine("none")  # half of the time, and no statement of these
    drawing.savefig(picture, format="svg")
    assert picture.tell() > 10_000
    return results
