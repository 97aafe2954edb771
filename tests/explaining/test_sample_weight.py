"""Weights of background rows: base, Shapley values, main effects, digests, audits."""

import math

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from refusals import refusals
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.laws.background import Background
from propopt.laws.shapley_draws import ShapleyDraws
from propopt.problems.file import read_problem


RNG = np.random.default_rng(3)
NAMES = ["age", "income", "debt", "rooms"]
TABLE = pd.DataFrame(RNG.normal(size=(60, 4)), columns=NAMES)
TABLE["rooms"] = RNG.integers(1, 5, 60)
Y = TABLE["age"] * TABLE["income"] + np.sin(TABLE["debt"]) + (TABLE["rooms"] > 2)
WEIGHTS = RNG.integers(0, 4, 60).astype(float)
X = TABLE.iloc[[1, 7, 30]]


MODELS = {
    "trees": RandomForestRegressor(12, max_depth=5, random_state=0).fit(TABLE, Y),
    "linear": LinearRegression().fit(TABLE, Y),
    "called": lambda x: x["age"] * x["income"] * x["debt"] + x["rooms"],
}


@pytest.mark.parametrize("name", MODELS)
def test_equal_weights_are_none_and_only_ratios_matter(name):
    model = MODELS[name]
    plain = po.explain(model, X, data=TABLE)
    equal = po.explain(model, X, data=TABLE, sample_weight=np.full(60, 0.3))
    assert np.array_equal(plain.attributions, equal.attributions)
    assert plain.background == equal.background
    one, other = (
        po.explain(model, X, data=TABLE, sample_weight=scale * WEIGHTS)
        for scale in (1.0, 365.25)
    )
    assert one.attributions == pytest.approx(other.attributions, abs=1e-12)
    assert one.background == other.background != plain.background


def test_weighted_rows_that_are_drawn_have_no_bias_and_a_true_error():
    rows = RNG.normal(size=(3000, 2))
    weights = RNG.gamma(0.3, size=3000)
    whole = Background.of_points(rows, weights)
    values = rows[:, 0] + 0.3 * rows[:, 0] ** 2
    drawn = whole.thinned(500)
    assert drawn.by_weight
    assert drawn.weights is None
    assert not drawn.is_whole
    f = drawn.points[:, 0] + 0.3 * drawn.points[:, 0] ** 2
    error = f.std(ddof=1) / math.sqrt(500) * drawn.correction
    shares = weights / weights.sum()
    true = math.sqrt(shares @ (values - shares @ values) ** 2 / 500)
    assert error == pytest.approx(true, rel=0.2)
    z = (f.mean() - shares @ values) / true
    assert abs(z) < 4.0  # false alarm 6e-5, and the draw is fixed


def test_drawn_orders_of_a_weighted_background_have_no_bias():
    """|z| < 5 with nine degrees of freedom: 7e-4 for each, of fixed draws."""
    rows, weights = RNG.normal(size=(40, 7)), RNG.gamma(0.4, size=40)

    def f(x):
        return x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] * x[:, 4] + x[:, 5]

    x = RNG.normal(size=(2, 7))
    shares = weights / weights.sum()
    true, plain = (shapley_by_definition(f, x, rows, w) for w in (shares, None))
    table = Background.of_points(rows, weights)
    ends = f(x), f(table.points)
    for count in (60, 400):  # orders, and sets
        rng = np.random.default_rng(0)
        draws = ShapleyDraws.of(f, table, x, rng, DrawPlan(count), ends=ends)
        result = draws.blocks(1.0)
        mean = result.mean(axis=0)
        error = result.std(axis=0, ddof=1) / math.sqrt(len(result))
        assert (np.abs(mean - true) <= 5.0 * error + 1e-9).all()
        assert error.max() > 0.0
    assert (np.abs(mean - plain) > 5.0 * error + 1e-9).any()


def test_a_series_is_aligned_by_its_labels():
    model = MODELS["trees"]
    table = TABLE.set_axis([f"r{i}" for i in range(60)])
    named = pd.Series(WEIGHTS, index=table.index)
    mixed = named.sample(frac=1.0, random_state=0)
    one = po.explain(model, X, data=table, sample_weight=named)
    other = po.explain(model, X, data=table, sample_weight=mixed)
    assert np.array_equal(one.attributions, other.attributions)


def _weighted(weights, **how):
    return po.explain(MODELS["linear"], X, data=TABLE, sample_weight=weights, **how)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "sample weights"))
def test_other_weights_are_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def test_without_data_the_rows_of_x_have_weights():
    model = MODELS["trees"]
    result = po.explain(model, TABLE, sample_weight=WEIGHTS)
    base = np.average(model.predict(TABLE), weights=WEIGHTS)
    assert result.base_value == pytest.approx(np.full(60, base), abs=1e-10)


def test_an_audit_recognises_values_of_a_weighted_background():
    model = MODELS["trees"]
    weights = RNG.gamma(0.5, size=60)
    rows = TABLE.iloc[:25]
    right = po.explain(model, rows, data=TABLE, sample_weight=weights, robustness=0.0)
    values = pd.DataFrame(right.contributions, index=rows.index, columns=NAMES)
    settings = {"data": TABLE, "sample_weight": weights}
    result = po.audit(values, model, rows, base=right.base_value, **settings)
    assert result["values"].verdict == "exact"
    assert result["row sums"].verdict == result["base"].verdict == "exact"
    # values without weights are right, and for another background
    plain = po.explain(model, rows, data=TABLE, robustness=0.0)
    other = pd.DataFrame(plain.contributions, index=rows.index, columns=NAMES)
    result = po.audit(other, model, rows, base=plain.base_value, **settings)
    assert result["values"].verdict == "exact"
    # one wrong number is found
    wrong = values.copy()
    wrong.iloc[3, 1] *= -1.0
    result = po.audit(wrong, model, rows, base=right.base_value, **settings)
    assert result["values"].verdict == "wrong"
    # without weights nobody is accused
    result = po.audit(values, model, rows, base=right.base_value, data=TABLE)
    assert result["values"].verdict != "wrong"


def test_versions_are_compared_with_a_weighted_background():
    before, after = MODELS["trees"], MODELS["linear"]
    result = po.compare(before, after, X, data=TABLE, sample_weight=WEIGHTS)
    explained = po.explain(before, X, data=TABLE, sample_weight=WEIGHTS)
    assert result.before == pytest.approx(explained.contributions)


def _problem(folder, job):
    table = TABLE.assign(exposure=WEIGHTS, y=Y)
    table.to_csv(folder / "table.csv", index=False)
    text = "data: {csv: table.csv, target: y, sample_weight: exposure}\n"
    text += "model: {kind: linear}\n" + job
    (folder / "problem.yaml").write_text(text)
    return read_problem(folder / "problem.yaml")


def test_a_column_of_a_file_has_the_weights(tmp_path):
    result = _problem(tmp_path, "explain: {}\n").run(tmp_path, quiet=True)
    model = LinearRegression().fit(TABLE, Y)
    right = po.explain(model, TABLE, sample_weight=WEIGHTS, robustness=0.0)
    assert result.labels.features == tuple(NAMES)
    assert result.base_value == pytest.approx(right.base_value, abs=1e-10)
    values = pd.DataFrame(right.contributions, columns=NAMES)
    values.to_csv(tmp_path / "values.csv", index=False)
    job = "audit: {attributions: values.csv, output: value}\n"
    result = _problem(tmp_path, job).run(tmp_path, quiet=True)
    assert result["values"].verdict == result["base"].verdict == "exact"
