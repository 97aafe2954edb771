"""What is found in coefficients of LIME on texts, with the numbers of the spec."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from propopt.base.errors import Refused
from propopt.functions import wrap
from propopt.lime import TextLaw, text_limits
from propopt.lime.single_runs import expected_run, kept_words, single_text_run
from propopt.lime.text.text_diagnosis import ObservedWords
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.tables.documents import Document, PatternWords


def words(d, *named):
    """A text of d words, these first."""
    return " ".join([*named, *(f"w{k}" for k in range(d - len(named)))])


def tree(texts):
    """The tree of Mardaoui and Garreau (2021): food, or about and Everything."""
    result = [set(t.split()) for t in texts]
    return [float("food" in t or {"about", "Everything"} <= t) for t in result]


TREE = words(13, "food", "about", "Everything")


def limits_of(function, text, nu=0.25, **settings):
    settings = {"max_enumerated": 16, **settings}
    return text_limits(function, [text], TextLaw(nu), **settings)


def of(function, text, nu=0.25, n_samples=5000, **settings):
    return limits_of(function, text, nu, **settings).diagnose(n_samples)


@pytest.fixture(scope="module")
def plain():
    return of(tree, TREE)


def quiet(diagnosis, rule):
    (result,) = [item for item in diagnosis.quiet if item.rule == rule]
    return result


# ---- bandwidths, weights and samples


def test_sign_that_the_bandwidth_turns(plain):
    # z_1 z_2 − 0.7 z_1 turns its sign where the coefficient of z_1 z_2 is 0.7
    def f(texts):
        return [("came" in t) * (("back" in t) - 0.7) for t in texts]

    text, rule = words(14, "came", "back"), "bandwidth fragility"
    (item,) = of(f, text, 0.2).of(rule)
    assert item.column == 0
    roots = [0.2 * 2.0**item.number, 0.2 * 2.0**-item.number]
    near = [abs(limits_of(f, text, nu).coefficients[0][0]) for nu in roots]
    assert min(near) < 1e-4  # of 0.3 on both sides
    assert quiet(plain, rule).number is not None


def test_tiny_bandwidths_leave_one_out_and_few_samples_count(plain):
    (one,) = of(tree, TREE, 0.01).of("leaving one out")
    law = np.exp(TextLaw(0.01).log_weights(13))
    assert one.number == pytest.approx(law[-2] / law.sum())
    collapse = {"weight collapse: ridge", "weight collapse: samples"}
    assert collapse <= set(of(tree, TREE, 0.05, n_samples=50).rules)
    assert not {*collapse, "leaving one out"} & set(plain.rules)
    # the effective share of ν = 0.25 is 0.646 at d = 29, Σ⁻¹ has norm 26 at d = 500
    share = quiet(plain, "weight collapse: samples").number * 140.0 / 5000
    assert share == pytest.approx(0.646, abs=0.02)
    # where no weight is left it is told without a warning
    assert of(tree, TREE, 1e-3).of("weight collapse: ridge")[0].number == np.inf


def test_sums_that_are_not_f_and_what_no_sample_shows(plain):
    every = [f"w{k}" for k in range(8)]

    def f(texts):  # all words together
        return [float(set(t.split()) == set(every)) for t in texts]

    blind, gap = "blind spot", "low fidelity: local gap"
    result = of(f, " ".join(every))
    assert result.of(blind)[0].number == np.inf
    assert result.of(gap)[0].number == 1.0  # of largest 0: one
    assert quiet(plain, blind).number == pytest.approx(0.0, abs=1e-12)
    additive = of(lambda texts: [1.0 * ("w1" in t.split()) for t in texts], words(9))
    assert quiet(additive, blind).number == pytest.approx(1.0)
    assert quiet(additive, gap).number < 1e-12


def test_noise_and_ranks():
    few, many = of(tree, TREE, n_samples=40), of(tree, TREE, n_samples=10**7)
    assert few.of("unstable ranking")
    assert quiet(many, "unstable ranking").number > 0.99
    beta = limits_of(tree, TREE).coefficients[0]  # exact numbers, of the package's runs
    f = Enumerated.of(lambda z: z[:, 0] | z[:, 1] & z[:, 2], 13)
    sd = single_text_run(f, TextLaw(), 1.0, 40).standard_deviations[0]
    ratios = np.abs(beta - np.median(beta)) / sd
    for item in few.of("noise"):
        assert item.number == pytest.approx(ratios[item.column], rel=1e-6)
        assert item.number < 2.0


def test_words_left_out_of_the_fit():
    # all of fourteen words do the same together: four that are left out leave a trace
    def f(texts):
        return [(len(set(t.split())) / 14) ** 6 for t in texts]

    limits = limits_of(f, words(14))
    every = Enumerated.of(lambda z: (z.sum(axis=1) / 14) ** 6, 14)
    kept = kept_words(every, limits.law, 1.0, 10)
    fitted, whole = (
        expected_run(every, limits.law, 1.0, 5000, kept=some).coefficients[0]
        for some in (kept, None)
    )
    moved = np.abs(fitted - whole)[kept] / limits.coefficients[0].max()
    numbers = [item.number for item in limits.diagnose().of("words left out")]
    assert len(numbers) == 10
    np.testing.assert_allclose(np.sort(numbers), np.sort(moved), rtol=1e-6)
    few = of(f, words(9))
    assert "no more than 10 words" in quiet(few, "words left out").sentence


# ---- what the model makes of words

NOTES = ["Food was good", "bad food", "good food not bad", "no food at all"]


def pipeline(**settings):
    steps = CountVectorizer(**settings), Ridge()
    return make_pipeline(*steps).fit(NOTES, [1.0, 0.0, 1.0, 0.3])


def test_words_that_are_one_feature(tmp_path):
    rule, text = "words that are one feature", "Food was good, food was bad"
    result = of(pipeline(binary=True), text)
    shared = result.of(rule)
    named = [result.labels.features[item.column] for item in shared]
    assert sorted(named) == ["Food", "food"]
    assert shared[0].number == 2.0
    assert "'food' are one feature" in shared[0].sentence
    apart = of(pipeline(lowercase=False), "Food was good, food bad")
    assert quiet(apart, rule).number == 1.0
    assert of(pipeline(binary=True), text, words="lime").of(rule)
    result.save(tmp_path / "found.npz")
    assert repr(type(result).load(tmp_path / "found.npz")) == repr(result)
    assert "Food" in result._repr_html_()


def test_unknown_words_and_features_of_several_words(plain):
    result = of(pipeline(), "food is a u, v and w")
    (one,) = result.of("unknown words")
    assert one.number == pytest.approx(6 / 7)
    assert "knows 1 of 7 words" in one.sentence
    assert quiet(result, "ignored words with coefficients").number < 1e-12
    rule = "features of several words"
    result = of(pipeline(ngram_range=(1, 2)), "not good, food bad")
    (one,) = result.of(rule)
    assert one.number == 1.0
    assert "n-grams" in one.sentence
    assert "not looked for" in quiet(result, "unknown words").sentence
    assert "not known" in quiet(plain, rule).sentence


def test_what_a_model_sees():
    document = Document.of("Good, good food I say", PatternWords())
    hashed = HashingVectorizer(n_features=2, norm=None)
    seen = ObservedWords.of([CountVectorizer().fit(["good food"]), hashed], document)
    assert seen.known.tolist() == [True, True, True, False, True]
    assert seen.alike.max() >= 2
    assert not seen.crossing
    unread = ObservedWords.of([Ridge()], document)
    assert unread.known.all()
    assert "no pipeline" in unread.crossing[0]
    assert wrap(pipeline(), data=NOTES).vectorisers


# ---- estimates, several documents, long ones


def test_estimates_and_several_documents():
    texts = [words(20, "food"), words(5, "food")]
    long = text_limits(tree, texts, n_samples=600)
    result = long.diagnose()
    assert result.shape == (2, 20)
    told = (*result.told, *result.quiet)
    assert {item.row for item in told if item.row is not None} <= {0, 1}
    of_both = [item.sentence for item in told if item.row is None]
    assert all(words.endswith("so it is of 2 of 2 documents") for words in of_both)
    assert "diagnosis" in type(result).__name__.lower()
    assert set(long.diagnose(rows=[1]).to_frame()["row"].dropna()) == {1}
    with pytest.raises(Refused, match="says nothing"):
        text_limits(tree, [TREE, "food"]).diagnose(rows=[1])


def test_long_documents():
    result = of(pipeline(), words(600, "food", "good"), n_samples=10**6)
    for rule in ("noise", "unstable ranking", "words left out", "bandwidth fragility"):
        assert "more than 500 words" in quiet(result, rule).sentence
    assert result.of("unknown words")
