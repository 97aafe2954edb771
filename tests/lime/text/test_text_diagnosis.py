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
from propopt.lime.text.text_diagnosis import ObservedWords
from propopt.lime.text.text_runs import expected_run, kept_words, single_text_run
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


def of(function, text, nu=0.25, n_samples=5000, **settings):
    settings = {"max_enumerated": 16, **settings}
    return text_limits(function, [text], TextLaw(nu), **settings).diagnose(n_samples)


def quiet(diagnosis, rule):
    (result,) = [item for item in diagnosis.quiet if item.rule == rule]
    return result


def test_sign_that_the_bandwidth_turns():
    # z_1 z_2 − 0.7 z_1 turns its sign where the coefficient of z_1 z_2 is 0.7
    def f(texts):
        return [("came" in t) * (("back" in t) - 0.7) for t in texts]

    result = of(f, words(14, "came", "back"), 0.2).of("bandwidth fragility")
    assert [item.column for item in result] == [0]
    root = 0.2 * 2.0 ** result[0].number
    other = 0.2 * 2.0 ** -result[0].number
    near = [
        abs(
            text_limits(
                f, [words(14, "came", "back")], TextLaw(nu), max_enumerated=14
            ).coefficients[0][0]
        )
        for nu in (root, other)
    ]
    assert min(near) < 1e-4  # of 0.3 on both sides
    assert quiet(of(tree, TREE), "bandwidth fragility").number is not None


def test_tiny_bandwidth_leaves_one_out():
    result = of(tree, TREE, 0.01)
    (one,) = result.of("leaving one out")
    law = np.exp(TextLaw(0.01).log_weights(13))
    assert one.number == pytest.approx(law[-2] / law.sum())
    assert "leaving one out" not in of(tree, TREE).rules


def test_ridge_and_samples_that_count():
    result = of(tree, TREE, 0.05, n_samples=50)
    assert {"weight collapse: ridge", "weight collapse: samples"} <= set(result.rules)
    fine = of(tree, TREE, n_samples=5000)
    assert not {"weight collapse: ridge", "weight collapse: samples"} & set(fine.rules)
    # the effective share of ν = 0.25 is 0.646 at d = 29, Σ⁻¹ has norm 26 at d = 500
    share = quiet(of(tree, TREE), "weight collapse: samples").number * 140.0 / 5000
    assert share == pytest.approx(0.646, abs=0.02)


def test_sums_that_are_not_f_and_what_no_sample_shows():
    every = [f"w{k}" for k in range(8)]

    def f(texts):  # all words together
        return [float(set(t.split()) == set(every)) for t in texts]

    result = of(f, " ".join(every))
    assert result.of("blind spot")[0].number == np.inf
    assert result.of("low fidelity: local gap")[0].number == 1.0  # of largest 0: one
    number = quiet(of(tree, TREE), "blind spot")
    assert number.number == pytest.approx(0.0, abs=1e-12)
    additive = of(lambda texts: [1.0 * ("w1" in t.split()) for t in texts], words(9))
    assert quiet(additive, "blind spot").number == pytest.approx(1.0)
    assert quiet(additive, "low fidelity: local gap").number < 1e-12


NOTES = ["Food was good", "bad food", "good food not bad", "no food at all"]


def pipeline(vectoriser):
    return make_pipeline(vectoriser, Ridge()).fit(NOTES, [1.0, 0.0, 1.0, 0.3])


def test_words_that_are_one_feature():
    model = pipeline(CountVectorizer(binary=True))
    result = of(model, "Food was good, food was bad")
    shared = result.of("words that are one feature")
    named = [result.labels.features[item.column] for item in shared]
    assert sorted(named) == ["Food", "food"]
    assert shared[0].number == 2.0
    assert "'food' are one feature" in shared[0].sentence
    apart = of(pipeline(CountVectorizer(lowercase=False)), "Food was good, food bad")
    assert quiet(apart, "words that are one feature").number == 1.0
    by_model = of(model, "Food was good, food was bad", words="lime")
    assert by_model.of("words that are one feature")


def test_unknown_words():
    result = of(pipeline(CountVectorizer()), "food is a u, v and w")
    (one,) = result.of("unknown words")
    assert one.number == pytest.approx(6 / 7)
    assert "knows 1 of 7 words" in one.sentence
    assert quiet(result, "ignored words with coefficients").number < 1e-12


def test_features_of_several_words():
    result = of(pipeline(CountVectorizer(ngram_range=(1, 2))), "not good, food bad")
    (one,) = result.of("features of several words")
    assert one.number == 1.0
    assert "n-grams" in one.sentence
    assert "not looked for" in quiet(result, "unknown words").sentence
    hidden = of(tree, TREE)
    assert "not known" in quiet(hidden, "features of several words").sentence


def test_noise_and_ranks():
    few, many = of(tree, TREE, n_samples=40), of(tree, TREE, n_samples=10**7)
    assert few.of("unstable ranking")
    assert quiet(many, "unstable ranking").number > 0.99
    for item in few.of("noise"):  # exact numbers, of the package's runs
        limits = text_limits(tree, [TREE], max_enumerated=13)
        beta = limits.coefficients[0]
        f = Enumerated.of(lambda z: z[:, 0] | z[:, 1] & z[:, 2], 13)
        run = single_text_run(f, limits.law, 1.0, 40)
        contrast = abs(beta[item.column] - np.median(beta))
        sd = run.standard_deviations[0, item.column]
        assert item.number == pytest.approx(contrast / sd, rel=1e-6)
        assert item.number < 2.0


def test_words_left_out_of_the_fit():
    # all of fourteen words do the same together: four that are left out leave a trace
    def f(texts):
        return [(len(set(t.split())) / 14) ** 6 for t in texts]

    limits = text_limits(f, [words(14)], max_enumerated=14)
    result = limits.diagnose()
    every = Enumerated.of(lambda z: (z.sum(axis=1) / 14) ** 6, 14)
    kept = kept_words(every, limits.law, 1.0, 10)
    fitted, whole = (
        expected_run(every, limits.law, 1.0, 5000, kept=some).coefficients[0]
        for some in (kept, None)
    )
    moved = np.abs(fitted - whole)[kept] / limits.coefficients[0].max()
    numbers = [item.number for item in result.of("words left out")]
    assert len(numbers) == 10
    np.testing.assert_allclose(np.sort(numbers), np.sort(moved), rtol=1e-6)
    few = text_limits(f, [words(9)]).diagnose()
    assert "no more than 10 words" in quiet(few, "words left out").sentence


def test_estimates_and_several_documents():
    long = text_limits(tree, [words(20, "food"), words(5, "food")], n_samples=600)
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


def test_result_is_saved(tmp_path):
    result = of(pipeline(CountVectorizer()), "Food was good, food was bad", 0.02)
    result.save(tmp_path / "found.npz")
    assert repr(type(result).load(tmp_path / "found.npz")) == repr(result)
    assert "Food" in result._repr_html_()


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
    assert wrap(pipeline(CountVectorizer()), data=NOTES).vectorisers


def test_long_documents():
    model = pipeline(CountVectorizer())
    result = of(model, words(600, "food", "good"), n_samples=10**6)
    for rule in ("noise", "unstable ranking", "words left out", "bandwidth fragility"):
        assert "more than 500 words" in quiet(result, rule).sentence
    assert result.of("unknown words")


def test_a_bandwidth_at_which_no_weight_is_left_is_told_without_a_warning():
    result = of(tree, TREE, 1e-3)
    assert result.of("weight collapse: ridge")[0].number == np.inf
