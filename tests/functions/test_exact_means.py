"""Means of functions that are sums of boxes: exact, once the boxes were checked."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from box_functions import BoxFunction
from random_trees import boxes_of_trees, random_tree, some_rows
from scipy.stats import norm
from sklearn.ensemble import GradientBoostingRegressor

import propopt as po
from propopt.base.errors import InexactBoxesWarning, InvalidInput, Refused
from propopt.functions.means import ExactMean
from propopt.laws.data_law import DataLaw, Means, Reference
from propopt.structures.boxes.sets import Tree


D = 4
RNG = np.random.default_rng(0)
X = some_rows(RNG, 80, D, missing=0.0)
TREES = tuple(random_tree(RNG, D, 4) for _ in range(5))
BOXES = boxes_of_trees(TREES, n_columns=D)
FUNCTION = BoxFunction(TREES, BOXES)


def wrong(by):
    """The function, and boxes one of which is wrong by a number in row 7."""
    units = np.eye(len(BOXES.values))
    alone = [replace(BOXES, base=0.0, values=v) for v in units]
    inside = [n for n, box in enumerate(alone) if box.value(X[7:8])[0] > 0]
    values = BOXES.values.copy()
    values[inside[0]] += by
    return BoxFunction(TREES, replace(BOXES, values=values))


def test_the_data_law_is_exact_for_boxes():
    smooth = po.smoothed(FUNCTION, law="data", data=X)
    means, attributions = Means(BOXES, DataLaw(Reference.of(X))).of(X)
    np.testing.assert_array_equal(smooth.value(X), means)
    np.testing.assert_array_equal(smooth.gradient(X), attributions)
    estimate = smooth.estimate(X)
    assert estimate.exact
    assert estimate.source == "exact (boxes)"
    np.testing.assert_array_equal(estimate.values, attributions)
    np.testing.assert_array_equal(estimate.standard_errors, 0.0)
    assert smooth.gradient_method == "exact (boxes), data law of 80 rows, 4 columns"


def test_boxes_are_compared_at_reference_rows_and_the_model_is_not_asked_again():
    function = BoxFunction(TREES, BOXES)
    smooth = po.smoothed(function, law="data", data=X)
    assert smooth.estimate(X).evaluations == 0
    assert (function.calls.rows, function.calls.trials) == (0, 80)


def test_a_thousand_rows_are_compared_at_most():
    function = BoxFunction(TREES, BOXES)
    po.smoothed(function, law="data", data=np.tile(X, (31, 1)))
    assert function.calls.trials == 827  # every third


@pytest.mark.parametrize("by", [1e-3, -1e-8])
def test_boxes_that_differ_are_not_believed(by):
    share = abs(by) / np.ptp(FUNCTION.value(X))
    told = f"differs from its answer by {share:.2g} of the range of f in row"
    with pytest.warns(InexactBoxesWarning, match=re.escape(told)):
        gradient = po.smoothed(wrong(by), 0.5, 20, data=X).gradient(X)
    sampled = po.smoothed(BoxFunction(TREES, None), 0.5, 20).gradient(X)
    np.testing.assert_array_equal(gradient, sampled)


def test_rounding_of_sums_in_single_precision_is_allowed_where_boxes_say_so():
    loose = replace(wrong(1e-6).claimed, tolerance=2e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smooth = po.smoothed(BoxFunction(TREES, loose), law="data", data=X)
    assert isinstance(smooth, ExactMean)


def test_the_row_of_the_difference_is_named():
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"r{n}" for n in range(80)])
    function = wrong(0.5)
    worst = np.abs(function.claimed.value(X) - FUNCTION.value(X)).argmax()
    with pytest.warns(InexactBoxesWarning, match="in row 'r"):
        po.smoothed(function, 0.5, data=frame).gradient(frame)
    assert worst >= 0


def test_the_gaussian_law_is_exact_for_boxes():
    stump = Tree.of([0, -1, -1], [0.3, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 2.0])
    boxes = boxes_of_trees([stump], n_columns=1)
    smooth = po.smoothed(BoxFunction((stump,), boxes), 0.5)
    points = np.linspace(-1, 1, 9)[:, None]
    z = (points - 0.3) / 0.5
    np.testing.assert_allclose(smooth.gradient(points), 4 * norm.pdf(z), rtol=1e-13)
    np.testing.assert_allclose(smooth.value(points), 2 * norm.cdf(z[:, 0]), rtol=1e-13)
    np.testing.assert_array_equal(smooth.gradient_error(points), 0.0)
    assert smooth.estimate(points).exact
    assert smooth.gradient_method == "exact (boxes), gaussian law, scale=0.5"


def test_exact_and_sampled_gaussian_gradients_agree():
    scale = np.array([0.3, 0.6, 1.0, 0.2])
    exact = po.smoothed(FUNCTION, scale).gradient(X[:10])
    sampled = po.smoothed(BoxFunction(TREES, None), scale, 3000)
    z = (sampled.gradient(X[:10]) - exact) / sampled.gradient_error(X[:10])
    assert np.abs(z).max() < 5  # of 40 scores: 2e-5 by chance


@pytest.fixture
def mixed():
    """A table with a category and missing numbers, and a function of it."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=60).round(1),
            "colour": rng.choice(["red", "blue", "green"], 60),
            "age": rng.normal(size=60).round(1),
        }
    )
    table.loc[::7, "age"] = np.nan
    schema = po.TableSchema.of(table)
    codes = len(schema.columns[1].frequencies)
    trees = tuple(random_tree(rng, 3, 4, coded=(1,), n_codes=codes) for _ in range(4))
    boxes = boxes_of_trees(trees, n_columns=3, n_codes=(None, codes, None))
    return BoxFunction(trees, boxes, schema), BoxFunction(trees, None, schema), table


