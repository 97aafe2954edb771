"""Models that enforce dtypes, as served ones do, and categories that data has not."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.columns import Categorical


# ---- a table of all dtypes, and a model that takes no others


def table(n, seed=0, *, missing=False):
    rng = np.random.default_rng(seed)
    counts = pd.array(rng.integers(0, 5, n), dtype="Int64")
    known = pd.array(rng.random(n) < 0.5, dtype="boolean")
    if missing:
        counts[3], known[5] = pd.NA, pd.NA
    return pd.DataFrame(
        {
            "small": rng.integers(0, 4, n).astype("int8"),
            "whole": rng.integers(-9, 9, n).astype("int32"),
            "single": rng.normal(size=n).astype("float32"),
            "flag": rng.random(n) < 0.5,
            "word": pd.array(rng.choice(["p", "q"], n), dtype="string"),
            "level": pd.Categorical(rng.choice(["x", "y"], n), categories=list("xyz")),
            "count": counts,
            "known": known,
        }
    )


def answer(X):
    numbers = {c: X[c].astype("float64").to_numpy() for c in ("small", "whole")}
    count = X["count"].astype("Float64").fillna(7.0).to_numpy(float)
    known = X["known"].fillna(value=False).to_numpy(bool)
    word, level = (X["word"] == "p").to_numpy(bool), (X["level"] == "x").to_numpy(bool)
    flag = X["flag"].to_numpy(bool)
    wave = np.sin(numbers["whole"]) * X["single"].to_numpy(float)
    return numbers["small"] * known + wave + 2.0 * flag * word + level * count


class DtypeError(Exception):
    """Of a library that nobody here knows, as mlflow's are."""


class Strict:
    """Refuses other dtypes than those of a table, and remembers that it had to."""

    def __init__(self, like, answer=answer):
        self.dtypes, self.answer, self.refused = dict(like.dtypes), answer, []

    def predict(self, X):
        for name, dtype in self.dtypes.items():
            if X[name].dtype != dtype:
                said = f"{name}: can not safely convert {X[name].dtype} to {dtype}"
                self.refused.append(said)
                raise DtypeError(said)
        return self.answer(X)


class WholeNumbers:
    """Takes arrays, with whole numbers alone in the first columns."""

    def __init__(self, n_whole):
        self.n_whole, self.refused = n_whole, []

    def predict(self, X):
        whole = np.asarray(X)[:, : self.n_whole]
        if (whole != np.rint(whole)).any():
            self.refused.append(whole[(whole != np.rint(whole)).any(axis=1)][0])
            raise DtypeError(f"no whole numbers: {self.refused[-1]}")
        return X[:, 0] * X[:, -1] + X[:, 1] ** 2


@pytest.mark.parametrize("missing", [False, True])
def test_contributions_ask_for_cells_of_the_dtypes_of_data(missing, tmp_path):
    X = table(24, missing=missing)
    model = Strict(X)
    best = po.explain(model, X.iloc[:6], data=X, robustness=0)
    assert_allclose(
        best.attributions, shapley_by_definition(answer, X.iloc[:6], X), atol=1e-12
    )
    explainer = po.Explainer(model, data=X).fit()
    explainer.save(tmp_path / "one.npz")
    again = po.Explainer.load(tmp_path / "one.npz", model).explain(X.iloc[:3])
    assert_allclose(again.attributions, explainer.explain(X.iloc[:3]).attributions)
    other = Strict(X, lambda Z: answer(Z) + Z["small"].to_numpy(float))
    po.compare(model, other, X, data=X)
    audit = po.audit(best, model, X.iloc[:6], data=X)
    assert audit["row sums"].verdict == "exact"
    shap = po.explainers.Shap(data=X).explain(po.wrap(model, data=X), X.iloc[:2])
    assert_allclose(shap.attributions, best.attributions[:2], atol=1e-12)
    assert not model.refused


@pytest.mark.parametrize(
    "requested",
    [
        {"kind": "slopes"},
        {"kind": "slopes", "law": "none"},
        {"kind": "slopes", "law": "gaussian"},
        {"contributions": "slopes"},
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_where_real_numbers_are_asked_the_message_says_what_asks_for_none(
    requested, missing
):
    X = table(30, missing=missing)
    with pytest.raises(InvalidInput) as told:
        po.explain(Strict(X), X.iloc[:9], data=X, **requested)
    assert "'small' (int8), 'whole' (int32)" in str(told.value)


def test_a_model_that_takes_real_numbers_has_the_slopes_that_it_had():
    """Slopes of float32 move by steps that float32 does not hold."""
    X = table(30)[["small", "single"]].astype({"small": "int16"})
    f = po.wrap(lambda Z: np.sin(Z["single"]) * Z["small"], data=X, step=1e-7)
    b, a = X["single"].to_numpy(float), X["small"].to_numpy(float)
    want = np.stack([np.sin(b), np.cos(b) * a], axis=1)
    assert_allclose(f.gradient(X), want, atol=1e-6)


def test_whole_numbers_of_arrays_are_asked_for_no_means():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 5, (40, 2)), rng.normal(size=(40, 2))])
    model = WholeNumbers(2)
    best = po.explain(model, X[:9], data=X, robustness=0)
    off = best.attributions + 0.3
    for base in (None, best.base_value, best.base_value + 1.0):
        audit = po.audit(off, model, X[:9], data=X, base=base)
        assert audit["values"].verdict == "not reproduced"
    po.explain(model, X[:9], data=X, kind="slopes", law="data")
    po.compare(model, WholeNumbers(2), X, data=X)
    assert not model.refused


