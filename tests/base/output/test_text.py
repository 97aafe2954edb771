"""Names are text: on terminals, in pictures, on pages."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from rich.table import Table

import propopt as po
from papers.__main__ import main as reproduce
from propopt.base.terminal import PlainConsole, progress_bar
from propopt.base.text import drawn, in_html, printable, printable_lines
from propopt.cli import main


NASTY = "a\x1b[31m\x9b2J\x07\r\n\u202eb\udcff\ufffe [bold]:smile: $x$ <b>*&|`_"
SAFE = r"a\x1b[31m\x9b2J\x07\r\n\u202eb\udcff\ufffe"
ACTING = ["\x1b", "\x9b", "\x07", "\r", "\u202e", "\udcff", "\ufffe"]


def assert_harmless(text):
    assert not [sign for sign in ACTING if sign in text]


@pytest.mark.parametrize(
    "name", ["plain", "größe × μ", "価格", "a b", "👩\u200d🔬", ""]
)
def test_ordinary_names_stay_as_they_are(name):
    for shown in (printable, printable_lines, drawn, in_html):
        assert shown(name) == name


def test_what_acts_becomes_visible():
    assert printable(NASTY).startswith(SAFE)
    assert printable_lines("one\ntwo\x00") == "one\ntwo\\x00"


def test_every_control_character_is_caught():
    controls = [chr(n) for n in (*range(32), *range(0x7F, 0xA0))]
    assert not [c for c in controls if c in printable(c)]


def test_markup_of_pages_is_text():
    assert in_html("<script>&\x1b") == "&lt;script&gt;&amp;\\x1b"


# ---- terminals


def terminal(monkeypatch):
    """Standard output and error that take themselves for a terminal."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")  # colours and cursor would be escapes of rich's
    return stream


def test_console_prints_names_as_text(monkeypatch):
    stream = terminal(monkeypatch)
    console = PlainConsole()
    console.print(NASTY)
    table = Table(NASTY)
    table.add_row(NASTY)
    console.print(table, width=1_000)
    shown = stream.getvalue()
    assert_harmless(shown.replace("\n", ""))
    assert shown.count("[bold]:smile: $x$") == 3


def test_status_and_bars_print_names_as_text(monkeypatch):
    status = PlainConsole().status(NASTY)
    assert status.status.plain == printable(NASTY)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "200")
    with progress_bar(NASTY, 1, wanted=True):
        pass
    shown = stream.getvalue()
    assert_harmless(shown.replace("\n", ""))
    assert "[bold]:smile:" in shown


def test_names_in_complaints_are_text(tmp_path, capsys):
    table = tmp_path / "table.csv"
    pd.DataFrame([[1, 2]], columns=["a\x1b[31m[bold]", "b"]).to_csv(table, index=False)
    arguments = ["tables", "--csv", str(table), "--target", "y"]
    assert reproduce([*arguments, "-o", str(tmp_path / "out")]) == 2
    assert r"it has a\x1b[31m[bold], b" in capsys.readouterr().err


def test_names_of_files_are_text(tmp_path, capsys):
    assert main(["check", str(tmp_path / "a\x1b[31m\n.yaml")]) == 2
    assert_harmless(capsys.readouterr().err)
    good = tmp_path / "b\x1b[31m.yaml"
    good.write_text(
        "data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}}\n"
        "function: {name: sine}\nobjective: {gradient_matching: 1}\n"
    )
    assert main(["check", str(good)]) == 0
    assert main(["sweep", str(good), "-o", str(tmp_path / "o\x1b[1m")]) == 0
    assert_harmless("".join(capsys.readouterr()))


def test_arguments_that_are_refused_are_text(capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "a.yaml", "--\x1b[31m"])
    assert_harmless(capsys.readouterr().err)


# ---- pictures and pages


@pytest.fixture
def explanation():
    names = [NASTY.replace("\udcff", ""), "$b$", "c"]  # tables are Unicode
    labels = po.GradientMatching(pd.DataFrame(np.eye(3), columns=names)).labels
    return po.Explanation(attributions=np.eye(3), method=names[0], labels=labels)


def svg_of(axes):
    """The text that stands in an SVG, which is well-formed XML."""
    written = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        axes.figure.savefig(written, format="svg")
    root = ElementTree.fromstring(written.getvalue())
    return "\n".join(root.itertext())


@pytest.mark.parametrize("plot", ["row", "heatmap", "comparison", "agreement"])
def test_pictures_show_names_as_text(explanation, plot):
    axes = Figure().subplots()
    if plot == "row":
        po.plots.plot_row(explanation, 0, ax=axes)
    elif plot == "heatmap":
        po.plots.plot_heatmap(explanation, ax=axes)
    elif plot == "comparison":
        other = po.Explanation(
            attributions=np.eye(3), method="other", labels=explanation.labels
        )
        po.plots.plot_comparison(explanation, other, ax=axes)
    else:
        po.plots.plot_agreement([explanation], po.chain_graph(3), ax=axes)
    shown = svg_of(axes)
    assert_harmless(shown)
    assert "[bold]:smile: $x$ <b>*&|`_" in shown
    assert plot == "agreement" or "$b$" in shown


def test_trade_offs_show_names_as_text(explanation):
    objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
    curve = po.sweep(objective, {"sparsity": [0.1]}, [explanation])
    shown = svg_of(curve.plot(ax=Figure().subplots()))
    assert_harmless(shown)
    assert "[bold]:smile: $x$" in shown


def test_maps_of_images_show_names_as_text(explanation):
    shape = po.ImageShape(channels=1, height=1, width=3)
    grid = po.plots.plot_image_maps([explanation], shape, axes=Figure().subplots(3))
    assert "[bold]:smile: $x$" in svg_of(grid[0, 0])


def test_notebooks_show_names_as_text(explanation):
    page = explanation._repr_html_()
    assert_harmless(page)
    assert "<b>*" not in page
    assert_harmless(repr(explanation))
