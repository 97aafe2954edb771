"""Plots of explanations and comparisons: which numbers and names they draw."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from drawn import ax, hatched_in, lengths_of, lines_of, rows_of, texts
from matplotlib import pyplot as plt
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity


@pytest.fixture
def best(rng):
    names = ["age", "height", "weight", "dose"]
    G = pd.DataFrame(rng.normal(size=(9, 4)), columns=names, index=list("abcdefghi"))
    return po.solve(1.0 * po.GradientMatching(G))


def contributions(**fields):
    W = np.array([[3.0, -1.0, 0.5], [1.0, 2.0, -4.0]])
    fields = {"base_value": np.array([2.0, 2.0]), **fields}
    return po.results.Explanation(
        attributions=W, method="mine", units="output", **fields
    )


SLOPES = dataclasses.replace(contributions(), units="gradient", base_value=None)
ERRORS = np.array([[1.0, 0.6, 0.1], [1.0, 1.0, 1.0]])
SIGNS = SimpleNamespace(signs=np.array([[1, 0, 1], [1, 1, 0]]))
POINTS = np.array([[1.0, 0.0, np.nan], [2.0, 1.0, 5.0]])
WITH_VALUES = dataclasses.replace(
    SLOPES, points=POINTS, categories={"x1": ("no", "missing")}
)


def test_the_plot_that_fits_is_a_beeswarm_of_rows_and_a_waterfall_of_one(best):
    axes = ax()
    assert best.plot(ax=axes) is axes
    assert len(axes.collections) == 4
    one = po.results.Explanation(attributions=np.ones((1, 3)), method="mine")
    assert len(one.plot(ax=ax()).patches) == 3
    assert plt.get_fignums() == []


def test_a_beeswarm_has_the_largest_features_first_and_their_values(best):
    axes = best.plot(n_features=3, ax=ax())
    sizes = best.to_frame().abs().mean().sort_values(ascending=False)
    assert rows_of(axes) == list(sizes.index[:3])
    for dots, name in zip(axes.collections, sizes.index, strict=False):
        np.testing.assert_array_equal(dots.get_offsets()[:, 0], best.to_frame()[name])
    axes = WITH_VALUES.plot(ax=ax())
    sizes = [len(dots.get_offsets()) for dots in axes.collections]
    assert rows_of(axes) == ["x2", "x0", "x1"]
    assert sizes == [1, 1, 2, 2]  # x2 has a known and a missing value
    large = po.results.Explanation(attributions=np.ones((2_100, 1)), method="mine")
    axes = large.plot(ax=ax())
    assert len(axes.collections[0].get_offsets()) == 2_000
    assert axes.get_xlabel().endswith("a sample of 2,000 of 2,100 rows")


def test_a_row_is_drawn_largest_first_and_the_rest_summed(best):
    axes = best.plot.waterfall("c", n_features=2, ax=ax())
    row = best.to_frame().loc["c"]
    order = row.abs().sort_values(ascending=False).index
    assert rows_of(axes) == [*order[:2], "2 others"]
    expected = [*row[order[:2]], row[order[2:]].sum()]
    np.testing.assert_allclose(lengths_of(axes), expected)
    axes = WITH_VALUES.plot.waterfall(0, ax=ax())
    assert rows_of(axes) == ["x0 = 1", "x1 = no", "x2 = missing"]
    zeros = po.results.Explanation(attributions=np.diag([1.0, 2.0]), method="mine")
    assert rows_of(zeros.plot.waterfall(0, ax=ax())) == ["x0", "1 other"]


def test_contributions_are_steps_from_the_base_to_the_prediction():
    churn = Quantity(model="SVC", kind="log_odds", label=1, outcome="churn")
    for quantity, label in ((None, "output"), (churn, churn.in_words())):
        axes = contributions(quantity=quantity).plot.waterfall(1, ax=ax())
        # the lowest starts at the base, each other where the one below ends
        steps = {bar.get_width(): bar.get_x() for bar in axes.patches}
        assert steps == {-4.0: 5.0, 2.0: 3.0, 1.0: 2.0}
        assert texts(axes.texts) == ["−4", "+2", "+1", "base 2", "prediction 1"]
        assert [set(line.get_xdata()) for line in axes.lines] == [{2.0}, {1.0}]
        assert axes.get_xlabel() == label
    slopes = dataclasses.replace(contributions(), units="scaled")
    axes = slopes.plot.waterfall(1, ax=ax())  # are never drawn as steps
    assert {bar.get_x() for bar in axes.patches} == {0.0}
    assert not any("base" in text or "pred" in text for text in texts(axes.texts))


def test_errors_are_lines_and_uncertain_signs_are_hatched():
    result = contributions(standard_errors=ERRORS, base_value=None)
    axes = result.plot.waterfall(0, ax=ax())
    np.testing.assert_allclose(lines_of(axes), [[1.0, 5.0], [-2.2, 0.2], [0.3, 0.7]])
    for signs, word in ((SIGNS, "certain"), (contributions().clear(9.0), "clear")):
        axes = contributions().plot.waterfall(0, certain=signs, ax=ax())
        assert hatched_in(axes) == (signs.signs[0, [0, 1, 2]] == 0).tolist()
        assert axes.get_xlabel().endswith(f"hatched: sign not {word}")


def test_a_scatter_has_the_values_of_one_feature_and_the_colours_of_another():
    axes = WITH_VALUES.plot.scatter("x0", color="x2", ax=ax())
    known, missing = (dots.get_offsets().tolist() for dots in axes.collections)
    assert (known, missing) == ([[2.0, 1.0]], [[1.0, 3.0]])
    assert axes.get_ylabel().endswith("per unit of x0")
    axes = WITH_VALUES.plot.scatter(1, ax=ax())
    assert texts(axes.get_xticklabels()) == ["no", "missing"]


SHAPE = po.functions.ImageShape(channels=1, height=4, width=5)
IMAGES = po.results.Explanation(attributions=np.ones((2, 20)), method="mine")


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "attributions"))
def test_what_cannot_be_drawn_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def test_maps_stand_in_columns_and_images_in_rows_with_channels_summed(rng):
    coloured = po.functions.ImageShape(channels=3, height=4, width=5)
    W, G = rng.normal(size=(2, 3, 60))
    best = po.results.Explanation(attributions=W, method="mine")
    axes = best.plot.images(coloured, [2, 0], next_to={"gradient": G}, ax=ax())
    picture = np.asarray(axes.images[0].get_array())
    assert picture.shape == (8, 10)
    expected = W.reshape(3, 3, 4, 5).sum(axis=1)
    np.testing.assert_allclose(picture[:4, 5:], expected[2])
    np.testing.assert_allclose(picture[4:, 5:], expected[0])
    np.testing.assert_allclose(picture[:4, :5], G[2].reshape(3, 4, 5).sum(axis=0))
    assert rows_of(axes) + texts(axes.get_xticklabels()) == [
        "2",
        "0",
        "gradient",
        "mine",
    ]


# ---- what changed: bars, lines of refits, the level


def explained(W):
    return po.results.Explanation(attributions=np.asarray(W, float), method="mine")


def test_bars_within_the_level_are_hatched_and_refits_are_lines():
    zero = np.zeros((2, 3))
    others = [np.full((2, 3), [0.1 * k, 0.2 * k, 0.0]) for k in (0, 1, 2, 4, 4)]
    refits = [explained(x) for x in others]
    new = [explained(np.add(x, [0.1, 3.0, 0.0])) for x in others]
    comparison = po.compare(refits[0], new[0], level=(refits, new))
    axes = ax()
    assert comparison.plot(2, ax=axes) is axes
    assert rows_of(axes) == ["x1", "x0"]
    np.testing.assert_allclose(lengths_of(axes), [3.0, 0.1])
    assert hatched_in(axes) == [False, True]
    np.testing.assert_allclose(lines_of(axes), [[0.2, 0.4], [0.1, 0.2]])
    bare = po.compare(explained(zero), explained(zero + 1.0)).plot(ax=ax())
    assert len(bare.lines) == 1
    assert not any(hatched_in(bare))
    with pytest.raises(InvalidInput, match="n_features"):
        comparison.plot(0)