def test_steps_that_check_their_table_do_not_stop_the_reading():
    X = table(40)[["small", "whole", "single"]]
    dtypes = dict(X.dtypes)

    def check(Z):
        if dict(Z.dtypes) != dtypes:
            raise DtypeError(str(dict(Z.dtypes)))
        return Z

    forest = RandomForestRegressor(5, random_state=0)
    model = make_pipeline(FunctionTransformer(check), forest)
    model.fit(X, X["small"] * X["single"])
    best = po.explain(model, X.iloc[:4], data=X, robustness=0)
    want = shapley_by_definition(model.predict, X.iloc[:4], X)
    assert_allclose(best.attributions, want, atol=1e-12)


# ---- categories that are called by digits, and thousands of them


def test_backgrounds_have_categories_that_are_called_by_digits():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=50), "b": rng.random(50) < 0.5})
    X["class"] = pd.Categorical(rng.choice(list("012"), 50))
    encoder = make_column_transformer(
        (OneHotEncoder(), ["class"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, LinearRegression())
    model.fit(X, X["size"] + X["b"] + 2.0 * X["class"].astype(int))
    f, own = po.wrap(model, data=X), po.explainers
    want = po.explain(model, X.iloc[:5], data=X, robustness=0).attributions
    for requested in (own.ExactShap(data=X), own.Shap(data=X)):
        assert_allclose(requested.explain(f, X.iloc[:5]).attributions, want, atol=1e-12)
    with pytest.raises(InvalidInput, match="column 'class', row 0 holds '"):
        po.wrap(lambda Z: Z["size"]).value(X)


def test_coordinates_of_many_categories_take_no_square_of_them():
    words = np.array([f"w{k}" for k in range(3000)])
    own, codes = Categorical.of(pd.Series(words, name="word"), "data")
    tracemalloc.start()
    result = own.coordinates(codes[:4])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * result.nbytes
    assert_allclose(result @ result.T, 0.5 * np.eye(4))


# ---- categories that data has not, as the models treat them that take them


EVERY_WORD = pd.CategoricalDtype(["red", "blue", "green", "violet", "teal"])


def of_words(dtype, n=40):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"word": rng.choice(["red", "blue", "green"], n)})
    X["word"] = X["word"].astype(dtype)
    X["x"], X["i"] = rng.normal(size=n), rng.integers(0, 4, n)
    red, blue = ((X["word"] == w).to_numpy(float) for w in ("red", "blue"))
    return X, red * X["x"].to_numpy() + X["i"].to_numpy() * (1.0 - blue)


def with_new_words(X, words=("violet", "teal")):
    """Rows of which the second and the fourth have other words."""
    rows = X.iloc[:4].copy()
    cells = rows["word"].astype(object)
    cells.iloc[1], cells.iloc[3] = words
    rows["word"] = cells.astype(str(X["word"].dtype))
    return rows


def in_one_dtype(X, rows):
    """Both with all categories in their dtype, where it lists them."""
    if str(X["word"].dtype) != "category":
        return X, rows
    every = dict.fromkeys([*X["word"].cat.categories, *rows["word"].cat.categories])
    wide = pd.CategoricalDtype(list(every))
    return tuple(
        t.assign(word=t["word"].astype(object).astype(wide)) for t in (X, rows)
    )


def behind(encoder, model):
    columns = make_column_transformer((encoder, ["word"]), remainder="passthrough")
    return make_pipeline(columns, model)


def indicators_and_line():
    return behind(OneHotEncoder(handle_unknown="ignore"), Ridge())


def rare_and_forest():
    rare = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.34)
    return behind(rare, RandomForestRegressor(6, random_state=0))


def ordinal_and_missing():
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    return behind(
        encoder, HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=3)
    )


def histograms():
    how = {"categorical_features": "from_dtype", "min_samples_leaf": 3}
    return HistGradientBoostingRegressor(max_iter=6, **how)


def lightgbm():
    how = {"min_child_samples": 2, "min_data_per_group": 2, "cat_smooth": 1}
    package = pytest.importorskip("lightgbm")
    return package.LGBMRegressor(n_estimators=8, verbosity=-1, **how)


