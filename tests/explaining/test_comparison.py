"""Two versions compared with refits, two groups with divisions: statistics, levels."""

import dataclasses
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from scipy import stats
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from benchmarks import claim_versions
from propopt.base.errors import InvalidInput
from propopt.explaining.null_models import bootstrap_refits, pooled_refits
from propopt.results.comparison import NullLevel


BETA = np.array([1.0, 0.8, 0.5, 0.2, 0.0])
COLUMNS = [f"x{j}" for j in range(5)]


def table(rng, n=300, beta=BETA):
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=COLUMNS)
    return X, X.to_numpy() @ beta + rng.normal(size=n)


def fitted(rng, beta=BETA, n=300):
    return LinearRegression().fit(*table(rng, n, beta))


@pytest.fixture
def old(rng):
    X, y = table(rng)
    return LinearRegression().fit(X, y), X, y


def parts(model, X, data):
    """Shapley values of a linear model, in closed form."""
    return (X - data.mean(axis=0)).to_numpy() * model.coef_


def rms(moved):
    return np.array(
        [np.sqrt(sum(x**2 for x in column) / len(column)) for column in moved.T]
    )


def refits_of(*tables, times=20):
    return [
        bootstrap_refits(LinearRegression(), X, y, times=times, rng=k)
        for k, (X, y) in enumerate(tables)
    ]


@pytest.fixture
def tested(old, rng):
    """A comparison in which x0 has 1.6 times its effect and the outcome has 2 more."""
    model, X, y = old
    X2, y2 = table(rng, beta=BETA * [1.6, 1, 1, 1, 1])
    new, rows = LinearRegression().fit(X2, y2 + 2.0), X[:40]
    level = refits_of((X, y), (X2, y2 + 2.0))
    how = {"data": X[:90], "robustness": 1.0}
    return po.compare(model, new, rows, level=level, **how), model, new, level


def by_loops(models, rows, data):
    """The limits of sizes, then of distances, and what is tested, by the formulas."""
    sides = [[parts(x, rows, data) for x in side] for side in models]
    sizes = []
    for side, refits in zip(sides, models, strict=True):
        sizes.append([])
        for phi, refit in zip(side, refits, strict=True):
            each = [sum(abs(x) for x in column) / len(column) for column in phi.T]
            base = sum(refit.predict(data)) / len(data)
            sizes[-1].append([*each, sum(each), base])
    counts = [len(side) for side in sides]
    totals = [row[-2] for side in sizes for row in side]
    least = 0.01 * sum(totals) / len(totals)
    D = rows.shape[1]
    m = 2 * D + 2
    limits, changes = [], []
    for k in range(D + 2):
        one, other = ([row[k] for row in side] for side in sizes)
        spread = math.sqrt(
            sum(np.var(x, ddof=1) * (1 + 1 / len(x)) for x in (one, other))
        )
        t = stats.t(sum(counts) - 2).ppf(1.0 - 0.05 / (2 * m))
        limits.append(max(t * spread, least))
        changes.append(np.mean(other) - np.mean(one))
    pairs = [rms(side[k + 1] - side[k]) for side in sides for k in range(0, 19, 2)]
    for j in range(D):
        logs = [math.log(pair[j] + least) for pair in pairs]
        spread = max(np.std(logs, ddof=1), 0.05) * math.sqrt(1.0 + 1.0 / len(logs))
        t = stats.t(len(logs) - 1).ppf(1.0 - 0.05 / m)
        limits.append(max(math.exp(np.mean(logs) + t * spread) - least, least))
    means = [sum(side) / len(side) for side in sides]
    return np.array(limits), np.array(changes), rms(means[1] - means[0]), pairs


