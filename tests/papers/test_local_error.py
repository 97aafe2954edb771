"""The surrogate at the row itself: what bins cost, and what interactions cost."""

from __future__ import annotations

import numpy as np
import pytest
from linear_sums import curved, linear
from normal_samples import weighted_grid
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from papers.lime.local_error import local_error
from propopt.base.errors import InvalidInput, Refused
from propopt.functions import Function
from propopt.lime import GaussianLaw, TabularLaw
from propopt.lime.expectations import ExactLimits


class Given(Function):
    """A function that is a sum of products, as told."""

    gradient_method = "exact"

    def __init__(self, products):
        self.given = products

    @property
    def products(self):
        return self.given

    def _value(self, points, _labels, /):
        return self.given.value(points)

    def _gradient(self, _points, _labels, /):
        raise NotImplementedError


ROWS = np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65], [0.0, 0.67, -0.7]])
LAWS = [
    GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], 0.8),
    TabularLaw.from_data(np.random.default_rng(0).normal(size=(100, 3))),
]


@pytest.mark.parametrize("law", LAWS, ids=["gaussian", "tabular"])
def test_interactions_cost_nothing_where_there_are_none(law):
    result = local_error(law, Given(linear([1.0, -2.0, 0.5], 3.0)), ROWS)
    np.testing.assert_allclose(result.interactions, np.zeros(3), atol=1e-13)
    np.testing.assert_allclose(result.error, result.binning, atol=1e-13)
    assert np.abs(result.error).min() > 1e-3


@pytest.mark.parametrize("law", LAWS, ids=["gaussian", "tabular"])
def test_the_surrogate_is_not_the_mean_of_the_box_of_a_product(law):
    f = curved()
    result = local_error(law, Given(f), ROWS)
    tilts = [
        column.tilt(x, law.widths(ROWS))
        for column, x in zip(law.columns, ROWS.T, strict=True)
    ]
    step = np.ones(3)
    for j in (0, 2):
        means = tilts[j].pieces.expect(linear([1.0]).factors[0])
        one, zero = tilts[j].given(means)
        step *= ((one - zero) * tilts[j].complement)[0]
    np.testing.assert_allclose(result.interactions, -step, rtol=1e-10)
    assert np.abs(result.interactions).max() > 1e-2


def test_the_mean_of_the_box_is_that_of_a_grid():
    law, f = LAWS[0], curved()
    result = local_error(law, Given(f), ROWS)
    samples, bits, weights = weighted_grid(law, ROWS[0], nodes=24)
    box = bits.all(axis=1)
    mean = weights[box] @ f.value(samples[box]) / weights[box].sum()
    np.testing.assert_allclose(result.box_mean[0], mean, rtol=1e-9)
    np.testing.assert_allclose(result.values, f.value(ROWS))
    limits = ExactLimits(f, law).of(ROWS)
    np.testing.assert_array_equal(result.at_row, limits.at_row)


def test_the_error_of_a_tree_and_its_table(rng):
    X = rng.normal(size=(300, 3))
    tree = DecisionTreeRegressor(max_depth=4).fit(X, X[:, 0] * X[:, 1])
    law = GaussianLaw.from_data(X)
    result = local_error(law, po.wrap(tree), X[:5])
    np.testing.assert_array_equal(result.values, tree.predict(X[:5]))
    table = result.to_frame()
    np.testing.assert_allclose(table["error"], table["binning"] + table["interactions"])
    assert list(table["value"]) == list(result.values)


def test_functions_that_can_only_be_called_are_refused():
    law = LAWS[0]
    with pytest.raises(Refused, match=r"po\.lime\.limits estimates"):
        local_error(law, po.wrap(lambda X: X[:, 0]), ROWS)
    with pytest.raises(InvalidInput, match="expected 2 columns"):
        local_error(law, Given(linear([1.0, 2.0])), ROWS[:, :2])
    with pytest.raises(InvalidInput, match="expected a propopt Function"):
        local_error(law, linear([1.0, 2.0, 0.0]), ROWS)
