"""Columns that a model does not read may hold anything, and get exact zeros."""

import numpy as np
import pandas as pd
import pytest
from quiet_boosters import booster
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

import propopt as po
from propopt.structures.fitted_model import FittedModel


N = 240
RNG = np.random.default_rng(0)
READ = ["a", "kind", "b"]
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "opened": pd.date_range("2024-01-01", periods=N),
        "kind": RNG.choice(list("xyz"), N),
        "age": pd.to_timedelta(np.arange(N), "D"),
        "b": RNG.normal(size=N),
        "zone": pd.date_range("2024-01-01", periods=N, tz="Europe/Berlin"),
        "note": [["a list"], 3, "text", None] * (N // 4),
        "digits": ["1", "2", "3", "4"] * (N // 4),
    }
)
OTHERS = [name for name in X if name not in READ]
Y = (X["a"] + X["b"] * (X["kind"] == "x") > 0.3).astype(int)
ROWS, DATA = X.iloc[:6], X.iloc[100:160]
OTHERS_AT = [X.columns.get_loc(name) for name in OTHERS]
READ_AT = [X.columns.get_loc(name) for name in READ]


def encoder(kind=None):
    return make_column_transformer(
        (OneHotEncoder() if kind is None else kind, ["kind"]),
        ("passthrough", make_column_selector("^[ab]$")),
    )


def boosted(library):
    few = {"iterations" if library == "catboost" else "n_estimators": 10}
    model = booster(library, "Classifier", **few)
    return make_pipeline(encoder(OrdinalEncoder()), model)


MODELS = {
    "logistic": lambda: make_pipeline(encoder(), LogisticRegression()),
    "histograms": lambda: make_pipeline(
        encoder(), HistGradientBoostingClassifier(max_iter=10)
    ),
    "forest": lambda: make_pipeline(
        encoder(), RandomForestClassifier(5, max_depth=4, random_state=0)
    ),
    "lightgbm": lambda: boosted("lightgbm"),
    "xgboost": lambda: boosted("xgboost"),
    "catboost": lambda: boosted("catboost"),
}
each_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def fitted():
    made = {}

    def get(name):
        if name not in made:
            both = MODELS[name](), MODELS[name]()
            made[name] = both[0].fit(X, Y), both[1].fit(X[READ], Y)
        return made[name]

    return get


