"""Explanations follow from the set of rows of ``data``: to the bit, for any order."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.explaining import problem
from propopt.laws import background
from propopt.laws.background import (
    Background,
    Reference,
    canonical_order,
    digests_of,
    row_digests,
)
from propopt.tables.schema import TableSchema


N = 300  # more than the reference rows, and the 100 rows of a sampled background
FEW = po.graphs.Nearest(n_reference=60)


def table(seed=0, n=N):
    """Numbers with gaps and repeats, a category with gaps, whole numbers."""
    rng = np.random.default_rng(seed)
    area = rng.normal(size=n).round(1) / 3.0  # 0.1/3 is not exact, so sums round
    area[rng.random(n) < 0.1] = np.nan
    region = rng.choice(np.array(["north", "south", "east", None], object), n)
    X = pd.DataFrame({"area": area, "rooms": rng.integers(1, 6, n), "region": region})
    X["price"] = rng.lognormal(size=n) + X["rooms"]
    twice = X.index % 7 == 3
    X[twice] = X[X.index % 7 == 2][: twice.sum()].to_numpy()  # equal rows
    return X.astype({"area": float, "rooms": int, "price": float})


X, NEW = table(), table(1, 12)
WEIGHTS = np.random.default_rng(2).integers(0, 4, N).astype(float)
Y = X["price"].to_numpy() * X["rooms"] + X["area"].fillna(2.0)
NUMBERS = ["area", "rooms", "price"]


def encoded(model):
    """The model behind an encoder of the category, and zeros where numbers miss."""
    encoder = sk.ColumnTransformer(
        [("region", sk.OneHotEncoder(handle_unknown="ignore"), ["region"])],
        remainder="passthrough",
    )
    return make_pipeline(encoder, model)


@cache
def case(name):
    """A fitted model, its table, and new rows."""
    full, new = X.fillna({"area": 0.0}), NEW.fillna({"area": 0.0})
    high = np.median(Y) < Y
    if name == "trees":
        as_category = X.astype({"region": "category"})
        model = sk.HistGradientBoostingClassifier(
            max_iter=15, categorical_features="from_dtype"
        )
        dtype = as_category["region"].dtype
        return model.fit(as_category, high), as_category, NEW.astype({"region": dtype})
    if name == "linear":
        model = encoded(make_pipeline(sk.StandardScaler(), sk.LogisticRegression()))
        return model.fit(full, high), full, new
    if name == "sampled forest":
        model = encoded(sk.RandomForestClassifier(8, max_depth=5, random_state=0))
        fitted = model.fit(full, high)

        def probability(X):  # a black box of a table
            return fitted.predict_proba(X)[:, 1]

        return probability, full, new
    assert name == "network"
    numbers, rows = full[NUMBERS], new[NUMBERS]
    layers = {"hidden_layer_sizes": [8], "solver": "lbfgs", "max_iter": 5_000}
    model = make_pipeline(
        sk.StandardScaler(), sk.MLPRegressor(**layers, random_state=0)
    )
    return model.fit(numbers.to_numpy(), Y), numbers.to_numpy(), rows.to_numpy()


def taken(table, order):
    return table.iloc[order] if isinstance(table, pd.DataFrame) else table[order]


def numbers_of(best):
    """All numbers of an explanation as bytes."""
    arrays = [best.attributions, best.contributions, best.base_value, best.prediction]
    arrays += [best.details[name] for name in sorted(best.details)]
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


KINDS = ("trees", "linear", "sampled forest", "network")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_any_order_of_data_gives_the_same_bits(kind, weighted, tmp_path):
    model, data, new = case(kind)
    weights = WEIGHTS if weighted else None
    first = po.explain(model, new, data=data, sample_weight=weights, graph=FEW)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(N)
        other = None if weights is None else weights[order]
        explainer = po.Explainer(
            model, taken(data, order), sample_weight=other, graph=FEW
        ).fit()
        again = explainer.explain(new)
        assert numbers_of(again) == numbers_of(first)
        assert again.background == first.background
        assert again.parameters == first.parameters
        explainer.save(tmp_path / "explainer.npz")
        loaded = po.Explainer.load(tmp_path / "explainer.npz", model)
        assert numbers_of(loaded.explain(new)) == numbers_of(first)


def test_a_very_large_table_is_sampled_by_its_rows(monkeypatch):
    """As with more than 10,000 rows; one row more changes one row of the sample."""
    monkeypatch.setattr(background, "MOST_ROWS", 150)
    for kind in ("trees", "network"):
        model, data, new = case(kind)
        order = np.random.default_rng(4).permutation(N)
        first = po.explain(model, new, data=data, graph=FEW)
        again = po.explain(model, new, data=taken(data, order), graph=FEW)
        assert "drawn from 300" in str(first.parameters["data"])
        assert numbers_of(again) == numbers_of(first)
    rows = np.random.default_rng(5).normal(size=(900, 2))
    first_sets = [
        {row.tobytes() for row in Reference.of_points(part).points}
        for part in (rows, rows[1:])
    ]
    assert len(first_sets[0] - first_sets[1]) <= 1


@pytest.mark.parametrize("most", [N - 1, N])
def test_trees_take_all_rows_of_a_table_beyond_a_reference(most, monkeypatch, tmp_path):
    for owner in (background, problem):
        monkeypatch.setattr(owner, "MOST_ROWS", 150)
    monkeypatch.setattr(background, "MOST_TREE_ROWS", most)
    model, data, new = case("trees")
    explainer = po.Explainer(model, data, graph=FEW).fit()
    best = explainer.explain(new)
    assert "drawn from 300" in str(best.parameters["data"])
    assert (best.target.n_blocks == 0) == (most == N)
    function = po.wrap(model, data=data)
    expected = po.explainers.TreeShap(data=data).explain(function, new).attributions
    off = np.abs(best.contributions - expected).max() / np.abs(expected).max()
    assert off <= 1e-12 if most == N else off > 1e-3
    explainer.save(tmp_path / "explainer.npz")
    loaded = po.Explainer.load(tmp_path / "explainer.npz", model)
    assert numbers_of(loaded.explain(new)) == numbers_of(best)
    sent = pickle.loads(pickle.dumps(explainer.fitted_))
    assert sent.problem.whole is sent.problem.rule.table is None
    assert numbers_of(sent.explain(new, None)) == numbers_of(best)


TEXTS = [
    f"the {a} {b} was {c}"
    for a in ("good", "bad", "cold", "warm", "old")
    for b in ("soup", "room", "waiter", "bill")
    for c in ("fine", "late", "wrong")
]
GOOD = ["good" in text or "fine" in text for text in TEXTS]


@pytest.mark.parametrize("kind", ["default", "contributions", "lime"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_documents_in_any_order_give_the_same_bits(kind, wrapped):
    model = make_pipeline(sk.TfidfVectorizer(), sk.LogisticRegression()).fit(
        TEXTS, GOOD
    )
    options = {"graph": po.graphs.Nearest(n_reference=40)}
    if kind == "contributions":
        options["kind"] = kind
    if kind == "lime":
        options["law"] = po.lime.TextLaw()
    new = ["the good bill was late", "a warm surprise"]
    results = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(TEXTS))
        texts = [TEXTS[n] for n in order] if seed else TEXTS
        f = po.wrap(model, data=texts) if wrapped else model
        best = po.explain(f, new, data=texts, **options)
        results.append((best.to_frame().columns.tolist(), best.attributions.tobytes()))
    assert results[0] == results[1] == results[2]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.sampled_from("abc")), min_size=1),
    st.randoms(use_true_random=False),
)
def test_the_order_follows_from_the_set_of_rows(rows, random):
    """Also for repeated rows, other types of the same values, and other names."""
    order = list(range(len(rows)))
    random.shuffle(order)
    names = [str(random.random()) for _ in order]
    whole = pd.DataFrame(rows, columns=["number", "letter"])
    other = whole.iloc[order].set_axis(names, axis=0).astype({"number": "float32"})
    other["letter"] = other["letter"].astype(pd.CategoricalDtype(list("cxba")))
    sorted_rows = []
    for frame in (whole, other):
        schema = TableSchema.of(frame)
        points, _ = schema.encode(frame)
        places = canonical_order(row_digests(points, schema))
        assert sorted(places.tolist()) == list(range(len(rows)))
        cells = frame.iloc[places]
        sorted_rows.append([*zip(cells["number"], cells["letter"], strict=True)])
    assert sorted_rows[0] == sorted_rows[1]


def test_copies_are_spread_and_codes_are_what_they_encode():
    many = np.repeat([[1.0], [2.0]], [5_000, 5_000], axis=0)
    first = many[canonical_order(row_digests(many))[:200], 0]
    assert 70 <= (first == 1.0).sum() <= 130  # |z| > 4 by chance: 6e-5, and fixed
    numbers = np.array([[0.0], [1.0], [np.nan]])
    flags = pd.DataFrame({"x": pd.array([False, True, None], "boolean")})
    schema = TableSchema.of(flags)
    codes, _ = schema.encode(flags)
    assert (row_digests(codes, schema) == row_digests(numbers)).all()
    assert (digests_of([1, 1.0, True, "1"]) == digests_of([1.0])).tolist() == [
        *[True] * 3,
        False,
    ]
    weights = np.array([1.0, 2.0])
    rows = np.ones((2, 1))
    one, other = Background(rows, 2, weights), Background(rows, 2, weights[::-1])
    assert (one.ordered().weights == other.ordered().weights).all()
