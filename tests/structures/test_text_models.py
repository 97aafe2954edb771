"""Models of texts against the values of the fitted models, for all sets of words."""

import warnings

import numpy as np
import pytest
from estimators import sk
from odd_texts import ODD_TEXTS
from quiet_boosters import booster
from refusals import refusals
from sklearn.pipeline import make_pipeline
from subset_oracle import assert_means, masks

import propopt as po
from propopt.base.text import Reason
from propopt.lime.text.word_limits import WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sums import AddedSets, NormalisedSum
from propopt.structures.tfidf import text_models, text_sums
from propopt.structures.tfidf.text_models import read_text_model
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
)
from propopt.tables.documents import PatternWords, TextDocument


WORDS = [*(f"w{k}" for k in range(12)), "Food", "food", "x"]
TEXT = "Food food w1 w1 w2 w3 unseen w4 x w5"
"""Two cases of a word, one twice, one of a single letter, and one that is unknown."""
DOCUMENT = TextDocument.of(TEXT, PatternWords())
BITS = masks(DOCUMENT.n_words)
TEXTS = DOCUMENT.texts(BITS)


def tfidf(*steps):
    return make_pipeline(sk.TfidfVectorizer(), *steps)


def counts(*steps):
    return make_pipeline(sk.CountVectorizer(), *steps)


def corpus(n=60):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 20))) for _ in range(n)]
    return texts, rng.normal(size=n)


DOCUMENTS, NUMBERS = corpus()
TWO, THREE = (NUMBERS > 0).astype(int), np.digitize(NUMBERS, [-0.5, 0.5])
VECTORISERS = {
    "l2": sk.TfidfVectorizer(),
    "l1": sk.TfidfVectorizer(norm="l1", sublinear_tf=True, lowercase=False),
    "plain": sk.TfidfVectorizer(norm=None),
    "counts": sk.CountVectorizer(),
    "presence": sk.CountVectorizer(binary=True, token_pattern=r"\b\w+\b"),
    "after counts": counts(sk.TfidfTransformer(use_idf=False)),
    "hashed": sk.HashingVectorizer(n_features=16),
}


