"""Audits of attributions: planted faults, differences of similar rows, units."""

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.results.audit import CHECKS, NUMBERS


# ---- planted faults, each found with its number


@pytest.fixture(scope="module")
def case():
    """A forest that never asks for its last column, and its exact values."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 5)), columns=list("abcde"))
    y = 2.0 * X["a"] * (X["b"] > 0) + X["c"] + np.abs(X["d"])
    forest = RandomForestRegressor(15, max_depth=4, random_state=0)
    forest.fit(X.assign(e=0.0), y)
    rows = X.iloc[:40]
    return (
        X,
        rows,
        forest,
        po.explainers.ExactShap(data=X).explain(po.wrap(forest, data=X), rows),
    )


def audited(case, W, **how):
    X, rows, forest, _ = case
    return po.audit(W, forest, rows, **{"data": X, **how})


def test_exact_values_are_right(case):
    audit = audited(case, case[3])
    verdicts = {x.name: x.verdict for x in audit.findings}
    assert verdicts == dict.fromkeys(CHECKS, "exact") | dict.fromkeys(NUMBERS[3:])
    assert audit.verdict == "exact"
    assert audit.document().dangers == []
    assert audit["row sums"].number < 1e-10
    assert audit["values"].number == 0.0
    assert not audit.mistakes


def one_row_off(W, _):
    n = int(np.abs(W.sum(axis=1)).argmax())
    W[n] *= 1.001
    return "row sums", 0.001 * abs(W[n].sum()) / 1.001, {"count": 1, "rows": (n,)}


def other_base(_, base):
    base += 0.3
    return "base", 0.3, {"value": base[0], "expected": base[0] - 0.3}


def columns_exchanged(W, _):
    W[:, [0, 2]] = W[:, [2, 0]]
    return "columns in another's place", {"count": 2, "features": (0, 2)}


def unused_gets(W, _):
    W[:, 4] += 0.05
    return "values", 0.05, {"features": (4,), "cause": "unused columns"}


def sign_turned(W, _):
    n = int(np.abs(W[:, 0]).argmax())
    W[n, 0] *= -1.0
    place = {"count": 1, "rows": (n,), "features": (0,)}
    cell = {"value": W[n, 0], "expected": -W[n, 0]}
    return "values", 2 * abs(W[n, 0]), place | cell


def all_signs_turned(W, base):
    W *= -1.0
    base *= -1.0
    return "signs", {"source": "−1 × values"}


def rows_moved(W, _):
    W[:] = np.roll(W, 1, axis=0)
    return "rows in another's place", {"rows": (0, 39)}


FAULTS = (one_row_off, other_base, unused_gets, sign_turned)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_with_its_number(case, plant):
    W, base = case[3].attributions.copy(), case[3].base_value.copy()
    name, number, where = plant(W, base)
    audit = audited(case, W, base=base)
    assert audit[name] in audit.mistakes
    assert audit[name].number == pytest.approx(number, rel=1e-6)
    for field, expected in where.items():
        found = getattr(audit[name], field)
        assert found == (expected if field == "cause" else pytest.approx(expected))


def test_sentences_say_what_was_reproduced_and_what_to_do(case):
    exact, base = case[3].attributions, case[3].base_value
    slip = exact.copy()
    slip[7, 0] = 2.0 + abs(exact[7, 0])
    size = f"{slip[7, 0]:+.2f} should be {exact[7, 0]:+.2f}".replace("-", "−")
    assert audited(case, slip, base=base).document().dangers == [
        f"1 of 200 values is wrong. Row 7, a: {size}.",
        "Next: Take the exact values: audit.exact, or the file _exact.csv.",
    ]
    noise = 0.1 * np.random.default_rng(0).normal(size=exact.shape)
    noisy = audited(case, exact + noise, base=base)
    assert noisy["values"].verdict == "not reproduced"
    assert noisy.verdict == "wrong"  # as rows do not add up
    assert noisy.document().dangers[0] == (
        "The sums of 40 of 40 rows differ from the prediction minus the base."
    )


@pytest.mark.parametrize("n_others", [0, 2])
@pytest.mark.parametrize("plant", [columns_exchanged, all_signs_turned, rows_moved])
def test_a_slip_is_named_also_if_a_few_rows_have_other_errors(case, plant, n_others):
    W, base = case[3].attributions.copy(), case[3].base_value.copy()
    W[[0, 7][:n_others]] += 0.1
    cause, where = plant(W, base)
    audit = audited(case, W, base=base)
    found = audit["values"]
    assert found in audit.mistakes
    assert found.cause == cause
    if plant is rows_moved and n_others:
        where = {"rows": (found.rows[0], (found.rows[0] - 1) % 40)}
    assert {field: getattr(found, field) for field in where} == where
    assert audit["row sums"].cause == ""
    assert [x[:6] for x in audit.document().dangers[1:]] == ["Next: "]


def test_wrong_numbers_are_counted_with_their_rows_and_the_exact_ones_are_given(case):
    W = case[3].attributions.copy()
    W[[3, 9], :2] += 0.5
    audit = audited(case, W, base=case[3].base_value)
    assert (audit["values"].cause, audit["values"].count) == ("single slips", 4)
    assert audit["row sums"].cause == ""  # it is told once
    again = audited(case, audit.exact_to_frame())
    assert not again.mistakes
    assert again["base"].verdict == again["values"].verdict == "exact"


def test_shares_of_moved_rows_are_no_more_than_all(case):
    W, base = case[3].attributions.copy(), case[3].base_value
    rows_moved(W, base)
    audit = audited(case, W, base=base)
    assert audit["main effects"].number < 0.0
    shares = [
        audit[x].number for x in ("main effects", "required", "removable differences")
    ]
    assert sum(shares) == pytest.approx(1.0)


def test_rounded_numbers_are_right_to_their_last_digit(case):
    exact = case[3]
    audit = audited(case, exact.attributions.round(3), base=exact.base_value)
    assert not audit.mistakes
    assert 0 < audit["row sums"].number < 0.0026
    assert audit["values"].verdict == "exact"


def test_values_of_other_backgrounds_are_a_choice(case):
    X, rows, forest, exact = case
    function = po.wrap(forest, data=X)

    def against(table):
        return po.explainers.ExactShap(data=table).explain(function, rows)

    shuffled = np.arange(120)
    np.random.RandomState(0).shuffle(shuffled)
    for table, pattern in (
        (rows, "the audited rows as background"),
        (X.iloc[shuffled[:100]], "100 rows that shap samples"),
        (X.iloc[:100], "first 100 rows"),
        (X.iloc[[7]], "one row as background"),
        (X.median().to_frame().T, "median row"),
        (0.0 * X[:1], "row of zeros"),
        (X.mean().to_frame().T, "mean row"),
    ):
        audit = audited(case, against(table))
        assert audit.verdict == "exact"
        assert pattern in audit["values"].source
        assert pattern in audit["base"].source
        assert audit.document().dangers == []
        V, E = against(table).attributions, exact.attributions
        large = np.maximum(np.abs(V), np.abs(E)) > 0.1 * np.abs(V).max(axis=1).mean()
        share = (large & (np.sign(V) != np.sign(E))).sum() / large.sum()
        assert audit["large signs"].number == pytest.approx(share)
    assert share > 0.05
    values = against(X.iloc[50:70])
    unknown = audited(case, values)
    assert unknown["base"].verdict == "not reproduced"
    assert unknown["values"].cause == "undetermined"
    implied = float(np.median(values.base_value))
    assert unknown["base"].value == pytest.approx(implied)
    assert "data=" in unknown.document().dangers[1]
    assert unknown.verdict == "not reproduced"
    E = exact.attributions
    V = values.attributions
    r2 = (V * E).sum() ** 2 / ((V**2).sum() * (E**2).sum())
    assert unknown["R² with exact"].number == pytest.approx(r2)
    slope = np.linalg.lstsq(E.reshape(-1, 1), V.ravel(), rcond=None)[0][0]
    assert unknown["slope with exact"].number == pytest.approx(slope)
    ungiven = po.audit(values.to_frame(), forest, rows, base=values.base_value)
    assert not ungiven.mistakes
    table = values.to_frame()
    table.iloc[0] *= 2.0
    doubled = audited(case, table, base=values.base_value)
    assert doubled["row sums"].verdict == "wrong"


def test_sums_of_the_exact_values_of_one_hot_columns_are_known():
    """Against the forest behind the encoder, in which each indicator is a player."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"a": rng.normal(size=80), "k": rng.choice(list("xyz"), 80)})
    y = X["a"] * (X["k"] == "x") + np.abs(X["a"]) * (X["k"] == "y")
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["k"]), remainder="passthrough"
    )
    forest = RandomForestRegressor(10, max_depth=4, random_state=0)
    model, Z = make_pipeline(encoder, forest).fit(X, y), encoder.transform(X)
    inner = po.explainers.ExactShap(data=Z).explain(po.wrap(forest, data=Z), Z[:20])
    W = np.c_[inner.attributions[:, 3], inner.attributions[:, :3].sum(axis=1)]
    checked = po.audit(W, model, X[:20], data=X, base=inner.base_value)["values"]
    assert (checked.cause, checked.verdict) == ("one-hot sums", "exact")


