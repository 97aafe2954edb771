"""What pages state on budgets: numbers are those of the code, and claims are run."""

import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

import propopt as po
from propopt.base.row_sample import SAMPLED_ABOVE
from propopt.laws.background import (
    MOST_ROWS,
    MOST_TREE_ROWS,
    N_BACKGROUND,
    affordable_rows,
)
from propopt.laws.shapley_draws import QUICK_ROWS
from propopt.losses.graphs.neighbours import N_NEIGHBORS, N_REFERENCE
from propopt.structures.boxes.links import MOST_LINK_STEPS


DOCS = Path(po.__file__).parents[1] / "docs"
FEW_ROWS = po.graphs.Nearest(n_reference=10)


def whole(model, width, n_rows, **settings):
    """Whether contributions are exact, and for all rows of ``data``."""
    X = np.random.default_rng(0).normal(size=(n_rows, width))
    best = po.explain(model, X[:2] + 0.1, data=X, graph=FEW_ROWS, **settings)
    is_exact = best.sampling_excess == 0.0
    assert is_exact == (best.target.n_blocks == 0)
    return is_exact


def logistic(width, n_classes=2):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, width))
    y = np.digitize(X @ rng.normal(size=width), [0.0, 1.0][: n_classes - 1])
    return LogisticRegression(max_iter=1000).fit(X, y)


@pytest.mark.parametrize(("n_classes", "most"), [(2, 13), (3, 12)])
def test_probabilities_are_exact_up_to_so_many_columns_of_a_hundred_rows(
    n_classes, most
):
    of_class = {"output": "probability", "target": 1}
    assert whole(logistic(most, n_classes), most, N_BACKGROUND, **of_class)
    more = logistic(most + 1, n_classes)
    assert not whole(more, most + 1, N_BACKGROUND, **of_class)
    # of more rows, a hundred are drawn: also for few columns
    assert not whole(logistic(4, n_classes), 4, N_BACKGROUND + 1, **of_class)


def test_trees_take_many_rows_and_kernel_machines_fewer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    y = X[:, 0] * X[:, 1] + rng.normal(size=600)
    counts = {}
    for model in (HistGradientBoostingRegressor(max_iter=30), SVR(), Ridge()):
        wrapped = po.wrap(model.fit(X, y), data=X)
        counts[type(model)] = affordable_rows(wrapped.products_in(30))
    assert counts[HistGradientBoostingRegressor] == MOST_TREE_ROWS
    assert counts[Ridge] == MOST_ROWS
    assert N_BACKGROUND <= counts[SVR] < 1_000


@pytest.mark.parametrize(
    ("width", "n_rows", "is_exact"),
    [(4, 100, True), (5, 100, False), (5, 60, True), (4, 101, False)],
)
def test_functions_are_exact_up_to_four_columns_of_a_hundred_rows(
    width, n_rows, is_exact
):
    product = partial(np.prod, axis=1)
    assert whole(product, width, n_rows) == is_exact


@pytest.mark.parametrize(
    ("width", "n_rows", "is_exact"),
    [(6, 100, True), (7, 100, False), (10, 8, True), (6, 101, False)],
)
def test_networks_are_exact_up_to_six_columns_of_a_hundred_rows(
    width, n_rows, is_exact
):
    X = np.random.default_rng(0).normal(size=(100, width))
    network = MLPRegressor(hidden_layer_sizes=[4], solver="lbfgs", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network.fit(X, X[:, 0] * X[:, 1])
    assert whole(network, width, n_rows) == is_exact


NUMBERS = {
    "guide/output_units.md": [
        (r"up to (\d)·10⁷ counted operations a row", MOST_LINK_STEPS / 1e7),
        (r"up to ([\d,]+) evaluations a row", QUICK_ROWS),
        (r"at most ([\d,]+) rows of `data`", N_BACKGROUND),
        (r"With (\d+) neighbours \$b\$ is 1/48", N_NEIGHBORS),
        (r"up to ([\d,]+) rows of `data`, fewer", MOST_ROWS),
        (r"tables of\s+up to ([\d,]+) rows", MOST_TREE_ROWS),
    ],
    "guide/models.md": [
        (r"networks up to ([\d,]+)\s+evaluations a row", QUICK_ROWS),
        (r"at most (\d)·10⁷ counted operations", MOST_LINK_STEPS / 1e7),
        (r"against up to ([\d,]+) rows of `data`, fewer", MOST_ROWS),
        (r"tables of up to ([\d,]+) rows", MOST_TREE_ROWS),
        (r"`data` has more than\s+([\d,]+) rows", N_BACKGROUND),
    ],
    "guide/boosted.md": [(r"at most ([\d,]+) rows and the model", N_BACKGROUND)],
    "background/faq.md": [(r"at most ([\d,]+) rows and the model", N_BACKGROUND)],
    "guide/background_rows.md": [(r"takes up to ([\d,]+) rows of `data`", MOST_ROWS)],
    "guide/from_shap.md": [
        (r"up to ([\d,]+) rows", MOST_TREE_ROWS),
        (r"([\d,]+) for additive models", MOST_ROWS),
    ],
    "guide/first_steps.md": [(r"nearest of up to ([\d,]+) rows", N_REFERENCE)],
    "guide/report.md": [(r"For more than ([\d,]+) rows, sizes", SAMPLED_ABOVE)],
    "which.md": [(r"with up to ([\d,]+) reference rows", N_REFERENCE)],
}


@pytest.mark.skipif(not DOCS.is_dir(), reason="needs a checkout")
@pytest.mark.parametrize("page", NUMBERS)
def test_numbers_of_pages_are_those_of_the_code(page):
    text = (DOCS / page).read_text("utf-8")
    for pattern, expected in NUMBERS[page]:
        found = re.findall(pattern, text)
        assert found, (page, pattern)
        assert {float(x.replace(",", "")) for x in found} == {float(expected)}
