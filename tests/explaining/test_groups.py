"""Groups of columns as one player, held against all coalitions of groups."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from estimators import sk
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.problems.file import read_problem


RNG = np.random.default_rng(5)
NAMES = ["age", "street", "zip", "income", "debt"]
TABLE = pd.DataFrame(RNG.normal(size=(50, 5)), columns=NAMES)
TABLE["zip"] = RNG.integers(0, 4, 50).astype(float)
Y = (
    TABLE["street"] * TABLE["zip"]
    + TABLE["age"] * TABLE["income"]
    + TABLE["street"] * TABLE["debt"]
)
GROUPS = {"address": ["street", "zip"], "money": ["income", "debt"]}
PLAYERS = ("age", "address", "money")
PLAYER = np.array([0, 1, 1, 2, 2])  # of each column
X = TABLE.iloc[[2, 11, 33]]
WEIGHTS = RNG.gamma(0.6, size=50)


def _product(x):
    x = np.asarray(x, float)
    return x[:, 0] * x[:, 1] * x[:, 2] + x[:, 1] * x[:, 3] + np.sin(x[:, 4])


HOLES = TABLE.mask(RNG.random(TABLE.shape) < 0.15)
MODELS = {
    "forest": sk.RandomForestRegressor(15, max_depth=6, random_state=0).fit(TABLE, Y),
    "boosted": sk.GradientBoostingClassifier(
        n_estimators=20, max_depth=4, random_state=0
    ).fit(TABLE, Y > 0.0),
    "missing": sk.HistGradientBoostingRegressor(
        max_iter=20, min_samples_leaf=3, random_state=0
    ).fit(HOLES, Y),
    "kernel": sk.KernelRidge(kernel="rbf", gamma=0.2).fit(TABLE.to_numpy(), Y),
    "linear": sk.LinearRegression().fit(TABLE, Y),
    "called": _product,
}


def _value(model, rows):
    if isinstance(model, sk.GradientBoostingClassifier):
        return model.decision_function(rows)
    if isinstance(model, sk.KernelRidge):
        return model.predict(rows.to_numpy())
    return model(rows) if not hasattr(model, "predict") else model.predict(rows)


GAMES = {
    "groups": (GROUPS, PLAYER, None),
    "weighted groups": (GROUPS, PLAYER, WEIGHTS),
    "weighted columns": (None, np.arange(5), WEIGHTS),
}


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_game_among_groups_or_columns(name, game):
    model, table = MODELS[name], HOLES if name == "missing" else TABLE
    data = table.to_numpy() if name == "kernel" else table
    groups, player_of, weights = GAMES[game]
    if name == "kernel" and groups:
        groups = {"address": ["x1", "x2"], "money": ["x3", "x4"]}
    settings = {"groups": groups, "sample_weight": weights}
    explainer = po.Explainer(model, data, **settings).fit(data)
    rows = table.iloc[[2, 11, 33]]
    result = explainer.explain(data[[2, 11, 33]] if name == "kernel" else rows)
    if name != "kernel":
        assert result.labels.features == (PLAYERS if groups else tuple(NAMES))
    whole = explainer.reference_
    main_effects = explainer.fitted_.main_effects
    assert main_effects is not None
    f = partial(_value, model)
    phi = shapley_by_definition(f, rows, table, weights, player_of)
    assert result.contributions == pytest.approx(phi, abs=1e-8)
    base = np.average(f(table), weights=weights)
    assert result.base_value == pytest.approx(np.full(3, base), abs=1e-8)
    for n, player in itertools.product((2, 11, 33), set(player_of)):
        mixed, members = table.copy(), table.columns[player == player_of]
        mixed[members] = table.loc[n, members].to_numpy()
        effect = np.average(f(mixed), weights=weights) - base
        assert main_effects[n, player] == pytest.approx(effect, abs=1e-8)
    assert np.abs(result.additivity_error).max() < 1e-8
    # a row that is among the reference rows has its joint optimum
    assert result.attributions == pytest.approx(
        whole.attributions[[2, 11, 33]], abs=1e-6
    )
    assert result.gap <= 1e-6


@pytest.mark.parametrize("name", ["forest", "called", "boosted", "linear"])
def test_groups_of_one_column_are_no_groups(name):
    alone = {name: [name] for name in NAMES}
    one = po.explain(MODELS[name], X, data=TABLE)
    other = po.explain(MODELS[name], X, data=TABLE, groups=alone)
    assert other.contributions == pytest.approx(one.contributions, abs=1e-12)
    assert other.attributions == pytest.approx(one.attributions, abs=1e-10)
    assert other.labels.features == tuple(NAMES)


def test_one_group_of_all_columns_gets_everything():
    result = po.explain(MODELS["forest"], X, data=TABLE, groups={"all": NAMES})
    total = result.prediction - result.base_value
    assert result.attributions[:, 0] == pytest.approx(total, abs=1e-12)


def test_many_groups_of_a_model_that_is_called_are_sampled_with_their_error():
    """|z| < 6 with nine degrees of freedom: 2e-4 for each of 28, of fixed draws."""
    names = [f"c{j}" for j in range(16)]
    data = pd.DataFrame(RNG.normal(size=(40, 16)), columns=names)
    groups = {f"g{j}": names[2 * j : 2 * j + 2] for j in range(8)}

    def f(rows):
        x = np.asarray(rows, float)
        return x[:, 0] * x[:, 1] * x[:, 2] + x[:, 4] * x[:, 6] + x[:, 8] * x[:, 9]

    result = po.explain(f, data[:4], data=data, groups=groups, robustness=0.0)
    assert result.standard_errors is not None
    phi = shapley_by_definition(f, data[:4], data, players=np.arange(16) // 2)
    assert result.base_value == pytest.approx(np.full(4, f(data).mean()), abs=1e-10)
    apart = np.abs(result.contributions - phi)
    assert (apart <= 6.0 * result.standard_errors + 1e-9).all()
    assert np.abs(result.additivity_error).max() < 1e-9


def test_what_groups_hold_is_told_in_words():
    data = TABLE.assign(street=RNG.choice(["Main", "Oak"], 50))

    def f(rows):
        return rows["age"] * (rows["street"] == "Oak") + rows["zip"]

    result = po.explain(f, data[:5], data=data, groups={"address": ["street", "zip"]})
    row = data.iloc[0]
    assert result.value_of(0, 1) == f"street {row['street']}, zip {row['zip']:.4g}"
    assert result.value_of(0, 0) == f"{row['age']:.4g}"
    assert result.reasons().to_frame()["feature"].isin(result.labels.features).all()


def test_groups_without_data_and_with_a_graph_of_rows():
    result = po.explain(MODELS["forest"], TABLE, groups=GROUPS)
    assert result.shape == (50, 3)
    assert result.gap <= 1e-6
    f, rows = MODELS["forest"].predict, [0, 20]
    phi = shapley_by_definition(f, TABLE.iloc[rows], TABLE, players=PLAYER)
    assert result.contributions[rows] == pytest.approx(phi, abs=1e-9)
    again = po.explain(
        MODELS["forest"], TABLE, groups=GROUPS, contributions=result.contributions
    )
    assert again.contributions == pytest.approx(result.contributions)


def test_explainers_with_groups_are_compared():
    before, after = (
        po.explain(MODELS[name], X, data=TABLE, groups=GROUPS)
        for name in ("forest", "linear")
    )
    result = po.compare(before, after)
    assert result.features == PLAYERS
    phi = shapley_by_definition(MODELS["linear"].predict, X, TABLE, players=PLAYER)
    assert result.after == pytest.approx(phi, abs=1e-9)


def _explained(groups, **how):
    return po.explain(MODELS["linear"], X, data=TABLE, groups=groups, **how)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "groups"))
def test_other_groups_are_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_probabilities_of_boosted_trees_are_exact_by_groups_too(weights):
    model = MODELS["boosted"]

    def f(rows):
        return model.predict_proba(rows)[:, 1]

    base = np.average(f(TABLE), weights=weights)
    settings = {"output": "probability", "sample_weight": weights}
    for groups, players in ((GROUPS, PLAYER), (None, None)):
        result = po.explain(model, X, data=TABLE, groups=groups, **settings)
        source = str(result.parameters["contributions"])
        assert "all sets of the features, from its scores" in source
        phi = shapley_by_definition(f, X, TABLE, weights, players)
        assert result.contributions == pytest.approx(phi, abs=1e-10)
        assert result.base_value == pytest.approx(np.full(3, base), abs=1e-10)


def _run(folder, table, groups):
    table.to_csv(folder / "table.csv", index=False)
    text = "data: {csv: table.csv, target: y}\nmodel: {kind: linear}\n"
    path = folder / "problem.yaml"
    path.write_text(f"{text}explain: {{groups: {groups}}}\n")
    return read_problem(path).run(folder, quiet=True)


def test_a_problem_file_names_groups(tmp_path):
    result = _run(tmp_path, TABLE.assign(y=Y), "{address: [street, zip]}")
    assert result.labels.features == ("age", "address", "income", "debt")


# ---- Groups that are found


ROWS = np.random.default_rng(0).normal(size=(6, 400))
RATIO = pd.DataFrame(
    {
        "limit": ROWS[0],
        "used": ROWS[0] + 0.1 * ROWS[1],
        "debt": np.exp(ROWS[2]),
        "income": np.exp(ROWS[3]),
        "age": ROWS[4],
        "unread": ROWS[4] + 0.01 * ROWS[5],
    }
).assign(dti=lambda x: x["debt"] / x["income"])
FIRST = RATIO.columns[:5].tolist()
FOUND = {
    "limit and used": ("limit", "used"),
    "debt, income and dti": ("debt", "income", "dti"),
}
LINEAR = sk.LinearRegression().fit(
    RATIO, RATIO[FIRST].sum(axis=1) - 0.5 * RATIO["used"] + 0.1 * RATIO["dti"]
)
LINEAR.coef_[5] = 0.0


def test_groups_are_found_among_columns_that_the_model_uses():
    best = po.explain(LINEAR, RATIO[:5], data=RATIO)
    assert best.groups() == FOUND
    assert 0.1 < best.parameters["mixtures never seen"] < 0.8
    shuffled = RATIO.sample(frac=1.0, random_state=0)
    again = po.explain(LINEAR, RATIO[:5], data=shuffled)
    assert again.parameters == best.parameters
    sums = best.grouped({"of both": ["used", "debt"], "pair": ["age", "unread"]})
    assert sums.groups() == {
        "limit, of both and 2 more": ("limit", "of both", "income", "dti")
    }
    assert best.grouped(best.groups()).groups() == {}
    few = po.explain(LINEAR, RATIO[:5], data=RATIO[:99])
    assert few.groups() == {}
    assert isinstance(few.parameters["mixtures never seen"], str)


def test_found_groups_are_players():
    best = po.explain(LINEAR, RATIO[:5], data=RATIO, groups="auto")
    given = po.explain(LINEAR, RATIO[:5], data=RATIO, groups=FOUND)
    assert best.labels.features == (*FOUND, "age", "unread")
    assert np.array_equal(best.attributions, given.attributions)
    assert best.parameters["groups"] == "limit, used; debt, income, dti"
    assert (best.groups(), best.parameters["mixtures never seen"]) == ({}, 0.0)
    apart = po.explain(LINEAR, RATIO[:5], data=RATIO, groups={"a": ["limit", "debt"]})
    assert [*apart.groups().values()] == [("a", "used", "income", "dti")]
    alone = TABLE.sample(200, replace=True, random_state=0)
    none = po.explain(MODELS["linear"], X, data=alone, groups="auto")
    assert none.labels.features == tuple(NAMES)
    called = po.explain(lambda rows: rows["limit"], RATIO[:2], RATIO, groups="auto")
    assert "limit and used" in called.labels.features  # what it reads is unknown


def test_found_groups_are_saved(tmp_path):
    explainer = po.Explainer(LINEAR, RATIO, groups="auto").fit()
    explainer.save(tmp_path / "explainer.npz")
    again = po.Explainer.load(tmp_path / "explainer.npz", LINEAR)
    assert again.groups == FOUND
    rows = (explainer.explain(RATIO[:9]), again.explain(RATIO[:9]))
    assert np.array_equal(*(x.attributions for x in rows))
    best = po.explain(LINEAR, RATIO[:5], data=RATIO)
    best.save(tmp_path / "best.npz")
    loaded = po.results.Explanation.load(tmp_path / "best.npz")
    assert loaded.groups() == FOUND
    assert np.array_equal(loaded.clear().signs, best.clear().signs)


def test_a_problem_file_finds_groups(tmp_path):
    result = _run(tmp_path, RATIO.assign(y=LINEAR.predict(RATIO)), "auto")
    assert set(FOUND) < set(result.labels.features)
