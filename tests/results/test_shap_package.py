"""Explanations go to the shap package and come back, and its plots draw them."""

import dataclasses
from functools import partial

import numpy as np
import pandas as pd
import pytest
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.explaining.explainers import Shap
from propopt.functions import Power
from propopt.tables.frames import Labels


N = 30

pytest.importorskip("shap")
shap = require("shap")


@pytest.fixture
def X(rng):
    table = pd.DataFrame(
        {"age": rng.normal(50.0, 9.0, N)}, [f"row {n}" for n in range(N)]
    )
    visits, colour = rng.integers(0, 6, N), rng.choice(["blue", "green", "red"], N)
    return table.assign(visits=visits, colour=colour)


@pytest.fixture
def contributions(X, rng):
    """Parts of an output of 0.4 on average, with the names and values of X."""
    labels = Labels(tuple(X.index), tuple(X.columns))
    fields = {"labels": labels, "units": "output", "base_value": np.full(N, 0.4)}
    colour = X["colour"].astype("category").cat
    fields["categories"] = {"colour": tuple(colour.categories)}
    fields["points"] = X.assign(colour=colour.codes).to_numpy(float)
    W = rng.normal(size=X.shape)
    return po.results.Explanation(attributions=W, method="mine", **fields)


SAME = ("bar", "beeswarm", "violin", "heatmap")
PLOTS = {name: partial(getattr(shap.plots, name), show=False) for name in SAME}
PLOTS["scatter"] = lambda e: shap.plots.scatter(
    e[:, "age"], color=e[:, "colour"], show=False
)
SUMS = {
    "waterfall": lambda e: shap.plots.waterfall(e[3], show=False),
    "decision": lambda e: shap.plots.decision(
        e.base_values[0], e.values, e.data, show=False
    ),
    "force": lambda e: shap.plots.force(e[3], matplotlib=True, show=False),
}


@pytest.fixture
def slopes(contributions):  # whose base would be none of slopes
    return dataclasses.replace(contributions, method="optimized", units="gradient")


@pytest.mark.parametrize("name", [*PLOTS, *SUMS])
def test_plots_draw_slopes_and_contributions(name, slopes, contributions):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for given in (contributions, slopes):
        if given is slopes and name in SUMS:
            assert repr(slopes.to_shap().base_values).startswith("None")
            with pytest.raises(
                InvalidInput, match=r"slopes do not add up.*kind='contributions'"
            ):
                SUMS[name](slopes.to_shap())
        else:
            (PLOTS | SUMS)[name](given.to_shap())
            assert pyplot.gcf().axes
            pyplot.close("all")


def test_there_and_back_again(contributions, slopes):
    same = po.results.Explanation.from_shap(contributions.to_shap())
    np.testing.assert_array_equal(same.attributions, contributions.attributions)
    assert same.labels.features == contributions.labels.features
    assert (same.units, same.method) == ("output", "shap")
    np.testing.assert_array_equal(same.base_value, np.full(N, 0.4))
    there = slopes.to_shap()
    assert po.results.Explanation.from_shap(there).base_value is None


def test_a_real_explanation_of_the_package_keeps_its_base_values():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [0.5, 2.5]])
    background = np.zeros((1, 2))
    ours = Shap(data=background).explain(Power(2), X)
    masker = shap.maskers.Independent(background)
    explainer = shap.explainers.ExactExplainer(lambda Z: (Z**2).sum(axis=1), masker)
    theirs = po.results.Explanation.from_shap(explainer(X))
    np.testing.assert_allclose(theirs.attributions, ours.attributions, atol=1e-12)
    np.testing.assert_allclose(theirs.base_value, ours.base_value, atol=1e-12)
    np.testing.assert_array_equal(ours.to_shap().base_values, ours.base_value)


def test_categories_are_coded_and_shown_by_name(contributions, X):
    there = contributions.to_shap()
    np.testing.assert_array_equal(there.data, contributions.points)
    assert list(there.display_data[:, 2]) == X["colour"].tolist()


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "the shap package"))
def test_what_is_none_is_refused(contributions, line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(
            line, globals() | locals() | {"from_shap": po.results.Explanation.from_shap}
        )
