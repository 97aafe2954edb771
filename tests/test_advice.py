"""Advice in messages is carried out, literally, and keeps what a model predicts.

Messages with code are collected from the source. Each needs a case of ``advice.txt`` in
which the message is provoked and its code executed.
"""

import ast
import re
import warnings
from dataclasses import replace  # noqa: F401  # this and others are of advice.txt
from functools import cache
from pathlib import Path
from unittest.mock import patch

import cvxpy as cp
import matplotlib.pyplot as plt  # noqa: F401
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.impute
from advice import HOLE, messages, pieces_of
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans  # noqa: F401
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,  # noqa: F401
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit  # noqa: F401
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC, NuSVC  # noqa: F401

import propopt as po
from propopt.problems.jobs.job import load_result  # noqa: F401


LINES = Path(__file__).with_name("advice.txt").read_text(encoding="utf-8")

rng = np.random.default_rng(0)
A = rng.normal(size=(40, 3))
X = pd.DataFrame(A, columns=["age", "bmi", "pressure"])
SPARSE = sp.csr_matrix(A * (rng.random(A.shape) < 0.5))
risk = 2 * A[:, 0] - A[:, 1] + 5.0
y = (risk > 5.0).astype(int)
TEXTS = ["good food", "bad food", "good service", "bad service here"]

classifier = LogisticRegression().fit(X, y)
of_arrays = LogisticRegression().fit(A, y)
regressor = LinearRegression().fit(X, risk)
words = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, [1, 0, 1, 0])
gradients = po.GradientMatching(po.wrap(regressor).gradient(X))
objective = gradients + 0.1 * po.Sparsity()
graph = po.graphs.knn_graph(X, 3)
robust = po.PairwiseRobustness(graph)
best = po.solve(gradients + robust)
parts = po.explain(regressor, X, data=X)
slopes = po.explain(regressor, X, kind="slopes")
explainer = po.Explainer(regressor, X).fit()
iloco = po.interactions.ILOCO(LinearRegression(), po.interactions.DataSplit())
iloco = iloco.fit(X, risk)
W = cp.Variable((40, 3))
patches = po.interactions.Minipatches(n_patches=150)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # patches are few, which serves here
    of_patches = po.interactions.ILOCO(LinearRegression(), patches).fit(X, risk)
imputed = sklearn.impute.SimpleImputer(add_indicator=True)
IMAGES = rng.normal(size=(40, 2, 2))
HOLED = X.mask(rng.random(X.shape) < 0.4)
WORDED = X.assign(word=["a", "b"] * 20)
of_gaps = HistGradientBoostingRegressor(min_samples_leaf=5).fit(HOLED, risk)
trees = HistGradientBoostingClassifier(min_samples_leaf=5).fit(X, y)
three_classes = np.stack([np.digitize(risk, [4.0, 6.0]), y], axis=1)
labels = MultiOutputClassifier(LogisticRegression()).fit(A, three_classes)


class Exponential:
    """A regressor with a log link that it does not show."""

    def predict(self, X):
        return np.exp(np.asarray(X)[:, 0] + 0.5)


def of_images(images):
    return images.sum(axis=(1, 2)) + 1.0


def elsewhere():
    """0, but for the first row that is given alone: no model answers so."""
    first = iter([1e-3])
    return lambda X: np.zeros(len(X)) + (next(first, 0.0) if len(X) == 1 else 0.0)


def lengths(texts):
    return np.array([float(len(text)) for text in texts])


