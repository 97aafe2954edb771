"""Pages for contributors: short, linked, of files that exist; their programs run."""

import importlib
import re
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes

import propopt as po
from propopt.losses.maps import Identity
from propopt.structures.readers.fitted_networks import ModelOutput


ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "contributing"
PAGES = {page.stem: page for page in sorted(FOLDER.glob("*.md"))}
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs a checkout")


def text_of(page):
    return page.read_text(encoding="utf-8")


def run(page, chapter):
    """What a page's first program defines, among the names of a chapter."""
    names = dict(vars(importlib.import_module(f"propopt.{chapter}")))
    code = re.search(r"^```python\n(.*?)^```", text_of(PAGES[page]), re.DOTALL | re.M)
    exec(compile(code[1], page, "exec"), names)
    return names


def test_pages_are_short_and_linked_from_both_lists():
    names = sorted(PAGES.keys() - {"index"})
    assert len(names) > 10
    toctree = re.search(
        r"```{toctree}\n:hidden:\n\n(.*?)\n```", text_of(PAGES["index"]), re.S
    )
    assert sorted(toctree[1].split()) == names
    assert sorted(re.findall(r"{doc}`(\w+)`", text_of(PAGES["index"]))) == names
    links = re.findall(
        r"docs/contributing/(\w+)\.md", text_of(ROOT / "CONTRIBUTING.md")
    )
    assert sorted(links) == names
    lengths = {name: len(text_of(page).splitlines()) for name, page in PAGES.items()}
    assert {name: n for name, n in lengths.items() if n > 60} == {}
    assert len(text_of(ROOT / "CONTRIBUTING.md").splitlines()) <= 80


@pytest.mark.parametrize("page", PAGES)
def test_files_and_names_of_a_page_exist(page):
    text = text_of(PAGES[page])
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    tops = "propopt|tests|docs|benchmarks|examples|tools|problems"
    paths = set(re.findall(rf"`((?:{tops})/[\w./]*)`", prose))
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    # `NAME` of `file`, and the like
    tables = re.findall(r"`([A-Z_]{4,})`(?:,? (?:of|in) | \()`([\w./]+\.pyi?)`", prose)
    for name, path in tables:
        assert re.search(rf"\b{name}\b", text_of(ROOT / path)), (name, path)


def test_the_loss_of_its_page_is_solved_and_certified(rng):
    Closeness = run("loss", "losses.robustness")["Closeness"]
    T, W = rng.normal(size=(2, 6, 3))
    loss = Closeness(T)
    assert loss(W) == pytest.approx(((W - T) ** 2).sum())
    assert isinstance(loss.map, Identity)
    np.testing.assert_array_equal(dict(loss.arrays(T.shape))["target"], T)
    best = po.solve(po.GradientMatching(W) + 0.5 * loss)
    np.testing.assert_allclose(best.attributions, (2 * W + T) / 3, atol=1e-12)
    assert best.gap < 1e-9
    assert loss(cp.Variable((6, 3))).is_convex()


def test_the_reader_of_its_page_has_the_values_of_the_model(rng):
    class Additive:
        n_features_in_, constant_, slopes_ = 3, 0.5, np.array([1.0, -2.0, 4.0])

    read, model = run("reader", "structures.products.sums")["read_additive"], Additive()
    X = rng.normal(size=(5, 3))
    found = read(model, ModelOutput("value", None), None)
    expected = model.constant_ + X @ model.slopes_
    np.testing.assert_allclose(found.value(X), expected, rtol=1e-13)
    refused = read(model, ModelOutput("probability", 1), None)
    assert refused.reason == "its probabilities are a nonlinear function of its sum"


def test_the_baseline_of_its_page_clips_the_gradient(rng):
    Clipped = run("baseline", "explaining.explainers.baseline")["ClippedGradient"]
    a, X = np.array([0.2, -3.0, 5.0]), rng.normal(size=(4, 3))
    function = po.wrap(lambda x: x @ a, gradient=lambda x: np.tile(a, (len(x), 1)))
    found = Clipped(largest=2.0).explain(function, X, progress=False)
    np.testing.assert_allclose(found.attributions, np.tile([0.2, -2.0, 2.0], (4, 1)))


def test_the_structure_of_its_page_has_the_values_of_the_model():
    read = run("structure", "structures.readers.fitted_networks")["_latent"]
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = PLSRegression(3).fit(X, y)
    scores = read(model).scores(X)
    np.testing.assert_allclose(scores.ravel(), model.predict(X).ravel(), rtol=1e-12)
