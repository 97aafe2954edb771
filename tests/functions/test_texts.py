"""Models of texts as functions: words, values, effects, calls, refusals."""

import pickle
import unicodedata

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from odd_texts import ODD_TEXTS
from refusals import refusals
from sklearn import ensemble
from sklearn.pipeline import FeatureUnion, make_pipeline
from word_rules import EachOccurrence

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.functions.cost import cost_of
from propopt.functions.texts import DocumentFunction, TextFunction
from propopt.functions.wrapping_texts import word_rule_of
from propopt.structures.fitted_model import FittedModel
from propopt.tables.documents import (
    AnalyzerWords,
    MarkedWords,
    PatternWords,
    VectoriserWords,
)
from propopt.tables.frames import Labels


NOTES = [
    "Good food, good price.",
    "no food",
    "Everything about it is bad",
    "no good, NO price",
    "",
    "good",
    "?!",
]
LABELS = [1, 0, 0, 0, 1, 1, 0]


def classifier(**settings):
    model = make_pipeline(sk.TfidfVectorizer(**settings), sk.LogisticRegression())
    return model.fit(NOTES, LABELS)


def effects_of(model, schema, texts):
    """f(x) − f(x without each word), text by text."""
    effects = np.zeros((len(texts), len(schema.names)))
    for row, text in zip(effects, texts, strict=True):
        document = schema.document_of(text)
        for j, word in enumerate(document.words):
            bits = np.arange(document.n_words) != j
            less = model([text])[0] - model([document.without(bits)])[0]
            row[schema.column_index[word]] = less
    return effects


TEXTS = ["good food", "bad food", "no good", "bad", "good", "so bad"]
SIX = [1, 0, 0, 0, 1, 0]
MODEL = classifier()
F = po.wrap(MODEL, data=NOTES)


def probability(texts):
    return MODEL.predict_proba(texts)[:, 1]


def log_odds(texts):
    return MODEL.decision_function(texts)


def lengths(texts):
    return [len(text) for text in texts]


def test_values_and_effects_of_a_pipeline():
    f = po.wrap(MODEL, data=NOTES)
    assert isinstance(f, TextFunction)
    np.testing.assert_array_equal(f.value(NOTES), log_odds(NOTES))
    expected = effects_of(log_odds, f.text_schema, NOTES)
    np.testing.assert_allclose(f.gradient(NOTES), expected, rtol=0, atol=1e-15)
    points, labels = f.read(NOTES)
    assert np.array_equal(f.value_at(points, labels), log_odds(NOTES))
    assert f.gradient_method == "exact"
    assert f.effects_at(points).all()
    assert not f.gradient(NOTES)[[4, 6]].any()  # no word
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again.gradient(NOTES), f.gradient(NOTES))
    at = pickle.loads(pickle.dumps(f.of_document(NOTES[0])))
    assert at.gradient_at(np.ones((1, 3))).any()
    X = pd.Series(NOTES[:2], index=["a", "b"])
    frame = f.gradient(X)
    assert list(frame.index) == ["a", "b"]
    assert list(frame.columns) == list(f.text_schema.names)
    np.testing.assert_array_equal(frame.to_numpy(), f.gradient(NOTES[:2]))
    assert f.estimate(X).labels.points == ("a", "b")


def test_words_that_are_not_known():
    new = ["unheard of", "bad food unheard"]
    np.testing.assert_array_equal(F.value(new), log_odds(new))
    f = po.wrap(MODEL, data=[*NOTES, "good unheard food"])  # by the vectoriser
    effects, places = f.gradient(["good unheard food"])[0], f.text_schema.column_index
    assert effects[places["unheard"]] == 0.0
    assert effects[places["good"]] > 0.0


