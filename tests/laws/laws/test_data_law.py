"""The data law: its table without random numbers, and what it promises."""

from __future__ import annotations

import math
from itertools import product

import golden_table as golden
import numpy as np
import pytest
from column_oracle import contrast_at, law_at
from random_trees import boxes_of_trees, random_tree, some_rows

from propopt.base.resources import Budget
from propopt.laws import data_law
from propopt.laws.column_laws import temper
from propopt.laws.data_law import DataLaw, Means, Reference
from propopt.structures.boxes.sets import Tree
from propopt.tables.frames import Labels


REFERENCE = Reference.of_points(golden.TABLE)
LAW = DataLaw(REFERENCE)


def contrasts(boxes, rows, law=LAW):
    return Means(boxes, law).of(rows)


def enumerated(function, law, row):
    """Mean and contrasts by all combinations of values, none of them left out."""
    own = [law_at(column, x) for column, x in zip(law.columns, row, strict=True)]
    points = np.array(list(product(*(measure.values for measure in own))))
    masses = [math.prod(some) for some in product(*(measure.masses for measure in own))]
    totals = [np.asarray(masses) @ function(points)]
    for j, column in enumerate(law.columns):
        changed = [*own]
        changed[j] = contrast_at(column, row[j])
        points = np.array(list(product(*(measure.values for measure in changed))))
        masses = [math.prod(some) for some in product(*(m.masses for m in changed))]
        totals.append(np.asarray(masses) @ function(points))
    return totals[0], np.array(totals[1:])


def test_the_golden_table():
    means, attributions = contrasts(golden.boxes(), golden.ROWS)
    np.testing.assert_allclose(attributions, golden.CONTRASTS, atol=1e-11, rtol=0)
    np.testing.assert_allclose(means, golden.MEANS, atol=1e-11, rtol=0)
    spreads = [getattr(column, "spread", 1.0) for column in LAW.columns]
    np.testing.assert_allclose(spreads, golden.SPREADS, atol=1e-11, rtol=0)


def test_the_boxes_of_the_golden_table_are_its_function():
    np.testing.assert_allclose(
        golden.boxes().value(golden.TABLE), golden.function(golden.TABLE), atol=1e-15
    )


@pytest.mark.parametrize(
    ("column", "x", "expected"),
    [
        (1, 0.0, 2.927129591),
        (1, 1.0, 1.732893289),
        (3, 50.0, 2.224276093),
        (2, 4.0, 1.008688203),
        (0, 0.8, 1.0),
        (0, -3.0, 1.0),
        (5, 5.0, 1.0),
    ],
)
def test_bandwidths_of_the_golden_table(column, x, expected):
    law = LAW.columns[column]
    widening = temper(law.values, law.shares, law.unit, np.array([x])).widening[0]
    assert abs(widening - expected) < 1e-9


