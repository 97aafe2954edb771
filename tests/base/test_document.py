"""Every block of a document by every renderer: text, card and page."""

import re

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.cards import to_card, to_text
from propopt.base.document import (
    Chapter,
    Document,
    Fact,
    Facts,
    Markup,
    Span,
    Table,
    column_texts,
)
from propopt.base.errors import InvalidInput
from propopt.base.vocabulary import BASES, TERMS
from propopt.results.report.explorer import Explorer
from propopt.results.report.page import page_of


HOSTILE = "<b>$x$\x1b[31m"
SHOWN = "&lt;b&gt;$x$\\x1b[31m"

X = np.random.default_rng(0).normal(size=(6, 2))
ROBUST = po.PairwiseRobustness(po.graphs.gaussian_graph(X))
TARGET = pd.DataFrame(X**2, columns=[HOSTILE, "b"])
CURVE = po.sweep(po.GradientMatching(TARGET) + ROBUST, {ROBUST.name: [0.1, 1.0, 9.0]})


def explorer(result):
    blocks = [block for part in result.document().chapters() for block in part.blocks]
    return next(block for block in blocks if isinstance(block, Explorer))


BLOCKS = {
    "facts": Facts([Fact("base", -7.0, note=HOSTILE)]),
    "bars": Table(
        pd.DataFrame({"score": [-2.0, 1.0]}, index=[HOSTILE, "b"]),
        bars={"score": [Span.of(-2.0, (-3.0, -1.0)), Span.of(1.0)]},
    ),
    "table": Table(pd.DataFrame({"n": [7.25, 0.5]}, index=[HOSTILE, "b"]), "in euros"),
    "markup": Markup(f"<i>{SHOWN}</i>", HOSTILE),
    "pair": explorer(CURVE.optimized[1]),
    "curve": explorer(CURVE),
}
NUMBERS = {"facts": "−7", "bars": "−2", "table": "7.25"}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_renderer_shows_every_block_and_obeys_no_name(name):
    document = Document(title="Found", blocks=[BLOCKS[name]])
    text, card, page = to_text(document), to_card(document), page_of([document])
    assert re.search(r"\\x1b\[31m", text)
    for html in (card, page):
        assert SHOWN in html
        assert "<b>$" not in html
        assert "\x1b" not in html
    for shown in (text, card, page):
        plain = shown.replace("\xa0", " ")
        assert NUMBERS.get(name, "") in plain


def test_bars_of_every_renderer_have_the_same_ends():
    bars = BLOCKS["bars"]
    spans = {kind: (left, width) for kind, left, width in bars.spans("score", 0)}
    assert spans["lowers"] == pytest.approx((25.0, 50.0))  # from −3 to 1
    assert spans["range"] == pytest.approx((0.0, 50.0))
    assert spans["zero"] == pytest.approx((75.0, 0.0))
    document = Document(title="t", blocks=[bars])
    for html in (to_card(document), page_of([document])):
        assert re.search(r"left:25\.0%;width:50\.0%", html)


def test_unknown_numbers_have_no_bar():
    assert Span.of(float("nan"), (float("nan"), 1.0)) == (0.0, 0.0, None)
    zero = Table(pd.DataFrame({"score": [0.0]}), bars={"score": [Span.of(0.0)]})
    assert [*zero.spans("score", 0)] == [("zero", 0.0, 0.0)]
    assert [*zero.spans("other", 0)] == []


def test_a_document_shows_dangers_then_blocks_then_settings_and_folds_the_rest():
    document = Document(
        title="Found",
        subtitle="4 rows",
        dangers=["It grew."],
        blocks=[Facts([Fact("base", 7.0)])],
        settings={"law": "data"},
        chapters=lambda: [Chapter("All numbers", [BLOCKS["table"]], "Each of them.")],
    )
    assert to_text(document) == "Found\n4 rows\nIt grew.\n\n  base  7"
    details = to_text(document, details=True)
    assert "\n\nAll numbers\nEach of them.\n" in details
    assert "7.25" in details
    page = page_of([document])
    order = ["4 rows", "It grew.", ">7<", "All numbers", "Settings", "data"]
    assert [*map(page.index, order)] == sorted(map(page.index, order))
    assert "<summary" in to_card(document).partition("law")[0]
    empty = Document(title="nothing")
    assert to_text(empty) == "nothing"
    assert "<table" not in to_card(empty)
    assert "<details" not in to_card(empty)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.25, 0.5, -0.125], ["1.25", "0.50", "−0.12"]),
        ([123.456, 7.0], ["123", "7"]),
        ([1e-9, 1.0], ["1e−09", "1"]),  # too far apart
        ([3.0, 4.0], ["3", "4"]),
        ([np.nan, 0.25], ["", "0.250"]),
        ([np.inf, 0.0], ["inf", "0"]),
        ([], []),
    ],
)
def test_columns_have_as_many_decimals_as_each_other(values, texts):
    assert column_texts(pd.Series(values, dtype=float)) == texts


