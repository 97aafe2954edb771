"""Metrics of faithfulness on documents, by the words of each."""

from __future__ import annotations

import numpy as np
import pytest
from text_models import DOCUMENTS, called, forest, linear

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Gradient, TreeShap
from propopt.explaining.metrics import (
    CompletenessGap,
    FaithfulnessCorrelation,
    Infidelity,
    UndefinedRowsWarning,
)


TEXTS = [text for text in DOCUMENTS if text]


@pytest.fixture(scope="module")
def function():
    return po.wrap(forest(), data=DOCUMENTS)


@pytest.fixture(scope="module")
def shapley(function):
    return TreeShap().explain(function, TEXTS)


def test_shapley_values_are_complete_and_effects_are_not(function, shapley):
    assert CompletenessGap()(shapley, function, TEXTS).max() < 1e-12
    effects = Gradient().explain(function, TEXTS)
    assert CompletenessGap()(effects, function, TEXTS).max() > 0.01


def test_a_gap_is_the_sum_less_what_all_words_change():
    function = po.wrap(called, data=["a bad not at"])
    gap = CompletenessGap()(
        np.array([[1.0, 1.0, 1.0, 1.0]]), function, ["a bad not at"]
    )
    assert gap == pytest.approx([3.0])


def test_additive_attributions_are_perfectly_correlated():
    texts = ["one two three four five", "six seven eight nine"]
    function = po.wrap(lambda t: [3.0 * x.count("o") for x in t], data=texts)
    effects = Gradient().explain(function, texts[:1])
    result = FaithfulnessCorrelation(k=2)(effects, function, texts[:1])
    assert result == pytest.approx([1.0])


def test_noise_says_nothing_of_words(function, shapley):
    with pytest.raises(InvalidInput, match="present or absent"):
        Infidelity(scale=0.1)(shapley, function, TEXTS)


def test_a_background_is_refused(function, shapley):
    metric = CompletenessGap(background=np.zeros((1, 3)))
    with pytest.raises(InvalidInput, match="text without any word"):
        metric(shapley, function, TEXTS)


def test_a_document_without_words_is_undefined(function):
    result = TreeShap().explain(function, DOCUMENTS)
    with pytest.warns(UndefinedRowsWarning):
        gaps = CompletenessGap()(result, function, DOCUMENTS)
    assert np.flatnonzero(np.isnan(gaps)).tolist() == [DOCUMENTS.index("")]


@pytest.mark.parametrize(
    "metric",
    [
        po.metrics.MaxSensitivity(),
        po.metrics.AvgSensitivity(),
        po.metrics.LocalLipschitz(),
        po.metrics.RelativeInputStability(),
    ],
    ids=lambda metric: metric.name,
)
def test_robustness_to_noise_is_refused_in_a_sentence(function, metric):
    method = po.metrics.BaselineMethod(explainer=Gradient(), function=function)
    with pytest.raises(InvalidInput, match=f"{metric.name}: .*SharedRobustness"):
        metric(method, TEXTS)


def test_robustness_to_outputs_is_refused_too(function):
    metric = po.metrics.RelativeOutputStability()
    with pytest.raises(InvalidInput, match="present or absent"):
        metric(lambda X: X, function, TEXTS)


def test_sparseness_is_of_the_words_of_a_document():
    function = po.wrap(linear(), output="log_odds", data=DOCUMENTS)
    counts, shapley = function.read(TEXTS)[0], TreeShap().explain(function, TEXTS)
    result = po.metrics.Sparseness()(shapley, present=counts)
    for n, row in enumerate(shapley.attributions):
        expected = po.metrics.Sparseness()(row[None, counts[n] > 0])
        assert result[n] == pytest.approx(expected[0])
    diluted = po.metrics.Sparseness()(shapley)
    assert (result < diluted - 0.1).all()
    table = po.metrics.evaluate([po.metrics.Sparseness()], function, TEXTS, [shapley])
    assert table.iloc[0, 0] == pytest.approx(result.mean())


def test_an_optimum_knows_its_words():
    function = po.wrap(linear(), output="log_odds", data=DOCUMENTS)
    best = po.explain(function, TEXTS, progress=False)
    counts, _ = function.read(TEXTS)
    metric = po.metrics.Sparseness()
    np.testing.assert_array_equal(metric(best), metric(best, present=counts))


def test_words_of_another_shape_are_refused(shapley):
    with pytest.raises(InvalidInput, match="present: expected the shape"):
        po.metrics.Complexity()(shapley, present=np.ones((2, 3)))
