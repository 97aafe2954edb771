"""Figures of papers, computed: their verdicts are those on record."""

from io import BytesIO

from papers.engine.tally import FigureReport


def drawn_as_on_record(paper, name):
    """The panels of a figure, after all that is known of it was found again."""
    made, record, values = paper.figures[name](), paper.record, paper.values_on_record
    results = tuple(one.run() for one in made.panels)
    report = FigureReport(
        name=name,
        figure=made,
        results=results,
        seconds=0.0,
        record=record,
        values=values,
    )
    assert [f for _, f in report.findings if str(f.verdict) == "FAIL"] == []
    known = {key for key in record if key[0] == name}
    assert {(name, c.text, c.difference) for c in report.claims} == known
    assert report.changed == []
    assert [drift.in_words() for drift in report.drifted] == []
    picture = BytesIO()
    drawing = made.draw(results)
    drawing.set_layout_engine("none")  # half of the time, and no statement of these
    drawing.savefig(picture, format="svg")
    assert picture.tell() > 10_000
    return results