def test_a_price_of_a_sign_and_of_the_first_reasons(case):
    W = case[3].attributions.copy()
    W[:10, 0] *= -1.0
    audit = audited(case, W, base=case[3].base_value)
    cut = 0.1 * np.abs(W).max(axis=1).mean()
    large = np.abs(W) > cut
    expected = large[:10, 0].sum() / large.sum()
    assert audit["large signs"].number == pytest.approx(expected)
    W = case[3].attributions.copy()
    W[:8] = np.roll(W[:8], 1, axis=1)
    truth = np.sort(np.argsort(-np.abs(case[3].attributions), axis=1)[:, :3], axis=1)
    moved = np.sort(np.argsort(-np.abs(W), axis=1)[:, :3], axis=1)
    share = (truth != moved).any(axis=1).mean()
    assert audited(case, W)["top 3 features"].number == pytest.approx(share)


def test_causes_are_shares_of_what_could_go(case):
    audit = audited(case, case[3])
    centre = po.explainers.main_effects(
        case[2], case[1], data=case[0], n_background=120
    ).explanation.attributions
    V = (
        case[3].attributions - centre
    )  # but for what rows lack, spread over used columns
    V[:, :4] -= V.sum(axis=1, keepdims=True) / 4
    table = audit.causes_to_frame()
    assert len(table) == len(audit.pairs) == 10
    graph = po.graphs.knn_graph(case[1] / case[0].std(ddof=0), 8)
    S = graph.similarities.toarray()
    squares = S[:, :, None] * (V[:, None] - V[None]) ** 2
    worst = audit.pairs[0]
    total = squares.sum() / 2
    of_pair = squares[worst.first, worst.second]
    assert worst.share == pytest.approx(of_pair.sum() / total, rel=1e-9)
    assert worst.feature == of_pair.argmax()
    ten = np.sort(np.triu(squares.sum(axis=2)), axis=None)[:-11:-1] / total
    np.testing.assert_allclose(table["share"], ten, rtol=1e-9)
    names = table.loc[0, ["row", "other", "feature"]].tolist()
    assert names == [str(worst.first), str(worst.second), "abcde"[worst.feature]]
    W = case[3].attributions[[worst.first, worst.second], worst.feature]
    assert table.loc[0, ["attribution", "attribution_other"]].tolist() == W.tolist()


