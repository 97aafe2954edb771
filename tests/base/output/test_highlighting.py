"""Highlighted texts: contrast, colours that stay apart, and nothing that acts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

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


THEMES = {"light": LIGHT, "dark": DARK}


def shades_of(theme: dict[str, str], sign: str) -> list[str]:
    return [theme[f"--po-{sign}{level}"] for level in range(1, 6)]


def linear_rgb(colour: str) -> np.ndarray:
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    low = channels / 12.92
    return np.where(channels <= 0.04045, low, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    """Of WCAG 2."""
    return float(linear_rgb(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("name", THEMES)
def test_ink_is_read_on_every_shade(name):
    theme = THEMES[name]
    for shade in shades_of(theme, "a") + shades_of(theme, "b"):
        assert contrast(theme["--po-ink"], shade) >= 4.5, shade


@pytest.mark.parametrize("name", THEMES)
def test_larger_numbers_are_further_from_the_page_in_lightness(name):
    theme = THEMES[name]
    sign = -1.0 if name == "light" else 1.0
    for sign_of in "ab":
        shades = shades_of(theme, sign_of)
        steps = sign * np.diff([luminance(shade) for shade in shades])
        assert (steps > 0.0).all()


MACHADO = {  # of Machado, Oliveira and Fernandes (2009), severity 1
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(linear: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB, white D65."""
    matrix = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    t = np.array(matrix) @ np.clip(linear, 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", MACHADO)
@pytest.mark.parametrize("name", THEMES)
def test_signs_stay_apart_for_readers_who_do_not_see_all_colours(name, kind):
    """ΔE*ab of 10 is seen at a glance; the palest shades have 6 at least."""
    theme, simulated = THEMES[name], np.array(MACHADO[kind])
    pairs = zip(shades_of(theme, "a"), shades_of(theme, "b"), strict=True)
    apart = [
        np.linalg.norm(
            lab(simulated @ linear_rgb(one)) - lab(simulated @ linear_rgb(other))
        )
        for one, other in pairs
    ]
    assert min(apart) > 6.0
    assert min(apart[1:]) > 10.0


def test_shades_begin_at_their_edges():
    values = np.array([0.05, 0.051, 0.2, 0.21, -0.41, 0.8, -1.0, np.nan, 0.0])
    result = levels(values, 1.0).tolist()
    assert result == [0, 1, 1, 2, -3, 4, -5, 0, 0]
    assert levels(2.0 * values[:-2], 2.0).tolist() == result[:-2]
    assert levels(np.zeros(3), 0.0).tolist() == [0, 0, 0]


def test_signs_are_told_by_lines_too():
    assert "solid" in style_of(3)
    assert "dotted" in style_of(-3)
    assert style_of(0) == ""


def test_the_style_sheet_has_both_themes_and_heeds_what_pages_say():
    sheet = style_sheet("x")
    assert sheet.count(DARK["--po-a5"]) == 2
    assert sheet.count(LIGHT["--po-a5"]) == 2
    for said in ("prefers-color-scheme:dark", 'jp-theme-light="false"', "vscode-dark"):
        assert said in sheet


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
        (result.start(), result.end(), place)
        for place, word in enumerate(words)
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


def test_words_are_shaded_on_one_scale_and_small_ones_plain():
    texts = [
        marked("good and bad", {"good": 1.0, "and": 0.0, "bad": -0.3}),
        marked("so good", {"so": 0.04, "good": 0.5}),
    ]
    html = highlighted(texts, "title", "units").html
    read(html)
    assert shown(html.split("one</b>")[1]) == {"good": "+1", "bad": "−0.3"}
    assert shown(html.split("one</b>")[2]) == {"good": "+0.5"}
    assert f"--po-a5,{LIGHT['--po-a5']}" in html.split("one</b>")[1]
    assert f"--po-a3,{LIGHT['--po-a3']}" in html.split("one</b>")[2]


def test_words_whose_sign_is_not_known_are_plain():
    text = marked("good bad", {"good": 1.0, "bad": -0.9}, np.array([0.1, 0.46]))
    html = highlighted([text], "title", "units").html
    assert shown(html.split("one</b>")[1]) == {"good": "+1"}
    assert "within 2 standard errors of 0" in html
    assert "<td" in html
    assert "0.46" in html


def test_the_table_has_the_numbers_in_words():
    weights = {f"w{j}": j / 10 for j in range(12)}
    text = marked(" ".join(weights) + " w3", weights)
    html = highlighted([text], "title", "units", n_words=3).html
    table = read(html[html.index("<table") : html.index("</table>") + 8])
    known = "word times number w11 1 +1.1 w10 1 +1 w9 1 +0.9 | 9 others | at most 0.8"
    assert " ".join(table.text) == known.replace("| ", "")
    scopes = [attrs.get("scope") for tag, attrs in table.seen if tag == "th"]
    assert scopes == ["col"] * 3 + ["row"] * 3


NASTY = [
    "<script>alert('x')</script>",
    "\"><img src=x onerror=alert(1)> & &amp; '",
    "</span></div></style><b>",
    "\u202eevil\u2066 back\u2069",
    "nul\x00 bell\x07 escape\x1b[31m del\x7f",
    "soft\u00adhyphen zero\u200bwidth \ufeff",
    "half \ud800 of a pair",
    "family 👨‍👩‍👧 flag 🇩🇪 keeps together",
    "שלום good עולם",
    "line\r\nline\rline\nline\ttab",
]


@pytest.mark.parametrize("text", NASTY)
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


def test_what_acts_is_named():
    html = visible("a\u202eb")
    assert html == (
        'a<span style="border:1px dotted" title="U+202E RIGHT-TO-LEFT OVERRIDE">'
        "\\u202e</span>b"
    )
    assert visible("\n\t") == "\n\t"


def test_direction_is_that_of_the_text_and_words_in_tables_are_apart():
    html = highlighted([marked("שלום good", {"שלום": 1.0})], "t", "u").html
    directions = [attrs.get("dir") for tag, attrs in read(html).seen if tag == "div"]
    assert directions.count("auto") == 1
    assert "<bdi>שלום</bdi>" in html
    # within <bdi> letters do not count for the direction of the whole
    assert "<bdi" not in html[html.index('dir="auto"') : html.index("<table")]


def test_a_page_is_whole_and_loads_nothing(tmp_path):
    result = highlighted([marked("good", {"good": 1.0})], "a <title>", "units")
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == result.page()
    assert "default-src 'none'" in page
    assert "<title>a &lt;title&gt;</title>" in page
    assert "http" not in page.replace("http-equiv", "")
    assert result._repr_html_() == result.html


def test_a_text_without_words_or_numbers_is_shown():
    empty = MarkedText("none", ("why",), "", (), (), np.empty(0))
    unknown = marked("good", {"good": np.nan})
    html = highlighted([empty, unknown], "title", "units").html
    read(html)
    assert "no word has a number" in html
    assert shown(html) == {}


def test_numbers_have_signs():
    assert [signed(x) for x in (1e-9, -2.0, 0.0, np.nan)] == ["+1e-09", "−2", "0", "–"]
