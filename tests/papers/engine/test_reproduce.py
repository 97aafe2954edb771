"""``python -m papers``: what is run, found, written, told, and held against records."""

import dataclasses
import re
import warnings
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refusals
from reproduction import FILE, figure, panel, paper

from papers import PAPERS, read_choices
from papers.__main__ import main
from papers.engine import (
    Claim,
    Invariant,
    Misprint,
    Paper,
    Refuted,
    Study,
    reproduce_paper,
)
from papers.engine import statements as everywhere
from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel
from papers.engine.studies import draw_charts, no_numbers
from papers.engine.tally import Conclusion, Drift, FigureReport, Tally
from papers.properties.own_table import panel_of_table
from papers.properties.paper import PROPERTIES
from propopt.base.errors import InvalidInput


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def reproduce(monkeypatch):
    """The exit code, and the first page, of a figure that is called tiny."""

    def made(folder, own, *options, **recorded):
        monkeypatch.setitem(PAPERS, "small", paper(own, **recorded))
        arguments = ["tiny", "--paper", "small", "--output", str(folder)]
        code, page = main([*arguments, *options]), folder / "README.md"
        return code, page.read_text(encoding="utf-8") if page.exists() else None

    return made


@dataclasses.dataclass(frozen=True)
class Dot:
    title: str

    def draw(self, axes):
        axes.plot([0.0], [1.0], "o")


def two():
    warnings.warn("mind this", stacklevel=1)
    return 2.0


def is_two(value):
    return Invariant(statement="it is two", value=abs(value - 2), sense="<=", limit=0)


def is_large(value):
    return Claim(statement="it is large", value=value, sense=">=", limit=10.0)


def study(**changes):
    settings = {
        "column": "a number",
        "measure": two,
        "charts": lambda n: [Dot(f"dot {k}: $5") for k in range(int(n) + 1)],
        "numbers": lambda n: pd.DataFrame({"name": ["a|b"], "number": [n / 3]}),
        "statements": (is_two, is_large),
    }
    return Study(**settings | changes)


# ---- findings: verdicts and counts


def claim(value=1.0, *, statement="it falls", **settings):
    """Holds for values up to one."""
    return Claim(statement=statement, value=value, sense="<=", limit=1.0, **settings)


def invariant(value=1.0, statement="no gap"):
    return Invariant(statement=statement, value=value, sense="<=", limit=1.0)


@pytest.mark.parametrize("kind", [Invariant, Claim])
@pytest.mark.parametrize(
    ("value", "sense", "limit", "holds"),
    [
        (1.0, "<=", 1.0, True),
        (1.0, "<=", 0.999, False),
        (1.0, ">=", 1.0, True),
        (1.0, ">=", 1.001, False),
        (np.nan, "<=", 0.0, False),
        (np.nan, ">=", 0.0, False),
    ],
)
def test_a_finding_holds_on_its_side_of_the_limit(kind, value, sense, limit, holds):
    result = kind(statement="s", value=value, sense=sense, limit=limit)
    assert result.holds is holds
    assert bool(result.margin >= 0) is holds


DIFFERS = {"difference": "few points"}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (invariant(1.0), "PASS"),
        (invariant(1.001), "FAIL"),
        (claim(1.0), "confirmed"),
        (claim(1.001), "refuted"),
        (claim(1.0, if_false=Misprint("it rises")), "confirmed"),
        (claim(1.001, if_false=Misprint("it rises")), "misprint"),
        (claim(1.001, if_false=Refuted("of x it does not")), "refuted"),
        (claim(1.001, **DIFFERS), "not tested"),
        (claim(0.5, between=(0.1, 1.0)), "confirmed"),
        (claim(0.5, between=(0.1, 1.0), **DIFFERS), "not tested"),
        (claim(0.5, between=(0.1, 1.001)), "not tested"),
        (claim(1.5, between=(1.0, 2.0)), "not tested"),
        (claim(1.5, between=(1.001, 2.0)), "refuted"),
    ],
)
def test_verdicts(found, verdict):
    assert str(found.verdict) == verdict


