"""Margins of models without classes: named, exact, and found right by an audit.

The oracle is the library: its raw prediction, and its prediction for the link between
the two. No intercept is zero.
"""

import numpy as np
import pandas as pd
import pytest
from library_margins import contributions_of, margin_of
from quiet_boosters import booster
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.products.sums import SumOfProducts


RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(240, 3)), columns=["age", "power", "region"])
MEAN = np.exp(1.5 + 0.5 * X.age + 0.3 * X.power * X.region)
COUNTS = RNG.poisson(MEAN).astype(float)
SIZES = MEAN * RNG.gamma(2.0, 0.5, 240) + 0.01
SHARES = expit(X.age * X.power + 1.0)
ROWS, DATA = X[:15], X[40:80]
TIGHT, SINGLE = 1e-9, 2e-5

XGBOOST = {
    "count:poisson": (COUNTS, "log"),
    "reg:gamma": (SIZES, "log"),
    "reg:tweedie": (COUNTS, "log"),
    "survival:cox": (SIZES, "log"),
    "reg:logistic": (SHARES, "logit"),
    "reg:squarederror": (SIZES, "value"),
    "reg:squaredlogerror": (SIZES, "value"),
    "reg:pseudohubererror": (SIZES, "value"),
    "reg:absoluteerror": (SIZES, "value"),
}
LIGHTGBM = {
    "poisson": (COUNTS, "log"),
    "gamma": (SIZES, "log"),
    "tweedie": (COUNTS, "log"),
    "cross_entropy": (SHARES, "logit"),
    "cross_entropy_lambda": (SHARES, "score"),  # it predicts log(1 + exp(margin))
    "regression": (SIZES, "value"),
    "quantile": (SIZES, "value"),
    "mape": (SIZES, "value"),
}
CATBOOST = {
    "Poisson": (COUNTS, "log"),
    "Tweedie:variance_power=1.5": (COUNTS, "log"),
    "RMSE": (SIZES, "value"),
    "LogLinQuantile": (SIZES, "value"),  # these three predict the margin
    "Cox": (SIZES, "value"),
    "SurvivalAft": (np.stack([SIZES, 2.0 * SIZES], axis=1), "value"),
}


def _xgboost(objective, target):
    settings = {"objective": objective, "n_estimators": 8, "max_depth": 3}
    return booster("xgboost", **settings).fit(X, target)


def _booster_of_xgboost(objective, target):
    return _xgboost(objective, target).get_booster()


def _aft(objective, target):
    xgboost = pytest.importorskip("xgboost")
    table = xgboost.DMatrix(X)
    table.set_float_info("label_lower_bound", target)
    ends = np.where(target > np.quantile(target, 0.7), np.inf, target)
    table.set_float_info("label_upper_bound", ends)
    return xgboost.train({"objective": objective, "max_depth": 3}, table, 8)


def _lightgbm(objective, target, **settings):
    settings |= {"objective": objective, "n_estimators": 8}
    return booster("lightgbm", **settings).fit(X, target)


def _root(objective, target):
    return _lightgbm(objective, target, reg_sqrt=True)


def _booster_of_lightgbm(objective, target):
    return _lightgbm(objective, target).booster_


def _catboost(objective, target):
    settings = {"loss_function": objective, "n_estimators": 8}
    return booster("catboost", **settings).fit(X, target)


def _histograms(objective, target):
    return HistGradientBoostingRegressor(loss=objective, max_iter=8).fit(X, target)


def _margin_and_parts(model, objective):
    """By the library; scikit-learn has no public raw prediction, and no parts."""
    if not isinstance(model, HistGradientBoostingRegressor):
        return margin_of(model, ROWS), contributions_of(model, ROWS)
    raw = model.predict(ROWS)
    return (raw if objective == "squared_error" else np.log(raw)), None


CASES = [
    *((_xgboost, name, *case) for name, case in XGBOOST.items()),
    *((_booster_of_xgboost, name, *case) for name, case in XGBOOST.items()),
    (_aft, "survival:aft", SIZES, "log"),
    *((_lightgbm, name, *case) for name, case in LIGHTGBM.items()),
    *((_booster_of_lightgbm, name, *case) for name, case in LIGHTGBM.items()),
    (_root, "regression", SIZES, "score"),
    *((_catboost, name, *case) for name, case in CATBOOST.items()),
    (_histograms, "poisson", COUNTS, "log"),
    (_histograms, "gamma", SIZES, "log"),
    (_histograms, "squared_error", SIZES, "value"),
]
NAMES = {
    "log": "log of the prediction",
    "logit": "log-odds of the prediction",
    "score": "margin of the prediction",
}


