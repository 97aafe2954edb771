"""Reports in a real browser: sliders, numbers, no request, nothing for axe-core to say.

``REPORT_PAGE`` may name a page that a command wrote. What it needs: ``conftest.py``.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.document import Table, column_texts
from propopt.results.report.page import write_page


pytest.importorskip("playwright.sync_api", reason="what is below takes a while")
RNG = np.random.default_rng(5)
ODD = ["<script>alert(1)</script>", "عمر المريض", "fee\u202e&", "a long name " * 4]
NAMES = ["age", *ODD]
TABLE = pd.DataFrame(RNG.normal(size=(30, 5)), columns=NAMES)
TABLE.index = ["מטופל א", *(f"row {n}" for n in range(1, 30))]
G = TABLE.copy()
G[:] = np.sin(TABLE.to_numpy() @ RNG.normal(size=(5, 5)))
ROBUST = po.PairwiseRobustness(po.graphs.knn_graph(TABLE, 4))
WEIGHTS = np.logspace(-2, 2, 17)
BESIDE = {"half": G / 2, "none": 0 * G}


def swept(loss, weights):
    objective = po.GradientMatching(G) + loss
    return po.sweep(objective, {loss.name: weights}, BESIDE)


def limits():
    X = TABLE.to_numpy()
    model = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
    return po.lime.limits(model.predict, X[:2], data=X)


TREE = DecisionTreeRegressor(max_depth=3, random_state=0)
TREE.fit(TABLE, TABLE["age"] * TABLE.iloc[:, 1])


def wide():
    """Ten columns of contributions and exact values."""
    X = pd.DataFrame(RNG.normal(size=(25, 10)), columns=[*"abcdefghij"])
    y = X.to_numpy() @ RNG.normal(size=10)
    model = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y**2)
    return po.explain(model, X, data=X)


def long_audit():
    """Forty rows of thirteen columns, in which every value is wrong."""
    names = [f"frequency of use {j}" for j in range(13)]
    X = pd.DataFrame(RNG.normal(size=(40, 13)), columns=names)
    model = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, X.sum(axis=1))
    wrong = po.audit(RNG.normal(size=X.shape), model, X)
    return wrong.to_sign(tolerance=1e-6, decision=0.0)


FOUND = {
    "front": swept(ROBUST, WEIGHTS),
    "steps": swept(po.Sparsity(), [0.1, 0.3, 1.0, 3.0]),
    "lime": limits(),
}
FOUND["one"] = FOUND["front"].knee()
FOUND["long audit"] = long_audit()
FOUND["audit"] = po.audit(0.1 * TABLE, TREE, TABLE, output="value")
FOUND["wide"] = wide()
FOUND["reasons"] = po.explain(TREE, TABLE, data=TABLE)
DOCUMENTS = {name: [found.document()] for name, found in FOUND.items()}
PAGES = {}
if made := os.environ.get("REPORT_PAGE"):  # by a command
    PAGES["made"] = Path(made).read_text(encoding="utf-8")
DOCUMENTS["several"] = [
    *DOCUMENTS["front"],
    *DOCUMENTS["lime"],
    *DOCUMENTS["steps"],
]
LOOKS = {"light": (1200, "light"), "dark": (1200, "dark"), "narrow": (390, "light")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("reports")
    for name, documents in DOCUMENTS.items():
        write_page(place / f"{name}.html", documents)
    for name, text in PAGES.items():
        (place / f"{name}.html").write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def opened(browser, folder):
    """A page as a browser shows it; at the end it has said and asked for nothing."""
    pages, heard = [], []

    def show(name, look="light", **how):
        width, scheme = LOOKS[look]
        size = {"width": width, "height": 900}
        page = browser.new_page(viewport=size, color_scheme=scheme, **how)
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        file = (folder / f"{name}.html").as_uri()
        page.on("request", lambda asked: asked.url == file or heard.append(asked.url))
        page.goto(file)
        pages.append(page)
        return page

    yield show
    for page in pages:
        page.close()
    assert heard == []


def summary(page):
    """What stands beside the slider, by its label."""
    lines = page.locator("[data-summary] div")
    return {
        line.locator("dt").inner_text(): float(
            line.locator("dd").get_attribute("data-value")
        )
        for line in lines.all()
    }


def attributions(page, panel=0):
    """The attributions of a shown row, by the place of the column."""
    cells = page.locator("[data-panel]").nth(panel).locator("[data-column]").all()
    return {
        int(cell.get_attribute("data-column")): float(cell.get_attribute("data-value"))
        for cell in cells
    }


def position(names, text):
    return list(names).index(text)


def compare(page, W, panels=None):
    """The rows that are shown against a table of attributions, to 1e-6."""
    size = np.abs(W).max()
    for panel in panels or range(page.locator("[data-panel]").count()):
        name = page.locator("[data-panel] bdi").nth(panel).inner_text()
        n = position(TABLE.index, name)
        shown = attributions(page, panel)
        assert len(shown) == W.shape[1]
        for j, value in shown.items():
            assert value == pytest.approx(W[n, j], abs=1e-6 * size), (name, j)


def test_the_slider_shows_what_the_csv_file_has(opened, tmp_path):
    found, page = FOUND["front"], opened("front")
    found.to_csv(tmp_path / "front.csv")
    table = pd.read_csv(tmp_path / "front.csv")
    slider = page.locator("[data-slider]")
    assert slider.get_attribute("max") == str(len(WEIGHTS) - 1)
    for place in (0, 5, len(WEIGHTS) - 1):
        slider.fill(str(place))
        line, shown = table.iloc[place], summary(page)
        for label, column in {
            "weight of pairwise_robustness": "weight.pairwise_robustness",
            "loss gradient_matching": "loss.gradient_matching",
            "loss pairwise_robustness": "loss.pairwise_robustness",
            "faithfulness kept": "faithfulness_kept",
            "differences removed": ("removed.pairwise_robustness"),
        }.items():
            assert shown[label] == pytest.approx(line[column], rel=1e-6, abs=1e-9)
        compare(page, found.optimized[place].attributions)


def test_slider_and_buttons_move_by_mouse_and_keyboard(opened):
    page = opened("front")
    slider, start = page.locator("[data-slider]"), summary(page)
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    assert summary(page) != start
    assert "faithfulness kept" in slider.get_attribute("aria-valuetext")
    page.get_by_role("button", name="at the knee").click()
    assert summary(page) == start
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert (
        summary(page)["weight of pairwise_robustness"]
        > start["weight of pairwise_robustness"]
    )
    page.keyboard.press("Home")
    assert slider.input_value() == "0"
    page.keyboard.press("End")
    assert slider.input_value() == slider.get_attribute("max")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "least"
    page.keyboard.press("Enter")
    assert slider.input_value() == "0"


def test_another_row_is_chosen_beside_its_most_similar(opened):
    page = opened("one")
    page.get_by_label("Row", exact=True).select_option("מטופל א")
    assert page.locator("[data-panel] bdi").first.inner_text() == "מטופל א"
    compare(page, FOUND["one"].attributions)
    n = position(TABLE.index, page.locator("[data-panel] bdi").nth(1).inner_text())
    assert ROBUST.graph.similarities[0, n] > 0


def test_an_audit_shows_any_row_as_it_came_and_beside_it_exact_values(opened):
    page, audit = opened("audit"), FOUND["audit"]
    for name in ("row 3", "row 29"):
        page.get_by_label("Row", exact=True).first.select_option(name)
        compare(page, audit.explanation.attributions, panels=[0, 1])
        n = position(TABLE.index, name)
        lines = page.locator("[data-panel]").first.locator("tbody tr")
        shown = {
            int(line.locator("[data-column]").get_attribute("data-column")): line
            for line in lines.all()
        }
        width = "x => parseFloat(x.style.width)"
        wide = {j: x.locator(".was").evaluate(width) for j, x in shown.items()}
        largest = max(wide, key=wide.get)
        assert largest == np.abs(audit.exact[n]).argmax()


def test_steps_show_each_solved_optimum(opened):
    page = opened("steps")
    slider = page.locator("[data-slider]")
    assert slider.get_attribute("max") == "3"
    for place in (3, 1):
        slider.fill(str(place))
        best = FOUND["steps"].optimized[place]
        assert summary(page)["loss sparsity"] == pytest.approx(best.losses["sparsity"])
        compare(page, best.attributions)


@pytest.mark.parametrize("name", ["front", "one", "audit", "several", *PAGES])
@pytest.mark.parametrize("look", LOOKS)
def test_axe_core_finds_nothing_and_nothing_is_wider_than_the_screen(
    name, look, opened, seen_by_axe
):
    page = opened(name, look)
    assert page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look][0]
    assert seen_by_axe(page, f"{name}_{look}") == []


def test_without_scripts_the_page_is_the_same_at_rest(opened):
    page, still = opened("front"), opened("front", java_script_enabled=False)
    for place in ("[data-panel] tbody", "[data-summary]", "main section:last-child"):
        one, other = page.locator(place).first, still.locator(place).first
        assert one.inner_text() == other.inner_text()
    assert still.locator("noscript p").first.is_visible()


def test_a_page_that_is_printed_has_all_but_the_controls(opened):
    page = opened("front")
    page.emulate_media(media="print")
    assert not page.locator("[data-slider]").is_visible()
    assert page.locator(".front").is_visible()
    assert len(page.pdf()) > 10_000


def test_no_column_of_a_wide_table_is_cut_on_paper(opened):
    page = opened("wide")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4, margins of 1 cm
    tables = [x.frame for x in DOCUMENTS["wide"][0].chapters()[-1].blocks]
    assert [len(x) for x in tables] == [25] * len(tables)
    assert sum(x.shape[1] for x in tables) == 10
    assert page.evaluate("document.documentElement.scrollWidth") <= 718


HIDDEN = """() => {
 const all = [...document.querySelectorAll("main tr, main li, main dd")];
 return all.filter(x => {
  const box = x.getBoundingClientRect();
  if (x.closest(".noprint")) return false;
  if (!box.height || getComputedStyle(x).visibility !== "visible") return true;
  for (let up = x.parentElement; up; up = up.parentElement) {
    const style = getComputedStyle(up), frame = up.getBoundingClientRect();
    if (style.overflowY !== "visible" && box.bottom > frame.bottom + 1) return true;
  }
  return false;
}).map(x => x.textContent.trim().slice(0, 60));
}"""


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("name", ["audit", "reasons"])
def test_paper_has_every_row_without_a_click(name, script, opened):
    page = opened(name, java_script_enabled=script)
    on_screen = page.evaluate(HIDDEN)
    assert on_screen  # long tables scroll there
    page.emulate_media(media="print")
    assert page.evaluate(HIDDEN) == []


@pytest.mark.parametrize("script", [True, False])
def test_a_pdf_has_the_name_and_the_numbers_of_every_row(script, opened, tmp_path):
    pypdf = pytest.importorskip("pypdf", reason="reads the text of a PDF")
    page = opened("audit", java_script_enabled=script)
    page.pdf(path=str(tmp_path / "audit.pdf"))
    sheets = pypdf.PdfReader(tmp_path / "audit.pdf").pages
    text = " ".join(" ".join(sheet.extract_text().split()) for sheet in sheets)
    tables = {
        chapter.title: block.frame
        for chapter in DOCUMENTS["audit"][0].chapters()
        for block in chapter.blocks
        if isinstance(block, Table)
    }
    table = tables["Rows"]
    assert len(table) == len(TABLE)
    numbers = column_texts(table["prediction"])
    for name, number in zip(table.index, numbers, strict=True):
        if name.isascii():
            assert text.count(name) >= 2, name
        assert number in text
    values = tables["Values"]
    for cell in values.to_numpy().ravel():
        for number in cell.replace("✗", "").split():
            assert number in text
    assert text.count("Signature") >= 2


def test_an_audit_of_forty_rows_is_five_printed_pages(opened, tmp_path):
    pypdf = pytest.importorskip("pypdf", reason="reads the text of a PDF")
    opened("long audit").pdf(path=str(tmp_path / "audit.pdf"), format="Letter")
    texts = [x.extract_text() for x in pypdf.PdfReader(tmp_path / "audit.pdf").pages]
    assert len(texts) <= 5
    assert sum("error of the sum" in text for text in texts) == 2  # heads are repeated
    words = [len(text.split()) for text in texts]
    assert min(words) > 0.5 * np.median(words) > 100  # none is half empty


def test_a_script_that_was_altered_does_not_run(browser, folder, tmp_path):
    text = (folder / "front.html").read_text(encoding="utf-8")
    other = tmp_path / "other.html"
    other.write_text(text.replace('"use strict";', '"use strict";/**/', 1), "utf-8")
    page, heard = browser.new_page(), []
    page.on("console", lambda message: heard.append(message.text))
    page.goto(other.as_uri())
    assert any("Content Security Policy" in line for line in heard)
    page.close()
