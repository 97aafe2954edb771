"""Baselines in other units than the target are not compared with it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Gradient, Shap
from propopt.functions import Power
from propopt.losses.faithfulness import Estimate


X = np.random.default_rng(0).normal(size=(12, 3))
CUBE = Power(3)
GRAPH = po.PairwiseRobustness(po.knn_graph(X, 3))
WEIGHTS = {"pairwise_robustness": [0.1, 1.0]}
SLOPES = Gradient().explain(CUBE, X)


def contributions(units="output"):
    pytest.importorskip("shap")
    return Shap(background=np.zeros((1, 3)), units=units).explain(CUBE, X)


def swept(target, *baselines):
    return po.sweep(po.GradientMatching(target) + GRAPH, WEIGHTS, baselines)


@pytest.mark.parametrize("target", [SLOPES, CUBE.estimate(X)])
def test_contributions_are_not_compared_with_slopes(target):
    curve = swept(target, contributions(), contributions("gradient"))
    table = curve.distances()
    assert np.isnan(table["excess"][0])
    assert (
        table["not_compared"][0] == "it is parts of the output, and the target slopes"
    )
    assert table["excess"][1] > 0
    assert pd.isna(table["not_compared"][1])
    assert not curve.on_front[-2]


def test_scaled_slopes_are_compared_with_scaled_slopes():
    scaled = SLOPES.scaled([1.0, 2.0, 3.0])
    table = swept(scaled, scaled, SLOPES).distances()
    assert np.isfinite(table["excess"][0])
    assert "target slopes times a scale" in table["not_compared"][1]


def test_contributions_are_compared_with_contributions():
    table = swept(contributions(), contributions()).distances()
    assert np.isfinite(table["excess"][0])
    assert "not_compared" not in table


def test_numbers_that_do_not_say_their_units_are_compared_with_all():
    curve = swept(SLOPES.attributions, contributions())
    assert curve.units is None
    table = curve.distances()
    assert np.isfinite(table["excess"][0])
    assert table["units"].tolist() == ["units unknown"]


def test_numbers_of_which_units_are_said_are_compared_with_the_same():
    target = po.GradientMatching(contributions().attributions, units="output")
    others = {"shap": contributions(), "slopes": SLOPES, "plain": SLOPES.attributions}
    table = po.sweep(target + GRAPH, WEIGHTS, others).distances().set_index("method")
    assert table["excess"].isna().to_dict() == {
        "shap": False,
        "slopes": True,
        "plain": False,  # says nothing, and is taken to be in units of the target
    }
    assert table["units"].to_dict() == {
        "shap": "output",
        "slopes": "gradient",
        "plain": "output",
    }
    assert table["not_compared"]["slopes"] == (
        "it is slopes, and the target parts of the output"
    )


@pytest.mark.parametrize(
    ("target", "units", "sentence"),
    [
        (SLOPES, "output", "G is in units 'gradient', and not 'output'"),
        (SLOPES.attributions, "effects", "expected 'gradient', 'output' or 'scaled'"),
    ],
)
def test_units_that_cannot_be_are_refused(target, units, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        po.GradientMatching(target, units=units)


def test_a_target_says_its_units():
    assert po.GradientMatching(SLOPES).units == "gradient"
    scaled = Estimate(values=np.ones((2, 2)), source="made", units="scaled")
    assert po.GradientMatching(scaled).units == "scaled"
    assert po.GradientMatching(np.ones((2, 2))).units is None


def test_units_are_saved(tmp_path):
    curve = swept(SLOPES, contributions())
    curve.save(tmp_path / "curve.npz")
    same = po.TradeOffs.load(tmp_path / "curve.npz")
    pd.testing.assert_frame_equal(same.distances(), curve.distances())
