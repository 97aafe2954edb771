"""Names of the lines of ``mistakes.txt`` and ``advice.txt``: data, models, calls."""

# ruff: noqa: F401  # imports are for the lines

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cvxpy as cp
import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.impute
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

import propopt as po
from propopt.problems.jobs.job import load_result


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
drawn = HistGradientBoostingClassifier(  # trees that differ by the seed
    min_samples_leaf=5, max_features=0.4, random_state=0
).fit(X, y)
three_classes = np.stack([np.digitize(risk, [4.0, 6.0]), y], axis=1)
labels = MultiOutputClassifier(LogisticRegression()).fit(A, three_classes)


class Exponential:
    """A regressor with a log link that it does not show."""

    def predict(self, X):
        return np.exp(np.asarray(X)[:, 0] + 0.5)


def of_images(images):
    return images.sum(axis=(1, 2)) + 1.0


def beyond(X):
    """A step that no row of a table is near: slopes are zero on both sides."""
    return (np.asarray(X)[:, 0] > 1e3) * 1.0


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


# ---- of mistakes alone
stage = np.digitize(risk, [4.0, 6.0])
forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, stage)
boosted_stages = GradientBoostingClassifier(n_estimators=5).fit(X, stage)
fitted_words = MultinomialNB().fit(np.array([[1, 0, 1], [0, 1, 1]]), [0, 1])
WORDS = ["good", "bad", "food"]
parts_of_classes = np.zeros((40, 3, 3))
"""What TreeExplainer.shap_values has of three classes: points, features, classes."""


def with_cell(value: object) -> pd.DataFrame:
    """X with another value in one cell."""
    table = X.astype({"bmi": object if isinstance(value, str) else float})
    table.iloc[3, 1] = value
    return table


def waterfall(best: po.results.Explanation) -> object:
    """The picture that users of shap know."""
    package = pytest.importorskip("shap")
    return package.plots.waterfall(best.to_shap()[0], show=False)


def shap_explainer():
    shap = pytest.importorskip("shap")
    return shap.explainers.ExactExplainer(of_arrays.predict, A)


def network() -> Any:
    """A torch module of three features."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))


def written(name: str, text: str) -> str:
    """The path of a file in the folder of the test."""
    Path(name).write_text(text)
    return name


def read(text: str) -> None:
    """Check a problem file as ``propopt check`` does."""
    table_file()
    po.problems.read_problem(written("mine.yaml", text)).check_data()


def pickled_model() -> str:
    """The path of a pickle."""
    joblib.dump(classifier, "model.npz")
    return "model.npz"


JOB = "model: {kind: logistic}\nexplain: {}\n"
