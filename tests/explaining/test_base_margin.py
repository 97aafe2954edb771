"""Offsets of rows: in base and prediction, and in no contribution."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import propopt as po
from propopt.base.errors import InvalidInput


RNG = np.random.default_rng(8)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["age", "power", "region"])
EXPOSURE = RNG.uniform(0.1, 1.0, 80)
OFFSET = np.log(EXPOSURE)
COUNTS = RNG.poisson(EXPOSURE * np.exp(0.4 * X["age"] + 0.3 * X["power"] ** 2))
CLASS = (X["age"] * X["power"] > 0.0).astype(int)


def _xgboost() -> tuple[Any, Any]:
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=15, max_depth=3, base_score=0.5)
    model.fit(X, CLASS, base_margin=OFFSET)

    def margin(rows: pd.DataFrame, base_margin: Any) -> Any:
        return model.predict(rows, output_margin=True, base_margin=base_margin)

    return model, margin


def _lightgbm() -> tuple[Any, Any]:
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1)
    model.fit(X, CLASS, init_score=OFFSET)

    def margin(rows: pd.DataFrame, base_margin: Any) -> Any:
        # predictions of LightGBM are without the offset; users add it
        return model.predict(rows, raw_score=True) + base_margin

    return model, margin


def _catboost() -> tuple[Any, Any]:
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=15, verbose=0, thread_count=1)
    model.fit(catboost.Pool(X, CLASS, baseline=OFFSET))

    def margin(rows: pd.DataFrame, base_margin: Any) -> Any:
        pool = catboost.Pool(rows, baseline=base_margin)
        return model.predict(pool, prediction_type="RawFormulaVal")

    return model, margin


@pytest.mark.parametrize("make", [_xgboost, _lightgbm, _catboost])
def test_base_and_contributions_add_up_to_the_margin_of_a_user(make: Any) -> None:
    """The tolerance is that of margins in float32."""
    model, margin = make()
    rows, own = X[:10], OFFSET[:10]
    seen = np.asarray(margin(rows, own), float)
    result = po.explain(model, rows, data=X, base_margin=own)
    plain = po.explain(model, rows, data=X)
    assert result.prediction == pytest.approx(seen, abs=2e-5)
    sums = result.base_value + result.attributions.sum(axis=1)
    assert sums == pytest.approx(seen, abs=2e-5)
    assert np.array_equal(result.attributions, plain.attributions)
    assert np.array_equal(result.contributions, plain.contributions)
    assert result.base_value == pytest.approx(plain.base_value + own, abs=1e-12)
    assert np.abs(result.completeness_gap).max() < 1e-9
    assert "base margin" in result.parameters


def test_of_a_margin_with_a_link_by_a_function() -> None:
    model = PoissonRegressor().fit(X, COUNTS)

    def margin(rows: Any) -> Any:
        return np.log(model.predict(rows))

    result = po.explain(margin, X[:5], data=X, base_margin=OFFSET[:5])
    seen = np.log(model.predict(X[:5])) + OFFSET[:5]
    assert result.prediction == pytest.approx(seen, abs=1e-12)
    with pytest.raises(InvalidInput, match="a link such as exp"):
        po.explain(model, X[:5], data=X, base_margin=OFFSET[:5])


def test_explainers_and_rows_together_take_them_too(tmp_path: Any) -> None:
    model = LogisticRegression().fit(X, CLASS)
    explainer = po.Explainer(model, X, output="log_odds").fit()
    whole = po.explain(model, X, output="log_odds", base_margin=OFFSET)
    explainer.save(tmp_path / "e.npz")
    again = po.Explainer.load(tmp_path / "e.npz", model)
    rows = X[:4]
    seen = model.decision_function(rows) + OFFSET[:4]
    for one in (explainer, again):
        result = one.explain(rows, base_margin=OFFSET[:4])
        assert result.prediction == pytest.approx(seen, abs=1e-9)
        assert np.abs(result.completeness_gap).max() < 1e-9
    assert whole.prediction[:4] == pytest.approx(seen, abs=1e-9)
    result.save(tmp_path / "x.npz")
    kept = po.results.Explanation.load(tmp_path / "x.npz")
    assert np.array_equal(kept.base_value, result.base_value)


def test_a_series_is_put_in_the_order_of_rows() -> None:
    model = LogisticRegression().fit(X, CLASS)
    named = pd.Series(OFFSET, index=X.index)
    settings: dict[str, Any] = {"data": X, "output": "log_odds"}
    one = po.explain(model, X[:6], base_margin=named[:6], **settings)
    other = po.explain(model, X[:6], base_margin=named[5::-1], **settings)
    assert np.array_equal(one.prediction, other.prediction)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"output": "probability"}, "the output explained is a probability"),
        ({"output": "log_odds", "kind": "slopes"}, "slopes have no base value"),
        (
            {"output": "log_odds", "base_margin": OFFSET},
            "one for each of the 5 rows of X",
        ),
        (
            {"output": "log_odds", "base_margin": "w"},
            "give that column, X['w']",
        ),
        ({"output": "log_odds", "base_margin": [np.inf] * 5}, "not finite"),
    ],
)
def test_what_has_no_offset_is_refused(how: dict[str, Any], told: str) -> None:
    model = LogisticRegression().fit(X, CLASS)
    settings: dict[str, Any] = {"data": X, "base_margin": OFFSET[:5], **how}
    with pytest.raises(InvalidInput, match=re.escape(told)):
        po.explain(model, X[:5], **settings)


class Counted:
    """A black-box regressor that counts the rows it predicts."""

    n_rows = 0

    def predict(self, X: Any) -> Any:
        self.n_rows += len(X)
        return np.asarray(X) @ [1.0, 2.0, 3.0]


class CountedClassifier(Counted):
    """The same with two classes."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X: Any) -> Any:
        p = 1.0 / (1.0 + np.exp(-self.predict(X)))
        return np.stack([1.0 - p, p], axis=1)


@pytest.mark.parametrize("data", [None, X], ids=["jointly", "with data"])
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"output": "probability"}, "the output explained is a probability"),
        ({"output": "log_odds", "kind": "slopes"}, "slopes have no base value"),
        ({}, "may have a link such as exp"),
        ({"output": "log_odds", "base_margin": [0.0, 1.0]}, "each of the 20 rows of X"),
    ],
)
def test_margins_are_refused_before_the_model_is_called(
    how: dict[str, Any], reason: str, data: Any
) -> None:
    model = Counted() if how == {} else CountedClassifier()
    rows = X[:20]
    settings: dict[str, Any] = {"base_margin": OFFSET[:20], **how}
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        po.explain(model, rows, data, **settings)
    assert model.n_rows == 0
    base_margin = settings.pop("base_margin")
    explainer = po.Explainer(model, X if data is None else data, **settings).fit()
    before = model.n_rows
    assert before > 0
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        explainer.explain(rows, base_margin=base_margin)
    assert model.n_rows == before


def test_documents_refuse_margins_before_the_model_is_called() -> None:
    calls = list[int]()

    def score(texts: Any) -> Any:
        calls.append(len(texts))
        return np.array([float(len(text)) for text in texts])

    texts = ["one good day", "one bad day", "a good night"]
    with pytest.raises(InvalidInput, match="it belongs to rows of a table"):
        po.explain(score, texts, base_margin=[1.0, 2.0, 3.0])
    assert calls == []
