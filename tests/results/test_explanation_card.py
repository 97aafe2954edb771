"""Cards of explanations: where contributions are highest, and the facts."""

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import spearmanr

import propopt as po
from propopt.results.explanation import Explanation
from propopt.results.explanation_document import (
    highest_for,
    sign_text,
    size_columns,
)
from propopt.tables.frames import Labels


NAN = np.nan


@pytest.mark.parametrize("slope", [-1.0, -0.5, -0.1, 0.0, 0.3, 0.6, 2.0])
@pytest.mark.parametrize("levels", [2, 5, 1_000])
def test_numbers_are_ranked_as_by_spearman(slope, levels):
    rng = default_rng(levels)
    x = rng.integers(0, levels, 200).astype(float)  # with ties
    w = slope * x / levels + 0.3 * rng.normal(size=200).round(1)
    rho = spearmanr(x, w).statistic
    expected = "mixed" if abs(rho) < 0.5 else "high" if rho > 0.0 else "low"
    assert highest_for(x, w) == expected
    some = np.where(rng.random(200) < 0.2, NAN, x)  # the others decide
    rho = spearmanr(some, w, nan_policy="omit").statistic
    expected = "mixed" if abs(rho) < 0.5 else "high" if rho > 0.0 else "low"
    assert highest_for(some, np.where(np.isnan(some), np.median(w), w)) == expected


@pytest.mark.parametrize(
    ("x", "w", "categories", "expected"),
    [
        ([3, 3, 3], [1, 0, 2], None, ""),  # no value to compare
        ([1, 2, 3], [0.1, 0.1, 0.1 + 1e-16], None, ""),  # rounding
        ([NAN, NAN], [1, 2], None, ""),
        ([1, 1, 1, NAN], [0, 0, 0, 1], None, "missing"),
        ([1, 1, 1, NAN], [0, 0, 0, -1], None, "present"),
        ([1, 2, 3, NAN], [0, 1, 2, 1], None, "high"),
        ([*range(11), NAN], [*range(11), 0.9], None, "present"),  # the middle is 1 to 9
        ([*range(11), NAN], [*range(11), 1.1], None, "high"),
        ([*range(11), NAN], [*range(11), 9.1], None, "missing"),
        ([1, 1, *3 * [NAN]], 5 * [0.1], None, ""),  # the mean of 0.1 is rounded
        ([0, 1, 2, 1], [3, 1, 2, 9], ("a", "b", "c"), "b"),
        ([0, 1, NAN, NAN], [3, 1, -4, -4], ("a", "b"), "present"),
        ([1, 1, 1], [3, 1, 2], ("a", "b"), ""),
    ],
)
def test_special_columns_have_their_words(x, w, categories, expected):
    x, w = np.array(x, float), np.array(w, float)
    assert highest_for(x, w, categories) == expected
    order = default_rng(0).permutation(len(x))
    assert highest_for(x[order], w[order], categories) == expected


def test_values_that_few_rows_have_are_not_named():
    names = [f"only {n}" for n in range(40)]
    x, w = np.arange(40.0), np.arange(40.0)
    assert highest_for(x, w, names) == ""
    x[-3:] = 5.0  # four of 40 rows have it
    assert highest_for(x, w, names) == "only 5"


def test_signs_are_those_of_values_that_are_not_zero():
    signs = [sign_text(*sides) for sides in [(1, 0), (0, 0.2), (0.3, 0.1), (0, 0)]]
    assert signs == ["+", "−", "+ in 75%", ""]


def test_shares_of_sizes_do_not_overflow():
    columns = size_columns(np.array([1.5e308, 0.5e308, 0.0]), np.array([0, 1, 2]))
    assert columns["share"] == ["75%", "25%", "0%"]
    nothing = size_columns(np.zeros(2), np.array([0, 1]))
    assert nothing["share"] == ["0%", "0%"]


# ---- cards


PHI = np.array([[3.0, -1.0, 0.5], [-2.0, 1.0, 0.2], [1.0, -4.3, 0.1]])
X = np.array([[9.0, 1.0, 5.0], [2.0, 0.0, 5.0], [7.0, NAN, 5.0]])


def parts(W=PHI, **fields):
    of_rows = {
        "contributions": PHI[: len(W)],
        "base_value": np.full(len(W), 10.0),
        "prediction": 10.0 + PHI.sum(axis=1)[: len(W)],
        "points": X[: len(W)],
    }
    return Explanation(
        attributions=W,
        method="optimized",
        units="output",
        labels=Labels(None, ("age", "plan", "fee")),
        categories={"plan": ("basic", "full")},
        **{**of_rows, **fields},
    )