def catboost():
    package = pytest.importorskip("catboost")
    how = {"allow_writing_files": False, "verbose": 0, "cat_features": ["word"]}
    return package.CatBoostRegressor(iterations=6, **how)


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (indicators_and_line, "object"),
        (rare_and_forest, "string"),
        (ordinal_and_missing, "category"),
        (histograms, "category"),
        (lightgbm, "category"),
        (lightgbm, EVERY_WORD),
        (catboost, "object"),
    ],
)
def test_new_categories_are_explained_as_the_model_treats_them(make, dtype, tmp_path):
    X, y = of_words(dtype)
    model, rows = make().fit(X, y), with_new_words(X)
    best = po.explain(model, rows, data=X, robustness=0)
    table, requested = in_one_dtype(X, rows)
    want = shapley_by_definition(model.predict, requested, table)
    assert_allclose(best.attributions, want, atol=1e-12)
    new = best.parameters["new categories"]
    assert new.startswith("2 rows: ")
    assert "'violet', 'teal'" in new
    assert best.value_of(1, 0) == "violet"
    f = po.wrap(model, data=X)
    shap = po.explainers.Shap(data=X).explain(f, rows)
    assert_allclose(shap.attributions, want, atol=1e-12)
    assert_allclose(f.value(rows), model.predict(requested), atol=1e-12)
    explainer = po.Explainer(model, data=X).fit()
    full = explainer.explain(rows).attributions
    for n in range(4):  # the same alone, in company, and of known rows beside new ones
        alone = explainer.explain(rows.iloc[[n]]).attributions[0]
        assert (alone == full[n]).all()
    explainer.save(tmp_path / "one.npz")
    again = po.Explainer.load(tmp_path / "one.npz", model).explain(rows)
    assert (again.attributions == full).all()
    exact = po.audit(best.contributions, model, rows, data=X)
    assert exact["values"].verdict == "exact"


def test_slopes_and_sampled_values_of_new_categories():
    rng = np.random.default_rng(0)
    X, _ = of_words("object")
    for k in range(4):
        X[f"z{k}"] = rng.normal(size=len(X))

    def ask(Z):
        known = Z["word"].map({"red": 1.0, "blue": 2.0, "green": 3.0}).fillna(-1.0)
        return (known * Z["x"] + Z["z0"] * Z["z1"]).to_numpy(float)

    rows = with_new_words(X)
    explainer = po.Explainer(ask, data=X).fit()
    full = explainer.explain(rows)
    assert not full.parameters["contributions"].startswith("exact")
    for n in (1, 3):  # draws follow from the row, and not from the number of its code
        alone = explainer.explain(rows.iloc[[n]])
        assert (alone.attributions[0] == full.attributions[n]).all()

    def apart(Z):
        known = Z["word"].map({"red": 1.0, "blue": 2.0, "green": 4.0}).fillna(-7.0)
        return (known + Z["z0"] * Z["z1"]).to_numpy(float)

    slopes = po.explain(apart, rows, data=X, kind="slopes", law="data", robustness=0)
    own = [apart(X.assign(word=w, z0=0.0)) for w in ("red", "blue", "green")]
    shares = [(X["word"] == w).mean() for w in ("red", "blue", "green")]
    mean = sum(p * e[0] for p, e in zip(shares, own, strict=True))
    want = apart(rows.assign(z0=0.0)) - mean  # f(x) − Σ_c p_c f(x with c)
    assert_allclose(slopes.attributions[:, 0], want, atol=1e-9)
    joint = po.explain(ask, rows, data=X, graph=po.graphs.knn_graph(np.eye(4), 2))
    assert "teal" in joint.parameters["new categories"]


def test_models_that_refuse_new_categories_name_dtype_and_remedy():
    X, y = of_words("category")
    model = behind(OneHotEncoder(), Ridge()).fit(X, y)
    message = (
        r"Ridge: at categories absent from data, column 'word' \(in data of dtype "
        r"category of 'blue', 'green', 'red'\): 'violet', 'teal', the model raises "
        r"ValueError: .*OneHotEncoder\(handle_unknown=\"ignore\"\)"
    )
    with pytest.raises(InvalidInput, match=message):
        po.wrap(model, data=X).value(with_new_words(X))


def test_a_new_category_that_is_read_otherwise_than_the_model_answers_is_sampled():
    """A forest whose answer to what it has not seen is another than its trees'."""
    X, y = of_words("object")
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = behind(encoder, RandomForestRegressor(6, random_state=0)).fit(X, y)
    plain = model.predict

    def predict(Z):
        new = ~Z["word"].isin(["red", "blue", "green"]).to_numpy(bool)
        return plain(Z) + 10.0 * new

    model.predict = predict
    rows = with_new_words(X)
    with pytest.warns(po.errors.InexactBoxesWarning, match="differs from its values"):
        best = po.explain(model, rows, data=X, robustness=0)
    want = shapley_by_definition(predict, rows, X)
    assert_allclose(best.attributions, want, atol=1e-12)