def fitted(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that do not converge
        return model.fit(DOCUMENTS, y)


def read(model, y, output, target=None):
    """The function that is read at the document, and the values of the model."""
    function = po.wrap(fitted(model, y), target, output, data=[TEXT])
    return function.subsets(DOCUMENT), function.texts_value(TEXTS)


def check(model, y, output, target=None, kind=NormalisedSum, atol=1e-10):
    result, values = read(model, y, output, target)
    assert isinstance(result, kind), result
    assert np.ptp(values) > 0.0
    assert_means(result, values, BITS, atol=atol)


def short(part):
    return type(part).__name__ if hasattr(part, "fit") else ""


# ---- linear models of words
LARGEST = sk.MaxAbsScaler()
SVD = sk.TruncatedSVD(5, random_state=0)
LOGISTIC = sk.LogisticRegression()
FOREST = sk.RandomForestRegressor(4, random_state=0)
ACCENTS = make_pipeline(sk.CountVectorizer(strip_accents="unicode"), FOREST)
LASSO = counts(sk.Lasso(0.01))
REGRESSIONS = [
    *(
        tfidf(model)
        for model in (
            sk.BaggingRegressor(sk.Ridge(), 3, max_features=0.5, random_state=0),
            sk.HuberRegressor(),
            sk.KernelRidge(),
            sk.Lasso(alpha=1e-3),
            sk.LinearSVR(random_state=0),
            sk.RANSACRegressor(sk.LinearRegression(), min_samples=40, random_state=0),
            sk.Ridge(),
            sk.SGDRegressor(random_state=0),
            sk.SVR(kernel="linear"),
            sk.VotingRegressor(
                [("a", sk.Ridge()), ("b", sk.LinearRegression())], weights=[1, 3]
            ),
        )
    ),
]
SEARCH = sk.GridSearchCV(tfidf(LOGISTIC), {"logisticregression__C": [1, 9]})
OF_CLASSES = [
    *(
        (tfidf(model), y, "margin", target)
        for model in (
            sk.LinearSVC(),
            sk.OneVsRestClassifier(sk.LinearSVC()),
            sk.Perceptron(),
            sk.RidgeClassifier(),
            sk.SGDClassifier(random_state=0),
        )
        for y, target in ((TWO, 0), (TWO, 1), (THREE, 1))
    ),
    *(
        (tfidf(SVD, sk.LinearDiscriminantAnalysis()), y, output, target)
        for y, output, target in (
            (TWO, "margin", 0),
            (TWO, "log_odds", 1),
            (THREE, "margin", 1),
        )
    ),
    (tfidf(sk.SVC(kernel="linear")), TWO, "margin", 0),
    *(
        (tfidf(*steps, LOGISTIC), TWO, "log_odds", None)
        for steps in (
            [LARGEST],
            [sk.SelectKBest(k=8)],
            [SVD, sk.StandardScaler()],
            [sk.VarianceThreshold(1e-3), sk.SelectKBest(k=9), "passthrough", LARGEST],
        )
    ),
    (SEARCH, TWO, "log_odds", None),
]
THREE_MEMBERS = [
    sk.VotingRegressor([("a", tfidf(sk.Ridge())), ("b", LASSO)], weights=[1, 3]),
    sk.StackingRegressor([("a", tfidf(sk.Ridge())), ("b", counts(FOREST))], sk.Ridge()),
    counts(sk.VotingRegressor([("a", sk.Ridge()), ("b", FOREST)])),
    sk.TransformedTargetRegressor(tfidf(sk.Ridge()), transformer=sk.StandardScaler()),
]


@pytest.mark.parametrize("name", VECTORISERS)
def test_vectorisers_of_linear_models(name):
    first = VECTORISERS[name]
    plain = name in ("plain", "counts", "presence")
    kind = Conjunctions if plain else NormalisedSum
    check(make_pipeline(first, LOGISTIC), TWO, "log_odds", 0, kind)
    check(make_pipeline(first, LOGISTIC), THREE, "margin", 2, kind)
    for bayes in (sk.ComplementNB(norm=True), sk.MultinomialNB()):
        if name == "hashed":  # counts with signs have no logarithm
            continue
        check(make_pipeline(first, bayes), TWO, "log_odds", 0, kind)


@pytest.mark.parametrize("model", REGRESSIONS, ids=lambda model: short(model[-1]))
def test_regressions(model):
    check(model, NUMBERS, "value")


@pytest.mark.parametrize(("model", "y", "output", "target"), OF_CLASSES, ids=short)
def test_margins_and_log_odds(model, y, output, target):
    check(model, y, output, target)


@pytest.mark.parametrize("model", THREE_MEMBERS, ids=short)
def test_sums_of_models(model):
    check(model, NUMBERS, "value", kind=AddedSets | Conjunctions)


def test_comparisons_with_thresholds_outputs_and_mean_probabilities():
    is_present = sk.Binarizer(), sk.SelectKBest(k=8)
    for model in (counts(*is_present, LOGISTIC), tfidf(*is_present, LOGISTIC)):
        check(model, TWO, "log_odds", kind=Conjunctions)
    hashed = make_pipeline(VECTORISERS["hashed"], sk.Binarizer(), FOREST)
    check(hashed, NUMBERS, "value", kind=Conjunctions)
    both = np.column_stack([NUMBERS, NUMBERS**2])
    check(tfidf(sk.MultiOutputRegressor(sk.LinearRegression())), both, "value", 1)
    forest = sk.RandomForestClassifier(4, random_state=0)
    presence = make_pipeline(sk.CountVectorizer(binary=True), forest)
    vote = sk.VotingClassifier([("a", counts(forest)), ("b", presence)], voting="soft")
    check(vote, TWO, "probability", kind=Conjunctions)


# ---- refusals, with what would do
BOOSTED = sk.GradientBoostingClassifier()
VOTE = sk.VotingClassifier([("a", LOGISTIC)], voting="soft")
VOTE_OF_PIPELINES = sk.VotingClassifier([("a", tfidf(LOGISTIC))], voting="soft")
CALIBRATED = sk.CalibratedClassifierCV(sk.LinearSVC())
SUBLINEAR = sk.TfidfTransformer(norm=None, sublinear_tf=True)


@pytest.mark.parametrize(("line", "reason"), refusals(__file__, "texts"))
def test_what_is_no_sum_is_refused_with_what_is(line, reason):
    result, _ = eval(line)
    assert isinstance(result, Reason)
    assert reason in result.reason


def test_a_weight_that_is_not_finite_and_texts_without_a_number_are_refused():
    model = counts(sk.MultinomialNB()).fit(DOCUMENTS, TWO)
    model[-1].feature_log_prob_[0, 3] = -np.inf
    function = po.wrap(model, output="log_odds", data=[TEXT])
    assert "not finite" in function.subsets(DOCUMENT).reason
    ridge = tfidf(sk.Ridge()).fit(DOCUMENTS, NUMBERS)
    result = po.wrap(ridge, data=[TEXT]).subsets(TextDocument.of("...", PatternWords()))
    assert result == Reason("the document has no word")
    none = counts("passthrough").fit(DOCUMENTS, TWO)
    assert "gives no number" in read_text_model(none, "value", 1).reason


@pytest.mark.parametrize(
    ("chapter", "name", "most", "model", "message"),
    [
        (text_sums, "MOST_SHARED", 1, tfidf(sk.Ridge()), "'food'"),
        (text_sums, "_LONGEST", 1000.0, tfidf(sk.Ridge()), "norm=None"),
        (text_models, "MOST_CONJUNCTIONS", 1, counts(FOREST), "one feature ('food"),
    ],
)
def test_what_takes_too_long_is_refused_with_what_would_not(
    chapter, name, most, model, message, monkeypatch
):
    monkeypatch.setattr(chapter, name, most)
    result, _ = read(model, NUMBERS, "value")
    assert message in result.reason


@pytest.mark.parametrize(
    ("lowercase", "expected"), [(True, [0.353, 0.353]), (False, [0.0, 1.0])]
)
def test_a_word_in_two_cases_counts_for_both_unless_case_matters(lowercase, expected):
    """The trap of lowered case, f = 1{food}: each of both has .353, and not 1 or .5."""
    first = sk.CountVectorizer(binary=True, lowercase=lowercase)
    words = ["food", *(f"v{k}" for k in range(17))]
    model = make_pipeline(first, sk.LinearRegression(fit_intercept=False))
    model.fit(words, np.eye(18)[0])
    document = TextDocument.of(" ".join(["Food", *words]), PatternWords())
    limits = WordRegression(po.wrap(model, data=words).subsets(document)).at([0.25])
    digits = 5e-4 if lowercase else 1e-12
    assert limits.coefficients[0, :2] == pytest.approx(expected, abs=digits)


@pytest.mark.parametrize(
    "model",
    [tfidf(sk.Ridge()), make_pipeline(VECTORISERS["plain"], sk.Ridge()), ACCENTS],
    ids=["norm", "none", "trees"],
)
def test_any_text_is_read_as_the_model_sees_it(model):
    model.fit(DOCUMENTS, NUMBERS)
    for odd in ODD_TEXTS.values():
        document = TextDocument.of(f"w1 {odd} food", PatternWords())
        function = po.wrap(model, data=[document.text])
        result, bits = function.subsets(document), masks(document.n_words)
        assert not isinstance(result, Reason), result.reason
        values = function.texts_value(document.texts(bits))
        assert_means(result, values, bits, atol=1e-12)


# ---- trees on words
CLASSES = sk.RandomForestClassifier(20, random_state=0)
EXTRA = sk.ExtraTreesRegressor(15, random_state=0)
BAG = sk.BaggingRegressor(sk.DecisionTreeRegressor(max_depth=4), 5)
HIST = sk.HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=5)
DENSE = sk.FunctionTransformer(lambda X: X.toarray(), accept_sparse=True)
LETTERS = sk.CountVectorizer(analyzer="char_wb", ngram_range=(3, 3))
OF_TREES = [
    ([sk.CountVectorizer(), sk.DecisionTreeClassifier(max_depth=5)], "probability"),
    ([sk.CountVectorizer(binary=True), sk.DecisionTreeRegressor(max_depth=9)], "value"),
    ([sk.CountVectorizer(lowercase=False), EXTRA], "value"),
    ([sk.TfidfVectorizer(norm=None, sublinear_tf=True), BAG], "value"),
    ([sk.TfidfVectorizer(norm=None, dtype=np.float32), CLASSES], "probability"),
    ([sk.CountVectorizer(), sk.TfidfTransformer(norm=None), CLASSES], "probability"),
    ([sk.HashingVectorizer(n_features=4, norm=None), CLASSES], "probability"),
    ([sk.CountVectorizer(stop_words=["w1"]), BOOSTED], "log_odds"),
    ([sk.CountVectorizer(), sk.SelectKBest(k=5), sk.AdaBoostClassifier()], "margin"),
    ([sk.TfidfVectorizer(norm=None), sk.MaxAbsScaler(), CLASSES], "probability"),
    ([sk.CountVectorizer(), DENSE, HIST], "value"),
    ([LETTERS, CLASSES], "probability"),
]