def test_what_depends_on_the_background_is_tried(case):
    X, rows, forest, _ = case
    X = X[:119]  # halves of other sizes: those of an even table move as much
    order, function = np.random.default_rng(0).permutation(119), po.wrap(forest, data=X)
    exact = po.explainers.ExactShap(data=X).explain(function, rows)
    audit = audited(case, exact, data=X)
    apart = [
        po.explainers.ExactShap(data=X.iloc[half]).explain(function, rows).attributions
        - exact.attributions
        for half in (order[:59], order[59:])
    ]
    size = (exact.attributions**2).sum()
    worst = max((one**2).sum() for one in apart) / size
    change = audit["change with half background"].number
    assert change**2 == pytest.approx(worst, rel=1e-9)


def test_numbers_of_similar_rows_are_those_of_main_effects():
    """Halving is compared with Clarabel in the tests of main effects."""
    X, y = path_cases()
    forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
    function, rows, background = po.wrap(forest, data=X), X[:25], X[50:100]
    exact = po.explainers.ExactShap(data=background).explain(function, rows)
    graph = po.graphs.knn_graph(rows, 5)
    effects = po.explainers.main_effects(function, rows, data=background)
    audit = po.audit(exact, function, rows, data=background, graph=graph)
    share = effects.difference_shares(exact.attributions, graph)
    numbers = {x.name: x.number for x in audit.findings}
    assert numbers["main effects"] == share.main_effects
    assert numbers["required"] == share.required
    assert numbers["removable differences"] == share.removable
    assert numbers["change to halve them"] ** 2 == pytest.approx(share.halving_cost)
    fact = audit.document().facts["removable differences"]
    parts = share.document().facts
    assert fact.note == ", ".join(
        f"{name} {parts[name].number}" for name in ("main effects", "required")
    )