@pytest.mark.parametrize(
    ("make", "objective", "target", "kind"),
    CASES,
    ids=lambda x: x if isinstance(x, str) else getattr(x, "__name__", ""),
)
def test_margins_are_named_by_the_library_and_audited_as_right(
    make, objective, target, kind
):
    model = make(objective, target)
    margin, phi = _margin_and_parts(model, objective)
    assert abs(np.mean(margin)) > 0.05
    tolerance = SINGLE if "xgboost" in make.__name__ or make is _aft else TIGHT
    for position in (None, 0):  # the only margin is also that at position 0
        function = po.wrap(model, position, "margin", data=DATA)
        assert function.quantity.kind == kind
        assert function.value(ROWS) == pytest.approx(margin, rel=tolerance)
        parts = function.products_in(3)
        assert isinstance(parts, Boxes)
        assert parts.value(ROWS.to_numpy()) == pytest.approx(margin, rel=tolerance)
    assert po.wrap(model, output="margin").quantity.kind == kind  # without a table
    value = po.wrap(model, data=DATA)
    assert value.quantity.kind == "value"
    links = {"log": np.exp, "logit": expit, "value": lambda m: m}
    if kind in links:
        assert links[kind](margin) == pytest.approx(value.value(ROWS), rel=1e-5)
    if kind in NAMES:
        assert function.quantity.in_words() == function.quantity.unit == NAMES[kind]
    best = po.explain(model, ROWS, data=DATA, output="margin")
    assert best.sampling_excess == 0.0
    sums = best.base_value + best.attributions.sum(axis=1)
    assert sums == pytest.approx(margin, rel=10 * tolerance)
    for given in (phi, best):
        if given is None:
            continue
        for output in (None, "margin"):
            audit = po.audit(given, model, ROWS, data=DATA, output=output)
            assert audit["row sums"].verdict == "exact"
            assert audit.explanation.quantity.kind == kind
            cause, verdict = "path-dependent", "exact"
            if given is best:
                cause, verdict = "optimized contributions", "not reproduced"
            found = audit["values"]
            assert (found.cause, found.verdict) == (cause, verdict)


def test_an_audit_asks_only_where_the_sums_of_rows_do_not_decide():
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=8).fit(X, COUNTS)
    parts = po.explain(model, ROWS, data=DATA).contributions
    audit = po.audit(parts, model, ROWS, data=DATA)
    assert audit.explanation.quantity.kind == "value"
    assert audit["values"].verdict == "exact"
    noise = parts + RNG.normal(size=parts.shape)
    with pytest.raises(InvalidInput) as asked:
        po.audit(noise, model, ROWS, data=DATA)
    assert "output='value'" in str(asked.value)
    assert "output='margin' (log of the prediction)" in str(asked.value)
    for output in ("value", "margin"):  # the advice, and what the model lacks
        assert po.audit(noise, model, ROWS, data=DATA, output=output)
    for output in ("log_odds", "probability"):
        assert output not in str(asked.value)
    log = po.explain(model, ROWS, data=DATA, output="margin")
    with pytest.raises(InvalidInput, match="add up to the margin"):
        po.audit(log.contributions, model, ROWS, data=DATA, output="value")


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (PoissonRegressor(), "log"),
        (GammaRegressor(), "log"),
        (TweedieRegressor(power=1.5), "log"),
        (TweedieRegressor(power=0.0), "value"),
        (make_pipeline(StandardScaler(), PoissonRegressor()), "log"),
    ],
    ids=str,
)
def test_generalized_linear_models_have_an_exact_log(model, kind):
    model.fit(X, SIZES)
    predicted = model.predict(ROWS)
    margin = np.log(predicted) if kind == "log" else predicted
    for output, expected in (("margin", margin), ("value", predicted)):
        function = po.wrap(model, output=output, data=DATA)
        assert function.value(ROWS) == pytest.approx(expected, rel=1e-12)
        assert function.gradient_method == "exact"
    assert po.wrap(model, output="margin", data=DATA).quantity.kind == kind
    function = po.wrap(model, output="margin", data=DATA)
    assert isinstance(function.products_in(3), SumOfProducts)
    slopes = np.asarray(function.gradient(ROWS))
    assert np.ptp(slopes, axis=0).max() <= 1e-12
    best = po.explain(model, ROWS, data=DATA, output="margin")
    assert best.sampling_excess == 0.0
    sums = best.base_value + best.attributions.sum(axis=1)
    assert sums == pytest.approx(margin, abs=1e-9)


def test_a_margin_for_each_of_several_targets_has_its_position():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(
        iterations=5, loss_function="MultiRMSE", verbose=0, allow_writing_files=False
    ).fit(X, np.stack([SIZES, COUNTS], axis=1))
    for position in (0, 1):
        function = po.wrap(model, position, "margin", data=DATA)
        assert function.value(ROWS) == pytest.approx(model.predict(ROWS)[:, position])