def test_limits_are_those_of_the_formulas_in_a_direct_loop(tested, old):
    compared, model, new, models = tested
    _, X, _ = old
    rows, data = X[:40], X[:90]
    one, other = parts(model, rows, data), parts(new, rows, data)
    np.testing.assert_allclose(compared.distances, rms(other - one))
    limits, changes, distances, pairs = by_loops(models, rows, data)
    level = compared.level
    assert level.kind == "bootstrap_refits"
    np.testing.assert_allclose(level.size_limits, limits[:7], rtol=1e-9)
    np.testing.assert_allclose(level.distance_limits, limits[7:], rtol=1e-9)
    np.testing.assert_allclose(level.size_changes, changes, atol=1e-12)
    np.testing.assert_allclose(level.tested, distances, rtol=1e-9)
    np.testing.assert_allclose(level.distances, pairs, rtol=1e-9)
    assert len(level.distances) == 20
    np.testing.assert_allclose(compared.times_level, distances / limits[7:])
    np.testing.assert_allclose(compared.size_ratios, abs(changes / limits[:7])[:5])
    frame = compared.to_frame().set_index("feature").loc[COLUMNS]
    np.testing.assert_allclose(frame["times_level"], compared.times_level)
    np.testing.assert_allclose(frame["size_limit"], limits[:5])
    np.testing.assert_allclose(frame["mean_size_after"], abs(other).mean(0))
    np.testing.assert_allclose(frame["mean_difference"], (other - one).mean(0))
    bases = [m.predict(data).mean() for m in (model, new)]
    np.testing.assert_allclose(compared.base_values, bases)
    assert compared.distance_flagged.tolist() == [True, False, False, False, False]
    assert compared.size_flagged.tolist() == [True, False, False, False, False]
    assert [compared.total_flagged, compared.base_flagged] == [True, True]


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_flags_begin_just_above_each_limit_up_and_down(tested, share):
    compared = tested[0]
    level = compared.level
    for sign in (-1.0, 1.0):
        moved = sign * share * level.size_limits + level.before.mean(axis=0)
        spread = level.after - level.after.mean(axis=0)
        changed = dataclasses.replace(
            level, after=moved + spread, tested=share * level.distance_limits
        )
        other = dataclasses.replace(compared, level=changed)
        assert other.distance_flagged.tolist() == [share > 1.0] * 5
        assert other.size_flagged.tolist() == [share > 1.0] * 5
        assert other.total_flagged == other.base_flagged == (share > 1.0)
        high = 3.0 * np.abs(changed.size_changes).max() + changed.tested.max()
        dust = dataclasses.replace(changed, least=high)
        assert not dataclasses.replace(other, level=dust).flagged.any()


def test_a_column_that_falls_to_nothing_is_flagged(old, rng):
    """Both learners: the lost column, and by the distance too."""
    _, X, y = old
    X2, y2 = table(rng)
    lost = X2.assign(x1=X2["x1"].mean())
    for learner in (LinearRegression(), RandomForestRegressor(10, max_depth=4)):
        models = [clone(learner).fit(*pair) for pair in ((X, y), (lost, y2))]
        level = [bootstrap_refits(learner, *pair) for pair in ((X, y), (lost, y2))]
        compared = po.compare(*models, X[:40], data=X[:90], level=level)
        assert np.abs(compared.after[:, 1]).max() < 1e-9
        assert compared.size_flagged[1]
        assert compared.level.size_changes[1] < 0.0


def test_without_refits_nothing_is_tested(tested, old):
    compared, model, new, _ = tested
    bare = po.compare(model, new, old[1][:40], data=old[1][:90], robustness=1.0)
    assert bare.distances.tolist() == compared.distances.tolist()
    left = {"times_level", "distance_flagged", "size_limit", "size_ratio"}
    gone = {*compared.to_frame()} - {*bare.to_frame()}
    assert gone == left | {"size_flagged"}
    assert "verdict" not in [*bare.document().blocks[0].frame]
    for name in ("times_level", "flagged", "total_flagged", "base_flagged"):
        with pytest.raises(InvalidInput, match=r"level=\(old_refits, new_refits\)"):
            getattr(bare, name)


def test_pooled_refits_divide_all_rows_into_tables_of_both_sizes(rng):
    X, y = table(rng, 31)
    sizes = []

    def fit(X, y):
        assert (y == X["x0"]).all()
        sizes.append([*X.index])
        return len(sizes)

    y = X["x0"]
    pooled = pooled_refits(fit, (X[:11], y[:11]), (X[11:], y[11:]), rng=1)
    assert (pooled.old, pooled.new) == ([*range(1, 39, 2)], [*range(2, 39, 2)])
    for one, other in zip(sizes[::2], sizes[1::2], strict=True):
        assert (len(one), len(other)) == (11, 20)
        assert sorted([*one, *other]) == [*range(31)]
    assert len({frozenset(x) for x in sizes}) == 38


