"""The papers' bounds, and where they fail."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import boxes_of_trees

from papers.lime.tabular_bounds import (
    paper_stability,
    stability_factor,
    tabular_theorem_samples,
)
from propopt.base.errors import InvalidInput
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.boxes.sets import Tree
from propopt.structures.products.families import Pieces
from propopt.structures.products.sums import SumOfProducts


def coded_law(n_columns, n_bins, kernel_width):
    """Columns of ``n_bins`` values with equal shares: f is a table of the bins."""
    values = np.arange(float(n_bins))
    column = BinnedColumn(
        Pieces.of_values(values),
        np.full(n_bins, 1 / n_bins),
        values[:-1] + 0.5,
        tuple(map(str, range(n_bins))),
    )
    return TabularLaw.of((column,) * n_columns, kernel_width)


def spike(n_columns, height, rest):
    """``height`` where all columns are 0, else ``rest``."""
    feature = [*range(n_columns), *(-1,) * (n_columns + 1)]
    n = n_columns
    tree = Tree.of(
        feature=feature,
        threshold=[0.5] * n + [0.0] * (n + 1),
        left=[*range(1, n + 1), *(-1,) * (n + 1)],
        right=[*range(n + 1, 2 * n + 1), *(-1,) * (n + 1)],
        value=[0.0] * n + [height] + [rest] * n,
    )
    return boxes_of_trees([tree], n_columns=n)


def size(limits):
    """‖β‖ with the intercept."""
    return np.sqrt(limits.intercept**2 + (limits.coefficients**2).sum(axis=1))[0]


def test_the_paper_s_stability_fails_for_one_column_and_ours_holds():
    law = coded_law(1, 11, 50.0)
    result = ExactLimits(spike(1, 1.0, -1.0), law).of(np.zeros((1, 1)))
    assert size(result) == pytest.approx(np.sqrt(5), abs=1e-12)
    assert paper_stability(1, 50.0, 11) == pytest.approx(2.2208, abs=5e-5)
    assert size(result) > paper_stability(1, 50.0, 11)
    assert size(result) <= stability_factor(result)[0]


def test_the_paper_s_stability_fails_for_two_columns_and_ours_holds():
    # −1 where no bit is 1, else 1
    law, point = coded_law(2, 200, 50.0), np.zeros((1, 2))
    tree = Tree.of(
        feature=[0, -1, 1, -1, -1],
        threshold=[0.5, 0, 0.5, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        value=[0, 1, 0, 1, -1],
    )
    function = boxes_of_trees([tree], n_columns=2)
    result = ExactLimits(function, law).of(point)
    assert size(result) == pytest.approx(2.987, abs=5e-4)
    assert paper_stability(2, 50.0, 200) == pytest.approx(2.843, abs=5e-4)
    assert size(result) <= stability_factor(result)[0]


def test_our_stability_holds_for_random_tables():
    rng = np.random.default_rng(0)
    law = coded_law(3, 3, 0.7)
    for _ in range(50):
        # f takes ±1 in each of 27 cells, as trees of cells
        cells = rng.choice([-1.0, 1.0], (3, 3, 3))
        result = ExactLimits(_table(cells), law).of(np.zeros((1, 3)))
        assert size(result) <= stability_factor(result)[0]


def test_our_stability_is_reached_by_one_column():
    # f is 1 in the bin and −1 outside: |β_1| = 2 and β_0 = −1 < 1 + 2 α
    law = coded_law(1, 2, 1e-2)  # α = 1
    result = ExactLimits(spike(1, 1.0, -1.0), law).of(np.zeros((1, 1)))
    assert abs(result.coefficients[0, 0]) == pytest.approx(2.0)


def test_the_theorem_asks_for_3e20_samples():
    n = tabular_theorem_samples(
        0.1, 0.05, 1.0, n_columns=10, kernel_width=0.75 * np.sqrt(10)
    )
    assert f"{n:.0e}" == "3e+20"


def test_the_theorem_does_not_depend_on_the_units_of_f():
    settings = {"n_columns": 4, "kernel_width": 1.0}
    one = tabular_theorem_samples(0.1, 0.05, 1.0, **settings)
    thousand = tabular_theorem_samples(100.0, 0.05, 1000.0, **settings)
    assert one == pytest.approx(thousand, rel=1e-12)
    assert tabular_theorem_samples(0.2, 0.05, 1.0, **settings) == pytest.approx(one / 4)


def test_the_theorem_is_infinite_rather_than_an_overflow():
    assert (
        tabular_theorem_samples(0.1, 0.05, 1.0, n_columns=900, kernel_width=0.1)
        == np.inf
    )


def test_what_the_theorem_excludes_is_refused():
    for settings, label in [
        ((1.0, 0.05, 1.0, 3, 1.0), "error"),
        ((0.1, 1.0, 1.0, 3, 1.0), "failure"),
        ((0.1, 0.05, 1.0, 3, 1.0, 1), "n_bins"),
    ]:
        with pytest.raises(InvalidInput, match=label):
            tabular_theorem_samples(*settings)


def _table(cells):
    """A sum of products with a value in each of 3 x 3 x 3 cells."""
    parts = []
    for i, j, k in np.ndindex(cells.shape):
        parts.append(_cell((i, j, k)).scaled(cells[i, j, k]))
    return SumOfProducts.sum_of(parts)


def _cell(place):
    feature, threshold, left, right, value = [], [], [], [], []
    for column, b in enumerate(place):
        for bound, inside in ((b - 0.5, "right"), (b + 0.5, "left")):
            node = len(feature)
            feature += [column, -1]
            threshold += [bound, 0.0]
            leaf, following = node + 1, node + 2
            left += [leaf if inside == "right" else following, -1]
            right += [following if inside == "right" else leaf, -1]
            value += [0.0, 0.0]
    feature.append(-1), threshold.append(0.0), left.append(-1), right.append(-1)
    value.append(1.0)
    tree = Tree.of(
        feature=feature, threshold=threshold, left=left, right=right, value=value
    )
    return boxes_of_trees([tree], n_columns=3)
