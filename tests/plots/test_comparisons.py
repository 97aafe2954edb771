"""Pictures of what changed: bars, dots of refits, the level."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.plots.attributions import OPTIMIZED_COLOUR, RAISES


def explained(W):
    return po.results.Explanation(attributions=np.asarray(W, float), method="mine")


def test_bars_beyond_the_level_are_red_and_refits_are_dots():
    zero = np.zeros((2, 3))
    others = [np.multiply(np.ones((2, 1)), [0.1 * k, 0.2 * k, 0.0]) for k in range(5)]
    level = po.null_models.NullModels(
        "bootstrap_refits", [explained(x) for x in others]
    )
    comparison = po.compare(
        explained(zero), explained([[0.5, 3.0, 0.0]] * 2), level=level
    )
    axes = Figure().subplots()
    assert po.plots.plot_changes(comparison, n_features=2, ax=axes) is axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x1", "x0"]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [3.0, 0.5])
    colours = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert colours == [RAISES, OPTIMIZED_COLOUR]
    dots, line = axes.get_lines()
    assert len(dots.get_xdata()) == 2 * 10
    assert line.get_xdata() == [pytest.approx(1.25 * 0.8)] * 2
    bare = po.plots.plot_changes(po.compare(explained(zero), explained(zero + 1.0)))
    assert len(bare.get_lines()) == 0
    with pytest.raises(InvalidInput, match="n_features"):
        po.plots.plot_changes(comparison, n_features=0)