FALSE = {"if_false": Refuted("of x it does not")}


@pytest.mark.parametrize(
    ("found", "verdict", "reason"),
    [
        ([claim(1.0), claim(1.0)], "confirmed", ""),
        ([claim(1.0), claim(2.0)], "in part", "holds: panel 0. Not: panel 1"),
        ([claim(1.0), claim(2.0, **FALSE)], "refuted", "of x it does not"),
        ([claim(2.0), claim(2.0)], "refuted", ""),
        ([claim(1.0, **FALSE), claim(1.0)], "confirmed", ""),
        ([claim(2.0, if_false=Misprint("rises"))], "misprint", "rises"),
        (
            [claim(1.0, choice="signed"), claim(2.0, choice="in size")],
            "depends on a choice",
            "signed: holds (1); in size: does not hold (2)",
        ),
        ([claim(1.0, choice="signed"), claim(1.0, choice="in size")], "confirmed", ""),
        (
            [claim(2.0, choice="a", **FALSE), claim(3.0, choice="b")],
            "refuted",
            "of x it does not",
        ),
        ([claim(0.9), claim(0.5, between=(0, 2))], "not tested", "too few repetitions"),
        ([claim(1.0, **DIFFERS), claim(2.0, **DIFFERS)], "not tested", "few points"),
    ],
)
def test_what_follows_from_all_panels(found, verdict, reason):
    titled = tuple((f"panel {k}", one) for k, one in enumerate(found))
    conclusion = Conclusion("tiny", titled)
    assert (str(conclusion.verdict), conclusion.reason) == (verdict, reason)


@pytest.fixture
def found(reproduce, tmp_path):
    """The exit code, and the first page, of a figure with one panel for each."""

    def made(*findings, options=(), recorded=()):
        panels = [
            study(column=f"panel {k}", statements=(lambda _, f=result: f,))
            for k, result in enumerate(findings)
        ]
        record = tmp_path / f"recorded {len(recorded) and recorded[0][3]}.csv"
        columns = ["figure", "statement", "difference", "verdict", "panels", "holding"]
        pd.DataFrame(recorded, columns=columns).to_csv(record, index=False)
        made = PaperFigure(title="A", about="B", panels=panels, draw=lambda _: Figure())
        return reproduce(tmp_path, made, *options, recorded=record)

    return made


def test_a_statement_has_to_hold_in_every_panel_of_a_set_up(found, tmp_path):
    results = claim(0.5), claim(1.001), claim(0.9), invariant(0.9), invariant(0.2)
    _, page = found(*results, claim(0.6, **DIFFERS))
    assert "| 1.001 | <= 1 | 2 of 3 | panel 1 |" in page
    assert "| no gap | PASS | 0.9 | <= 1 | 2 of 2 | panel 3 |" in page
    table = pd.read_csv(tmp_path / "claims.csv", keep_default_na=False)
    assert table["difference"].tolist() == ["", "few points"]
    assert table["verdict"].tolist() == ["in part", "not tested"]
    assert table["reason"].tolist() == [
        "holds: panel 0; panel 2. Not: panel 1",
        "few points",
    ]


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_a_verdict_that_is_not_the_one_on_record_is_visible(options, found, capsys):
    recorded = [("tiny", "it falls", "", "confirmed", 1, 1)]
    code, page = found(claim(2.0), options=options, recorded=recorded)
    assert code == 0
    assert "1 not as on record." in page.splitlines()[2]
    assert "- tiny: it falls: **refuted** (on record: confirmed, 1 of 1)" in page
    told = "it falls: refuted, 0 of 1, on record: confirmed, 1 of 1"
    assert (told in capsys.readouterr().out) is (not options)
    recorded = [("tiny", "it falls", "", "refuted", 1, 0)]
    _, page = found(claim(2.0), options=options, recorded=recorded)
    assert "on record" not in page + capsys.readouterr().out


