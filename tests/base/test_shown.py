"""Names are text: on terminals, in pictures, on pages; shades and words are read."""

import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from odd_texts import ODD_TEXTS
from reproduction import FILE
from rich.table import Table

import propopt as po
from propopt.base.cards import BAR_LOWERS, BAR_RAISES
from propopt.base.document import share_text
from propopt.base.files import escape_cell, write_svg
from propopt.base.html import (
    DARK,
    LIGHT,
    MarkedText,
    highlighted,
    levels,
    signed,
    style_of,
    style_sheet,
    visible,
)
from propopt.base.resources import format_bytes
from propopt.base.terminal import PlainConsole, progress_bar
from propopt.base.text import (
    in_html,
    matplotlib_text,
    plural,
    printable,
    printable_lines,
)
from propopt.cli import main
from propopt.functions.cost import in_time
from propopt.interactions.scores import level_in_words, two_digits_up
from propopt.lime.laws.binned_columns import interval_words


NASTY = "a\x1b[31m\x9b2J\x07\r\n\u202eb\udcff\ufffe [bold]:smile: $x$ <b>*&|`_"
SAFE = r"a\x1b[31m\x9b2J\x07\r\n\u202eb\udcff\ufffe"
ACTING = ["\x1b", "\x9b", "\x07", "\r", "\u202e", "\udcff", "\ufffe"]


def assert_harmless(text):
    assert not [sign for sign in ACTING if sign in text]


def test_what_acts_becomes_visible_and_nothing_else():
    for name in ("plain", "größe × μ", "価格", "a b", "👩\u200d🔬", ""):
        for shown in (printable, printable_lines, matplotlib_text, in_html):
            assert shown(name) == name
    assert printable(NASTY).startswith(SAFE)
    assert printable_lines("one\ntwo\x00") == "one\ntwo\\x00"
    assert in_html("<script>&\x1b") == "&lt;script&gt;&amp;\\x1b"
    controls = [chr(n) for n in (*range(32), *range(0x7F, 0xA0))]
    assert not [c for c in controls if c in printable(c)]
    assert visible("\n\t") == "\n\t"
    assert visible("a\u202eb") == (
        'a<span style="border:1px dotted" title="U+202E RIGHT-TO-LEFT OVERRIDE">'
        "\\u202e</span>b"
    )