def of_codes(encoder):
    columns = make_column_transformer((encoder, ["word"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression()).fit(WORDED, y)


def torch():
    return pytest.importorskip("torch")


def of_signals():
    """A module of inputs of shape (1, 1, 3)."""
    nn = torch().nn
    return nn.Sequential(nn.Conv2d(1, 1, (1, 3)), nn.Flatten()).double()


def of_dask():
    return pytest.importorskip("dask.dataframe").from_pandas(X, npartitions=2)


def curve_of_robustness():
    """A curve whose attributions are computed when they are read."""
    weights = {robust.name: np.geomspace(0.01, 1.0, 20)}
    return po.sweep(gradients + robust, weights)


def without_memory(call, *given):
    with patch("propopt.base.resources.free_memory", return_value=100.0):
        return call(*given)


def told(text: str) -> None:
    """A warning with what an object says."""
    warnings.warn(text, stacklevel=2)


def same(a, b) -> bool:
    np.testing.assert_allclose(a, b, rtol=1e-6)
    return True


def boosted():
    package = pytest.importorskip("xgboost")
    return package.XGBRegressor(n_estimators=20, max_depth=3).fit(SPARSE, risk)


def of_lime():
    tables = pytest.importorskip("lime.lime_tabular")
    explained = tables.LimeTabularExplainer(A, feature_names=[*X], random_state=0)
    predict = of_arrays.predict_proba
    return [explained.explain_instance(x, predict, num_samples=50) for x in A[:2]]


def shown(result):
    """Advice of a text that is printed, without its breaks of lines."""
    raise AssertionError(" ".join(str(result).split()))


class Steep:
    """A function of the columns, with slopes that change if it is fitted again."""

    slope = 1.0

    def __call__(self, X):
        return self.slope * X["age"].to_numpy() + 3.0


def fitted_again():
    f = Steep()
    lime = po.lime.LimeExplainer(f, X)
    f.slope = 2.0
    return lime


def of_killed_workers():
    """A fit of patches whose worker is killed, as the operating system may do."""
    killed = po.errors.SolverFailure("a worker was killed")
    with patch("propopt.interactions.fitting.resources.in_workers") as workers:
        workers.side_effect = killed
        po.interactions.ILOCO(LinearRegression(), patches).fit(X, risk)


def middle(X):
    """A function that is larger in the middle, and rises from the first to the last."""
    return np.where(X[:, 0] > 0.7, 1.1, np.where(X[:, 0] > -0.7, 1.0, 0.0)) + 3.0


def one_row(x):
    return 2.0 * x[0] - x[1]


def one_named_row(x):
    return 1.0 if x["age"] > 0 else x["bmi"]


def lazy():
    return pytest.importorskip("polars").DataFrame({"a": [1.0, 2.0]}).lazy()


def saved(result) -> str:
    result.save("saved.npz")
    return "saved.npz"


def table_file() -> str:
    X.assign(ill=y).to_csv("patients.csv", index=False)
    return "patients.csv"


of_three = LogisticRegression().fit(X, np.digitize(risk, [4.0, 6.0]))
of_trees = GradientBoostingClassifier(n_estimators=5).fit(X, y)
calibrated = CalibratedClassifierCV(LogisticRegression(), ensemble=False).fit(X, y)
KINDS = X.assign(word=pd.Series(["a", None, np.nan, "b"] * 10, dtype=object))
DATED = X.assign(age=pd.Timestamp("2020-01-01") + pd.to_timedelta(A[:, 0], unit="D"))
LONG = np.arange(200_000.0)[:, None]
GAPS = X.where(X > -1.0)
MANY = pd.DataFrame({"a": np.append(np.arange(10_001.0), np.nan)})
V = cp.Variable((2, 3))


def of_dates(X):
    days = (X["age"] - pd.Timestamp("2020-01-01")).dt.total_seconds() / 86_400.0
    return 2.0 * days - X["bmi"] + 5.0


def of_words(X):
    encoder = make_column_transformer((OneHotEncoder(), ["word"]))
    return make_pipeline(encoder, LogisticRegression()).fit(X, y)


def of_ages(X):
    return 2.0 * X["age"].fillna(1.0) - X["bmi"].fillna(0.0) + 5.0


def numbers(X):
    return X["a"].fillna(0.0) if hasattr(X["a"], "fillna") else X["a"].to_numpy()


def stemmed():
    vectoriser = CountVectorizer(
        tokenizer=lambda text: [word + "z" for word in text.split()], token_pattern=None
    )
    return make_pipeline(vectoriser, LogisticRegression()).fit(TEXTS, [1, 0, 1, 0])


def within(W):
    return A[:, :2] @ V == W


def long_chain():
    points = np.arange(4200.0).reshape(-1, 2)
    robust = po.PairwiseRobustness(po.graphs.chain_graph(2100))
    return po.solve(po.GradientMatching(points) + robust)


def said(result):
    raise ValueError(str(result))


def damaged() -> str:
    explainer.explain(X, to="explained")
    Path("explained/part-000000.parquet").write_bytes(b"")
    return "explained"


def partitioned() -> str:
    """A folder that tells a column which its file has too."""
    Path("table/year=2026").mkdir(parents=True, exist_ok=True)
    rows = X.assign(year=np.int32(2026))
    rows.to_parquet("table/year=2026/rows.parquet", index=False)
    return "table"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def cases():
    """The name, the provoking line, the bindings and the remedy of each case."""
    for block in LINES.strip().split("\n\n")[1:]:
        name, provoking, *bound, remedy = block.split("\n    ")
        yield pytest.param(provoking, bound, remedy.removeprefix("→ "), id=name)


CASES = [*cases()]
MESSAGES = messages()


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Text of the source as a pattern of messages, with holes and dots as anything."""
    parts = re.split(f"({HOLE}|\\.\\.\\.)", text)
    return re.compile(
        "".join(".*?" if p in (HOLE, "...") else re.escape(p) for p in parts), re.S
    )


@cache
def message_of(line: str) -> str:
    """The message of the error, or of the warnings, of a line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(line)
        except Exception as error:  # noqa: BLE001  # of any kind
            return f"{error}\n{error.__cause__ or ''}"  # as a traceback
    assert caught, f"{line} neither fails nor warns"
    return "\n".join(str(one.message) for one in caught)


def prediction(line: str, names) -> object:
    """The model's own prediction for the rows of a line of po.explain, or None."""
    tree = ast.parse(line, mode="eval").body
    if not (isinstance(tree, ast.Call) and ast.unparse(tree.func) == "po.explain"):
        return None
    model, rows = (eval(ast.unparse(x), {**globals(), **names}) for x in tree.args[:2])
    for method in ("predict_proba", "predict"):
        if hasattr(model, method):
            try:
                return np.asarray(getattr(model, method)(rows), float)
            except (ValueError, TypeError, AttributeError):
                return None  # the model cannot predict before
    return None


def advised(text: str) -> list[str]:
    return re.findall(r"«(.*?)»", text)


def carry_out(message: str, provoking: str, names, remedy: str) -> None:
    """Execute a remedy that the message has, and compare predictions of the model."""
    literal = [piece for one in pieces_of(message) for piece in (one, *nested(one))]
    for code in advised(remedy):
        assert any(pattern(piece).fullmatch(code) for piece in literal), message
    before = prediction(provoking, {})
    line = remedy.replace("«", "").replace("»", "")
    assert eval(line, {**globals(), **names}) is not None
    after = prediction(line, names)
    if before is not None and after is not None:
        np.testing.assert_allclose(after, before, rtol=1e-6)


@pytest.mark.parametrize(("provoking", "bound", "remedy"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_advice_works_and_keeps_the_prediction(provoking, bound, remedy):
    message, names = message_of(provoking), {}
    assert advised(remedy)
    for one in bound:
        name, _, value = one.partition(" = ")
        names[name] = eval(value, {**globals(), **names})
    carry_out(message, provoking, names, remedy)


def test_advice_that_changes_predictions_is_seen():
    """Zeros for absent entries, which XGBoost takes as missing."""
    message = "X: expected a dense table, got a sparse csr_matrix; give X.toarray()"
    call = "po.explain(model, X)"
    names = {"model": boosted(), "X": SPARSE}
    provoking = "po.explain(boosted(), SPARSE)"
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        carry_out(message, provoking, names, "po.explain(model, «X.toarray()»)")
    with pytest.raises(AssertionError, match="give X"):
        carry_out(message, provoking, names, call.replace("X)", "«X.todense()»)"))


_CODE = ast.Call | ast.ListComp


def nested(piece: str) -> list[str]:
    """The parts of a piece that are calls: of its inner calls and without its end."""
    tree = ast.parse(piece.replace("...", "_dots").replace(HOLE, "_hole"), mode="eval")
    inner = [ast.unparse(x) for x in ast.walk(tree) if isinstance(x, _CODE)]
    return [x.replace("_dots", "...").replace("_hole", HOLE) for x in inner]


def key(message) -> str:
    """The file and the code of a message, which stay if lines move."""
    return f"{message.place.partition(':')[0]}: {'; '.join(message.pieces)}"


def covered() -> set[str]:
    """Messages that a case provokes, and of which it executes code."""
    executed = {
        message: [pattern(x) for one in message.pieces for x in (one, *nested(one))]
        for message in MESSAGES
    }
    return {
        key(message)
        for message, pieces in executed.items()
        for case in CASES
        if any(x.fullmatch(code) for code in advised(case.values[2]) for x in pieces)
        and provokes(case.values[0], message)
    }


def provokes(line: str, message) -> bool:
    """Whether a line gives a message; taken for granted if a library is absent."""
    try:
        return pattern(message.text).search(message_of(line)) is not None
    except pytest.skip.Exception:
        return True


NO_ADVICE = re.compile(
    r"problems/subject/onnx\.py: tensor|\bf\(x\)$|interactions/learning\.py: \w+\(s\)"
    r"|structures/tfidf/vectorisers\.py: □\(input=□\)|metrics/metric\.py: □\(□\)"
)
"""Types of ONNX, a formula, plurals, and shown settings."""

NEXT_STEPS = re.compile(r": print\((iloco|explainer)\.")
"""What printed estimators say, which ``test_mistakes`` executes."""


@pytest.mark.filterwarnings("ignore")
def test_every_message_with_code_is_executed():
    keys = {key(message) for message in MESSAGES} - covered()
    keys = {x for x in keys if not NO_ADVICE.search(x) and not NEXT_STEPS.search(x)}
    assert keys == set()


def test_code_in_messages_is_recognised():
    text = "give its toarray(), or lambda X: f(X, 1), or [g(x) for x in X] (see f(x))"
    assert pieces_of(text) == (
        "toarray()",
        "lambda X: f(X, 1)",
        "[g(x) for x in X]",
        "f(x)",
    )
    assert pieces_of(f"write {HOLE}.drop(columns=[{HOLE}])") == (
        f"{HOLE}.drop(columns=[{HOLE}])",
    )
    assert pieces_of("a value (N, D) of a[0], as in f (x)") == ()