def test_calls_are_counted_and_bounded():
    requested = []

    def model(texts):
        requested.append(len(texts))
        assert isinstance(texts, list)
        return [float(len(text)) for text in texts]

    f = po.wrap(model, data=NOTES, batch_rows=4)
    f.gradient(NOTES)
    words = sum(f.text_schema.document_of(text).n_words for text in NOTES)
    assert f.calls.rows == len(NOTES) + words
    assert f.calls.trials == 6
    assert sum(requested) == f.calls.rows + f.calls.trials
    assert max(requested) == 4
    before = f.calls.rows
    f.of_document("no good").gradient_at(np.ones((1, 2)))
    assert f.calls.rows == before + 3
    assert f.calls.trials == 6  # the model was tried already


def test_long_texts_are_given_in_parts_and_costs_are_measured():
    sizes = []

    def model(texts):
        sizes.append(sum(map(len, texts)))
        return np.zeros(len(texts))

    f = po.wrap(model, data=["a"])
    f.texts_value("x" * 1_000_000 for _ in range(10))
    assert max(sizes[:-2]) <= 2**22
    assert sum(sizes) >= 10_000_000
    at = po.wrap(MODEL, data=NOTES).of_document(NOTES[0])
    assert cost_of(at, np.ones((1, 3)), Labels(), 100).evaluations == 100
    assert at.calls.rows == 0


def test_failures_and_odd_answers_name_the_text():
    def model(texts):
        raise RuntimeError(f"no tokens in {len(texts)}")

    text = "a\x1b[31m " * 50
    with pytest.raises(RuntimeError, match="no tokens in 1") as caught:
        po.wrap(model, data=[text]).value([text])
    (note,) = caught.value.__notes__
    assert r"was given 1 texts, of which the first is 'a\x1b[31m" in note

    rng = np.random.default_rng(0)
    f = po.wrap(lambda texts: rng.random(len(texts)), data=NOTES)
    with pytest.raises(InvalidInput, match="called twice for the same row"):
        f.value(NOTES)
    f = po.wrap(lambda texts: [1 / len(t) if t else np.nan for t in texts], data=["a"])
    assert f.value(["a"]) == 1.0
    with pytest.raises(InvalidInput, match="the value is nan for the text ''"):
        f.gradient(["a"])


@pytest.mark.parametrize("oddity", ODD_TEXTS)
def test_odd_texts(oddity):
    text = ODD_TEXTS[oddity]
    for model in (MODEL, classifier(ngram_range=(1, 2))):
        f = po.wrap(model, data=[text, *NOTES])
        expected = effects_of(
            lambda texts, model=model: model.decision_function(texts),
            f.text_schema,
            [text],
        )
        np.testing.assert_allclose(f.gradient([text]), expected, rtol=0, atol=1e-15)


def test_rows_of_counts_need_the_texts_of_their_labels():
    texts = ["a b", "b  a", "c a a"]  # two have equal counts
    f = po.wrap(lengths, data=texts)
    points, labels = f.read(texts)
    assert f.value_at(points, labels).tolist() == [3.0, 4.0, 5.0]
    assert f.gradient(texts[1:]).tolist() == [[1.0, 1.0, 0.0], [2.0, 0.0, 1.0]]
    order = np.array([2, 0])
    assert f.value_at(points[order], labels.of_positions(order)).tolist() == [5.0, 3.0]
    once = np.minimum(points, 1.0)
    more = points.copy()
    more[0, 2] = 1.0
    others = po.wrap(lengths, data=["x y z"]).read(["x y z"])[1]
    for rows, names in (
        (points, labels.of_columns()),
        (points[:2], labels),
        (once, labels),
        (more, labels),
        (points[:1], others),
    ):
        with pytest.raises(InvalidInput, match=r"need the labels that read\(texts\)"):
            f.value_at(rows, names)


def test_columns_of_a_document_are_words_that_are_absent_or_present():
    at = F.of_document(NOTES[0])
    assert isinstance(at, DocumentFunction)
    assert at.schema.names == ("good", "food", "price") == at.features
    assert at.schema.categorical.all()
    for column in at.schema.columns:
        assert column.categories[:2] == ("absent", "present")
        assert column.frequencies.tolist() == [1.0, 0.0, 0.0]
    bits = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    texts = F.text_schema.document_of(NOTES[0]).texts(bits == 1)
    np.testing.assert_array_equal(at.value_at(bits), F.value(texts))
    table = at.schema.decode(bits)
    np.testing.assert_array_equal(at.value(table), F.value(texts))
    for wrong in (np.full((1, 3), 2.0), np.full((1, 3), np.nan), np.ones((1, 4))):
        with pytest.raises(InvalidInput, match=r"expected codes \(n, 3\) of words"):
            at.value_at(wrong)