def test_the_real_division_is_standardised_as_all_others(old, rng):
    model, X, y = old
    X2, y2 = table(rng, 200, beta=BETA * [1.0, 1.0, 2.4, 1.0, 1.0])
    new, rows, data = LinearRegression().fit(X2, y2), X[:40], X[:90]
    pooled = pooled_refits(LinearRegression(), (X, y), (X2, y2))
    how = {"data": data, "robustness": 1.0}
    compared = po.compare(model, new, rows, level=pooled, **how)
    pairs = [(model, new), *zip(pooled.old, pooled.new, strict=True)]
    phi = [[parts(x, rows, data) for x in pair] for pair in pairs]
    sizes = [[[*abs(x).mean(0), abs(x).mean(0).sum()] for x in pair] for pair in phi]
    bases = [[x.predict(data).mean() for x in pair] for pair in pairs]
    moved = np.column_stack([np.diff(sizes, axis=1)[:, 0], np.diff(bases)])
    apart = np.array([rms(b - a) for a, b in phi])
    least = 0.01 * np.mean(np.array(sizes)[:, :, -1])
    scales = np.maximum(np.sqrt((moved**2).mean(0)), least / 2)
    spreads = np.maximum(apart.std(0), least / 2)
    scores = np.hstack([abs(moved) / scales, (apart - apart.mean(0)) / spreads])
    largest = scores[1:].max()
    level = compared.level
    np.testing.assert_allclose(level.size_limits, largest * scales)
    np.testing.assert_allclose(level.distance_limits, apart.mean(0) + largest * spreads)
    assert ((scores[0] > largest)[:5] == compared.size_flagged).all()
    assert ((scores[0] > largest)[7:] == compared.distance_flagged).all()
    assert compared.flagged.tolist() == [False, False, True, False, False]


def null_level(changes, distances):
    """Divisions with these changes and distances, the real one first."""
    return NullLevel(
        kind="pooled_refits",
        least=1e-9,
        tested=distances[0],
        distances=distances[1:],
        before=np.zeros_like(changes),
        after=changes,
    )


def test_one_division_in_twenty_is_above_all_others(rng):
    """Exact: of 20 exchangeable divisions one has the largest score."""
    changes, distances = rng.normal(size=(20, 4)), rng.exponential(size=(20, 3))
    alarms = []
    for k in range(20):
        order = [k, *(x for x in range(20) if x != k)]
        level = null_level(changes[order], distances[order])
        by_size = np.abs(level.size_changes) > level.size_limits
        alarms.append(by_size.any() or (level.tested > level.distance_limits).any())
    assert sum(alarms) == 1


def test_refits_of_one_population_alarm_in_at_most_5_percent():
    """The rate by the formulas: normal attributions of two tables without a change.

    Of 1,500 pairs at most 5 % alarm, plus three standard errors: 101. A level of
    exactly 5 % exceeds it in .1 % of seeds, and here it is one seed.
    """
    rng = np.random.default_rng(11)
    M, D = 20, 3
    alarms = 0
    for _ in range(1500):
        truth = 1.0 + 0.1 * rng.normal(size=(2, 1, D))  # each table has an error
        effects = truth + 0.1 * rng.normal(size=(2, M, D))  # and so has each refit
        sizes = np.dstack([effects, effects.sum(2), effects[..., 0]])
        pairs = np.abs(effects[:, ::2] - effects[:, 1::2]).reshape(-1, D)
        level = NullLevel(
            kind="bootstrap_refits",
            least=0.03,
            tested=np.abs(np.diff(effects.mean(axis=1), axis=0)[0]),
            distances=pairs,
            before=sizes[0],
            after=sizes[1],
        )
        by_size = np.abs(level.size_changes) > level.size_limits
        alarms += by_size.any() or (level.tested > level.distance_limits).any()
    assert alarms <= 1500 * 0.05 + 3.0 * math.sqrt(1500 * 0.05 * 0.95)