@pytest.mark.parametrize(("steps", "output"), OF_TREES, ids=lambda part: short(part[0]))
def test_trees_behind_vectorisers(steps, output):
    y = NUMBERS if output == "value" else TWO
    check(make_pipeline(*steps), y, output, kind=Conjunctions)


BOOSTERS = {
    "lightgbm": {"n_estimators": 15, "min_child_samples": 5},
    "xgboost": {"n_estimators": 15, "max_depth": 4},
    "catboost": {"n_estimators": 15},
}


@pytest.mark.parametrize("name", BOOSTERS)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_boosters(name, dense, binary):
    vectoriser = sk.CountVectorizer(binary=binary, dtype=np.float32)
    model = booster(name, **BOOSTERS[name])
    model = make_pipeline(vectoriser, DENSE if dense else "passthrough", model)
    atol = 1e-10 if name == "lightgbm" else 2e-6  # the others add in float32
    check(model, NUMBERS, "value", kind=Conjunctions, atol=atol)


def test_signs_that_cancel_are_no_missing_words_to_xgboost():
    vectoriser = sk.HashingVectorizer(n_features=3, norm=None, dtype=np.float32)
    model = make_pipeline(vectoriser, booster("xgboost", **BOOSTERS["xgboost"]))
    assert "cancelling signs" in read(model, NUMBERS, "value")[0].reason
    vectoriser.set_params(alternate_sign=False)
    check(model, NUMBERS, "value", kind=Conjunctions, atol=2e-6)


