"""Pipelines that name columns, on tables without some of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from propopt.base.errors import InvalidInput
from propopt.interactions.learning import SomeColumns, mentions_columns, restricted


NAMES = ("age", "size", "colour", "shape")


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(size=40),
            "size": rng.normal(size=40),
            "colour": rng.choice(["red", "blue"], 40),
            "shape": rng.choice(["round", "flat", "long"], 40),
        }
    )


X = table()
Y = np.random.default_rng(1).normal(size=40) + X["age"] + (X["colour"] == "red")


def without(model: Any, *dropped: str, counted: bool = False) -> Any:
    kept = np.array([name not in dropped for name in NAMES])
    observed = X.loc[:, kept]
    names = None if counted else NAMES
    return restricted(clone(model), SomeColumns(names, kept, observed))


def prep(numbers: Any, texts: Any, **settings: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [("n", StandardScaler(), numbers), ("t", OneHotEncoder(), texts)], **settings
    )


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        (["age", "size"], ["colour", "shape"]),
        ([0, 1], [2, 3]),
        ([-4, 1], [2, -1]),
        (slice("age", "size"), slice("colour", None)),
        (slice(0, 2), slice(2, None)),
        ([True, True, False, False], np.array([False, False, True, True])),
        (pd.Index(["age", "size"]), np.array(["colour", "shape"])),
        (make_column_selector(dtype_include="number"), ["colour", "shape"]),
    ],
)
@pytest.mark.parametrize(
    "dropped", [("size",), ("age", "shape"), ("colour", "shape"), ("age", "size")]
)
def test_column_transformers_in_all_ways_of_naming_columns(
    numbers: Any, texts: Any, dropped: tuple[str, ...]
) -> None:
    whole = make_pipeline(prep(numbers, texts), Ridge())
    left = X.drop(columns=list(dropped))
    model = without(whole, *dropped).fit(left, Y)
    parts = [
        ("n", StandardScaler(), [n for n in ("age", "size") if n in left]),
        ("t", OneHotEncoder(), [n for n in ("colour", "shape") if n in left]),
    ]
    by_hand = make_pipeline(ColumnTransformer(parts), Ridge()).fit(left, Y)
    np.testing.assert_array_equal(model.predict(left), by_hand.predict(left))


def test_numbers_of_columns_mean_the_same_columns_in_the_smaller_table() -> None:
    array = X[["age", "size"]].to_numpy()
    array = np.column_stack([array, array[:, 0] ** 2])
    model = ColumnTransformer([("a", "passthrough", [2, 0]), ("b", "drop", [1])])
    kept = np.array([True, False, True])
    left = restricted(model, SomeColumns(None, kept, array[:, kept]))
    result = left.fit_transform(array[:, kept])
    np.testing.assert_array_equal(result, array[:, [2, 0]])


def test_one_column_given_alone_stays_alone() -> None:
    # such a transformer gets one dimension: words of a text, for example
    length = FunctionTransformer(lambda own: own.str.len().to_frame())
    model = ColumnTransformer([("c", length, "colour"), ("n", "passthrough", ["age"])])
    left = without(model, "size")
    assert left.transformers[0][2] == "colour"
    assert left.fit_transform(X.drop(columns="size")).shape == (40, 2)
    gone = without(model, "colour")
    assert [choice for *_, choice in gone.transformers] == [[], ["age"]]
    assert gone.fit_transform(X.drop(columns="colour")).shape == (40, 1)


@pytest.mark.parametrize(
    ("remainder", "expected"),
    [("drop", None), ("passthrough", 1), (StandardScaler(), 1)],
)
def test_an_emptied_transformer_is_of_no_use_unless_others_are_left(
    remainder: Any, expected: int | None
) -> None:
    model = ColumnTransformer([("n", StandardScaler(), ["age"])], remainder=remainder)
    left = without(model, "age", "colour", "shape")
    if expected is None:
        assert left is None
    else:
        assert left.fit_transform(X[["size"]]).shape[1] == expected
    assert without(model, *NAMES[1:]).fit_transform(X[["age"]]).shape[1] == 1


def test_a_pipeline_that_sees_nothing_gives_the_mean_or_the_shares() -> None:
    only_age = make_column_transformer((StandardScaler(), ["age"]))
    assert isinstance(without(make_pipeline(only_age, Ridge()), "age"), DummyRegressor)
    classifier = without(make_pipeline(only_age, LogisticRegression()), "age")
    assert isinstance(classifier, DummyClassifier)
    of_numbers = make_column_selector(dtype_include="number")
    chosen = make_column_transformer((StandardScaler(), of_numbers))
    assert without(chosen, "age", "size") is None
    assert without(chosen, "age") is not None


def test_unions_lose_the_parts_that_see_nothing() -> None:
    age = make_column_transformer((StandardScaler(), ["age"]))
    size = make_column_transformer((StandardScaler(), ["size"]))
    union = FeatureUnion([("a", age), ("s", size)])
    left = without(union, "age")
    assert [name for name, _ in left.transformer_list] == ["s"]
    assert without(union, "age", "size") is None


def test_encoders_keep_the_categories_of_the_columns_that_are_left() -> None:
    colours, shapes = ["red", "blue"], ["long", "round", "flat"]
    encoder = OrdinalEncoder(categories=[colours, shapes])
    model = ColumnTransformer([("t", encoder, ["colour", "shape"])])
    left = without(model, "colour").fit_transform(X.drop(columns="colour"))
    np.testing.assert_array_equal(left[:, 0], [shapes.index(s) for s in X["shape"]])
    first = OneHotEncoder(drop=["red", "flat"])
    model = ColumnTransformer([("t", first, ["colour", "shape"])])
    left = without(model, "shape").fit(X.drop(columns="shape"))
    assert list(left.get_feature_names_out()) == ["t__colour_blue"]


def test_set_output_and_settings_of_pipelines_are_kept() -> None:
    model = make_pipeline(
        prep(["age", "size"], ["colour"], verbose_feature_names_out=False),
        StandardScaler(with_mean=False),
    )
    model[0].transformers[1][1].set_params(sparse_output=False)
    model.set_output(transform="pandas")
    left = without(model, "age").fit_transform(X.drop(columns="age"))
    assert list(left.columns) == ["size", "colour_blue", "colour_red"]


def test_names_behind_steps_that_keep_them() -> None:
    imputed = SimpleImputer(strategy="most_frequent").set_output(transform="pandas")
    model = make_pipeline(imputed, prep(["age"], ["colour", "shape"]), Ridge())
    left = X.drop(columns="shape")
    assert without(model, "shape").fit(left, Y).predict(left).shape == (40,)


def boosted(**settings: Any) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"categorical_features": ["colour", "shape"]},
        {"categorical_features": [2, 3]},
        {"categorical_features": np.array([False, False, True, True])},
        {"categorical_features": "from_dtype"},
        {"monotonic_cst": {"age": 1, "colour": 0}},
        {"monotonic_cst": [1, 0, 0, 0]},
        {"interaction_cst": [{0, 2}, {1, 3}]},
        {"interaction_cst": "pairwise"},
    ],
)
def test_parameters_of_boosting_that_speak_of_columns(settings: dict[str, Any]) -> None:
    coded = X.assign(colour=X["colour"] == "red", shape=X["shape"].astype("category"))
    if (
        "categorical_features" in settings
        and settings["categorical_features"] is not None
    ):
        coded["colour"] = coded["colour"].astype("category")
    model = boosted(**settings)
    for dropped in (["age"], ["colour"], ["age", "size"], ["colour", "shape"]):
        left = coded.drop(columns=dropped)
        kept = np.array([name not in dropped for name in NAMES])
        fitted = restricted(clone(model), SomeColumns(NAMES, kept, left)).fit(left, Y)
        assert fitted.predict(left).shape == (40,)


def test_shortened_parameters_are_those_of_the_same_columns() -> None:
    model = boosted(
        categorical_features=[2, "shape"],
        monotonic_cst=[1, -1, 0, 0],
        interaction_cst=[{0, 1}, {1, 2, 3}],
    )
    left = without(model, "age")
    assert left.categorical_features == [1, "shape"]
    assert left.monotonic_cst == [-1, 0, 0]
    assert left.interaction_cst == [{0}, {0, 1, 2}]
    mask = without(boosted(categorical_features=[True, False, True, False]), "size")
    assert mask.categorical_features == [True, True, False]
    kernel = GaussianProcessRegressor(RBF([1.0, 2.0, 3.0, 4.0]) + WhiteKernel())
    assert without(kernel, "size").kernel.k1.length_scale == [1.0, 3.0, 4.0]


def test_estimators_within_estimators() -> None:
    inner = make_pipeline(prep(["age", "size"], ["colour"]), Ridge())
    left = X.drop(columns="age")
    for outer in (
        TransformedTargetRegressor(inner, transformer=StandardScaler()),
        GridSearchCV(inner, {"ridge__alpha": [0.1, 1.0]}, cv=2),
        VotingRegressor([("one", inner), ("two", clone(inner)), ("no", "drop")]),
    ):
        model = without(outer, "age").fit(left, Y)
        assert model.predict(left).shape == (40,)
    blind = make_pipeline(make_column_transformer(("passthrough", ["age"])), Ridge())
    voting = without(VotingRegressor([("a", blind), ("b", inner)]), "age").fit(left, Y)
    alone = without(inner, "age").fit(left, Y).predict(left)
    np.testing.assert_allclose(voting.predict(left), (Y.mean() + alone) / 2, rtol=1e-12)


def test_grids_may_speak_of_transformers_that_have_nothing_left() -> None:
    inner = make_pipeline(prep(["age"], ["colour", "shape"]), Ridge())
    grid = {"columntransformer__n__with_mean": [True, False], "ridge__alpha": [1.0]}
    model = without(GridSearchCV(inner, grid, cv=2), "age")
    assert model.fit(X.drop(columns="age"), Y).predict(X.drop(columns="age")).size == 40


def test_an_estimator_around_one_that_sees_nothing_gives_the_mean() -> None:
    inner = make_pipeline(make_column_transformer(("passthrough", ["age"])), Ridge())
    grid = GridSearchCV(inner, {"ridge__alpha": [0.1, 1.0]}, cv=2)
    for outer in (grid, TransformedTargetRegressor(grid)):
        model = without(outer, "age").fit(X.drop(columns="age"), Y)
        result = model.predict(X.drop(columns="age"))
        np.testing.assert_allclose(result, np.full(40, Y.mean()), rtol=1e-14)


def test_tables_of_polars() -> None:
    frame = pl.DataFrame(X.to_dict("list"))
    model = make_pipeline(prep(["age", "size"], ["colour", "shape"]), Ridge())
    left = frame.drop("size", "colour")
    kept = np.array([True, False, False, True])
    result = restricted(clone(model), SomeColumns(NAMES, kept, left)).fit(left, Y)
    same = without(model, "size", "colour").fit(X[["age", "shape"]], Y)
    np.testing.assert_array_equal(
        result.predict(left), same.predict(X[["age", "shape"]])
    )


def test_learners_that_do_not_speak_of_columns_are_left_alone() -> None:
    assert not mentions_columns(make_pipeline(StandardScaler(), LinearRegression()))
    assert not mentions_columns(boosted())
    assert mentions_columns(boosted(categorical_features=[1]))
    assert mentions_columns(GridSearchCV(make_pipeline(prep([0], [2]), Ridge()), {}))


class Named(Ridge):
    """A learner with a parameter of its own that names columns."""

    def __init__(self, positive_columns: Any = None) -> None:
        super().__init__()
        self.positive_columns = positive_columns


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            make_pipeline(prep(["age"], ["colour"]), boosted(categorical_features=[1])),
            "column 1 is counted behind a step that makes other columns",
        ),
        (
            make_pipeline(prep(["age"], ["colour"]), boosted(monotonic_cst=[1, 0, 0])),
            "expected an entry for each of 4 columns, got 3",
        ),
        (Named(["age", "size"]), "positive_columns names the columns 'age', 'size'"),
        (prep([0], [7]), "there is no column 7; there are 4"),
    ],
)
def test_what_is_refused_says_why(model: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        without(model, "age")


def test_text_that_speaks_of_columns_in_the_words_of_a_learner() -> None:
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(monotone_constraints="0:1,1:-1")
    with pytest.raises(InvalidInput, match="in the learner's own words"):
        without(model, "age")


def test_a_pipeline_of_steps_by_name() -> None:
    model = Pipeline([("none", None), ("p", "passthrough"), ("r", prep([0], [2, 3]))])
    left = without(model, "colour", counted=True)
    assert [choice for *_, choice in left.steps[2][1].transformers] == [[0], [2]]


def test_ensembles_that_are_not_fitted_are_steps_as_others():
    steps = make_pipeline(StandardScaler(), RandomForestRegressor(), memory=None)
    assert not mentions_columns(steps)
    encoded = make_column_transformer((OneHotEncoder(), ["colour"]))
    assert mentions_columns(make_pipeline(encoded, RandomForestRegressor()))