# ---- path-dependent values, of each library that is there


def path_cases():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=150)
    return X, y


@pytest.mark.parametrize(
    ("library", "make", "unit"),
    [
        ("lightgbm", lambda m: m.LGBMRegressor(n_estimators=20, verbosity=-1), None),
        ("lightgbm", lambda m: m.LGBMClassifier(n_estimators=20, verbosity=-1), "l"),
        ("xgboost", lambda m: m.XGBRegressor(n_estimators=20, n_jobs=1), None),
        ("xgboost", lambda m: m.XGBClassifier(n_estimators=20, n_jobs=1), "l"),
        ("catboost", lambda m: m.CatBoostRegressor(iterations=20, verbose=0), None),
        (
            "shap",
            lambda _: RandomForestRegressor(10, max_depth=3, random_state=0),
            None,
        ),
        ("shap", lambda _: GradientBoostingClassifier(n_estimators=20), "l"),
        ("shap", lambda _: HistGradientBoostingRegressor(max_iter=20), None),
        ("shap", lambda _: RandomForestClassifier(10, random_state=0), "p"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_path_dependent_values_are_recognised(library, make, unit):
    package = pytest.importorskip(library)
    shap = pytest.importorskip("shap")
    X, y = path_cases()
    model = make(package).fit(X, y if unit is None else y > 0)
    phi = shap.TreeExplainer(model)(X[:30])
    words = {None: None, "l": "log_odds", "p": "probability"}[unit]
    audit = po.audit(phi, model, X[:30], data=X[40:], output=words)
    assert audit["values"].source.startswith("path-dependent values")
    assert audit["values"].verdict == "exact"
    assert audit.verdict == "exact"
    W = phi.values.reshape(30, 4, -1)[..., -1].copy()
    W[np.unravel_index(np.abs(W).argmax(), W.shape)] *= -1.0
    turned = po.audit(
        W, model, X[:30], data=X[40:], output=words, base=audit.explanation.base_value
    )
    assert (turned["values"].cause, turned["values"].count) == ("single slips", 1)
    assert turned["values"].source == audit["values"].source
    assert turned["top 3 features"].number == 0.0  # as those of paths
    large = np.abs(W) > 0.1 * np.abs(W).max(axis=1).mean()
    assert turned["large signs"].number == pytest.approx(1.0 / large.sum())


def test_a_native_booster_has_values_or_margins_or_log_odds():
    lightgbm = pytest.importorskip("lightgbm")
    X, y = path_cases()
    kinds = {"regression": "value", "poisson": "margin", "binary": "log_odds"}
    few = {"n_estimators": 5, "verbosity": -1}
    for objective, kind in kinds.items():
        make = lightgbm.LGBMRegressor if kind != "log_odds" else lightgbm.LGBMClassifier
        target = {"value": y, "margin": np.abs(y), "log_odds": y > 0}[kind]
        booster = make(objective=objective, **few).fit(X, target).booster_
        function = po.wrap(booster, data=X, output="margin", outcome="income")
        assert function.quantity.kind == ("log" if kind == "margin" else kind)
        raw = booster.predict(X, pred_contrib=True)
        model, output = (booster, kind) if kind == "log_odds" else (function, None)
        audit = po.audit(raw[:, :-1], model, X, base=raw[0, -1], output=output)
        assert audit["row sums"].verdict == "exact"
        if kind == "value":
            assert audit.explanation.quantity.in_words() == "predicted income"
            assert audit.settings["unit"] == "income"
    shown = po.audit(raw[:, :-1], booster, X)  # by the sums of its rows
    assert shown.explanation.quantity.kind == "log_odds"
    with pytest.raises(InvalidInput, match="add up to neither"):
        po.audit(raw[:, 1:], booster, X)
    probability = po.wrap(booster, data=X, output="value")
    parts = po.explainers.Shap(data=X).explain(probability, X[:20]).attributions
    with pytest.raises(InvalidInput, match="up to the log-odds"):
        po.audit(raw[:, :-1], probability, X, output="probability", base=raw[0, -1])
    audit = po.audit(parts, probability, X[:20], data=X, output="probability")
    assert audit["row sums"].verdict == audit["base"].verdict == "exact"


# ---- units, models that are not read, what is refused


def test_parts_of_probabilities_are_no_log_odds():
    X, y = path_cases()
    model = GradientBoostingClassifier(n_estimators=10).fit(X, y > 0)
    names = {"model": model, "log_odds": po.wrap(model, output="log_odds"), "X": X}
    probability = po.wrap(model, output="probability")
    values = po.explainers.Shap(data=X, algorithm="permutation")
    parts = values.explain(probability, X[:20]).attributions
    audit = po.audit(parts, model, X[:20], output="probability", data=X)
    assert audit["row sums"].verdict == "exact"
    for line, message in refusals(__file__, "units of audits"):
        numbers, explained, output = eval(line, globals() | names | {"parts": parts})
        with pytest.raises(InvalidInput, match=message):
            po.audit(numbers, explained, X[:20], output=output, data=X)


def test_a_model_that_is_not_read_is_compared_with_draws():
    X, _ = path_cases()

    def f(x):
        return np.sin(x[:, 0] * x[:, 1]) + x[:, 2]

    exact = np.zeros((20, 4))
    exact[:, 2] = X[:20, 2] - X[:, 2].mean()
    rest = f(X[:20]) - f(X).mean() - exact[:, 2]
    exact[:, :2] = rest[:, None] / 2
    audit = po.audit(exact, f, X[:20], data=X)
    checked = audit["values"]
    assert (checked.verdict, checked.basis) == ("not reproduced", "estimated")
    assert audit.exact is None
    assert not audit.mistakes
    assert "unused features" not in audit.to_frame().index
    assert audit["base"].verdict == "exact"  # bases need no exact values
    wrong = exact.copy()
    wrong[:, 3] += 1.0
    assert po.audit(wrong, f, X[:20], data=X)["values"].number >= 0.25


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "audit"))
def test_what_cannot_be_audited_is_refused(line, message, case):
    X, rows, forest, exact = case

    def audit(values=exact, **how):
        return audited(case, values, **how)

    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | locals())


