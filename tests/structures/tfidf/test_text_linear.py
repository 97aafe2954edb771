"""Linear models of words against the values of the fitted models, for all sets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingRegressor, VotingClassifier, VotingRegressor
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    RANSACRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from subset_oracle import assert_means, masks

import propopt as po
from propopt.base.text import Reason
from propopt.lime.text.text_reading import WordRegression
from propopt.structures.subsets.sums import NormalisedSum, PlainSum
from propopt.structures.tfidf import text_sums
from propopt.structures.tfidf.text_sums import LinearRow, before
from propopt.tables.documents import Document, PatternWords


WORDS = [*(f"w{k}" for k in range(12)), "Food", "food", "x"]
TEXT = "Food food w1 w1 w2 w3 unseen w4 x w5"
"""Two cases of a word, one twice, one of a single letter, and one that is unknown."""

DOCUMENT = Document.of(TEXT, PatternWords())
BITS = masks(DOCUMENT.n_words)
TEXTS = DOCUMENT.texts(BITS)


def corpus(n=60):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 20))) for _ in range(n)]
    return texts, rng.normal(size=n)


DOCUMENTS, NUMBERS = corpus()
TWO, THREE = (NUMBERS > 0).astype(int), np.digitize(NUMBERS, [-0.5, 0.5])
VECTORISERS = {
    "l2": TfidfVectorizer(),
    "l1": TfidfVectorizer(norm="l1", sublinear_tf=True, lowercase=False),
    "plain": TfidfVectorizer(norm=None),
    "counts": CountVectorizer(),
    "presence": CountVectorizer(binary=True, token_pattern=r"\b\w+\b"),
    "after counts": make_pipeline(CountVectorizer(), TfidfTransformer(use_idf=False)),
    "hashed": HashingVectorizer(n_features=16),
}


def read(model, y, output, target=None):
    """The function that is read at the document, and the values of the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that do not converge
        model.fit(DOCUMENTS, y)
    function = po.wrap(model, target, output, data=[TEXT])
    return function.subsets(DOCUMENT), function.texts_value(TEXTS)


def check(model, y, output, target=None, kind=NormalisedSum):
    result, values = read(model, y, output, target)
    assert isinstance(result, kind), result
    assert_means(result, values, BITS, atol=1e-10)


def reason(model, y, output, target=None):
    result, _ = read(model, y, output, target)
    assert isinstance(result, Reason)
    return result.reason


@pytest.mark.parametrize("name", VECTORISERS)
@pytest.mark.parametrize(
    ("y", "output", "target"), [(TWO, "log_odds", 0), (THREE, "margin", 2)]
)
def test_scores_of_logistic_regression_are_exact(name, y, output, target):
    norm = name not in ("plain", "counts", "presence")
    kind = NormalisedSum if norm else PlainSum
    check(
        make_pipeline(VECTORISERS[name], LogisticRegression()), y, output, target, kind
    )


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        LinearSVC(),
        OneVsRestClassifier(LinearSVC()),
        Perceptron(),
        RidgeClassifier(),
        SGDClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(("y", "target"), [(TWO, 0), (TWO, 1), (THREE, 1)])
def test_margins_are_exact(model, y, target):
    svd = [TruncatedSVD(5, random_state=0)]
    dense = svd if isinstance(model, LinearDiscriminantAnalysis) else []
    if dense and len(set(y)) == 2:
        check(make_pipeline(TfidfVectorizer(), *dense, model), y, "log_odds", target)
    check(make_pipeline(TfidfVectorizer(), *dense, model), y, "margin", target)


