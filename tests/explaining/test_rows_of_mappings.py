"""One row as a Series or a dict, and rows as dicts, are explained as their table."""

import numpy as np
import pandas as pd
import pytest
from quiet_boosters import booster
from refusals import refusals
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from propopt.base.errors import InvalidInput


rng = np.random.default_rng(0)
N = 120
X = pd.DataFrame(
    {
        "age": rng.integers(18, 80, N),
        "income": rng.normal(3.0, 1.0, N),
        "owner": rng.random(N) < 0.5,
        "plan": rng.choice(["a", "b", "c"], N),
        "grade": pd.Categorical(rng.choice([1, 2, 3], N)),
    },
    index=[f"p{n}" for n in range(N)],
)
X.loc["p4", "income"] = np.nan
y = ((X["age"] > 40) ^ (X["plan"] == "a")).astype(int)
WORDS = ["plan", "grade", "owner"]


def encoded(model):
    columns = make_column_transformer((OneHotEncoder(), WORDS), remainder="passthrough")
    return make_pipeline(columns, model)


def boosted(library, **settings):
    return lambda: booster(library, "Classifier", n_estimators=5, **settings)


CODED = X.assign(plan=X["plan"].astype("category"))
MODELS = {
    "forest": (lambda: encoded(RandomForestClassifier(9, random_state=0)), X),
    "hist": (lambda: encoded(HistGradientBoostingClassifier(max_iter=5)), X),
    "logistic": (lambda: LogisticRegression(), X[["age", "owner"]]),
    "lightgbm": (boosted("lightgbm"), CODED),
    "catboost": (boosted("catboost", cat_features=WORDS), X),
}
FORMS = {
    "series": lambda table: table.iloc[0],
    "dict": lambda table: table.iloc[0].to_dict(),
    "reversed": lambda table: table.iloc[0][::-1],
    "list": lambda table: table.to_dict("records"),
    "reversed dict": lambda table: dict([*table.iloc[0].to_dict().items()][::-1]),
}


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    make, table = MODELS[request.param]
    model = make().fit(table, y)
    return model, table, po.Explainer(model, data=table).fit()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("row", [7, 4], ids=["whole", "missing"])
def test_a_row_has_the_bits_of_its_table(case, form, row):
    model, table, explainer = case
    one = table.iloc[[row]]
    given = FORMS[form](one)
    expected = explainer.explain(one)
    results = [explainer.explain(given)]
    if row == 7:
        results.append(po.explain(model, given, data=table))
    for best in results:
        assert best.shape == (1, table.shape[1])
        assert best.labels.features == tuple(table)
        np.testing.assert_array_equal(best.attributions, expected.attributions)
        np.testing.assert_array_equal(best.prediction, expected.prediction)
        if isinstance(given, pd.Series):
            assert best.labels.points == (f"p{row}",)
    pd.testing.assert_frame_equal(
        explainer.transform(given).reset_index(drop=True),
        explainer.transform(one).reset_index(drop=True),
    )


def test_rows_as_a_list_of_dicts(case):
    model, table, explainer = case
    some = table.iloc[[3, 9, 4]]
    given = some.to_dict("records")
    given[1] = dict([*given[1].items()][::-1])
    expected = explainer.explain(some).attributions
    np.testing.assert_array_equal(explainer.explain(given).attributions, expected)
    best = po.explain(model, given, data=table)
    np.testing.assert_array_equal(best.attributions, expected)


def test_offsets_of_such_rows_are_added():
    model = HistGradientBoostingClassifier(max_iter=5).fit(X[["age", "owner"]], y)
    data = X[["age", "owner"]]
    explainer = po.Explainer(model, data=data).fit()
    plain = explainer.explain(data.iloc[3])
    moved = explainer.explain(data.iloc[3], base_margin=[0.25])
    assert moved.prediction == plain.prediction + 0.25


def test_rows_of_arrays_have_no_names_to_compare():
    A = rng.normal(size=(60, 3))
    model = LogisticRegression().fit(A, A[:, 0] > 0)
    explainer = po.Explainer(model, data=A).fit()
    expected = explainer.explain(A[:1]).attributions
    row = pd.Series(A[0])
    for best in (explainer.explain(row), po.explain(model, row, data=A)):
        np.testing.assert_array_equal(best.attributions, expected)


@pytest.mark.parametrize(("line", "named"), refusals(__file__, "mappings"))
def test_other_names_and_values_are_refused_and_named(line, named):
    model = encoded(RandomForestClassifier(9, random_state=0)).fit(X, y)
    explainer = po.Explainer(model, data=X).fit()
    given = eval(line, globals() | {"row": X.iloc[0].to_dict()})
    with pytest.raises(InvalidInput, match=named):
        explainer.explain(given)


def test_a_series_of_texts_stays_documents():
    texts = pd.Series(["a word", "another word", "a third word"])
    best = po.explain(lambda texts: [len(text) for text in texts], texts)
    assert best.shape[0] == 3


def test_names_that_are_no_text_are_compared_as_files_store_them():
    dates = pd.to_datetime(["2020-01-01", "2021-01-01"])
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=dates)
    explainer = po.Explainer(lambda X: X.iloc[:, 0] * 2.0, data=table).fit()
    expected = explainer.explain(table.iloc[[0]]).attributions
    for given in (table.iloc[0], dict(reversed([*table.iloc[0].items()]))):
        np.testing.assert_array_equal(explainer.explain(given).attributions, expected)
