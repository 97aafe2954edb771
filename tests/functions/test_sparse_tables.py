"""Sparse tables: absent entries are what the model's own predictions take them for."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from quiet_boosters import booster
from refusals import refusals
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import propopt as po
from propopt.base.errors import InvalidInput


rng = np.random.default_rng(3)
CELLS = rng.gamma(2.0, size=(300, 5)) * (rng.random((300, 5)) < 0.5)
SPARSE = sp.csr_matrix(CELLS)
ZEROS = sp.csr_matrix(
    (SPARSE.data * (rng.random(SPARSE.nnz) < 0.8), SPARSE.indices, SPARSE.indptr),
    SPARSE.shape,
)
"""Also with zeros that are stored, which are no missing numbers to XGBoost."""
y = 7.0 + CELLS[:, 0] * (CELLS[:, 1] == 0) - 2.0 * (CELLS[:, 2] > 1)
ill = (y > np.median(y)).astype(int)


def boosted(library, kind="Regressor", **settings):
    model = booster(library, kind, n_estimators=20, **settings)
    return model.fit(SPARSE, ill if kind == "Classifier" else y)


MODELS = {
    "xgboost": lambda: boosted("xgboost"),
    "xgboost of classes": lambda: boosted("xgboost", "Classifier"),
    "xgboost in a pipeline": lambda: make_pipeline(
        MaxAbsScaler(), booster("xgboost", n_estimators=20)
    ).fit(SPARSE, y),
    "xgboost booster": lambda: boosted("xgboost").get_booster(),
    "xgboost, zeros missing": lambda: boosted("xgboost", missing=0.0),
    "lightgbm": lambda: boosted("lightgbm"),
    "lightgbm, zeros missing": lambda: boosted("lightgbm", zero_as_missing=True),
    "catboost": lambda: boosted("catboost"),
    "forest": lambda: RandomForestRegressor(20, random_state=0).fit(SPARSE, y),
    "ridge": lambda: Ridge().fit(SPARSE, y),
}


def predicted(model, X):
    if type(model).__name__ == "Booster":
        package = pytest.importorskip("xgboost")
        return model.predict(package.DMatrix(X))
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[:, 1]
    return model.predict(X)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("X", [SPARSE, ZEROS], ids=["plain", "zeros stored"])
def test_advice_for_a_sparse_table_keeps_what_the_model_predicts(name, X):
    model = MODELS[name]()
    with pytest.raises(InvalidInput) as caught:
        po.explain(model, X)
    (remedy,) = re.findall(r"give (\S.*)$", str(caught.value))
    table = eval(remedy, {"po": po, "model": model, "X": X})
    expected = predicted(model, X)
    np.testing.assert_allclose(predicted(model, table), expected, rtol=1e-6)
    is_binary = hasattr(model, "predict_proba")
    output = {"output": "probability"} if is_binary else {}
    best = po.explain(model, table[:5], data=table, **output)
    np.testing.assert_allclose(best.prediction, expected[:5], rtol=1e-5)


def test_zeros_in_place_of_absent_entries_move_predictions_of_xgboost():
    """Without this the test above could not fail."""
    model = MODELS["xgboost"]()
    moved = np.abs(model.predict(SPARSE.toarray()) - model.predict(SPARSE))
    assert moved.max() > 1.0
    assert np.isnan(po.functions.dense(model, SPARSE)).any()


def test_entries_are_missing_though_the_rows_at_hand_do_not_show_it():
    """A whole row predicts the same; one with fewer entries does not."""
    model, whole = MODELS["xgboost"](), np.abs(CELLS) + 0.5
    one = sp.csr_matrix(whole[:1])
    np.testing.assert_array_equal(po.functions.dense(model, one), whole[:1])
    row = sp.csr_matrix(CELLS[:1])
    assert np.isnan(po.functions.dense(model, row)).any()


def counted(X):
    return np.full(X.shape[0], X.nnz) if sp.issparse(X) else X[:, 0]


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "sparse tables"))
def test_what_cannot_be_converted_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def test_a_model_that_takes_no_sparse_table_gets_zeros():
    model = Ridge().fit(CELLS, y)
    table = po.functions.dense(lambda X: model.predict(X[:, :5] + 0 * X), SPARSE)
    np.testing.assert_array_equal(table, CELLS)
