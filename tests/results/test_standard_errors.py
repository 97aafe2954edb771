"""Standard errors: a field of explanations that follows the attributions it is of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import propopt as po
from propopt.base.errors import InvalidInput


W = np.array([[1.0, -2.0, 4.0], [3.0, 0.5, 2.0]])
ERRORS = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.0]])
SLOPES = po.Explanation(
    attributions=W, method="mine", standard_errors=ERRORS, details={"r2": np.ones(2)}
)
CUBE, X = po.functions.Power(3), np.linspace(-1.0, 1.0, 5)[:, None]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "slopes.npz"


def test_methods_that_sample_know_theirs():
    for method in (po.explainers.SmoothGrad(scale=0.1), po.explainers.Lime(scale=0.1)):
        result = method.explain(CUBE, X)
        assert result.standard_errors.shape == result.attributions.shape
        assert (result.standard_errors > 0.0).all()
        assert "standard_errors" not in result.details


def test_what_was_not_sampled_has_none():
    assert po.explainers.Gradient().explain(CUBE, X).standard_errors is None
    assert po.solve(1.0 * po.GradientMatching(W)).standard_errors is None


def test_the_spread_of_a_posterior_is_another_thing():
    explainer = po.inductive.GaussianProcessExplainer(lengthscale=1.0).fit(X, X)
    result = explainer.explain(X, return_std=True)
    assert result.standard_errors is None
    assert list(result.details) == ["standard_deviation"]


def test_they_are_scaled_by_the_size_of_the_scale():
    result = SLOPES.scaled([10.0, -1.0, 0.5])
    np.testing.assert_array_equal(result.attributions, W * [10.0, -1.0, 0.5])
    np.testing.assert_array_equal(result.standard_errors, ERRORS * [10.0, 1.0, 0.5])
    assert result.details == {}


def test_those_of_sums_are_not_known():
    assert SLOPES.grouped({"pair": ["x0", "x2"]}).standard_errors is None


def test_they_stay_where_attributions_do():
    objective = 1.0 * po.GradientMatching(W)
    for result in (SLOPES.measured(objective), SLOPES.certified(objective)):
        assert result.standard_errors is SLOPES.standard_errors


def test_they_are_copied_and_read_only():
    errors = ERRORS.copy()
    result = po.Explanation(attributions=W, method="mine", standard_errors=errors)
    errors[:] = 7.0
    np.testing.assert_array_equal(result.standard_errors, ERRORS)
    for own in (result, pickle.loads(pickle.dumps(result)), result.scaled(np.ones(3))):
        with pytest.raises(ValueError, match="read-only"):
            own.standard_errors[0] = 7.0


def test_a_list_becomes_an_array_and_those_unknown_need_not_be_finite():
    errors = [[0, 1, 2], [np.inf, np.nan, 0]]
    result = po.Explanation(attributions=W, method="mine", standard_errors=errors)
    assert result.standard_errors.dtype == np.float64
    np.testing.assert_array_equal(result.standard_errors, errors)


@pytest.mark.parametrize(
    ("errors", "complaint"),
    [
        (np.ones(3), r"expected 2 dimensions, got an array of shape \(3,\)"),
        (np.ones((3, 2)), r"expected shape \(2, 3\), got \(3, 2\)"),
        (-ERRORS, "expected numbers >= 0"),
        ([["a", "b", "c"]] * 2, "expected numbers, got"),
    ],
)
def test_what_are_none_are_refused(errors, complaint):
    with pytest.raises(InvalidInput, match=f"^standard_errors: {complaint}"):
        po.Explanation(attributions=W, method="mine", standard_errors=errors)