def test_versions_of_tables_with_categories_are_compared_by_their_names(rng):
    X, _ = table(rng)
    X = X.assign(city=rng.choice(["Faro", "Minho", "Porto"], len(X)))
    effects = {"Faro": 1.0, "Minho": -2.0, "Porto": 0.0}
    moved = X["city"].map(effects).to_numpy()
    steps = make_column_transformer(
        (OneHotEncoder(), ["city"]), remainder="passthrough"
    )
    one, two = (
        make_pipeline(steps, LinearRegression()).fit(X, X["x0"] + c * moved)
        for c in (1.0, 3.0)
    )
    compared = po.compare(one, two, X[:50], data=X[:90])
    expected = 2.0 * (moved[:50] - moved[:90].mean())
    distances = dict(zip(compared.labels.features, compared.distances, strict=True))
    assert distances["city"] == pytest.approx(np.sqrt(np.mean(expected**2)))
    assert max(distances[x] for x in COLUMNS) < 1e-9


def test_a_change_in_f_itself_flags_no_other_column(old):
    _, X, y = old
    forest = RandomForestRegressor(10, max_depth=4, random_state=0)
    part = 3.0 * po.wrap(LinearRegression().fit(X, X["x1"]), data=X)
    for learner in (LinearRegression(), forest):
        f = po.wrap(clone(learner).fit(X, y), data=X)
        refits = [po.wrap(x, data=X) for x in bootstrap_refits(learner, X, y)]
        level = (refits, [x + part for x in refits])
        compared = po.compare(f, f + part, X[:30], level=level)
        assert compared.flagged.tolist() == [False, True, False, False, False]
        assert compared.distances[[0, 2, 3, 4]].max() < 1e-9


def test_a_price_is_what_agreeing_in_a_column_costs(old, rng):
    model, X, _ = old
    rows, how = X[:25], {"data": X, "robustness": 0.3}
    new = DecisionTreeRegressor(max_depth=3).fit(*table(rng))
    slopes = {
        "kind": "slopes",
        "law": "data",
        "graph": po.graphs.knn_graph(rows / X.std(ddof=0), 8),
    }
    compared = po.compare(model, new, rows, **how, **slopes)
    one, other = (po.explain(m, rows, **how, **slopes) for m in (model, new))
    F = [
        po.GradientMatching(x.gradient) + 0.3 * x.program.losses[1]
        for x in (one, other)
    ]
    W, moved = (
        (one.attributions, other.attributions),
        other.attributions - one.attributions,
    )
    np.testing.assert_allclose(compared.optimized, rms(moved))

    def rises(column, j):
        for objective, single in zip(F, W, strict=True):
            V = single.copy()
            V[:, j] = column
            at = [
                po.results.Explanation(attributions=x, method="v")
                .certified(objective)
                .objective
                for x in (V, single)
            ]
            yield at[0] - at[1]

    mean_row = one.objective / len(rows)
    for j in (0, 3):
        middle = (W[0][:, j] + W[1][:, j]) / 2.0
        np.testing.assert_allclose(
            [*rises(middle, j)], compared.prices[j] * mean_row, rtol=1e-5
        )
        for _ in range(5):
            nearby = middle + 0.1 * rng.normal(size=25) * abs(moved).max()
            assert max(rises(nearby, j)) > compared.prices[j] * mean_row


def test_saved_ones_are_compared_at_their_targets_whatever_their_weights(old, rng):
    model, X, _ = old
    new, rows = fitted(rng), X[:20]
    how = {"data": X, "offset": None}
    one = po.explain(model, rows, robustness=0.1, **how)
    other = po.explain(new, rows[::-1], robustness=10.0, **how)
    compared = po.compare(one, other)
    models = po.compare(model, new, rows, data=X, robustness=0.1)
    np.testing.assert_allclose(compared.distances, models.distances)
    assert compared.sources == ("stored targets", "stored targets")
    how["graph"] = graph = po.graphs.knn_graph(rows / X.std(ddof=0), 8)
    both = [po.explain(m, rows, robustness=0.1, **how) for m in (model, new)]
    alike = po.compare(*both)
    assert (alike.prices > 0.0).all()
    models = po.compare(model, new, rows, data=X, robustness=0.1, graph=graph)
    assert (alike.prices <= models.prices).all()  # the graph of saved ones is not known
    plain = po.compare(one.to_frame(), other.to_frame())
    moved = other.to_frame().loc[rows.index] - one.to_frame()
    np.testing.assert_allclose(plain.distances, rms(moved.to_numpy()))
    assert plain.sources[0] == "attributions, because no target is stored"
    assert plain.prices is None
    assert po.compare(one, dataclasses.replace(other, certificate=None)).prices is None
    level = po.compare(one, other, level=([one, other] * 5, [other, one] * 5)).level
    np.testing.assert_allclose(level.distances, [compared.distances] * 10)
    assert np.abs(level.size_changes).max() < 1e-12