def test_the_gradient_of_a_document_is_the_effect_of_words():
    at = F.of_document(NOTES[0])
    row = F.gradient(NOTES[:1])[0, F.text_schema.columns_of(at.document)]
    np.testing.assert_array_equal(at.gradient_at(np.ones((1, 3)))[0], row)
    bits = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    for row, retained in zip(at.gradient_at(bits), bits, strict=True):
        for j in range(3):
            less = retained * (np.arange(3) != j)
            both = at.value_at(np.array([retained, less]))
            assert row[j] == both[0] - both[1]
    assert at.effects_at(bits).all()


def test_words_are_those_of_the_model_of_the_package_or_of_a_schema():
    f = po.wrap(classifier(stop_words=["is"]), data=NOTES)
    assert f.text_schema.rule == VectoriserWords(stop_words=frozenset(["is"]))
    assert "is" not in f.text_schema.names
    assert "everything" in f.text_schema.names
    f = po.wrap(lengths, data=NOTES)
    assert f.text_schema.rule == MarkedWords()
    assert {"Good", "good", "NO", "no"} <= set(f.text_schema.names)
    schema = po.functions.TextSchema.of(NOTES, PatternWords())
    f = po.wrap(MODEL, data=schema)
    assert f.text_schema is schema
    # "Good" and "good" feed one feature, and each is deleted alone
    expected = effects_of(log_odds, schema, NOTES[:1])
    np.testing.assert_allclose(f.gradient(NOTES[:1]), expected, atol=1e-15)
    schema = po.functions.TextSchema.of(["no, no"], EachOccurrence(PatternWords(), "_"))
    f = po.wrap(lambda texts: [t.count("_") * 1.0 for t in texts], data=schema)
    assert schema.names == ("no", "no[2]")
    assert f.gradient(["no, no"]).tolist() == [[-1.0, -1.0]]


def pipeline(vectoriser=None, *steps):
    first = sk.CountVectorizer() if vectoriser is None else vectoriser
    return make_pipeline(first, *steps, sk.LogisticRegression())


