"""Trees on words against the values of the fitted models, for all sets of words."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from subset_oracle import assert_means, masks

from propopt.base.text import Reason
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.tfidf.text_models import read_text_model
from propopt.tables.documents import Document, PatternWords


WORDS = ["good", "bad", "food", "service", "place", "nice", "slow", "great"]


def corpus(n=150, seed=0):
    """Documents in both cases, with labels that words interact in."""
    rng = np.random.default_rng(seed)
    samples = [rng.choice(WORDS, rng.integers(3, 12)) for _ in range(n)]
    texts = [
        " ".join(w.title() if rng.random() < 0.3 else w for w in words)
        for words in samples
    ]
    count = np.array([[list(words).count(w) for w in WORDS] for words in samples])
    score = count[:, 0] - 1.5 * (count[:, 1] > 1) * (count[:, 2] > 0) + count[:, 6]
    return texts, (score + rng.normal(size=n) > 0.5).astype(int)


TEXTS, LABELS = corpus()
PLAIN = "good food, bad food and bad bad service: slow place!"
CASES = "Good good food, Food food; BAD bad bad slow"


def checked(model, output, text, index=1, atol=1e-10):
    """What is read at a document, seen to have the values of the model."""
    model.fit(TEXTS, LABELS)
    structure = read_text_model(model, output, index)
    assert not isinstance(structure, Reason), structure.reason
    document = Document.of(text, PatternWords())
    result = structure.at(document)
    assert isinstance(result, Conjunctions), result
    bits = masks(document.n_words)
    values = answers(model, output, document.texts(bits))
    assert np.ptp(values) > 0.0
    assert_means(result, values, bits, atol=atol)
    return result


def answers(model, output, texts):
    match output:
        case "value":
            return np.asarray(model.predict(texts), float)
        case "probability":
            return model.predict_proba(texts)[:, 1]
        case "log_odds":
            p = model.predict_proba(texts)
            return np.log(p[:, 1] / p[:, 0])
        case _:
            return model.decision_function(texts)


VECTORISERS = {
    "presence": CountVectorizer(binary=True),
    "counts": CountVectorizer(),
    "as written": CountVectorizer(lowercase=False),
    "tf-idf": TfidfVectorizer(norm=None, sublinear_tf=True),
    "single": TfidfVectorizer(norm=None, dtype=np.float32),
    "in steps": make_pipeline(CountVectorizer(), TfidfTransformer(norm=None)),
    "hashed": HashingVectorizer(n_features=4, norm=None),
    "unsigned": HashingVectorizer(n_features=8, norm=None, alternate_sign=False),
    "letters": CountVectorizer(analyzer="char_wb", ngram_range=(4, 4)),
    "no stop words": CountVectorizer(stop_words=["good", "slow"]),
    "selected": make_pipeline(CountVectorizer(), SelectKBest(f_classif, k=5)),
    "scaled": make_pipeline(TfidfVectorizer(norm=None), MaxAbsScaler()),
}


@pytest.mark.parametrize("text", [PLAIN, CASES])
@pytest.mark.parametrize("name", VECTORISERS)
def test_vectorisers(name, text):
    if name == "letters":
        text = text.translate(str.maketrans("", "", ",;:!"))
    model = RandomForestClassifier(20, random_state=0)
    checked(make_pipeline(VECTORISERS[name], model), "probability", text)


MODELS = {
    "tree": (DecisionTreeClassifier(max_depth=5), "probability"),
    "regression tree": (DecisionTreeRegressor(min_samples_leaf=3), "value"),
    "extra trees": (ExtraTreesRegressor(15, random_state=0), "value"),
    "boosting": (GradientBoostingClassifier(n_estimators=20), "log_odds"),
    "votes of trees": (AdaBoostClassifier(n_estimators=15), "margin"),
    "bag": (BaggingRegressor(DecisionTreeRegressor(max_depth=4), 5), "value"),
    "votes": (
        VotingClassifier(
            [
                ("tree", DecisionTreeClassifier(max_depth=3)),
                ("forest", RandomForestClassifier(5, random_state=1)),
            ],
            voting="soft",
        ),
        "probability",
    ),
    "histograms": (
        make_pipeline(
            FunctionTransformer(lambda X: X.toarray(), accept_sparse=True),
            HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=5),
        ),
        "value",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    model, output = MODELS[name]
    checked(
        make_pipeline(CountVectorizer(), model),
        output,
        CASES,
        None if output == "value" else 1,
    )


def booster(package, name, **settings):
    library = pytest.importorskip(package)
    return getattr(library, name)(n_estimators=15, **settings)


BOOSTERS = {
    "lightgbm": lambda: booster(
        "lightgbm", "LGBMRegressor", min_child_samples=5, verbose=-1, n_jobs=1
    ),
    "xgboost": lambda: booster("xgboost", "XGBRegressor", max_depth=4),
    "catboost": lambda: booster(
        "catboost", "CatBoostRegressor", verbose=0, allow_writing_files=False
    ),
}


@pytest.mark.parametrize("name", BOOSTERS)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_boosters(name, dense, binary):
    vectoriser = CountVectorizer(binary=binary, dtype=np.float32)
    array = FunctionTransformer(lambda X: X.toarray(), accept_sparse=True)
    steps = (vectoriser, array if dense else "passthrough", BOOSTERS[name]())
    atol = 1e-10 if name == "lightgbm" else 2e-6  # the others add in float32
    checked(make_pipeline(*steps), "value", CASES, None, atol)


@pytest.mark.parametrize(
    ("vectoriser", "model", "output", "reason"),
    [
        (TfidfVectorizer(), RandomForestClassifier(3), "probability", "norm='l2'"),
        (CountVectorizer(), GradientBoostingClassifier(), "probability", "log_odds"),
        (CountVectorizer(), LogisticRegression(), "probability", "log_odds"),
        (CountVectorizer(), "passthrough", "value", "gives no number"),
    ],
)
def test_reasons(vectoriser, model, output, reason):
    fitted = make_pipeline(vectoriser, model).fit(TEXTS, LABELS)
    result = read_text_model(fitted, output, 1)
    assert isinstance(result, Reason)
    assert reason in result.reason


def test_signs_that_cancel_are_no_missing_words_to_xgboost():
    vectoriser = HashingVectorizer(n_features=3, norm=None, dtype=np.float32)
    model = make_pipeline(vectoriser, BOOSTERS["xgboost"]()).fit(TEXTS, LABELS)
    assert "signs cancel" in read_text_model(model, "value", None).reason
    vectoriser.set_params(alternate_sign=False)
    checked(model, "value", PLAIN, None, 2e-6)


def test_too_many_conjunctions_are_refused_and_named():
    # of 24 ways to write three words, any must come: each is 1 − Π (1 − z)
    texts = [t.lower() for t in TEXTS]
    model = make_pipeline(CountVectorizer(), ExtraTreesRegressor(5, random_state=0))
    structure = read_text_model(model.fit(texts, LABELS), "value", None)
    ways = [
        "".join(c.upper() if i >> k & 1 else c for k, c in enumerate(word))
        for word in ("good", "food", "slow", "place", "great")
        for i in range(14)
    ]
    result = structure.at(Document.of(" ".join(ways), PatternWords()))
    assert isinstance(result, Reason)
    assert "several words" in result.reason
    assert "good" in result.reason


def test_one_of_many_ways_to_write_a_word_is_that_not_all_are_deleted():
    texts = [t.lower() for t in TEXTS]
    y = np.array([("good" in t) + 3.0 * (t.count("bad") > 0) for t in texts])
    model = make_pipeline(CountVectorizer(binary=True), DecisionTreeRegressor())
    structure = read_text_model(model.fit(texts, y), "value", None)
    text = "good Good gOod goOd gooD bad Bad bAd baD"
    result = structure.at(Document.of(text, PatternWords()))
    bits = masks(9)
    assert_means(result, bits[:, :5].any(axis=1) + 3.0 * bits[:, 5:].any(axis=1), bits)
    assert len(result.values) == 2


def test_document_without_known_words_is_constant():
    model = make_pipeline(CountVectorizer(), DecisionTreeRegressor()).fit(TEXTS, LABELS)
    structure = read_text_model(model, "value", None)
    result = structure.at(Document.of("nothing known here", PatternWords()))
    np.testing.assert_allclose(result.mean_by_size(), model.predict([""])[0])


ODD = {
    "emoji": "good 😀 food 👩‍🔬 bad food 😀",
    "markup": "<b>good</b> &amp; bad<br/>food <script>slow</script>",
    "right to left": "طعام جيد good food bad שירות",
    "control characters": "good\x00food\x1b[31m bad\u202eslow\r\nnice",
    "accents": "naïve good GOOD İstanbul food bad ΟΔΟΣ",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_texts(name):
    model = RandomForestClassifier(10, random_state=0)
    vectoriser = CountVectorizer(strip_accents="unicode")
    checked(make_pipeline(vectoriser, model), "probability", ODD[name])


def test_many_leaves_and_words():
    rng = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in range(400)])
    texts = [" ".join(rng.choice(words, 30)) for _ in range(600)]
    forest = RandomForestClassifier(60, random_state=0)
    model = make_pipeline(CountVectorizer(binary=True), forest)
    model.fit(texts, rng.integers(0, 2, 600))
    assert sum(tree.get_n_leaves() for tree in forest.estimators_) > 3_000
    structure = read_text_model(model, "probability", 1)
    for text in (
        " ".join(rng.choice(words, 150)),
        " ".join(f"W{k}" for k in range(5000)),
    ):
        document = Document.of(text, PatternWords())
        result = structure.at(document)
        bits = rng.random((64, document.n_words)) < rng.random((64, 1))
        expected = model.predict_proba(document.texts(bits))[:, 1]
        np.testing.assert_allclose(result.value(bits), expected, rtol=0, atol=1e-12)
        # means over sets of one size by draws; z below 5 with probability 1 − 6e-7
        size = document.n_words // 2
        order = rng.random((2000, document.n_words)).argsort(axis=1)
        drawn = result.value(order < size)
        error = drawn.std() / np.sqrt(len(drawn)) + 1e-12
        assert abs(drawn.mean() - result.mean_by_size()[size]) < 5.0 * error


def test_searches_and_votes_of_pipelines():
    first = make_pipeline(CountVectorizer(), DecisionTreeClassifier(max_depth=3))
    second = make_pipeline(
        CountVectorizer(binary=True), RandomForestClassifier(4, random_state=0)
    )
    model = VotingClassifier([("one", first), ("two", second)], voting="soft")
    model.fit(TEXTS, LABELS)
    document = Document.of(CASES, PatternWords())
    result = read_text_model(model, "probability", 1).at(document)
    bits = masks(document.n_words)
    assert_means(result, model.predict_proba(document.texts(bits))[:, 1], bits)


def test_members_that_see_absent_words_otherwise():
    # for XGBoost what a sparse table does not hold is missing, for forests it is 0
    pytest.importorskip("xgboost")
    boosted = BOOSTERS["xgboost"]()
    members = [("one", boosted), ("two", ExtraTreesRegressor(3, random_state=0))]
    for last in (
        VotingRegressor(members),
        GridSearchCV(boosted, {"max_depth": [2, 4]}, cv=2),
        TransformedTargetRegressor(boosted, transformer=StandardScaler()),
    ):
        model = make_pipeline(CountVectorizer(dtype=np.float32), last)
        model.fit(TEXTS, LABELS)
        document = Document.of(CASES, PatternWords())
        result = read_text_model(model, "value", None).at(document)
        bits = masks(document.n_words)
        values = model.predict(document.texts(bits)).astype(float)
        assert_means(result, values, bits, atol=2e-6)