def test_odd_tables_are_audited_too(tmp_path):
    Z, slopes = path_cases()[0][:40, :2], np.array([2.0, -1.0])
    model = LinearRegression().fit(Z, Z @ slopes)

    def values(X):
        return (X - X.mean(axis=0)) * slopes[: X.shape[1]]

    additive = po.audit(values(Z), model, Z)
    assert additive["main effects"].number == pytest.approx(1.0, abs=1e-10)
    assert additive["change to halve them"].number == 0.0
    assert additive.pairs == ()
    copies = Z[np.tile(np.arange(8), 5)]  # similar rows are the same rows
    for W, f, X, data, verdict in (
        (values(copies), model, copies, None, "exact"),
        (values(Z[:, :1]), lambda x: 2.0 * x[:, 0], Z[:, :1], None, "exact"),
        (values(Z[:2]), model, Z[:2], Z, "exact"),
        (values(Z)[:1], model, Z[:1], Z, "exact"),
        (0.0 * Z, lambda x: np.full(len(x), 3.0), Z, None, "exact"),
        (0.0 * Z, model, Z, None, "not reproduced"),
    ):
        audit = po.audit(W, f, X, data=data)
        assert audit["values"].verdict == verdict
        audit.save(tmp_path / "odd.npz")
        assert str(po.results.Audit.load(tmp_path / "odd.npz")) == str(audit)
        assert audit.document().chapters()