MODELS = [
    pipeline(sk.HashingVectorizer(n_features=64)),
    pipeline(None, sk.TfidfTransformer()),
    make_pipeline(make_pipeline("passthrough", sk.TfidfVectorizer()), pipeline()[1]),
    sk.GridSearchCV(pipeline(), {"logisticregression__C": [1.0, 2.0]}, cv=2),
    sk.CalibratedClassifierCV(pipeline(), cv=2),
    sk.TransformedTargetRegressor(make_pipeline(sk.TfidfVectorizer(), sk.Ridge())),
    ensemble.VotingClassifier([("a", pipeline()), ("b", pipeline())], voting="soft"),
    pipeline(FeatureUnion([("a", sk.CountVectorizer()), ("b", sk.TfidfVectorizer())])),
]
CASED = pipeline(sk.CountVectorizer(lowercase=False))
NOT_KNOWN = [
    (sk.CountVectorizer(analyzer="char"), "counts characters"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_that_see_words_alone(model):
    model.fit(TEXTS, SIX)
    assert FittedModel.of(model).text_vectorisers
    assert word_rule_of(model) == VectoriserWords()
    f = po.wrap(model, data=TEXTS)
    assert f.vectorisers


def test_settings_of_the_vectoriser():
    own = {"lowercase": False, "strip_accents": "ascii", "token_pattern": r"\w+"}
    model = pipeline(sk.CountVectorizer(**own, stop_words=["good"])).fit(TEXTS, SIX)
    expected = VectoriserWords(**own, stop_words=frozenset(["good"]))
    assert word_rule_of(model) == expected
    english = word_rule_of(sk.CountVectorizer(stop_words="english"))
    assert "the" in english.stop_words


def test_models_whose_words_are_not_known():
    vote = ensemble.VotingClassifier([("a", pipeline()), ("b", CASED)]).fit(TEXTS, SIX)
    for model, reason in (
        (len, "does not begin with a vectoriser"),
        (vote, "vectorisers of different words"),
        *((pipeline(first).fit(TEXTS, SIX), reason) for first, reason in NOT_KNOWN),
    ):
        rule = word_rule_of(model)
        assert isinstance(rule, Reason)
        assert reason in rule.reason


# ---- words whose letters carry marks, and tokenizers of one's own
MARKED = {
    "Hindi": [
        "यह फिल्म बहुत अच्छी है",
        "यह फिल्म खराब है",
        "बहुत खराब कहानी",
        "अच्छी कहानी और संगीत",
    ],
    "Arabic": ["كِتَابٌ جَيِّدٌ", "فِيلْمٌ سَيِّئٌ", "كِتَابٌ سَيِّئٌ", "فِيلْمٌ جَيِّدٌ"],
    "Tamil": ["படம் நல்லது", "படம் மோசம்", "கதை மோசம்", "கதை நல்லது"],
    "Persian": ["می\u200cخواهم خوب", "می\u200cروم بد", "کتاب\u200cها بد", "خوب کتاب"],
    "Thai": ["ที่นี่ ดี", "ที่นี่ แย่", "น้ำ แย่", "น้ำ ดี"],
    "accents": [
        "cafe\u0301 de\u0301ja\u0300 bon",
        "cafe\u0301 nul",
        "the\u0301 nul",
        "the\u0301 bon",
    ],
    "circles": ["a\u20dd b", "a\u20dd c", "d c", "d b"],
}


class Splits(sk.CountVectorizer):
    """Finds words by a rule of its own."""

    def build_tokenizer(self):
        return str.split


def lower(text: str) -> str:
    return text.lower()


def blanks(text: str) -> list[str]:
    return text.split(" ")


OWN_WORDS = {
    "tokenizer": sk.CountVectorizer(tokenizer=str.split, token_pattern=None),
    "blanks": sk.CountVectorizer(tokenizer=blanks, token_pattern=None),
    "weights": sk.TfidfVectorizer(tokenizer=str.split, token_pattern=None),
    "hashes": sk.HashingVectorizer(
        tokenizer=str.split, token_pattern=None, n_features=97
    ),
    "analyzer": sk.CountVectorizer(analyzer=str.split),
    "preprocessor": sk.CountVectorizer(preprocessor=lower, token_pattern=r"\S+"),
    "stop words": sk.CountVectorizer(
        tokenizer=str.split, token_pattern=None, stop_words=["है", "nul", "b"]
    ),
    "subclass": Splits(),
}


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        *((script, kind) for script in MARKED for kind in (None, "tokenizer")),
        *(("Hindi", kind) for kind in OWN_WORDS if kind != "tokenizer"),
    ],
)
def test_words_with_marks_are_not_torn(script, kind):
    """The words of a text are those at its blanks; effects are those of the model."""
    texts = MARKED[script]
    model = lambda texts: [2.5 + len(text) for text in texts]  # noqa: E731
    counted = model
    if kind is not None:
        fit = pipeline(OWN_WORDS[kind]).fit(texts * 3, [1, 0, 0, 1] * 3)
        model, counted = fit, lambda texts: fit.decision_function(texts)
    f = po.wrap(model, data=texts, output="auto" if kind is None else "log_odds")
    expected = list(dict.fromkeys(" ".join(texts).split()))
    if kind == "stop words":
        expected = [word for word in expected if word not in ("है", "nul", "b")]
    assert list(f.text_schema.names) == expected
    np.testing.assert_allclose(
        f.gradient(texts), effects_of(counted, f.text_schema, texts), atol=1e-12
    )
    assert po.wrap(model, data=texts).text_schema.rule == f.text_schema.rule
    best = po.explain(f, texts, kind="contributions")
    assert list(best.to_frame().columns) == expected
    if kind is not None:
        limits = po.lime.text_limits(fit, texts, output="log_odds", words="model")
        assert set(limits.to_frame()["word"]) == set(expected)
        # the structure of the model is found in its own words
        assert (limits.to_frame()["standard_error"] == 0.0).all()