# ---- terminals
def test_consoles_print_names_as_text(monkeypatch):
    """Standard output and error take themselves for a terminal."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    for name in ("sys.stdout", "sys.stderr"):
        monkeypatch.setattr(name, stream)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")  # colours and cursor would be escapes of rich's
    console = PlainConsole()
    console.print(NASTY)
    table = Table(NASTY)
    table.add_row(NASTY)
    console.print(table, width=1_000)
    assert stream.getvalue().count("[bold]:smile: $x$") == 3
    assert console.status(NASTY).status.plain == printable(NASTY)
    monkeypatch.setattr(stream, "isatty", lambda: False)
    with progress_bar(NASTY, 1, wanted=True):
        pass
    shown = stream.getvalue()
    assert_harmless(shown.replace("\n", ""))
    assert shown.count("[bold]:smile:") == 4


def test_names_of_files_and_arguments_are_text(tmp_path, capsys):
    assert main(["check", str(tmp_path / "a\x1b[31m\n.yaml")]) == 2
    good = tmp_path / "b\x1b[31m.yaml"
    good.write_text(FILE)
    assert main(["check", str(good)]) == 0
    assert main(["sweep", str(good), "-o", str(tmp_path / "o\x1b[1m")]) == 0
    with pytest.raises(SystemExit):
        main(["sweep", "a.yaml", "--\x1b[31m"])
    assert_harmless("".join(capsys.readouterr()))


# ---- pictures and pages
@pytest.fixture
def explanation():
    names = [NASTY.replace("\udcff", ""), "$b$", "c"]  # tables are Unicode
    labels = po.GradientMatching(pd.DataFrame(np.eye(3), columns=names)).labels
    return po.results.Explanation(
        attributions=np.eye(3), method=names[0], labels=labels
    )


def svg_of(axes):
    """The text that stands in an SVG, which is well-formed XML."""
    written = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        axes.figure.savefig(written, format="svg")
    root = ElementTree.fromstring(written.getvalue())
    return "\n".join(root.itertext())


def trade_offs(explanation, axes):
    objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
    po.sweep(objective, {"sparsity": [0.1]}, [explanation]).plot(ax=axes)


def image_maps(explanation, axes):
    shape = po.functions.ImageShape(channels=1, height=1, width=3)
    explanation.plot.images(shape, ax=axes)


PLOTS = {
    "row": lambda e, ax: e.plot.waterfall(0, ax=ax),
    "trade-offs": trade_offs,
    "maps": image_maps,
}


@pytest.mark.parametrize("name", PLOTS)
def test_pictures_show_names_as_text(explanation, name):
    axes = Figure().subplots()
    PLOTS[name](explanation, axes)
    shown = svg_of(axes)
    assert_harmless(shown)
    assert "$x$" in shown


def drawing(height=1.0):
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, height])
    axes.set_title("a title")
    return figure


def test_a_picture_is_one_file_whatever_the_settings_of_the_user(tmp_path):
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    write_svg(drawing(), one, salt="tiny")
    with mpl.rc_context({"svg.hashsalt": "mine"}):
        write_svg(drawing(), two, salt="tiny")
        assert mpl.rcParams["svg.hashsalt"] == "mine"
    ElementTree.parse(one)
    before = one.read_bytes()
    assert before == two.read_bytes()
    assert b"<dc:date>" not in before
    write_svg(drawing(1.001), two, salt="tiny")
    assert before != two.read_bytes()
    broken = drawing()
    broken.axes[0].set_title("$\\nothing$")
    with pytest.raises(ValueError, match="nothing"):
        write_svg(broken, one, salt="tiny")
    assert one.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [one, two]


# ---- shades: contrast, and colours that stay apart
THEMES = {"light": LIGHT, "dark": DARK}


def luminance(colour: str) -> float:
    """Of WCAG 2."""
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    low, high = channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    return float(np.where(channels <= 0.04045, low, high) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_ink_is_read_on_every_shade_and_larger_numbers_are_further_away(name):
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)  # of the standard
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    theme = THEMES[name]
    for sign in "ab":
        shades = [theme[f"--po-{sign}{level}"] for level in range(1, 6)]
        assert min(contrast(theme["--po-ink"], shade) for shade in shades) >= 4.5
        steps = np.diff([luminance(shade) for shade in shades])
        assert (steps * (-1.0 if name == "light" else 1.0) > 0.0).all()


@pytest.mark.parametrize("colour", [BAR_RAISES, BAR_LOWERS])
def test_bars_have_the_contrast_of_graphics_on_light_and_dark_pages(colour):
    for page in ("#ffffff", "#f7f7f7", "#111418", "#1e1e1e", "#000000"):
        assert contrast(colour, page) >= 3.0  # WCAG 2.2, 1.4.11


def test_shades_begin_at_their_edges_and_signs_are_told_by_lines_too():
    values = np.array([0.05, 0.051, 0.2, 0.21, -0.41, 0.8, -1.0, np.nan, 0.0])
    result = levels(values, 1.0).tolist()
    assert result == [0, 1, 1, 2, -3, 4, -5, 0, 0]
    assert levels(2.0 * values[:-2], 2.0).tolist() == result[:-2]
    assert levels(np.zeros(3), 0.0).tolist() == [0, 0, 0]
    assert "solid" in style_of(3)
    assert "dotted" in style_of(-3)
    assert style_of(0) == ""
    assert [signed(x) for x in (1e-9, -2.0, 0.0, np.nan)] == ["+1e-09", "−2", "0", "–"]
    sheet = style_sheet("x")  # both themes, and what pages say
    assert sheet.count(DARK["--po-a5"]) == sheet.count(LIGHT["--po-a5"]) == 2
    for said in ("prefers-color-scheme:dark", 'jp-theme-light="false"', "vscode-dark"):
        assert said in sheet


# ---- highlighted texts
class Reader(HTMLParser):
    """What a browser would take from a page: tags, styles and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def marked(text: str, weights: dict[str, float], errors=None) -> MarkedText:
    words = tuple(weights)
    spans = sorted(
        (result.start(), result.end(), position)
        for position, word in enumerate(words)
        for result in re.finditer(re.escape(word), text)
    )
    return MarkedText(
        "one", (), text, spans, words, np.array(list(weights.values())), errors
    )


def shown(html: str) -> dict[str, str]:
    """Words that have a shade, and their titles."""
    pairs = re.findall(
        r'<span style="background[^"]*" title="([^"]*)">(.*?)</span>', html
    )
    return {word: number for number, word in pairs}