def test_contrasts_are_those_of_all_combinations_of_values():
    small = DataLaw(Reference.of_points(golden.TABLE[::4]))
    means, attributions = contrasts(golden.boxes(), golden.ROWS, small)
    for n, row in enumerate(golden.ROWS):
        mean, expected = enumerated(golden.function, small, row)
        assert abs(means[n] - mean) < 1e-12
        np.testing.assert_allclose(attributions[n], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("seed", range(4))
def test_contrasts_of_trees_with_categories_are_those_of_all_combinations(seed):
    rng = np.random.default_rng(seed)
    table = some_rows(rng, 12, 4, coded=(2,), n_codes=3)
    table[:, 1] = table[:, 1].round()
    law = DataLaw(Reference(table, (None, None, 3, None), Labels(), 12))
    trees = [random_tree(rng, 4, 4, coded=(2,), n_codes=3) for _ in range(5)]
    boxes = boxes_of_trees(trees, 0.5, n_columns=4, n_codes=(None, None, 3, None))
    rows = some_rows(rng, 6, 4, coded=(2,), n_codes=3)
    means, attributions = contrasts(boxes, rows, law)
    for n, row in enumerate(rows):
        mean, expected = enumerated(boxes.value, law, row)
        assert abs(means[n] - mean) < 1e-12
        np.testing.assert_allclose(attributions[n], expected, atol=1e-11, rtol=0)


# ---- properties


def test_linear_functions_have_their_coefficients():
    beta = np.array([2.0, -1.0, 0.5, 0.25, 0.0, 3.0])
    present = golden.ROWS[[0, 1, 2, 4]]
    for n in range(len(present)):
        for j, column in enumerate(LAW.columns):
            values, masses = contrast_at(column, present[n, j])
            expected = 0.0 if j == 4 else beta[j]
            assert abs(masses @ (beta[j] * values) - expected) < 1e-12


def slope(values, h, x, heights):
    """Cov(V, f) / Var(V) at bandwidth h, of f that takes ``heights`` at the values."""
    shares = np.full(len(values), 1 / len(values))
    masses = temper(values, shares, np.sqrt(2) * h, np.array([x])).masses[0]
    q = masses / masses.sum()
    centered = values - q @ values
    return (q * centered) @ heights / (q @ centered**2)


@pytest.mark.parametrize(("h", "expected"), [(0.5, 5.07), (0.1, 4.35), (0.02, 4.3212)])
def test_on_an_even_grid_slopes_are_those_of_smoothgrad(h, expected):
    # 3 x² + 3 h², by Stein's identity for N(x, h²)
    grid = np.arange(-1000, 1001) / 100
    assert abs(slope(grid, h, 1.2, grid**3) - expected) < 1e-9


@pytest.mark.parametrize(("h", "tolerance"), [(0.5, 0.15), (0.1, 0.02), (0.02, 0.01)])
def test_of_dense_data_slopes_are_derivatives_as_the_bandwidth_falls(h, tolerance):
    draws = np.unique(np.random.default_rng(0).normal(size=200_001))
    assert abs(slope(draws, h, 0.7, np.sin(draws)) - np.cos(0.7)) < tolerance


def test_moving_thresholds_between_values_changes_no_bit():
    rng = np.random.default_rng(0)
    means, attributions = contrasts(golden.boxes(), golden.ROWS)
    for _ in range(20):
        cuts = {}
        for j, own in golden.CUTS.items():
            atoms = LAW.columns[j].values
            gaps = [np.searchsorted(atoms, cut, side="right") for cut in own]
            cuts[j] = [rng.uniform(atoms[gap - 1], atoms[gap]) for gap in gaps]
        moved_means, moved = contrasts(golden.boxes(cuts), golden.ROWS)
        np.testing.assert_array_equal(moved, attributions)
        np.testing.assert_array_equal(moved_means, means)


def test_columns_that_are_not_used_or_constant_are_zero():
    trees = [
        Tree.of([4, -1, -1], [3.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 2]),
        Tree.of([0, -1, -1], [0.5, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 2]),
    ]
    boxes = boxes_of_trees(trees, n_columns=6)
    _, attributions = contrasts(boxes, golden.ROWS)
    assert (attributions[:, 1:] == 0.0).all()
    assert (attributions[:, 0] != 0.0).all()


def test_a_split_beyond_all_values_has_no_slope():
    everywhere = Tree.of([0, -1, -1], [1e9, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 2])
    boxes = boxes_of_trees([everywhere], n_columns=6)
    means, attributions = contrasts(boxes, golden.ROWS)
    assert (attributions == 0.0).all()
    np.testing.assert_array_equal(means, 1.0)


def test_rows_are_explained_one_by_one_alike(monkeypatch):
    rng = np.random.default_rng(5)
    table = some_rows(rng, 200, 5)
    law = DataLaw(Reference.of_points(table))
    boxes = boxes_of_trees([random_tree(rng, 5, 6) for _ in range(30)], n_columns=5)
    whole = contrasts(boxes, table, law)
    order = rng.permutation(200)
    permuted = contrasts(boxes, table[order], law)
    monkeypatch.setattr(data_law, "ROWS_AT_ONCE", Budget(1))
    single = contrasts(boxes, table, law)
    for got, back in ((permuted, order), (single, np.arange(200))):
        np.testing.assert_array_equal(got[0], whole[0][back])
        np.testing.assert_array_equal(got[1], whole[1][back])