def test_tables_with_categories_and_missing_numbers_have_effects(mixed):
    function, _, table = mixed
    smooth = po.smoothed(function, law="data", data=table)
    estimate = smooth.estimate(table)
    assert estimate.effects[:, 1].all()
    np.testing.assert_array_equal(estimate.effects[:, 2], table["age"].isna())
    sizes = function.schema.scales("std")
    scaled = estimate.scaled(sizes).values
    effects = table["age"].isna().to_numpy()
    np.testing.assert_array_equal(scaled[effects, 2], estimate.values[effects, 2])
    np.testing.assert_array_equal(
        scaled[~effects, 2], estimate.values[~effects, 2] * sizes[2]
    )
    assert isinstance(smooth.gradient(table), pd.DataFrame)


def test_categories_have_the_same_effects_sampled_and_exact_under_noise(mixed):
    exact, sampled, table = mixed
    present = table[table["age"].notna()].iloc[:10]
    expected = po.smoothed(exact, 0.5).gradient(present)
    smooth = po.smoothed(sampled, 0.5, 2000)
    error = smooth.gradient_error(present)
    difference = (smooth.gradient(present) - expected).to_numpy()
    assert (np.abs(difference) <= 5 * error.to_numpy() + 1e-12).all()


def test_what_a_reader_has_to_know_is_noted():
    table = pd.DataFrame(X, columns=list("abcd"))
    table["b"] = 2.0
    rows = table.iloc[:3].copy()
    rows.iloc[0, 2] = np.nan
    function = BoxFunction(TREES, BOXES, po.TableSchema.of(table))
    smooth = po.smoothed(function, law="data", data=table)
    assert smooth.estimate(rows).notes == (
        "column 'b' is constant in the reference rows: 0",
        "column 'c' is missing in rows, and never in the reference rows",
    )
    assert (smooth.gradient(rows)["b"] == 0.0).all()


def test_large_tables_are_thinned_and_it_is_said():
    table = np.random.default_rng(2).normal(size=(10_500, D))
    one = po.smoothed(FUNCTION, law="data", data=table, rng=1)
    assert "10,000 rows, 4 columns, drawn from 10,500" in one.gradient_method
    same = po.smoothed(FUNCTION, law="data", data=table, rng=1)
    other = po.smoothed(FUNCTION, law="data", data=table, rng=2)
    digests = [smooth.law.reference.digest for smooth in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]


def test_a_reference_can_be_given_as_one():
    reference = Reference.of(X)
    smooth = po.smoothed(FUNCTION, law="data", data=reference)
    assert smooth.law.reference is reference
    expected = po.smoothed(FUNCTION, law="data", data=X).gradient(X)
    np.testing.assert_array_equal(smooth.gradient(X), expected)


def test_models_that_take_no_missing_values_say_so_themselves():
    """Though boxes would know a side for them."""
    model = GradientBoostingRegressor(n_estimators=3).fit(X, X[:, 0])
    rows = X[:5].copy()
    rows[2, 1] = np.nan
    function = po.wrap(model)
    by_data = po.smoothed(function, law="data", data=X)
    by_noise = po.smoothed(function, 0.5, data=X)
    assert by_data.estimate(X).exact
    for smooth in (by_data, by_noise):
        with pytest.raises(InvalidInput, match="missing values in 'x1'"):
            smooth.value(rows)
        assert smooth.value(X[:5]).shape == (5,)


def test_boxes_that_differ_where_values_are_missing_are_not_believed():
    table = X.copy()
    other_side = tuple(replace(t, missing_left=~t.missing_left) for t in TREES)
    function = BoxFunction(other_side, BOXES)
    rows = X[:5].copy()
    rows[:, 0] = np.nan
    smooth = po.smoothed(function, law="data", data=table)
    smooth.gradient(X)
    with (
        pytest.warns(InexactBoxesWarning),
        pytest.raises(Refused, match="give a reference table with such rows"),
    ):
        smooth.gradient(rows)
    with pytest.warns(InexactBoxesWarning):
        sampled = po.smoothed(function, law="data", data=np.concatenate([table, rows]))
    assert not sampled.estimate(rows).exact


def test_columns_that_are_rarely_missing_are_compared_there():
    table = np.tile(X, (31, 1))
    table[1001, 2] = np.nan  # no row of every third
    function = BoxFunction(TREES, BOXES)
    smooth = po.smoothed(function, law="data", data=table)
    assert function.calls.trials == 828
    smooth.gradient(table[1000:1010])
    assert function.calls.trials == 828


def test_exact_means_are_pickled():
    smooth = po.smoothed(FUNCTION, law="data", data=X)
    copy = pickle.loads(pickle.dumps(smooth))
    np.testing.assert_array_equal(copy.gradient(X), smooth.gradient(X))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "scale: the gaussian law needs one"),
        ({"law": "date", "data": X}, r"law: expected.*did you mean 'data'"),
        ({"law": "data"}, "data: the data law needs the reference table"),
        ({"law": "data", "data": X, "scale": 1.0}, "scale: the data law has its own"),
        ({"law": "data", "data": np.where(X > 1.0, np.inf, X)}, "not finite|infinite"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        po.smoothed(FUNCTION, **arguments)