def facts_of(best):
    return {label: fact.value for label, fact in best.document().facts.items()}


def test_a_card_has_the_largest_features_and_where_they_are_highest():
    document = parts().document()
    table = document.blocks[0]
    assert [*table.frame.index] == ["plan", "age", "fee"]
    np.testing.assert_allclose(table.frame["mean size"], [2.1, 2.0, 0.8 / 3.0])
    assert [*table.frame["highest for"]] == ["present", "high", ""]
    assert [*table.frame["share"]] == ["48%", "46%", "6%"]
    assert table.bars["mean size"][0][:2] == pytest.approx((-5.3 / 3.0, 1.0 / 3.0))
    texts = parts(points=None).document().blocks[0].frame
    assert [*texts["sign"]] == ["+ in 33%", "+ in 67%", "+"]


def test_facts_compare_with_shap_values():
    W = PHI + np.array([[0.0, 0.0, 0.0], [0.0, -1.6, 1.6], [3.5, 0.0, -3.5]])
    facts = facts_of(parts(W))
    size = np.abs(PHI).sum()
    assert facts["differs from SHAP"] == pytest.approx(np.abs(W - PHI).sum() / size)
    assert facts["top feature as SHAP"] == pytest.approx(2.0 / 3.0)
    document = parts(W).document()
    # |φ| > 0.1 · mean(3, 2, 4.3): all but 0.2 and 0.1; one of them turned
    assert document.facts["signs against SHAP"].number == "1 of 7 large"
    assert facts["additivity error"] == 0.0
    uneven = parts(W + np.array([0.0, 0.5, 0.0]))
    assert facts_of(uneven)["additivity error"] == pytest.approx(0.5)
    others = PHI + np.array([0.0, 1.0, 0.0])  # no Shapley values
    assert "differs from SHAP" not in facts_of(parts(W, contributions=others))


def test_one_row_has_its_values_base_and_prediction():
    document = parts(PHI[:1] + np.array([0.0, 0.5, -0.5])).document()
    frame = document.blocks[0].frame
    assert [*frame.columns] == ["value", "contribution", "SHAP value", "clear"]
    assert [*frame["value"]] == ["9", "full", "5"]
    assert [*frame["SHAP value"]] == [3.0, -1.0, 0.5]
    facts = document.facts
    assert (facts["base"].value, facts["prediction"].value) == (10.0, 12.5)
    assert facts["top feature as SHAP"].text == "yes"
    alone = parts(PHI[:1], contributions=None).document().blocks[0].frame
    assert "SHAP value" not in alone


@pytest.mark.parametrize("share", [0.35, 0.04, "not estimated"])
def test_groups_are_suggested_where_data_has_them_hardly_ever_apart(share):
    mixed = {"mixtures never seen": share, "never together": "age with fee"}
    best = parts(PHI[:1], parameters=mixed, together=(("age", "fee"),))
    document = best.document()
    frame = document.blocks[0].frame
    assert [*frame.columns][2:] == ["SHAP value", "together", "clear"]
    np.testing.assert_array_equal(frame["together"], [3.5, NAN, 3.5])
    assert len(document.dangers) == (share == 0.35)
    label = "mixtures never seen in data"
    if isinstance(share, float):
        fact = document.facts[label]
        assert (fact.value, fact.unit, fact.note) == (
            share,
            "% at least",
            "age with fee",
        )
        assert fact.shown_basis == "estimated"
    else:
        assert label not in document.facts
    alone = parts(PHI[:1], parameters=mixed | {"without data": True})
    assert len(alone.document().dangers) == 2


def test_unknown_gaps_have_a_reason_and_baselines_none():
    assert facts_of(parts())["gap to optimum"] is None
    document = parts(parameters={"not proved": "no duals"}).document()
    assert document.facts["gap to optimum"].text == "unknown (no duals)"
    other = Explanation(attributions=PHI, method="lime").document()
    assert [*other.facts] == ["clear signs"]
    by_row = parts(details={"gap": np.array([1e-3, 0.0, 2e-3])}).document()
    assert by_row.facts["gap to optimum"].value == 2e-3


def test_the_best_of_a_loss_keeps_its_faithfulness():
    objective = po.GradientMatching(np.array([[0.0, 1.0], [2.0, 1.0]]))
    best = po.solve(objective + 0.25 * po.PairwiseRobustness(po.graphs.chain_graph(2)))
    facts = best.document().facts
    assert facts["faithfulness kept"].value == pytest.approx(0.75)
    assert facts["gap to optimum"].shown_basis == "proved"
    assert facts["sampling error"].value is None
    assert best[[1]].document().facts["gap to optimum"].note == "of all 2 rows"
