"""What metrics take, put in order and refuse."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from metric_cases import FAITHFUL, FUNCTION, ROBUST, S, asked, explain, f

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.explaining.explainers import Gradient, Lime, Shap, SmoothGrad
from propopt.explaining.metrics import (
    PGI,
    AvgSensitivity,
    BaselineMethod,
    CompletenessGap,
    EffectiveComplexity,
    FaithfulnessCorrelation,
    Infidelity,
    MaxSensitivity,
    RelativeInputStability,
    RelativeOutputStability,
    Sparseness,
    evaluate,
)
from propopt.laws import perturbations


def test_frames_reach_function_and_method_as_frames(X):
    frame = pd.DataFrame(X, columns=list("abcd"), index=list("uvwxyz"))

    def by_name(table: pd.DataFrame) -> np.ndarray:
        return f(table[["a", "b", "c", "d"]].to_numpy())

    def explain_by_name(table: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            explain(table[["a", "b", "c", "d"]].to_numpy()), columns=list("abcd")
        )

    function = po.wrap(by_name)
    W = pd.DataFrame(explain(X), columns=list("abcd"), index=frame.index)
    for metric in FAITHFUL:
        np.testing.assert_array_equal(metric(W, function, frame), asked(metric, X))
    for metric in ROBUST:
        np.testing.assert_array_equal(metric(explain_by_name, frame), asked(metric, X))
    metric = RelativeOutputStability(n_samples=S)
    result = metric(explain_by_name, function, frame)
    np.testing.assert_array_equal(result, asked(metric, X))


def test_categories_are_never_perturbed(rng):
    X = pd.DataFrame({"a": rng.normal(size=8), "colour": list("rgbrgbrg")})

    def model(table: pd.DataFrame) -> np.ndarray:
        return np.exp(table["a"].to_numpy()) * (table["colour"] == "r").to_numpy()

    function = po.wrap(model, data=X)
    columns = [*ROBUST, RelativeOutputStability(n_samples=S), *FAITHFUL[:2], PGI(k=2)]
    table = evaluate(columns, function, X, [Gradient()])
    assert np.isfinite(table.to_numpy()).all()
    flat = X["colour"].to_numpy() != "r"  # there f is zero, whatever the number
    assert (PGI(k=2)(np.ones((8, 2)), function, X)[flat] == 0).all()
    assert (PGI(k=2)(np.ones((8, 2)), function, X)[~flat] > 0).all()


def test_categories_have_no_mean(rng):
    X = pd.DataFrame({"a": rng.normal(size=8), "colour": list("rgbrgbrg")})
    function = po.wrap(lambda table: table["a"].to_numpy(), data=X)
    for metric in (CompletenessGap(), FaithfulnessCorrelation()):
        with pytest.raises(InvalidInput, match="categories have no mean"):
            metric(np.ones((8, 2)), function, X)


def test_an_explanation_is_as_good_as_its_attributions(X):
    explanation = Gradient().explain(FUNCTION, X)
    result = Infidelity()(explanation, FUNCTION, X)
    np.testing.assert_array_equal(
        result, Infidelity()(explanation.attributions, FUNCTION, X)
    )


def test_a_point_of_a_curve_is_an_explanation(X):
    objective = po.GradientMatching(X) + po.PairwiseRobustness(po.gaussian_graph(X))
    point = po.sweep(objective, {"pairwise_robustness": [0.1, 1.0]}).optimized[0]
    np.testing.assert_array_equal(Sparseness()(point), Sparseness()(point.attributions))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: Infidelity()(X[:2], FUNCTION, X), "shape of X"),
        (lambda X: Infidelity()(X, f, X), "propopt.wrap"),
        (lambda X: Infidelity()(X, FUNCTION, X, rng=-1), "rng"),
        (lambda X: Infidelity()(X, FUNCTION, X, rng=True), "rng"),
        (lambda X: PGI(k=5)(X, FUNCTION, X), "k: expected at most"),
        (lambda X: FaithfulnessCorrelation(baseline=[1.0])(X, FUNCTION, X), "baseline"),
        (lambda X: CompletenessGap(background=[[1.0]])(X, FUNCTION, X), "background"),
        (lambda X: MaxSensitivity()(X, X), "BaselineMethod"),
        (lambda X: MaxSensitivity()(lambda p: p[:, :2], X), "of shape"),
        (lambda X: MaxSensitivity()(lambda p: p * np.nan, X), "not finite"),
        (lambda _: Sparseness()([1.0, 2.0]), "2 dimensions"),
        (lambda _: MaxSensitivity(units="percent"), "units"),
        (lambda _: MaxSensitivity(scale=0), "scale"),
        (lambda _: MaxSensitivity(distribution="cauchy"), "distribution"),
        (lambda _: Infidelity(rescaling="some"), "rescaling"),
        (lambda _: PGI(k=0), "k:"),
        (lambda _: FaithfulnessCorrelation(n_samples=1), "n_samples"),
        (lambda _: RelativeInputStability(floor=0), "floor"),
        (lambda _: EffectiveComplexity(threshold=-1), "threshold"),
    ],
)
def test_what_cannot_be_used_is_refused(call, message, X):
    with pytest.raises(InvalidInput, match=message):
        call(X)


@pytest.mark.parametrize("axis", ["index", "columns"])
def test_attributions_in_another_order_are_read_by_name(axis, X, rng):
    frame = pd.DataFrame(X, columns=list("abcd"))
    W = pd.DataFrame(rng.normal(size=X.shape), columns=list("abcd"))
    other = W.sort_index(axis=axis, ascending=False)
    for metric in (Infidelity(), Sparseness()):
        table = evaluate([metric], FUNCTION, frame, {"W": W, "other": other})
        assert table.loc["other"].equals(table.loc["W"])
    np.testing.assert_array_equal(
        Infidelity()(other, FUNCTION, frame), Infidelity()(W, FUNCTION, frame)
    )


@pytest.mark.parametrize("axis", ["index", "columns"])
def test_attributions_of_other_rows_or_columns_are_refused(axis, X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    other = frame.rename(**{axis: {"a": "e", 0: 99}})
    noun = "rows" if axis == "index" else "columns"
    with pytest.raises(InvalidInput, match=f"its {noun} are not those of X"):
        Infidelity()(other, FUNCTION, frame)


def test_a_method_begins_its_draws_afresh(X):
    method = BaselineMethod(
        explainer=SmoothGrad(scale=0.2, n_samples=5), function=FUNCTION, rng=4
    )
    metric = MaxSensitivity(n_samples=S)
    np.testing.assert_array_equal(method(X), method(X))
    np.testing.assert_array_equal(metric(method, X), metric(method, X))


@pytest.mark.parametrize(
    "explainer",
    [SmoothGrad(scale=0.2, n_samples=5), Lime(scale=0.2, n_samples=12)],
    ids=lambda e: e.method,
)
def test_blocks_do_not_change_a_sampled_method(explainer, X, monkeypatch):
    method = BaselineMethod(explainer=explainer, function=FUNCTION)
    whole = AvgSensitivity(n_samples=S)(method, X)
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 4 * 7))
    result = AvgSensitivity(n_samples=S)(method, X)
    np.testing.assert_allclose(result, whole, rtol=1e-7)


def test_a_method_whose_background_would_move_is_refused():
    with pytest.raises(InvalidInput, match="background=X"):
        BaselineMethod(explainer=Shap(), function=FUNCTION)
