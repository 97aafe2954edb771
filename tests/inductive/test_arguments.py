"""What an inductive explainer takes, keeps and refuses: names, tables, categories."""

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.functions import Sine
from propopt.inductive import GaussianProcessExplainer


def test_names_are_kept_and_files_read_back(rng, tmp_path):
    names = ["age", "height"]
    X = pd.DataFrame(rng.normal(size=(6, 2)), columns=names)
    new = pd.DataFrame(rng.normal(size=(2, 2)), columns=names, index=["a", "b"])
    explainer = GaussianProcessExplainer().fit(X, function=Sine())
    best = explainer.explain(new, return_std=True, gradients=Sine())
    frame = best.to_frame()
    assert list(frame.columns) == names
    assert list(frame.index) == ["a", "b"]
    best.save(tmp_path / "best")
    assert po.Explanation.load(tmp_path / "best").parameters == best.parameters
    assert list(explainer.explain(new.to_numpy()).to_frame().columns) == names
    # function and gradients are the same
    by_gradients = GaussianProcessExplainer().fit(X, Sine().gradient(X))
    other = by_gradients.explain(new, gradients=Sine().gradient(new))
    np.testing.assert_array_equal(best.attributions, other.attributions)
    # a graph without edges smooths nothing
    one, new = rng.normal(size=(6, 1)), rng.normal(size=(2, 1))
    alone, without = (
        explainer.fit(one, one).explain(new).attributions
        for explainer in (
            GaussianProcessExplainer(0.1, 5.0, features=po.chain_graph(1)),
            GaussianProcessExplainer(0.1),
        )
    )
    np.testing.assert_array_equal(alone, without)


def fit(*arguments, **settings):
    given = {k: settings.pop(k) for k in ("gradients", "function") if k in settings}
    return GaussianProcessExplainer(**settings).fit(*arguments, **given)


# ---- tables, explained where their schema puts them


def test_tables_with_categories_are_explained_where_their_schema_puts_them(rng):
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 50),
            "bill": rng.gamma(2, 20, 50),
            "plan": rng.choice(["a", "b", "c"], 50),
        },
        index=[f"c{n}" for n in range(50)],
    )
    function = po.wrap(
        lambda t: t["age"] ** 2 / 40 + 3 * (t["plan"] == "b"), data=table
    )
    known, new = table.iloc[:40], table.iloc[40:]
    explainer = GaussianProcessExplainer(0.1, scale="std", lengthscale=1.0)
    result = explainer.fit(known, function=function).explain(new, return_std=True)
    assert list(explainer.feature_names_in_) == ["age", "bill", "plan"]
    assert list(result.to_frame().columns) == ["age", "bill", "plan"]
    np.testing.assert_array_equal(explainer.predict(new), result.attributions)
    assert list(result.to_frame().index) == list(new.index)
    schema = function.schema
    coordinates, others = (schema.coordinates(t, "std") for t in (known, new))
    plain = GaussianProcessExplainer(0.1, lengthscale=1.0)
    G = function.gradient(known).to_numpy()
    columns = [
        # one feature at a time: without smoothness they do not meet
        plain.fit(coordinates, np.tile(G[:, [j]], coordinates.shape[1])).explain(others)
        for j in range(3)
    ]
    expected = np.column_stack([c.attributions[:, 0] for c in columns])
    np.testing.assert_allclose(result.attributions, expected, rtol=1e-10)
    # with hardly any robustness the variance before is so large that E(x) is G
    explainer.set_params(robustness=1e-6).fit(known, function=function)
    result, G = explainer.explain(new, gradients=function), function.gradient(new)
    error = np.abs(result.to_frame() - G).to_numpy()
    assert (error <= 1e-4 * np.abs(G).to_numpy().max()).all()


def test_columns_are_divided_by_their_scale_and_read_by_name(rng):
    X, new, G = rng.normal(size=(3, 30, 2)) * [1.0, 50.0]
    sizes = X.std(axis=0)
    scaled = fit(X, G, robustness=0.1, scale="std").explain(new)
    by_hand = fit(X / sizes, G, robustness=0.1).explain(new / sizes)
    np.testing.assert_allclose(scaled.attributions, by_hand.attributions, rtol=1e-12)
    X, G = (pd.DataFrame(a, columns=list("abc")) for a in rng.normal(size=(2, 9, 3)))
    expected, result = (
        fit(X, g, lengthscale=1.0).explain(X, gradients=g).attributions
        for g in (G, G.iloc[::-1][["c", "a", "b"]])
    )
    np.testing.assert_array_equal(result, expected)


# ---- missing numbers are refused with the cure


COMPLETE = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 3.0]})
HOLED = COMPLETE.mask(COMPLETE == 0.0)
CURE = r"in 2 of 3 rows, .*SimpleImputer\(add_indicator=True\)\), or take po\.Explainer"


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_numpy()], ids=["df", "a"])
def test_missing_numbers_are_refused_with_the_cure(form):
    explainer = GaussianProcessExplainer(lengthscale=1.0)
    with pytest.raises(InvalidInput, match=r"^X: numbers are missing .NaN. " + CURE):
        explainer.fit(form(HOLED), np.ones((3, 2)))
    explainer.fit(form(COMPLETE), np.ones((3, 2)))
    with pytest.raises(InvalidInput, match=CURE):
        explainer.explain(form(HOLED))
    function = po.wrap(lambda t: t["a"].fillna(0) + t["b"].fillna(0) ** 2, data=HOLED)
    with pytest.raises(InvalidInput, match=CURE):
        explainer.fit(HOLED, function=function)
    # which works
    cured = po.Explainer(function, data=HOLED, robustness=0.5).fit(HOLED)
    assert np.isfinite(cured.explain(HOLED.iloc[:2]).attributions).all()