@pytest.mark.parametrize(
    "model",
    [
        BaggingRegressor(Ridge(), 3, max_features=0.5, random_state=0),
        HuberRegressor(),
        KernelRidge(),
        Lasso(alpha=1e-3),
        LinearSVR(random_state=0),
        RANSACRegressor(LinearRegression(), min_samples=40, random_state=0),
        Ridge(),
        SGDRegressor(random_state=0),
        SVR(kernel="linear"),
        VotingRegressor([("a", Ridge()), ("b", LinearRegression())], weights=[1, 3]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regressions_are_exact(model):
    check(make_pipeline(TfidfVectorizer(), model), NUMBERS, "value")


def test_two_classes_of_a_linear_support_vector_machine_are_exact():
    check(make_pipeline(TfidfVectorizer(), SVC(kernel="linear")), TWO, "margin", 0)


@pytest.mark.parametrize("name", VECTORISERS)
@pytest.mark.parametrize(
    "model",
    [
        BernoulliNB(),
        BernoulliNB(fit_prior=False),
        ComplementNB(norm=True),
        MultinomialNB(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_log_odds_of_naive_bayes_are_exact(name, model):
    if name == "hashed":  # counts with signs have no logarithm
        return
    normed = name in ("l1", "l2", "after counts") and not isinstance(model, BernoulliNB)
    kind = NormalisedSum if normed else PlainSum
    check(make_pipeline(VECTORISERS[name], model), TWO, "log_odds", 0, kind)


@pytest.mark.parametrize(
    "steps",
    [
        [MaxAbsScaler()],
        [SelectKBest(k=8)],
        [StandardScaler(with_mean=False)],
        [TruncatedSVD(5, random_state=0), StandardScaler()],
        [VarianceThreshold(1e-3), SelectKBest(k=9), "passthrough", MaxAbsScaler()],
    ],
    ids=lambda steps: " ".join(type(step).__name__ for step in steps),
)
def test_linear_steps_in_between_are_exact(steps):
    check(
        make_pipeline(TfidfVectorizer(), *steps, LogisticRegression()), TWO, "log_odds"
    )


@pytest.mark.parametrize(
    "steps",
    [
        [Normalizer("l1")],
        [MaxAbsScaler(), Normalizer("l2"), SelectKBest(k=8)],
        [SelectKBest(k=8), Normalizer("l1"), "passthrough", MaxAbsScaler()],
        [SelectKBest(k=9), TfidfTransformer(), StandardScaler(with_mean=False)],
        [TfidfTransformer(use_idf=False, norm=None), Normalizer()],
    ],
    ids=lambda steps: " ".join(type(step).__name__ for step in steps),
)
@pytest.mark.parametrize("first", [CountVectorizer(), TfidfVectorizer()])
def test_norms_behind_other_steps_are_exact(first, steps):
    check(make_pipeline(first, *steps, LogisticRegression()), TWO, "log_odds")


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        ([TruncatedSVD(4), Normalizer()], "a norm is taken behind TruncatedSVD"),
        ([Normalizer("max")], "a norm is taken behind Normalizer"),
        ([MaxAbsScaler(), TfidfTransformer(sublinear_tf=True)], "TfidfTransformer"),
        ([TfidfTransformer(norm=None, sublinear_tf=True)], "TfidfTransformer"),
    ],
)
def test_norms_of_sums_over_words_are_refused(steps, what):
    model = make_pipeline(TfidfVectorizer(), *steps, LogisticRegression())
    assert what in reason(model, TWO, "log_odds", 1)


@pytest.mark.parametrize("norm", [Normalizer(), TfidfTransformer()])
def test_norms_of_members_are_exact(norm):
    vote = VotingRegressor([("a", make_pipeline(norm, Ridge()))])
    check(make_pipeline(CountVectorizer(), MaxAbsScaler(), vote), NUMBERS, "value")


@pytest.mark.parametrize(
    "steps",
    [[Binarizer()], [CountVectorizer], [MaxAbsScaler(), Binarizer(threshold=0.2)]],
    ids=["of tf-idf", "above 1", "scaled"],
)
def test_comparisons_with_thresholds_are_exact(steps):
    if steps == [CountVectorizer]:
        model = make_pipeline(CountVectorizer(), BernoulliNB(binarize=1.0))
    else:
        first = TfidfVectorizer() if len(steps) == 1 else CountVectorizer()
        model = make_pipeline(first, *steps, LogisticRegression())
    check(model, TWO, "log_odds", kind=PlainSum)


@pytest.mark.parametrize(
    ("model", "y", "output", "what"),
    [
        (LogisticRegression(), TWO, "probability", "'log_odds' of two classes"),
        (LogisticRegression(), THREE, "log_odds", "'margin' is"),
        (MultinomialNB(), THREE, "log_odds", "'log_odds' of two classes is"),
        (PoissonRegressor(), abs(NUMBERS), "value", "exp of a weighted sum"),
        (SVC(), TWO, "margin", "kernel='rbf'"),
        (SVC(kernel="linear"), THREE, "margin", "votes between pairs"),
        (CalibratedClassifierCV(LinearSVC()), TWO, "log_odds", "before calibration"),
        (BernoulliNB(binarize=0.2), TWO, "log_odds", "norm='l2'"),
        (
            VotingClassifier([("a", LogisticRegression())], voting="soft"),
            TWO,
            "probability",
            "probabilities averaged",
        ),
        (
            make_pipeline(PolynomialFeatures(), LogisticRegression()),
            TWO,
            "log_odds",
            "PolynomialFeatures",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_sum_is_refused_with_what_is(model, y, output, what):
    target = 1 if output != "value" else None
    assert what in reason(make_pipeline(TfidfVectorizer(), model), y, output, target)


def test_a_weight_that_is_not_finite_is_refused():
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    model.fit(DOCUMENTS, TWO)
    model[-1].feature_log_prob_[0, 3] = -np.inf
    function = po.wrap(model, output="log_odds", data=[TEXT])
    assert "not finite" in function.subsets(DOCUMENT).reason


def test_more_words_than_can_be_enumerated_are_refused_with_their_features(monkeypatch):
    monkeypatch.setattr(text_sums, "MOST_SHARED", 1)
    model = make_pipeline(TfidfVectorizer(), Ridge())
    assert "'food'" in reason(model, NUMBERS, "value")


def test_a_text_that_takes_too_long_is_refused_with_what_would_not(monkeypatch):
    monkeypatch.setattr(text_sums, "_LONGEST", 1000.0)
    model = make_pipeline(TfidfVectorizer(), Ridge())
    assert "norm=None" in reason(model, NUMBERS, "value")


def test_a_text_without_words_is_refused():
    model = make_pipeline(TfidfVectorizer(), Ridge()).fit(DOCUMENTS, NUMBERS)
    result = po.wrap(model, data=[TEXT]).subsets(Document.of("...", PatternWords()))
    assert result == Reason("the document has no word")


def test_a_word_in_two_cases_counts_for_both():
    """The trap of lowered case, f = 1{food}: each of both has .353, and not 1 or .5."""
    model = make_pipeline(
        CountVectorizer(binary=True), LinearRegression(fit_intercept=False)
    )
    words = ["food", *(f"v{k}" for k in range(17))]
    model.fit(words, np.eye(18)[0])
    document = Document.of(" ".join(["Food", *words]), PatternWords())
    result = po.wrap(model, data=words).subsets(document)
    limits = WordRegression(result).at(np.array([0.25]))
    assert limits.coefficients[0, :2] == pytest.approx([0.353, 0.353], abs=5e-4)


def test_words_alone_have_one_and_nothing_with_case_kept():
    model = make_pipeline(
        CountVectorizer(binary=True, lowercase=False),
        LinearRegression(fit_intercept=False),
    )
    words = ["food", *(f"v{k}" for k in range(17))]
    model.fit(words, np.eye(18)[0])
    document = Document.of(" ".join(["Food", *words]), PatternWords())
    limits = WordRegression(po.wrap(model, data=words).subsets(document)).at([0.25])
    assert limits.coefficients[0, :2] == pytest.approx([0.0, 1.0], abs=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "food <b>w1</b> & w2",
        "\u202bfood \u05e9\u05dc\u05d5\u05dd w1\u202c",
        "food \x00 w1\x1b w2",
        "\U0001f35f food \U0001f469\u200d\U0001f373 w1",
        "w1 w1 w1",
        "unseen words only",
        "I\u0307stanbul \u0130stanbul food",
    ],
    ids=["html", "right to left", "control", "emoji", "one", "unknown", "dotted"],
)
@pytest.mark.parametrize("first", [TfidfVectorizer(), TfidfVectorizer(norm=None)])
def test_any_text_is_read_as_the_model_sees_it(first, text):
    model = make_pipeline(first, Ridge()).fit(DOCUMENTS, NUMBERS)
    document = Document.of(text, PatternWords())
    function = po.wrap(model, data=[text])
    result, bits = function.subsets(document), masks(document.n_words)
    assert not isinstance(result, Reason), result.reason
    values = function.texts_value(document.texts(bits))
    assert_means(result, values, bits, atol=1e-12)


def test_thresholds_behind_a_scaler_are_those_of_what_it_is_given(rng):
    X = rng.normal(size=(50, 3))
    scaler = StandardScaler().fit(X + np.array([1.0, -2.0, 0.5]))
    behind = LinearRow(np.array([1.0, 2.0, 4.0]), 0.3, np.array([0.1, -0.2, 0.3]))
    row = before(scaler, behind)
    seen = scaler.transform(X) > behind.thresholds
    assert ((row.thresholds < X) == seen).all()
    assert 0 < seen.sum() < seen.size
    assert (row.intercept, *row.coefficients) == (0.3, 1.0, 2.0, 4.0)