def test_groups_are_compared_with_divisions_of_the_same_rows(old):
    model, X, _ = old
    groups = {"men": X[:60], "women": X[60:100].assign(x0=X["x0"] + 1.0)}
    compared = po.compare(model, rows=groups, data=X, n_permutations=199)
    means = [compared.before.mean(0), compared.after.mean(0)]
    sizes = [abs(compared.before).mean(0), abs(compared.after).mean(0)]
    moved = np.append(means[1] - means[0], sizes[1] - sizes[0])
    np.testing.assert_allclose(compared.distances, abs(moved[:5]))
    assert compared.distance_flagged.tolist() == [True, False, False, False, False]
    level = compared.level
    both = np.vstack([compared.before, compared.after])
    least = 0.01 * np.mean([level.before[:, 5], level.after[:, 5]])
    assert least == pytest.approx(0.01 * abs(both).mean(0).sum(), rel=0.1)
    # the real division is the first of 200, all of them of the same 100 rows
    for one, other in zip(level.before, level.after, strict=True):
        whole = 0.6 * one[:5] + 0.4 * other[:5]
        np.testing.assert_allclose(whole, abs(both).mean(0))
    grown = level.after - level.before
    every = np.vstack([level.tested, level.distances])
    scales = np.maximum(np.sqrt((grown**2).mean(0)), least / 2)
    spreads = np.maximum(every.std(0), least / 2)
    scores = np.hstack([abs(grown) / scales, (every - every.mean(0)) / spreads])
    largest = np.sort(scores[1:].max(axis=1))[189]  # 10 of 200 are above
    limits = np.maximum(every.mean(0) + largest * spreads, least)
    np.testing.assert_allclose(level.distance_limits, limits)
    frame = compared.to_frame().set_index("feature").loc[COLUMNS]
    np.testing.assert_allclose(frame["mean_difference"], moved[:5])
    size_limits = np.maximum(largest * scales, least)[:5]
    np.testing.assert_allclose(frame["size_ratio"], abs(moved[5:]) / size_limits)
    turned = po.compare(model, rows=[*groups.values()], data=X)
    assert turned.distances.tolist() == compared.distances.tolist()


# ---- what is refused, and of which version


def explained(model, data, rows, kind="contributions"):
    return po.explain(model, data[rows], data=data, kind=kind, robustness=1.0)


class Lost(NamedTuple):
    """The new model of a table without a column, and that table."""

    model: LinearRegression
    X: pd.DataFrame


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "comparison"))
def test_a_refusal_names_the_version(line, message, old):
    model, X, y = old
    less = X.drop(columns="x3")
    names = {
        **globals(),
        "m": model,
        "X": X,
        "y": y,
        "a": explained(model, X, slice(9)),
        "LOST": Lost(LinearRegression().fit(less, y), less),
        "BOTH": LogisticRegression().fit(X, y > 0),
        "compare": po.compare,
        "pooled": po.null_models.PooledRefits,
    }
    with pytest.raises(InvalidInput, match=message):
        eval(line, names)


# ---- the benchmark, whose tables the page has


def test_tables_of_the_page_are_those_on_record():
    found = claim_versions.read()
    none = found[(found["change"] == "none") & (found["level"] == "refits")]
    assert len(none) >= 200
    assert (none["flagged"] != "").mean() <= 0.07
    root = Path(po.__file__).parents[1]
    page = (root / "docs/background/version_changes.md").read_text("utf-8")
    lines = claim_versions.page_tables(found)
    assert {line for line in lines if line} <= {*page.splitlines()}


@pytest.mark.slow
def test_chance_pairs_of_categories_alarm_at_most_at_the_level():
    """Ten pairs; with 5 % alarms more than three come in .1 % of seeds."""
    found = [
        one
        for seed in range(100, 110)
        for one in claim_versions.outcomes("refits", "categories", "trees", seed, False)
    ]
    assert sum(one.flagged != "" for one in found) <= 3