def test_categories_missing_numbers_and_frames_of_polars_are_read():
    lightgbm = pytest.importorskip("lightgbm")
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.normal(size=90), "m": rng.normal(size=90)})
    X.loc[::7, "m"] = np.nan
    X["c"] = pd.Categorical(rng.choice(list("abc"), 90))
    y = X["n"] * (X["c"] == "a") + X["m"].fillna(1.0)
    model = lightgbm.LGBMRegressor(n_estimators=9, min_child_samples=5, verbosity=-1)
    model.fit(X, y)
    exact = po.explainers.ExactShap(data=X).explain(po.wrap(model, data=X), X)
    frame = polars.DataFrame(exact.attributions[:, [2, 0, 1]], schema=["c", "n", "m"])
    audit = po.audit(frame, model, X)
    assert not audit.mistakes
    assert audit.explanation.value_of(0, 1) == "missing"
    assert audit.explanation.value_of(0, 2) == X["c"][0]


def test_categories_bools_and_whole_numbers_have_typical_rows_that_models_take():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.normal(size=60), "b": rng.random(60) > 0.5})
    X["c"] = rng.choice(list("abc"), 60)
    encoder = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(encoder, LinearRegression())
    model.fit(X, X["n"] + (X["c"] == "a") - X["b"])
    exact = po.explainers.ExactShap(data=X).explain(po.wrap(model, data=X), X)
    assert po.audit(exact, model, X)["values"].verdict == "exact"
    table, Z = rng.normal(size=(3, 5)), rng.integers(0, 3, size=(60, 2))

    def whole(x):
        if (np.asarray(x) % 1).any():
            raise TypeError("indices are whole numbers")
        return table[tuple(np.asarray(x).astype(int).T)]

    halves = np.repeat(whole(Z)[:, None] / 2.0, 2, axis=1)
    assert po.audit(halves, whole, Z)["values"].verdict == "not reproduced"


def test_margins_of_several_classes_are_named_and_refused_as_log_odds():
    X, y = path_cases()
    model = GradientBoostingClassifier(n_estimators=5).fit(X, np.digitize(y, [-1, 1]))
    margin = po.wrap(model, output="margin", target=2)
    exact = po.explainers.ExactShap(data=X).explain(margin, X[:20])
    values = exact.attributions
    with pytest.raises(InvalidInput, match="output='margin'"):
        po.audit(values, model, X[:20], target=2, output="log_odds", data=X)
    checked = po.audit(values, model, X[:20], target=2, output="margin", data=X)
    assert checked["values"].verdict == "exact"


def test_our_own_optimized_contributions_are_known_by_their_field(case):
    X, rows, forest, _ = case
    best = po.explain(forest, rows, data=X, contributions=case[3], kind="contributions")
    checked = audited(case, best)
    assert checked["values"].cause == "optimized contributions"
    assert not checked.mistakes