def test_a_figure_that_is_not_complete_changes_no_verdict(file):
    one = panel(file, lambda _: claim(2.0))
    settings = {"results": (one.run(),), "seconds": 0.0, "name": "tiny"}
    report = FigureReport(figure=figure(one, one), **settings)
    assert Tally.of([report]).n_changed == 0
    # panels that are not on record are held against nothing
    values = {("tiny", "another panel", "lime", "excess"): 1.0}
    report = FigureReport(figure=figure(one), values=values, **settings)
    assert report.measured
    assert report.drifted == []


# ---- values on record


@pytest.mark.parametrize(
    ("quantity", "recorded", "least_that_differs"),
    [
        ("loss.gradient_matching", 1000.0, 0.51),  # half a unit of the fourth digit
        ("excess", 0.5, 0.0016),  # (1 + e) times twice that
        ("saved", 0.5, 0.011),  # the width of an enclosure
        ("measured", 3.0, 0.031),
        ("limit", 3.0, 0.0016),  # of a study
        ("limit", 0.0, 1.1e-7),
        ("loss.gradient_matching", 0.0, 1e-300),
    ],
)
def test_values_agree_within_what_is_known(quantity, recorded, least_that_differs):
    def within(value):
        return Drift("tiny", "panel", "lime", quantity, value, recorded).within

    assert within(recorded)
    assert within(recorded + 0.9 * least_that_differs) or recorded == 0.0
    for off in (least_that_differs, -least_that_differs, np.nan, np.inf):
        assert not within(recorded + off)


# ---- what is run and written


CERTIFIED = everywhere.certified


def stop(solved):
    del solved
    raise KeyboardInterrupt


def failing(solved):
    del solved
    return Invariant(statement="one is more than | two", value=1, sense=">=", limit=2)


def warning(solved):
    warnings.warn("mind this", stacklevel=1)
    return CERTIFIED(solved)


def test_a_figure_whose_statements_hold(reproduce, file, tmp_path, capsys):
    made = figure(panel(file, *everywhere.EVERYWHERE), panel(file, column="again"))
    code, readme = reproduce(tmp_path / "out", made)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    tables = {"claims.csv", "statements.csv", "values.csv"}
    assert (code, written) == (0, {"README.md", "tiny.md", "tiny.svg", *tables})
    page = (tmp_path / "out" / "tiny.md").read_text(encoding="utf-8")
    assert "# tiny: A figure" in page
    assert "| smoothgrad, δ = 0.5 |" in page
    _, totals = page.split("## Lowest total loss of each method")
    lowest = re.findall(r"([\d.e+-]+) \(δ = (0\.5|1\.0|2\.0)\)", totals)
    assert len(lowest) == 2 * 3 * 2  # methods, weights and panels
    assert all(float(excess) > 0.0 for excess, _ in lowest)
    assert "FAIL" not in page
    told = "Checks of ours: 4 of 4 PASS, 0 FAIL."
    assert told in readme
    assert told in capsys.readouterr().out
    ElementTree.parse(tmp_path / "out" / "tiny.svg")


def test_a_statement_that_fails_is_told_everywhere(reproduce, file, tmp_path, capsys):
    code, readme = reproduce(tmp_path, figure(panel(file, warning, failing)))
    assert code == 4
    assert "FAIL: one is more than | two: 1, expected >= 2" in capsys.readouterr().out
    page = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    row = "| one is more than \\| two | FAIL | 1 | >= 2 | 0 of 1 | x³, D = 1 |"
    assert row in page
    assert row in readme
    assert "- x³, D = 1: mind this" in page
    table = pd.read_csv(tmp_path / "statements.csv")
    assert table["verdict"].tolist() == ["PASS", "FAIL"]


def test_an_interrupted_run_keeps_what_is_done(reproduce, file, tmp_path, capsys):
    made = figure(panel(file, CERTIFIED), panel(file, stop, column="second"))
    code, readme = reproduce(tmp_path, made)
    assert code == 130
    assert "interrupted" in capsys.readouterr().out
    page = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "**Interrupted**: 1 of 2 panels" in page
    assert "every optimum is certified" in readme
    assert reproduce(tmp_path / "none", figure(panel(file, stop))) == (130, None)
    assert "written files are complete" in capsys.readouterr().err