def test_words_are_shaded_on_one_scale_and_those_of_no_known_sign_plain():
    texts = [
        marked("good and bad", {"good": 1.0, "and": 0.0, "bad": -0.3}),
        marked("so good", {"so": 0.04, "good": 0.5}),
    ]
    html = highlighted(texts, "title", "units").html
    read(html)
    _, first, second = html.split("one</b>")
    assert shown(first) == {"good": "+1", "bad": "−0.3"}
    assert shown(second) == {"good": "+0.5"}
    assert f"--po-a5,{LIGHT['--po-a5']}" in first
    assert f"--po-a3,{LIGHT['--po-a3']}" in second
    text = marked("good bad", {"good": 1.0, "bad": -0.9}, np.array([0.1, 0.46]))
    html = highlighted([text], "title", "units").html
    assert shown(html.split("one</b>")[1]) == {"good": "+1"}
    for said in ("within 2 standard errors of 0", "<td", "0.46"):
        assert said in html
    empty = MarkedText("none", ("why",), "", (), (), np.empty(0))
    html = highlighted([empty, marked("good", {"good": np.nan})], "title", "units").html
    read(html)
    assert "no word has a number" in html
    assert shown(html) == {}


def test_the_table_has_the_numbers_in_words():
    weights = {f"w{j}": j / 10 for j in range(12)}
    text = marked(" ".join(weights) + " w3", weights)
    html = highlighted([text], "title", "units", n_words=3).html
    table = read(html[html.index("<table") : html.index("</table>") + 8])
    known = "word times number w11 1 +1.1 w10 1 +1 w9 1 +0.9 | 9 others | at most 0.8"
    assert " ".join(table.text) == known.replace("| ", "")
    scopes = [attrs.get("scope") for tag, attrs in table.seen if tag == "th"]
    assert scopes == ["col"] * 3 + ["row"] * 3


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_texts_are_shown_and_do_nothing(text):
    words = dict.fromkeys(re.findall(r"\w+", text), 1.0)
    title = text.replace("\u00ad", "").replace("\u200b", "")
    html = highlighted([marked(text, words)], title, title, [title]).html
    reader = read(html)
    tags = {tag for tag, _ in reader.seen}
    assert tags <= {"style", "div", "b", "br", "span", "table", "tr", "th", "td", "bdi"}
    attributes = {name for _, attrs in reader.seen for name in attrs}
    assert attributes <= {"class", "style", "dir", "title", "aria-label", "scope"}
    html.encode()
    seen = "".join(reader.text)
    acts = re.compile(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    )
    assert not acts.search(seen)
    assert not acts.search(html)


def test_direction_is_that_of_the_text_and_a_page_is_whole(tmp_path):
    html = highlighted([marked("שלום good", {"שלום": 1.0})], "t", "u").html
    directions = [attrs.get("dir") for tag, attrs in read(html).seen if tag == "div"]
    assert directions.count("auto") == 1
    assert "<bdi>שלום</bdi>" in html
    # within <bdi> letters do not count for the direction of the whole
    assert "<bdi" not in html[html.index('dir="auto"') : html.index("<table")]
    result = highlighted([marked("good", {"good": 1.0})], "a <title>", "units")
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == result.page()
    assert "default-src 'none'" in page
    assert "<title>a &lt;title&gt;</title>" in page
    assert "http" not in page.replace("http-equiv", "")  # loads nothing
    assert result._repr_html_() == result.html


# ---- numbers and names in words
@pytest.mark.parametrize(
    ("words", "values", "expected"),
    [
        (
            share_text,
            (0.01234, 1.784, 1e-17, -3.63e-7, 0.9969, 1.0, np.nan),
            ("1.2%", "178%", "0%", "−0.000036%", "99.6%", "100%", ""),
        ),
        (level_in_words, (0.9, 0.995), ("90%", "99.5%")),
        (two_digits_up, (7.2, 12_340.0, 99_001.0), (8, 13_000, 100_000)),
        (format_bytes, (2**31, 1.5 * 2**20, 0), ("2.0 GiB", "1.5 MiB", "0 bytes")),
        (
            in_time,
            (0.3, 24.4, 200.0, 10_000.0, 400_000.0),
            ("0.3 s", "24 s", "3 min", "2.8 h", "4.6 days"),
        ),
        (
            escape_cell,
            ("=1+1", "age", "-1.5", -1.5, "\r=1+1", "a\n@b", "'=1", "a\n-1", "-1\n"),
            (
                "'=1+1",
                "age",
                "-1.5",
                -1.5,
                "'\r'=1+1",
                "a\n'@b",
                "''=1",
                "a\n'-1",
                "'-1\n",
            ),
        ),
        (lambda n: plural(n, "row"), (1, 1200), ("1 row", "1,200 rows")),
        (
            interval_words,
            (np.array([0.5, 2.0]), np.array([1.00001, 1.00002])),
            (
                ("≤ 0.5", "> 0.5 and ≤ 2", "> 2"),
                ("≤ 1.00001", "> 1.00001 and ≤ 1.00002", "> 1.00002"),
            ),
        ),
    ],
)
def test_numbers_and_names_in_words(words, values, expected):
    assert tuple(words(value) for value in values) == expected