def test_one_of_many_ways_to_write_a_word_is_that_not_all_are_deleted():
    texts = ["good", "bad", "good bad", "a"]
    y = np.array([("good" in t) + 3.0 * ("bad" in t) for t in texts])
    model = make_pipeline(sk.CountVectorizer(binary=True), sk.DecisionTreeRegressor())
    structure = read_text_model(model.fit(texts, y), "value", None)
    text = "good Good gOod goOd gooD bad Bad bAd baD"
    result = structure.at(TextDocument.of(text, PatternWords()))
    bits = masks(9)
    assert_means(result, bits[:, :5].any(axis=1) + 3.0 * bits[:, 5:].any(axis=1), bits)
    assert len(result.values) == 3  # and a constant


def test_ways_in_small_parts_are_the_same(monkeypatch):
    monkeypatch.setattr(text_models, "_AT_ONCE", 5)
    check(counts(CLASSES), TWO, "probability", kind=Conjunctions)


def test_members_that_see_absent_words_otherwise():
    # for XGBoost what a sparse table does not hold is missing, for forests it is 0
    boosted = booster("xgboost", **BOOSTERS["xgboost"])
    members = [("one", boosted), ("two", sk.ExtraTreesRegressor(3, random_state=0))]
    for last in (
        sk.VotingRegressor(members),
        sk.GridSearchCV(boosted, {"max_depth": [2, 4]}, cv=2),
        sk.TransformedTargetRegressor(boosted, transformer=sk.StandardScaler()),
    ):
        model = make_pipeline(sk.CountVectorizer(dtype=np.float32), last)
        check(model, NUMBERS, "value", kind=object, atol=2e-6)


