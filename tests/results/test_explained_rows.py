"""Explanations know the rows that they explain: values are shown without the table."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import propopt as po
from propopt.base.errors import InvalidInput


pytestmark = pytest.mark.filterwarnings(
    "ignore::propopt.base.errors.MissingPatternsWarning"
)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50.0, 9.0, 60).round(2),
            "ward": rng.choice(["north <b>", "south"], 60),
            "dose": rng.integers(1, 9, 60).astype(float),
        },
        index=[f"patient {n}" for n in range(60)],
    )
    frame.iloc[3, 2] = np.nan
    frame.iloc[4, 1] = None
    return frame


X = table()
Y = X.age + 4.0 * (X.ward == "south") + X.dose.fillna(20.0)
MODEL = make_pipeline(
    make_column_transformer((OrdinalEncoder(), ["ward"]), remainder="passthrough"),
    HistGradientBoostingRegressor(max_iter=20),
).fit(X, Y)
MADE = {
    "together": lambda: po.explain(MODEL, X.iloc[:8], data=X),
    "parts": lambda: po.explain(MODEL, X.iloc[:8], data=X, units="output"),
    "alone": lambda: po.Explainer(MODEL, data=X).fit().explain(X.iloc[:8]),
    "parts alone": lambda: (
        po.Explainer(MODEL, data=X, units="output").fit().explain(X.iloc[:8])
    ),
    "reference": lambda: po.Explainer(MODEL, X.iloc[:8]).fit().reference_,
    "baseline": lambda: po.explainers.TreeShap(background=X).explain(
        po.wrap(MODEL, data=X), X.iloc[:8]
    ),
}


def expected(n, name):
    value = X.iloc[n][name]
    if pd.isna(value):
        return "missing"
    return value if isinstance(value, str) else f"{value:.4g}"


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_each_way_of_explaining_keeps_the_rows(make, tmp_path):
    made = make()
    made.save(tmp_path / "kept.npz")
    for result in (made, po.Explanation.load(tmp_path / "kept.npz")):
        for n in range(8):
            for j, name in enumerate(X.columns):
                assert result.value_of(n, j) == expected(n, name)


@pytest.mark.parametrize("n", [0, 3, 4])
def test_a_card_of_one_row_has_its_values_also_when_loaded(n, tmp_path):
    one = po.explain(MODEL, X.iloc[[n]], data=X)
    lines = str(one).splitlines()
    for name in X.columns:
        assert any(f"{name} = {expected(n, name)}" in line for line in lines)
    one.save(tmp_path / "one.npz")
    same = po.Explanation.load(tmp_path / "one.npz")
    assert same._repr_html_() == one._repr_html_()
    assert "north <b>" not in one._repr_html_()


def test_plots_show_values_without_the_table():
    parts = MADE["parts"]()
    axes = po.plots.plot_row(parts, "patient 3")
    shown = {label.get_text() for label in axes.get_yticklabels()}
    assert shown == {f"{name} = {expected(3, name)}" for name in X.columns}
    asked = po.plots.plot_row(parts, "patient 0", X=X.iloc[:8] * 1)
    assert asked.get_yticklabels()[0].get_text() in shown | {
        f"{name} = {expected(0, name)}" for name in X.columns
    }


def test_shap_gets_them_too():
    pytest.importorskip("shap")
    parts = MADE["parts"]()
    theirs = parts.to_shap()
    np.testing.assert_array_equal(theirs.data, parts.points)
    assert theirs.display_data[4].tolist() == [expected(4, name) for name in X.columns]


def test_groups_of_features_have_no_value_and_still_add_up():
    parts = MADE["parts"]()
    both = parts.grouped({"person": ["age", "ward"]})
    assert both.points is None
    assert both.value_of(0, 0) == ""
    np.testing.assert_allclose(both.completeness_gap, 0.0, atol=1e-10)
    assert both.contributions is None


def test_gap_is_what_rows_miss_and_not_known_of_slopes():
    parts = MADE["parts"]()
    wrong = dataclasses.replace(parts, attributions=1.001 * parts.attributions)
    missed = 0.001 * parts.attributions.sum(axis=1)
    np.testing.assert_allclose(wrong.completeness_gap, missed, atol=1e-10)
    assert MADE["together"]().completeness_gap is None


def test_what_is_a_field_is_no_detail():
    with pytest.raises(InvalidInput, match=r"details: 'base_value' is a field: give"):
        po.Explanation(
            attributions=np.eye(2),
            method="mine",
            details={"base_value": np.zeros(2)},
        )


@pytest.mark.parametrize(
    "fields",
    [
        {"categories": {"ward": ("north",)}},
        {"categories": {"nobody": ("a", "b")}},
        {"points": None},
    ],
)
def test_codes_that_stand_for_nothing_are_in_no_file(fields, tmp_path):
    made = dataclasses.replace(MADE["together"](), **fields)
    with pytest.raises(InvalidInput, match=r"points: ward: expected|is no feature"):
        made.save(tmp_path / "wrong.npz")


@pytest.mark.parametrize("name", ["together", "parts", "alone", "parts alone"])
@pytest.mark.parametrize("factor", [1.001, 0.0])
def test_a_loss_of_another_target_is_refused(name, factor, tmp_path):
    made = MADE[name]()
    field = "gradient" if made.gradient is not None else "contributions"
    target = factor * getattr(made, field)
    with pytest.raises(InvalidInput, match="losses: gradient_matching is said to be"):
        dataclasses.replace(made, **{field: target}).save(tmp_path / "wrong.npz")
