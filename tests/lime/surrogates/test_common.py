"""Draws that rows share give what the exact limits say, and each row its own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.lime.expectations import bin_profiles
from propopt.lime.surrogates import CommonDraws


@pytest.fixture(scope="module")
def lime():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, (300, 4))
    y = X[:, 0] * X[:, 1] + np.sin(3.0 * X[:, 2])
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, y)
    return po.lime.limits(model, X[:5], data=X)


def test_means_of_bins_are_the_exact_profiles(lime):
    subject, widths = lime.subject, lime.law.widths(lime.points)
    result = subject.common.means(lime.points, widths)
    # what main effects leave over has a deviation below 0.3; a bin has some 2000 of
    # 8192 draws: 0.007 each, and 5 of them for 80 numbers fail once in 20000
    for (means, _), exact in zip(
        result, bin_profiles(subject.exact, lime.points), strict=True
    ):
        assert np.abs(means - exact).max() < 0.025
        assert np.ptp(exact) > 0.05


def test_additive_functions_leave_little_to_chance():
    X = np.random.default_rng(0).normal(size=(400, 3))
    f = po.wrap(lambda Z: 1.0 + (Z[:, 0] > 0.0) * 2.0)
    law = po.lime.TabularLaw.from_data(X, kernel_width=1.0)
    common = CommonDraws.of(law, lambda Z: f.value(Z))
    edges = law.columns[0].edges
    assert edges[0] < 0.0 < edges[2]
    means = common.means(X[:2], law.widths(X[:2]))[0][0]
    assert means[:, [0, 3]] == pytest.approx(np.array([[1.0, 3.0]] * 2), abs=0.02)


def test_variances_are_those_of_each_row_within_chance(lime):
    widths = lime.law.widths(lime.points)
    result = lime.subject.common.variances(lime.points, widths)
    # 5 standard errors of a variance from 8192 draws of kurtosis 3
    assert result == pytest.approx(lime.runs.variance, rel=5.0 * np.sqrt(2.0 / 4096))


def test_answers_of_a_row_do_not_depend_on_the_others(lime):
    X = lime.points
    alone = lime.subject.common.weights(X[[2]], np.full(1, 1.0))
    among = lime.subject.common.weights(X, np.full(len(X), 1.0))
    np.testing.assert_allclose(alone[:, 0], among[:, 2], rtol=1e-10)
    model = lime.subject.function
    one = po.lime.limits(model, X[[2]], lime.law)
    np.testing.assert_allclose(one.noise()[0], lime.noise()[2], rtol=1e-10)


def test_few_samples_count_where_the_kernel_is_narrow(lime):
    common, points = lime.subject.common, lime.points
    assert common.enough(points, np.full(5, 10.0)).all()
    assert not common.enough(points, np.full(5, 0.3)).any()


def test_deviations_of_runs_are_those_from_draws_of_each_row(lime):
    from propopt.lime.single_runs import single_run

    subject = lime.subject
    args = subject.evaluate, subject.law, subject.points, lime.limits, lime.values
    shared = single_run(*args, 5000, common=subject.common).standard_deviations
    own = single_run(*args, 5000).standard_deviations
    assert not np.array_equal(shared, own)
    # each is known to 2 %, some of 20 to 3 %: five of the differences
    assert shared == pytest.approx(own, rel=0.15)


def test_laws_of_distances_have_none():
    X = np.random.default_rng(0).normal(size=(50, 2))
    law = po.lime.GaussianLaw.from_data(X)
    assert CommonDraws.of(law, lambda Z: Z[:, 0]) is None