# ---- what vectorisers make of words, against scikit-learn's own transform
REVIEWS = [
    "The food was good, the Food was not bad at all!",
    "Bad food; bad service. It's a pity?",
    "good service (really good) and no pity",
]
VECTORISERS_ALONE = {
    "counts": sk.CountVectorizer(),
    "presence": sk.CountVectorizer(binary=True, lowercase=False),
    "stop words": sk.CountVectorizer(stop_words=["the", "was"]),
    "single floats": sk.TfidfVectorizer(dtype=np.float32, norm=None),
    "sublinear": sk.TfidfVectorizer(norm=None, sublinear_tf=True),
    "no idf": sk.TfidfVectorizer(norm=None, use_idf=False, binary=True),
    "steps": make_pipeline(sk.CountVectorizer(), sk.TfidfTransformer(norm=None)),
    "hashed": sk.HashingVectorizer(n_features=16, norm=None),
    "hashed presence": sk.HashingVectorizer(n_features=4, norm=None, binary=True),
    "letters": sk.CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)),
}
OF_FILES = sk.CountVectorizer(input="filename")
SPACED = "good food is good for bad food"


def prepared(vectoriser):
    return make_pipeline(vectoriser, "passthrough").fit(REVIEWS)


@pytest.mark.parametrize("name", VECTORISERS_ALONE)
@pytest.mark.parametrize("text", [REVIEWS[0], SPACED, "unheard of", ""])
def test_values_are_those_of_scikit(name, text):
    model = prepared(VECTORISERS_ALONE[name])
    vectoriser = Vectoriser.of(model)
    assert vectoriser.rest is None
    document = TextDocument.of(text, PatternWords())
    result = document_features(vectoriser, document)
    if name == "letters" and "," in text:  # a comma stands in its word
        assert "not made of single words" in result.reason
        return
    bits = np.random.default_rng(1).random((32, document.n_words)) < 0.5
    values = vectoriser.values(result.counts(bits)).toarray()
    expected = model[0].transform(document.texts(bits)).toarray()
    np.testing.assert_array_equal(values, expected)  # to the last bit


def test_ngrams_that_the_document_cannot_form_do_no_harm():
    vectoriser = Vectoriser.of(prepared(sk.CountVectorizer(ngram_range=(1, 2))))
    fine = document_features(vectoriser, TextDocument.of("pity food", PatternWords()))
    assert isinstance(fine, DocumentFeatures)
    for text in ("was good", "was not good", "bad was not food"):
        result = document_features(vectoriser, TextDocument.of(text, PatternWords()))
        assert isinstance(result, Reason)
        assert "n-grams" in result.reason


def test_words_that_cross_tokens_are_named():
    apart = sk.CountVectorizer(token_pattern=r"[\w']+")
    vectoriser = Vectoriser.of(prepared(apart))
    result = document_features(vectoriser, TextDocument.of(REVIEWS[1], PatternWords()))
    assert "it's" in result.reason
    features = document_features(
        vectoriser, TextDocument.of(REVIEWS[1], PatternWords(r"[\w']+"))
    )
    assert len(features.shared) > 0  # "Bad" and "bad"


@pytest.mark.parametrize(
    ("vectoriser", "text", "rule"),
    [
        (sk.CountVectorizer(token_pattern=r"a\s+b"), "a c d b e f g h i j", r"\w+"),
        (sk.CountVectorizer(token_pattern=r"\w+"), "acdb e f g h i j k", r"\w"),
    ],
)
def test_tokens_that_deleting_words_makes_are_seen(vectoriser, text, rule):
    """Only where a and b are kept and c and d are not, in 1 of 16 sets."""
    document = TextDocument.of(text, PatternWords(rule))
    bits = [word in "ab" for word in document.words]
    vectoriser.fit([document.without(bits)])
    result = document_features(Vectoriser.of(vectoriser), document)
    assert isinstance(result, Reason)
    assert "not made of single words" in result.reason


@pytest.mark.parametrize(("line", "reason"), refusals(__file__, "vectorisers"))
def test_what_is_no_vectoriser_says_why(line, reason):
    result = Vectoriser.of(eval(line))
    assert isinstance(result, Reason)
    assert reason in result.reason