def test_marks_without_a_letter_are_no_words():
    for text in ("\u0301 \u200d ?", "🙂\ufe0f 👩\u200d👧", ""):
        assert MarkedWords().find(text) == []
    for text in ODD_TEXTS.values():
        if not any(unicodedata.category(c)[0] == "M" for c in text):
            assert MarkedWords().find(text) == PatternWords().find(text)


def stems(text: str) -> list[str]:
    return [word.rstrip("s") + "z" for word in text.split()]


def ends(text: str) -> list[str]:
    """Only a part of each word, so that a rest of it remains."""
    return [word[:2] for word in text.split()]


@pytest.mark.parametrize("tokenizer", [stems, ends])
def test_tokens_that_are_not_in_the_text_are_no_words(tokenizer):
    vectoriser = sk.CountVectorizer(tokenizer=tokenizer, token_pattern=None)
    model = pipeline(vectoriser).fit(TEXTS, SIX)
    rule = word_rule_of(model)
    assert isinstance(rule, AnalyzerWords)
    f = po.wrap(model, data=TEXTS)
    assert f.text_schema.rule == MarkedWords()
    margin = model.decision_function
    f = po.wrap(model, data=TEXTS, output="log_odds")
    expected = effects_of(margin, f.text_schema, TEXTS)
    np.testing.assert_allclose(f.gradient(TEXTS), expected, atol=1e-12)


def test_models_that_see_more_than_words_or_none():
    tables = sk.FunctionTransformer(lambda texts: [[len(t)] for t in texts])
    union = FeatureUnion([("a", sk.CountVectorizer()), ("b", tables)])
    model = make_pipeline(union, sk.LogisticRegression()).fit(TEXTS, SIX)
    assert FittedModel.of(model).text_vectorisers == []
    f = po.wrap(model, data=TEXTS)
    assert f.gradient(TEXTS).shape == (6, len(f.text_schema.names))
    forest = ensemble.RandomForestClassifier(3, random_state=0).fit(
        [[0.0], [1.0]], [0, 1]
    )
    for model in (forest, lambda X: X):
        assert FittedModel.of(model).text_vectorisers == []
    assert FittedModel.of(None).text_entries == [None]


OF_FILES = classifier()
OF_FILES[0].set_params(input="filename")
OF_TABLES = sk.LogisticRegression().fit([[0.0], [1.0]], [0, 1])
IN_TABLE = pd.DataFrame({"text": NOTES})


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "texts"))
def test_what_cannot_be_wrapped_is_refused(line, message):
    def wrapped(model=MODEL, **settings):
        return po.wrap(model, **{"data": NOTES, **settings})

    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | locals())


def fitted(model):
    return make_pipeline(sk.CountVectorizer(binary=True), model).fit(TEXTS, SIX)


def test_torch_modules_of_texts():
    torch = pytest.importorskip("torch")

    class Counts(torch.nn.Sequential):
        """Scores of two classes from numbers of letters."""

        def forward(self, texts):
            assert isinstance(texts, list)
            rows = [[len(t), t.count("o")] for t in texts]
            return super().forward(torch.tensor(rows, dtype=torch.float32))

    torch.manual_seed(0)
    module = Counts(torch.nn.Dropout(0.5), torch.nn.Linear(2, 2))
    f = po.wrap(module, 1, "probability", data=TEXTS)
    module.train()
    values = f.value(TEXTS)
    assert module.training
    module.eval()
    with torch.no_grad():
        expected = torch.softmax(module(TEXTS).double(), 1)[:, 1].numpy()
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert f.calls.trials == 6
    at = f.of_document(TEXTS[0])
    less = f.value(["good food", " food"])
    assert at.gradient_at(np.ones((1, 2)))[0, 0] == less[0] - less[1]
    assert "torch module" in f.structure.reason
