"""Learners on tables without some columns: pipelines that name them, and numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refit_cases import product_table, read
from refusals import refusals
from sklearn.base import clone
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.tree import DecisionTreeRegressor

from propopt.base.errors import InvalidInput
from propopt.interactions import learning


NAMES = ("age", "size", "colour", "shape")
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": RNG.normal(size=40),
        "size": RNG.normal(size=40),
        "colour": RNG.choice(["red", "blue"], 40),
        "shape": RNG.choice(["round", "flat", "long"], 40),
    }
)
Y = np.random.default_rng(1).normal(size=40) + X["age"] + (X["colour"] == "red")


def without(model, *dropped, counted=False, table=X):
    retained = np.array([name not in dropped for name in NAMES])
    names, left = None if counted else NAMES, table.loc[:, retained]
    return learning.restricted(
        clone(model), learning.ColumnSubset(names, retained, left)
    )


def predicted(model, *dropped, table=X):
    """By the same fitted without some columns."""
    left = table.drop(columns=list(dropped))
    return without(model, *dropped, table=table).fit(left, Y).predict(left)


def prep(numbers, texts, **settings):
    steps = [("n", StandardScaler(), numbers), ("t", OneHotEncoder(), texts)]
    return ColumnTransformer(steps, **settings)


def choices(transformer):
    return [choice for *_, choice in transformer.transformers]


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
def test_column_transformers_in_all_ways_of_naming_columns(numbers, texts):
    whole = make_pipeline(prep(numbers, texts), Ridge())
    for gone in (("size",), ("age", "shape"), ("colour", "shape"), ("age", "size")):
        parts = [
            [name for name in one if name not in gone] for one in (NAMES[:2], NAMES[2:])
        ]
        left = X.drop(columns=list(gone))
        by_hand = make_pipeline(prep(*parts), Ridge()).fit(left, Y)
        assert_array_equal(predicted(whole, *gone), by_hand.predict(left))
    frame = pl.DataFrame(X.drop(columns=["size", "colour"]).to_dict("list"))
    retained = np.array([True, False, False, True])
    by_name = make_pipeline(prep(["age", "size"], ["colour", "shape"]), Ridge())
    result = learning.restricted(
        by_name, learning.ColumnSubset(NAMES, retained, frame)
    ).fit(frame, Y)
    expected = predicted(by_name, "size", "colour")
    assert_array_equal(result.predict(frame), expected)


def test_columns_that_are_counted_or_given_alone():
    array = X[["age", "size"]].to_numpy()
    array = np.column_stack([array, array[:, 0] ** 2])
    model = ColumnTransformer([("a", "passthrough", [2, 0]), ("b", "drop", [1])])
    retained = np.array([True, False, True])
    left = learning.restricted(
        model, learning.ColumnSubset(None, retained, array[:, retained])
    )
    assert_array_equal(left.fit_transform(array[:, retained]), array[:, [2, 0]])
    left = without(make_pipeline(prep([0], [2, 3]), Ridge()), "colour", counted=True)
    assert choices(left[0]) == [[0], [2]]
    # a column given alone comes with one dimension: words of a text, for example
    length = FunctionTransformer(lambda item: item.str.len().to_frame())
    model = ColumnTransformer([("c", length, "colour"), ("n", "passthrough", ["age"])])
    for gone, chosen, shape in [
        ("size", ["colour", ["age"]], (40, 2)),
        ("colour", [[], ["age"]], (40, 1)),
    ]:
        left = without(model, gone)
        assert choices(left) == chosen
        assert left.fit_transform(X.drop(columns=gone)).shape == shape


def test_an_emptied_transformer_is_of_no_use_unless_others_are_left():
    for remainder in ("drop", "passthrough", StandardScaler()):
        numbers = [("n", StandardScaler(), ["age"])]
        model = ColumnTransformer(numbers, remainder=remainder)
        left = without(model, "age", "colour", "shape")
        rest = left.fit_transform(X[["size"]])
        assert rest.shape == (40, 1)
        assert (rest == 0).all() == (remainder == "drop")
        assert without(model, *NAMES[1:]).fit_transform(X[["age"]]).shape[1] == 1


AGE = make_column_transformer((StandardScaler(), ["age"]))
SIZE = make_column_transformer((StandardScaler(), ["size"]))


def test_a_pipeline_that_sees_nothing_gives_the_mean_or_the_shares():
    classifier = make_pipeline(AGE, LogisticRegression())
    left = X.drop(columns="age")
    shares = without(classifier, "age").fit(left, Y > 0.5).predict_proba(left)
    assert_allclose(shares[:, 1], (Y > 0.5).mean(), rtol=1e-5)
    of_numbers = make_column_selector(dtype_include="number")
    chosen = make_column_transformer((StandardScaler(), of_numbers))
    table = X.drop(columns=["age", "size"])
    assert not without(chosen, "age", "size").fit_transform(table).any()
    assert without(chosen, "age").fit_transform(left).all()
    union = FeatureUnion([("a", AGE), ("s", SIZE)])
    sizes = StandardScaler().fit_transform(X[["size"]])
    expected = np.column_stack([np.zeros(40), sizes])
    assert_array_equal(without(union, "age").fit_transform(left), expected)
    pipeline = make_pipeline(AGE, Ridge())
    grid = GridSearchCV(pipeline, {"ridge__alpha": [0.1, 1.0]}, cv=2)
    for outer in (pipeline, grid, TransformedTargetRegressor(grid)):
        assert_allclose(predicted(outer, "age"), np.full(40, Y.mean()), rtol=1e-14)


def test_settings_of_what_is_left_are_kept():
    colours, shapes = ["red", "blue"], ["long", "round", "flat"]
    encoder = OrdinalEncoder(categories=[colours, shapes])
    model = ColumnTransformer([("t", encoder, ["colour", "shape"])])
    left = without(model, "colour").fit_transform(X.drop(columns="colour"))
    assert_array_equal(left[:, 0], [shapes.index(s) for s in X["shape"]])
    first = OneHotEncoder(drop=["red", "flat"])
    model = ColumnTransformer([("t", first, ["colour", "shape"])])
    left = without(model, "shape").fit(X.drop(columns="shape"))
    assert list(left.get_feature_names_out()) == ["t__colour_blue"]
    model = make_pipeline(
        prep(["age", "size"], ["colour"], verbose_feature_names_out=False),
        StandardScaler(with_mean=False),
    )
    model[0].transformers[1][1].set_params(sparse_output=False)
    model.set_output(transform="pandas")
    left = without(model, "age").fit_transform(X.drop(columns="age"))
    assert list(left.columns) == ["size", "colour_blue", "colour_red"]
    # names behind steps that keep them
    imputed = SimpleImputer(strategy="most_frequent").set_output(transform="pandas")
    model = make_pipeline(imputed, prep(["age"], ["colour", "shape"]), Ridge())
    assert predicted(model, "shape").shape == (40,)


def boosted(**settings):
    return HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3, **settings)


def test_shortened_parameters_are_those_of_the_same_columns():
    model = boosted(
        categorical_features=["colour", "shape"], monotonic_cst=[1, -1, 0, 0]
    )
    left = without(model, "colour")
    assert left.categorical_features == ["shape"]
    assert left.monotonic_cst == [1, -1, 0]
    grid = GridSearchCV(boosted(categorical_features=[2, 3]), {})
    assert without(grid, "age").estimator.categorical_features == [1, 2]
    words = {"categorical_features": "from_dtype", "interaction_cst": "pairwise"}
    plain = without(boosted(**words), "age").get_params()
    assert words.items() <= plain.items()  # these speak of no column
    mask = without(boosted(categorical_features=[True, False, True, False]), "size")
    assert mask.categorical_features == [0, 1]
    kernel = GaussianProcessRegressor(RBF([1.0, 2.0, 3.0, 4.0]) + WhiteKernel())
    assert without(kernel, "size").kernel.k1.length_scale == [1.0, 3.0, 4.0]


def test_estimators_within_estimators():
    inner = make_pipeline(prep(["age", "size"], ["colour"]), Ridge())
    # grids may speak of transformers that have nothing left
    grid = {"columntransformer__n__with_mean": [True, False], "ridge__alpha": [1.0]}
    of_age = make_pipeline(prep(["age"], ["colour", "shape"]), Ridge())
    for outer in (
        TransformedTargetRegressor(inner, transformer=StandardScaler()),
        GridSearchCV(inner, {"ridge__alpha": [0.1, 1.0]}, cv=2),
        GridSearchCV(of_age, grid, cv=2),
        VotingRegressor([("one", inner), ("two", clone(inner)), ("no", "drop")]),
    ):
        assert predicted(outer, "age").shape == (40,)
    blind = make_pipeline(make_column_transformer(("passthrough", ["age"])), Ridge())
    voting = predicted(VotingRegressor([("a", blind), ("b", inner)]), "age")
    assert_allclose(voting, (Y.mean() + predicted(inner, "age")) / 2, rtol=1e-12)


class Named(Ridge):
    """A learner with a parameter of its own that names columns."""

    def __init__(self, positive_columns=None):
        super().__init__()
        self.positive_columns = positive_columns


def behind(**settings):
    """Boosting of columns that another step has made."""
    return make_pipeline(prep(["age"], ["colour"]), boosted(**settings))


def of_catboost():
    package = pytest.importorskip("catboost")
    return package.CatBoostRegressor(monotone_constraints="0:1,1:-1")


@pytest.mark.parametrize(("line", "words"), refusals(__file__, "columns"))
def test_what_is_refused_says_why(line, words):
    """Before anything is fitted."""
    with pytest.raises(InvalidInput, match=words):
        read(eval(line), X, Y)


class Own(Ridge):
    """Whatever a user wrote may look at names."""


@pytest.mark.parametrize(
    ("learner", "alone"),
    [
        (DecisionTreeRegressor(), True),
        (BaggingRegressor(Ridge()), True),
        (make_pipeline(StandardScaler(), Ridge()), True),
        (GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}), True),
        (GridSearchCV(make_pipeline(Ridge()), {"ridge": [Own()]}), False),
        (make_pipeline(FunctionTransformer(), Ridge()), False),
        (make_pipeline(FunctionTransformer(learning.array_of), Ridge()), True),
        (make_pipeline(make_column_transformer(("drop", [0])), Ridge()), False),
        (HistGradientBoostingRegressor(), True),
        (HistGradientBoostingRegressor(categorical_features=["a"]), False),
        (KernelRidge(kernel=np.dot), False),
        (BaggingRegressor(Own()), False),
        (Own(), False),
    ],
)
def test_learners_that_see_numbers_alone(learner, alone):
    assert learning.needs_only_numbers(learner) is alone


TABLE, TARGET = product_table(60)
FRAME = pd.DataFrame(TABLE, columns=list("abcd")).assign(
    b=(10 * TABLE[:, 1]).astype(int), c=TABLE[:, 2] > 0
)
ROWS, KEPT = np.arange(40), np.array([True, True, False, True])
DRAWING = DecisionTreeRegressor(max_features=1)


@pytest.mark.parametrize("table", [FRAME, pl.DataFrame(FRAME.to_dict("list"))])
@pytest.mark.parametrize("learner", [DRAWING, make_pipeline(StandardScaler(), DRAWING)])
def test_a_table_is_the_array_of_its_numbers(table, learner):
    predict = read(learner, table, TARGET).fit_predictor(ROWS, KEPT, 3)
    reference = clone(learner)
    (free,) = (k for k in reference.get_params() if k.endswith("random_state"))
    reference.set_params(**{free: 3}).fit(FRAME.iloc[:40, [0, 1, 3]], TARGET[:40])
    expected = reference.predict(FRAME[["a", "b", "d"]])
    assert_array_equal(predict(table), expected)
    assert not hasattr(predict.model, "feature_names_in_")
    array = FRAME.to_numpy(float)
    assert_array_equal(
        read(learner, array, TARGET).fit_predictor(ROWS, KEPT, 3)(array), expected
    )


def test_new_rows_may_have_other_dtypes_and_learners_of_users_are_never_changed():
    predict = read(Ridge(), FRAME, TARGET).fit_predictor(ROWS, KEPT, 0)
    other = FRAME.astype({"b": "Int64", "d": object})
    assert_array_equal(predict(other), predict(FRAME))
    learner = LogisticRegression(C=3.0)
    refits = read(learner, FRAME, TARGET > 0)
    models = [refits.fit_predictor(ROWS, KEPT, seed).model for seed in (1, 2)]
    assert [model.random_state for model in models] == [1, 2]
    assert [model.C for model in models] == [3.0, 3.0]
    assert learner.random_state is None
    assert not hasattr(learner, "coef_")


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (np.array([1, 2]), np.float64),
        (np.array([1, 2**53 + 1]), None),
        (np.array([True, False]), np.float64),
        (np.array([0.1, 0.2], np.float32), np.float64),
        (np.array(["1", "2"]), None),
        (pd.array([1, 2], dtype="Int64"), None),
    ],
)
def test_columns_that_are_numbers(column, dtype):
    result = learning.array_of_numbers(pd.DataFrame({"a": [0.5, np.nan], "b": column}))
    assert (None if result is None else result.dtype) == dtype
    for item in (np.float32, np.int64, bool):  # columns of one dtype keep it
        same_dtype = pd.DataFrame({"a": [1, 0], "b": [0, 1]}, dtype=item)
        assert learning.array_of_numbers(same_dtype).dtype == item
    assert learning.array_of_numbers(TABLE) is None
    for rows in (TABLE, TABLE.tolist(), pd.DataFrame(TABLE)):
        assert_array_equal(learning.array_of(rows), TABLE)


def test_weights_of_rows_go_to_the_last_step_of_pipelines_in_pipelines():
    inner = make_pipeline(StandardScaler(), Ridge())
    outer = make_pipeline(StandardScaler(), inner)
    name = learning.weight_name(outer)
    assert name == "pipeline__ridge__sample_weight"
    X = np.arange(4.0)[:, None]
    weights = np.array([1.0, 0.0, 0.0, 1.0])
    fitted = outer.fit(X, [0.0, 5.0, 5.0, 3.0], **{name: weights})
    assert_allclose(fitted.predict(X).mean(), 1.5, atol=1e-9)  # by the rows of weight