# ---- studies: what is measured, told and drawn where a panel is no sweep


def of_study(folder, **changes):
    one, draw = study(**changes), draw_charts
    made = PaperFigure(title="A", about="B.", panels=(one,), draw=draw)
    small = Paper(name="small", title="A paper", figures={"tiny": lambda: made})
    report = reproduce_paper(small, ["all"], folder, quiet=True)
    return report, (folder / "tiny.md").read_text(encoding="utf-8")


def test_a_study_is_run_told_and_drawn(tmp_path):
    report, page = of_study(tmp_path)
    assert report.to_frame()["verdict"].tolist() == ["PASS", "refuted"]
    for told in ("## Numbers", "0.6667 |", "- a number: mind this"):
        assert told in page
    assert "Distances of the baselines" not in page
    ElementTree.parse(tmp_path / "tiny.svg")
    report, page = of_study(tmp_path, numbers=no_numbers, measure=partial(float, 3))
    assert "## Numbers" not in page
    assert report.n_failed == 1
    drawing = draw_charts([study().run()], size=(2.0, 1.0), columns=2)
    assert [axes.get_visible() for axes in drawing.axes] == [True, True, True, False]
    assert tuple(drawing.get_size_inches()) == (4.0, 2.0)


# ---- which paper, and which figures


def test_several_papers_stand_one_after_another():
    names = ["tabular-lime", "linear-lime", "fig2", "fig3", "properties"]
    several = {"tabular-lime": ("all",), "linear-lime": ("fig2", "fig3")}
    for own, expected in [
        (names, {**several, "properties": ("all",)}),
        (["fig1", "linear-lime"], {"properties": ("fig1",), "linear-lime": ("all",)}),
    ]:
        chosen = [(one.name, figures) for one, figures in read_choices(own)]
        assert chosen == list(expected.items())


OF_USERS = ["--csv", "t.csv", "--target", "y"]


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "arguments"))
def test_bad_arguments_are_refused(line, message, tmp_path, capsys, monkeypatch):
    arguments = eval(line)
    monkeypatch.setattr(Panel, "run", None)
    assert main([*arguments, "-o", str(tmp_path / "made")]) == 2
    told = capsys.readouterr().err
    assert any(part in told for part in message.split("|"))
    assert not list(tmp_path.glob("made/*"))
    assert {"--csv", "--target"} & {*arguments} or not (tmp_path / "made").exists()


def test_papers_that_cannot_be_made_are_refused(file, tmp_path):
    one = paper(figure(panel(file, CERTIFIED)))
    for made, folder, settings, words in [
        (PROPERTIES, file / "below", {}, "cannot make the folder"),
        (PROPERTIES, tmp_path, {"n_jobs": 0}, "n_jobs"),
        (one, tmp_path, {"csv": "t.csv", "target": "y"}, "small takes no table"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            reproduce_paper(made, ["all"], folder, quiet=True, **settings)
    report = reproduce_paper(one, ["all"], tmp_path, quiet=True)  # without a registry
    assert report.to_frame()["figure"].tolist() == ["tiny"]
    assert report.n_failed == 0


# ---- a table of the user's beside the paper's


def written(folder, name, **columns):
    path = folder / name
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_text_columns_of_a_table_of_ones_own_are_categories(tmp_path, rng):
    # enough rows for a network that is not constant
    age, plan = rng.normal(size=300), np.array(list("abc") * 100)
    csv = written(tmp_path, "customers.csv", age=age, plan=plan, y=age + (plan == "a"))
    problem = panel_of_table(csv, "y", None).problem
    assert problem.schema.data.categorical == ["plan"]
    built = problem.build()
    assert list(built.function.gradient(built.points)) == ["age", "plan"]
