"""How many texts a model is given, in how many calls, and what is said before."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.text import Reason
from propopt.lime import text_limits
from propopt.lime.text.text_reading import (
    announce_norms,
    compared_sets,
    n_steps,
    read_documents,
)
from propopt.structures.subsets.sums import AddedSets, NormalisedSum


def words(n, *first):
    return " ".join([*first, *(f"w{k}" for k in range(n - len(first)))])


def interaction(texts):
    return [float("good" in t and "w3" in t) for t in texts]


class Called:
    """A model that remembers how many texts each call had."""

    def __init__(self):
        self.sizes = []

    def __call__(self, texts):
        self.sizes.append(len(texts))
        return interaction(texts)


@pytest.mark.parametrize("d", [13, 14, 16, 30])
def test_estimates_cost_one_run_of_lime(d):
    result = text_limits(interaction, [words(d, "good")], n_samples=2000)
    assert result.sources[0].startswith("estimate (")
    assert 2000 <= result.evaluations <= 2020 + d


def test_few_words_have_all_their_sets_asked_for():
    result = text_limits(interaction, [words(12, "good")])
    assert result.sources == ("exact (all 4,096 sets of words)",)
    some = text_limits(interaction, [words(13, "good")], max_enumerated=13)
    assert some.sources == ("exact (all 8,192 sets of words)",)


def test_documents_are_looked_at_in_one_call():
    model = Called()
    f = po.wrap(model, data=[words(20, f"v{n}") for n in range(50)])
    documents = list(f.text_schema.documents)
    read_documents(f, documents[:1])  # the first call is tried twice
    model.sizes.clear()
    result = read_documents(f, documents)
    assert model.sizes == [50]
    assert len(result) == 50


def test_what_is_read_is_compared_for_all_documents_at_once():
    texts = [words(5, f"v{n}", "good") for n in range(40)]
    model = make_pipeline(CountVectorizer(binary=True), DecisionTreeRegressor())
    model.fit(texts, np.arange(40.0) % 7)
    f = po.wrap(model, data=texts)
    asked, sizes = model.predict, []

    def counted(given):
        sizes.append(len(given))
        return asked(given)

    object.__setattr__(f.readout, "method", counted)
    result = text_limits(f, texts)
    alone = [text_limits(f, [text]).coefficients[0] for text in texts[:3]]
    assert result.sources == ("exact",) * 40
    assert 40 * len(compared_sets(5)) in sizes
    np.testing.assert_array_equal(result.coefficients[:3], alone)


def normalised(d):
    text = words(d, "good")
    model = make_pipeline(TfidfVectorizer(), LinearRegression())
    model.fit([text, text[: len(text) // 2]], [1.0, 0.0])
    f = po.wrap(model, data=[text])
    (read,) = read_documents(f, list(f.text_schema.documents))
    return f, text, read.words


def test_norms_of_many_words_are_announced(capsys, monkeypatch):
    f, text, words_ = normalised(60)
    assert isinstance(words_, NormalisedSum)
    assert 30 * 60**2 < n_steps(words_) < 100 * 60**2
    both = AddedSets([(1.0, words_), (2.0, words_)])
    assert n_steps(both) == 2 * n_steps(words_)
    assert n_steps(Reason("")) == 0.0
    text_limits(f, [text])
    announce_norms("lime", [words_], 1e6, wanted=False)
    assert capsys.readouterr().err == ""
    announce_norms("lime", [words_], 1e6)
    assert "lime: exact means behind the norm of many words, about " in (
        capsys.readouterr().err
    )
    monkeypatch.setattr("propopt.lime.text.text_reading.WORTH_SAYING", 1e-9)
    result = text_limits(f, [text])
    assert "lime: exact means" in capsys.readouterr().err
    assert result.path(0).sign_changes is not None
    said = capsys.readouterr().err
    assert "path: exact means" in said
    assert "signs of coefficients: exact means" in said