def test_the_first_lines_of_a_table_and_the_count_of_the_rest_are_all_lines():
    table = Table(pd.DataFrame({"a": range(10)}))
    assert len(table.first(4).frame) == 4
    assert table.first(4).rest == "6 more"
    assert table.first(10) is table


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "", "0"),
        (1e-14, "", "0"),
        (-23.456, "", "−23.5"),
        (33424.4, "", "33424"),
        (12345, "", "12,345"),
        (0.534, "%", "53%"),
        (-0.0053, "%", "−0.53%"),
        (0.99, "% of rows", "99% of rows"),
        (1.884, "log-odds", "1.88 log-odds"),
        (True, "", "yes"),
        ("0 of 529 large", "", "0 of 529 large"),
        (None, "%", "unknown"),
        (np.nan, "", "unknown"),
    ],
)
def test_facts_show_three_digits_and_no_space_before_per_cent(value, unit, text):
    assert Fact("base", value, unit).number == text


def test_a_fact_names_its_basis_unless_it_is_computed():
    assert Fact("gap to optimum", 0.0).text == "0 (proved)"
    assert Fact("clear signs", 0.5, "%", note="small change -2").text == (
        "50% (small change −2)"
    )
    assert Fact("sampling error", 0.1, "%", "estimated", "x").text == (
        "10% (estimated, x)"
    )
    assert Fact("gap to optimum", None).text == "unknown"
    assert {term.basis for term in TERMS.values()} <= {*BASES}


def test_a_label_outside_the_vocabulary_is_refused():
    with pytest.raises(InvalidInput, match=r"^label: 'trust'"):
        Fact("trust", 1.0)


FACTS = Facts([Fact("base", 152.0), Fact("prediction", 241.0), Fact("share", 0.5, "%")])


def test_facts_stand_in_two_columns_where_they_fit():
    lines = to_text(Document(title="t", blocks=[FACTS])).split("\n")
    assert lines[1:] == [
        "",
        "  base        152    share       50%",
        "  prediction  241",
    ]
    long = Facts([*FACTS, Fact("values", 1.0, note="x" * 60)])
    assert len(to_text(Document(title="t", blocks=[long])).split("\n")) == 6


def test_the_definition_of_a_label_is_a_tooltip_and_in_the_glossary():
    definition = TERMS["prediction"].text
    document = Document(title="t", blocks=[FACTS], dangers=["Wrong."])
    card, page = to_card(document), page_of([document])
    assert f'title="{definition}"' in card
    assert page.count(definition) == 2
    assert page.index("Wrong.") < page.index("prediction")


def test_a_card_has_at_most_two_sentences():
    with pytest.raises(InvalidInput, match=r"^dangers: "):
        Document(title="t", dangers=["A.", "B.", "C."])


def test_ranked_tables_show_five_lines_in_print_and_ten_on_cards():
    frame = pd.DataFrame(
        {"mean size": np.arange(15.0, 0.0, -1.0)}, [*"abcdefghijklmno"]
    )
    bars = {"mean size": [Span(-x, x, (0.0, x)) for x in frame["mean size"]]}
    table = Table(frame, total=40, bars=bars)
    document = Document(title="t", blocks=[table])
    assert to_text(document).split("\n")[-1] == "35 more"
    assert "30 more" in to_card(document)
    assert to_card(document).count("<tr") == 11
    kinds = [*table.spans("mean size", 1)]
    assert [kind for kind, *_ in kinds] == ["lowers", "raises", "range", "zero"]
    assert kinds[0][1:] == pytest.approx((50.0 - 50.0 * 14 / 15, 50.0 * 14 / 15))
    assert kinds[3][1:] == (50.0, 0.0)
    assert page_of([document]).count('class="plot"') == 15


def test_a_long_cell_is_cut_in_print_and_whole_on_cards():
    cell = "x" * 100
    document = Document(
        title="t", blocks=[Table(pd.DataFrame({"value": [cell]}, ["a"]))]
    )
    assert [line.count("x") for line in to_text(document).split("\n")] == [0, 0, 59]
    assert cell in to_card(document)
