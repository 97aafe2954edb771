"""Runs of the real package on texts, against what is expected of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from text_lime_runs import tree

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.lime.package_runs import compare_text_with_package
from propopt.lime.text.text_reading import WordRegression


pytest.importorskip("lime")

FILLER = [f"w{j}" for j in range(26)]
TEXT = "food " + " ".join(FILLER[:9]) + " about, Everything! " + " ".join(FILLER[9:])


def paper_tree(texts):
    """1food + (1 − 1food) 1about 1Everything."""
    result = []
    for text in texts:
        words = set(text.replace(",", " ").replace("!", " ").split())
        result.append(float("food" in words or {"about", "Everything"} <= words))
    return np.array(result)


class InPlace:
    """The tree of the first three words, where food, about and Everything stand."""

    n_words = 29
    order = np.array([0, 10, 11, *range(1, 10), *range(12, 29)])

    def value(self, bits):
        return tree(29).value(np.asarray(bits)[:, self.order])

    def mean_by_size(self):
        return tree(29).mean_by_size()

    def kept(self, weights):
        result = np.empty((len(weights), 29))
        result[:, self.order] = tree(29).kept(weights)
        return result


def compared(n_runs, n_samples, bandwidth=0.25, **kwargs):
    f = po.wrap(paper_tree, data=[TEXT])
    return compare_text_with_package(
        f, TEXT, n_runs, n_samples, bandwidth, words=InPlace(), **kwargs
    )


def test_the_words_are_in_place():
    f = po.wrap(paper_tree, data=[TEXT])
    document = f.of_document(TEXT).document
    bits = np.random.default_rng(0).random((200, 29)) < 0.7
    np.testing.assert_array_equal(
        f.texts_value(document.texts(bits)), InPlace().value(bits)
    )


def error_of_z(result, coefficients=None):
    """The root of the mean square of z: about 1 of what is expected."""
    z = result.z if coefficients is None else result.z_of(coefficients)
    return np.sqrt((z**2).mean())


def test_as_few_samples_as_words():
    result = compared(200, 50)
    # the limit is .558 and the first order .456, where 200 runs tell ± .007
    assert result.mean[1] == pytest.approx(0.382, abs=0.03)
    assert result.expected[1] == pytest.approx(0.382, abs=0.001)
    # 30 numbers, |z| of a false alarm in 1 of 5000 tests; few runs are not normal
    assert np.abs(result.z).max() < 4.8
    assert error_of_z(result) < 1.5
    assert error_of_z(result, result.without["leverage"]) > 2.2
    assert result.to_frame().loc["food", "leverage"] == pytest.approx(-0.074, abs=0.002)


@pytest.mark.parametrize("bandwidth", [0.05, 0.25, 0.35])
def test_many_samples(bandwidth):
    result = compared(12, 1500, bandwidth)
    # t of 11 degrees of freedom: beyond 8 in 1 of 5000 tests of 30 numbers
    assert np.abs(result.z).max() < 8.0
    assert np.abs(result.mean - result.expected).max() < 0.12
    assert error_of_z(result) < 1.7


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", [0.05, 0.25, 0.35])
def test_published_runs_of_5000_samples(bandwidth):
    result = compared(40, 5000, bandwidth)
    # t of 39 degrees of freedom: beyond 5.2 in 1 of 5000 tests of 30 numbers
    assert np.abs(result.z).max() < 5.2
    assert error_of_z(result) < 1.4


def test_a_choice_of_words():
    result = compared(15, 1500, num_features=3)
    np.testing.assert_array_equal(np.flatnonzero(result.expected[1:]), [0, 10, 11])
    chosen = (result.runs[:, 1:] != 0).all(axis=0)
    np.testing.assert_array_equal(np.flatnonzero(chosen), [0, 10, 11])
    some = [0, 1, 11, 12]
    # t of 14 degrees of freedom, four numbers: beyond 6 in 1 of 8000 tests
    assert np.abs(result.z[some]).max() < 6.0


def test_a_forest_that_was_read():
    texts = [
        "good food and good price",
        "bad food",
        "no price is good",
        "bad bad price",
    ]
    texts = [f"{a}, {b}" for a in texts for b in texts]
    target = np.array(["good" in text for text in texts]).astype(int)
    forest = RandomForestClassifier(20, max_depth=4, random_state=0)
    model = make_pipeline(CountVectorizer(binary=True), forest).fit(texts, target)
    f = po.wrap(model, output="probability", data=texts)
    result = compare_text_with_package(f, texts[1], 15, 600)
    assert result.labels == ("good", "food", "and", "price", "bad")
    limit = WordRegression(f.subsets(f.of_document(texts[1]).document))
    exact = limit.at(np.array([0.25])).coefficients[0]
    np.testing.assert_allclose(result.without["ridge"][1:], exact, atol=1e-12)
    # t of 14 degrees of freedom, six numbers: beyond 6 in 1 of 5000 tests
    assert np.abs(result.z).max() < 6.0


def test_one_model_as_it_is_and_by_all_its_texts():
    f = po.wrap(lambda texts: [float("b" in t) * len(t) for t in texts], data=["a b c"])
    result = compare_text_with_package(f, "a b c", 10, 300)
    assert np.abs(result.z).max() < 9.0


def test_refusals():
    f = po.wrap(paper_tree, data=[TEXT])
    with pytest.raises(Refused, match="29 words has too many parts"):
        compare_text_with_package(f, TEXT)
    with pytest.raises(InvalidInput, match="n_runs"):
        compare_text_with_package(f, TEXT, 1)
    with pytest.raises(InvalidInput, match="two distinct words"):
        compare_text_with_package(f, "food food")
