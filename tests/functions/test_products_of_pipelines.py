"""Sums of products of models of tables with categories, and of sums of models."""

import warnings

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from model_answers import is_read
from refusals import refusals
from sklearn.pipeline import make_pipeline
from tree_cases import (
    CLASSES,  # noqa: F401  # of refusals.txt
    X,
    Y,
    table,
    table_response,
)

import propopt as po
from propopt.base.text import Reason
from propopt.structures.products.families import Curves


TABLE = table()
TABLE["gap"] = np.where(np.arange(len(TABLE)) % 7 == 0, np.nan, 1e-4 * X[:, 5])
RESPONSE = table_response(TABLE)
CLASS = (np.median(RESPONSE) < RESPONSE).astype(int)
NUMBERS = ["size", "count", "weight", "gap"]
CATEGORIES = ["letter", "number", "text", "flag"]


def columns(*steps, encoder=None):
    """Imputed and scaled numbers, and encoded categories."""
    numbers = make_pipeline(*(steps or (sk.SimpleImputer(), sk.StandardScaler())))
    encoder = sk.OneHotEncoder(handle_unknown="ignore") if encoder is None else encoder
    return sk.ColumnTransformer(
        [("numbers", numbers, NUMBERS), ("categories", encoder, CATEGORIES)]
    )


def behind_columns(model, *steps, encoder=None):
    return make_pipeline(columns(*steps, encoder=encoder), model)


def wrapped(model, data, target, **settings):
    schema = data if isinstance(data, pd.DataFrame) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, which nothing here needs
        model.fit(data, target)
    return po.wrap(model, data=schema, **settings)


PIPELINES = [
    behind_columns(sk.Ridge(), sk.SimpleImputer(), sk.PowerTransformer()),
    behind_columns(sk.SVR(), sk.SimpleImputer(), sk.PowerTransformer()),
    behind_columns(sk.Ridge(), sk.SimpleImputer(), sk.SplineTransformer(n_knots=4)),
    behind_columns(sk.Ridge(), sk.SimpleImputer(), sk.FunctionTransformer(np.arctan)),
    behind_columns(sk.Ridge()),
    behind_columns(sk.Ridge(), sk.SimpleImputer(strategy="median"), sk.MinMaxScaler()),
    behind_columns(
        sk.Ridge(), sk.SimpleImputer(add_indicator=True), sk.StandardScaler()
    ),
    behind_columns(sk.Ridge(), encoder=sk.OneHotEncoder(drop="first")),
    behind_columns(sk.Ridge(), encoder=sk.OrdinalEncoder()),
    behind_columns(sk.Ridge(), encoder=sk.TargetEncoder(random_state=0)),
    behind_columns(sk.SVR()),
    behind_columns(sk.SVR(), sk.SimpleImputer(add_indicator=True), sk.StandardScaler()),
    behind_columns(sk.KernelRidge(kernel="poly", degree=2)),
    make_pipeline(columns(), sk.PCA(4), sk.Ridge()),
    behind_columns(sk.RandomForestRegressor(5, random_state=0)),
    behind_columns(sk.VotingRegressor([("a", sk.Ridge()), ("b", sk.SVR())])),
]
SUMS = [
    sk.VotingRegressor([("a", sk.Ridge()), ("b", sk.SVR())], weights=[1, 3]),
    sk.VotingRegressor(
        [("a", sk.Ridge()), ("b", sk.DecisionTreeRegressor(max_depth=3))]
    ),
    sk.StackingRegressor(
        [("a", sk.Ridge()), ("b", sk.DecisionTreeRegressor())], sk.Lasso(0.01)
    ),
    sk.TransformedTargetRegressor(sk.SVR(), transformer=sk.StandardScaler()),
    sk.BaggingRegressor(sk.SVR(), max_features=0.5, n_estimators=3, random_state=0),
    sk.BaggingRegressor(
        make_pipeline(sk.StandardScaler(), sk.Ridge()), n_estimators=3, random_state=0
    ),
    sk.GridSearchCV(sk.SVR(), {"C": [1, 2]}, cv=2),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("model", PIPELINES)
def test_pipelines_of_tables_are_read(model):
    function = wrapped(model, TABLE, RESPONSE)
    read = is_read(function, TABLE)
    assert read.n_columns == len(NUMBERS) + len(CATEGORIES)
    column = np.append(read.column, -1)[read.paths]
    within = np.sort(column, axis=1)
    assert not ((within[:, 1:] == within[:, :-1]) & (within[:, 1:] >= 0)).any()


def test_models_with_links_and_one_of_several_outputs_are_read():
    encoder = sk.TargetEncoder(random_state=0)
    model = behind_columns(sk.PoissonRegressor(), encoder=encoder)
    is_read(wrapped(model, TABLE, np.exp(RESPONSE / 4)), TABLE)
    model = behind_columns(sk.LogisticRegression())
    logit = wrapped(model, TABLE, CLASS, output="log_odds")
    is_read(logit, TABLE, 1e-9)  # of probabilities, which lose digits near 0 and 1
    both = sk.MultiOutputRegressor(sk.SVR()).fit(X, np.column_stack([Y, -Y]))
    is_read(po.wrap(both, 1), X)


def test_numbers_that_are_encoded_are_listed():
    data = X[:, [0, 2]]
    encoder = sk.OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(
        sk.ColumnTransformer([("count", encoder, [1])], remainder="passthrough"),
        sk.Ridge(),
    )
    read = is_read(po.wrap(model.fit(data, Y)), data)
    rows = np.array([[0.3, 4.0], [0.3, 4.5], [0.3, 99.0]])
    np.testing.assert_allclose(read.value(rows), model.predict(rows), rtol=1e-12)


@pytest.mark.parametrize("model", SUMS)
def test_sums_of_models_are_read(model):
    is_read(wrapped(model, X, Y), X)


@pytest.mark.parametrize(("line", "reason"), refusals(__file__, "products"))
def test_models_that_are_not_read_say_why(line, reason):
    def of_table(model):
        return wrapped(model, TABLE, RESPONSE)

    refused = eval(line, globals() | locals()).products
    assert isinstance(refused, Reason)
    assert reason in refused.reason


def test_knots_of_splines_are_in_units_of_the_table():
    """Behind a scaler, of columns in single units and in hundreds of thousands."""
    Z = np.random.default_rng(0).normal(size=(60, 1))
    result = []
    for unit in (1.0, 1e5):
        model = make_pipeline(
            sk.StandardScaler(), sk.SplineTransformer(n_knots=4), sk.Ridge()
        )
        read = po.wrap(model.fit(unit * Z, Z[:, 0] ** 2)).products_in(1)
        (curves,) = [x for x in read.factors if isinstance(x, Curves)]
        result.append(np.stack(curves.knots) / unit)
    assert len(result[0][0]) >= 4
    np.testing.assert_allclose(result[1], result[0], rtol=1e-9, atol=1e-9)