def same(W, narrow):
    """Zeros for columns that are not read, and the same numbers for the others."""
    W, narrow = np.asarray(W), np.asarray(narrow)
    assert not W[:, OTHERS_AT].any()
    np.testing.assert_allclose(W[:, READ_AT], narrow, rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore::propopt.base.errors.FlatFunctionWarning")
@each_model
def test_they_get_zeros_and_change_nothing(name, fitted, tmp_path):
    model, narrow = fitted(name)
    output = "probability" if name == "forest" else "log_odds"
    best = po.explain(model, ROWS, data=DATA, output=output)
    other = po.explain(narrow, ROWS[READ], data=DATA[READ], output=output)
    same(best.contributions, other.contributions)
    same(best.attributions, other.attributions)
    assert best.sampling_excess == other.sampling_excess
    p = model.predict_proba(ROWS)[:, 1]
    truth = p if name == "forest" else np.log(p / (1 - p))
    totals = best.attributions.sum(axis=1) + best.base_value
    np.testing.assert_allclose(totals, truth, rtol=1e-5, atol=1e-5)
    assert best.value_of(0, OTHERS_AT[0]) == "not read"

    settings = {"data": DATA, "output": output}
    explainer = po.Explainer(model, **settings).fit(ROWS)
    beside = po.Explainer(narrow, data=DATA[READ], output=output).fit(ROWS[READ])
    few = X.iloc[200:205]
    expected = beside.explain(few[READ]).attributions
    same(explainer.explain(few).attributions, expected)
    columns = explainer.transform(few)[list(X)]
    same(columns, expected)
    explainer.save(tmp_path / "explainer.npz")
    loaded = po.Explainer.load(tmp_path / "explainer.npz", model)
    same(loaded.explain(few).attributions, expected)

    audit = po.audit(best.contributions, model, ROWS, **settings)
    if best.sampling_excess == 0.0:
        assert audit["values"].verdict == "exact"
    beside = {"data": DATA[READ], "output": output}
    slopes = po.explain(model, ROWS, kind="slopes", **settings)
    narrow_slopes = po.explain(narrow, ROWS[READ], kind="slopes", **beside)
    same(slopes.attributions, narrow_slopes.attributions)
    wrapped = po.wrap(model, data=DATA, output=output)
    same(
        wrapped.gradient(ROWS),
        po.wrap(narrow, data=DATA[READ], output=output).gradient(ROWS[READ]),
    )
    # LIME's kernel depends on the number of columns, so constant ones stand for them
    constant = dict.fromkeys(OTHERS, 0.0)
    limits, expected = (
        po.lime.limits(model, rows, data=data, output=output)
        for rows, data in (
            (ROWS, DATA),
            (ROWS.assign(**constant), DATA.assign(**constant)),
        )
    )
    same(limits.coefficients, expected.coefficients[:, READ_AT])


@pytest.mark.parametrize("name", ["histograms", "lightgbm"])
def test_they_are_in_files(name, tmp_path):
    pytest.importorskip("pyarrow")
    storable = X.drop(columns="note")
    model = MODELS[name]().fit(storable, Y)
    explainer = po.Explainer(model, data=storable.iloc[100:160]).fit(storable[:6])
    folder = tmp_path / "rows"
    folder.mkdir()
    for part in range(2):
        rows = storable.iloc[80 * part : 80 * (part + 1)].reset_index(drop=True)
        rows.to_parquet(folder / f"part{part}.parquet")
    explained = explainer.explain(folder, to=tmp_path / "out").to_frame()
    expected = explainer.explain(storable.iloc[:160]).attributions
    np.testing.assert_array_equal(explained[list(storable)], expected)
    assert not explained[["opened", "age", "zone", "digits"]].to_numpy().any()


def test_which_columns_are_read():
    def read(model):
        return FittedModel.of(model.fit(X, Y)).columns_read

    assert read(MODELS["logistic"]()) == {"a", "kind", "b"}
    numbers = make_column_transformer(("passthrough", ["a"]), remainder="drop")
    for columns in ([0, 4], slice(0, 1), [True, *[False] * 7]):
        chosen = make_column_transformer(("passthrough", columns))
        expected = {"a", "b"} if columns == [0, 4] else {"a"}
        assert read(make_pipeline(chosen, LogisticRegression())) == expected
    one, two = (
        make_pipeline(part, LogisticRegression()) for part in (numbers, encoder())
    )
    both = [("one", one), ("two", two)]
    assert read(VotingClassifier(both)) == {"a", "kind", "b"}
    assert read(StackingClassifier(both, cv=2)) == {"a", "kind", "b"}
    union = FeatureUnion([("one", numbers), ("two", encoder())])
    assert read(make_pipeline(union, LogisticRegression())) == {"a", "kind", "b"}

    # what follows may read all of them
    rest = make_column_transformer(
        (FunctionTransformer(lambda t: t[["opened"]].map(lambda d: d.day)), ["opened"]),
        ("passthrough", ["a"]),
    )
    assert read(make_pipeline(rest, LogisticRegression())) == {"a", "opened"}
    table = X[["a", "b"]]
    stack = StackingClassifier([("one", LogisticRegression())], passthrough=True, cv=2)
    assert FittedModel.of(stack.fit(table, Y)).columns_read is None
    assert FittedModel.of(LogisticRegression().fit(table, Y)).columns_read is None
    first = FunctionTransformer(lambda t: t[["a"]])
    assert read(make_pipeline(first, LogisticRegression())) is None


def test_a_schema_names_the_columns_that_are_read():
    schema = po.functions.TableSchema.of(DATA, read=["a", "kind", "b"])
    best = po.explain(lambda table: 2.0 * table["a"] + 1, ROWS, data=schema)
    assert not best.attributions[:, OTHERS_AT].any()


def test_pages_show_them_and_plots_do_not(tmp_path):
    rows = X.drop(columns=["note"])
    model = MODELS["histograms"]().fit(rows, Y)
    best = po.explain(model, rows.iloc[:1], data=rows.iloc[100:160])
    best.to_html(tmp_path / "page.html")
    axes = best.plot.waterfall()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert not any("opened" in label for label in labels)  # it has no part in f
    assert best.to_shap().data.shape == (1, 7)
