"""Charts of any paper: losses and baselines that no chart has known before."""

from __future__ import annotations

from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from reproduction import figure, panel

import propopt as po
from propopt.functions import Power
from propopt.problems import Problem


def problem(*baselines):
    X, square = np.random.default_rng(0).normal(size=(12, 4)), Power(2)
    matching = po.GradientMatching(square.gradient(X))
    return Problem(
        points=X,
        function=square,
        objective=matching + po.Smoothness(po.chain_graph(4)),
        weights={"smoothness": [0.1, 1, 10]},
        baselines=baselines,
    )


class Slope(po.explainers.Gradient):
    """The gradient by another name, and a little off."""

    name = "slope_of_$a$"

    def explain(self, function, X, **settings):
        explanation = super().explain(function, X, **settings)
        return po.Explanation(
            attributions=1.1 * explanation.attributions, method=self.name
        )


@pytest.mark.parametrize("baselines", [(), (Slope(),)])
def test_a_chart_needs_no_baseline_and_no_loss_that_it_knows(baselines, tmp_path):
    result = panel(problem(*baselines)).run()
    with mpl.rc_context({"svg.fonttype": "none"}):
        drawing = figure().draw([result])
        drawing.savefig(tmp_path / "chart.svg")
    text = set(ElementTree.parse(tmp_path / "chart.svg").getroot().itertext())
    assert "smoothness loss" in text
    assert ("slope_of_$a$" in text) is bool(baselines)
