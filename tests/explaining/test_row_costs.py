"""A row costs a row: blocks have the bits of single rows, and nothing is made twice."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from lightgbm import Booster, LGBMClassifier, LGBMRegressor

import propopt as po
from propopt.explaining import out_of_sample
from propopt.explaining.out_of_sample import (
    FittedContributions,
    FittedRows,
)
from propopt.losses.graphs.distances import Distances, distances_between
from propopt.proofs.problem_data import in_units_of_w
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.schema import TableSchema


N, N_NEW = 240, 40
SMALL = {"n_estimators": 15, "num_leaves": 8, "verbose": -1, "n_jobs": 1}


def table(seed, n):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    X["kind"] = pd.Categorical(rng.choice(["u", "v", "w"], n), list("uvw"))
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    return X


X, X_NEW = table(0, N), table(1, N_NEW)
SCORE = X.a * X.c + np.sin(2 * X.d) + (X.kind == "u") + X.b.fillna(1.0)
NUMBERS = X.drop(columns="kind").fillna(0.5)
NEW_NUMBERS = X_NEW.drop(columns="kind").fillna(0.5)


def explained(model, data, **settings):
    return po.Explainer(
        model, data=data, graph=po.graphs.Nearest(n_reference=50), **settings
    ).fit()


class Counted:
    """Calls of a function that goes on doing what it did."""

    def __init__(self, monkeypatch, owner, name):
        self.count, before = 0, getattr(owner, name)

        def counting(*args, **named):
            self.count += 1
            return before(*args, **named)

        monkeypatch.setattr(owner, name, counting)


@pytest.mark.parametrize("kind", ["slopes", "contributions"])
def test_nothing_is_made_twice_for_a_row_nor_before_it_is_asked_for(kind, monkeypatch):
    model = LGBMClassifier(**SMALL).fit(NUMBERS, (SCORE > 1.0).astype(int))
    explainer = explained(model, NUMBERS, kind=kind)
    explainer.explain(NEW_NUMBERS[:1])  # what all rows have in common
    monkeypatch.setattr(out_of_sample, "tracked", None)  # there is no time for it
    parts = kind == "contributions"
    fitted = FittedContributions if parts else FittedRows
    # notes on columns are made in each call: 1 % of a row of 5 columns, 6 % of 200
    expected = {
        (TableSchema, "encode"): 1,
        (LGBMClassifier, "predict"): 0,  # its booster is asked
        (Booster, "predict"): int(parts),
        (fitted, "_program"): 0,
        (SumOfProducts, "factors_at"): 0,
    }
    counts = {key: Counted(monkeypatch, *key) for key in expected}
    one = explainer.explain(NEW_NUMBERS.iloc[[3]])
    assert {key: one.count for key, one in counts.items()} == expected
    many = explainer.explain(NEW_NUMBERS)
    assert {key: one.count for key, one in counts.items()} == {
        key: 2 * count for key, count in expected.items()
    }
    made = counts[fitted, "_program"]
    for explanation in (one, many):
        before, again = made.count, copy.copy(explanation)
        first = explanation.program or explanation.scaled_program
        assert (explanation.program or explanation.scaled_program) is first
        assert (again.program or again.scaled_program) is first
        assert made.count == before + 1


@pytest.mark.parametrize("settings", [{"kind": "slopes"}, {}, {"offset": None}])
def test_a_program_that_is_made_late_is_that_of_the_answer(settings):
    explainer = explained(LGBMRegressor(**SMALL).fit(X, SCORE), X, **settings)
    result = explainer.explain(X_NEW[:7])
    name = "scaled_program" if settings == {} else "program"
    assert not isinstance(result.unread(name), po.losses.Program)
    again = pickle.loads(pickle.dumps(explainer.explain(X_NEW[:7])))
    for own in (result, again):
        program = getattr(own, name)
        problem_data = program.problem_data(own.shape)
        if own.scales is not None:
            problem_data = in_units_of_w(problem_data, own.contributions, own.scales)
        assert len(problem_data) == (1 if "kind" in settings else 3)
        for key, text in problem_data.items():
            expected = result.problem_data[
                key
            ]  # of rows that share them the parts stand once
            text = np.broadcast_to(text, expected.shape)
            np.testing.assert_allclose(text, expected, atol=1e-12)
        Z = own.attributions
        if name == "scaled_program":
            Z = np.where(own.metric > 0, Z - own.contributions, 0.0)
            Z = Z / np.sqrt(np.where(own.metric > 0, own.metric, 1.0))
        for loss in program.losses:
            message = own.losses[loss.name]
            assert loss.value(Z) == pytest.approx(message, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_own_values_of_tables_are_those_of_the_sets(seed, monkeypatch):
    model = LGBMRegressor(**SMALL, random_state=seed).fit(X, SCORE * (seed + 1))
    rule = explained(model, X).fitted_.problem.main_effect_rule
    points, labels = rule.function.read(table(seed + 2, 200))
    points = points.copy()
    for j in range(5):  # at the ends of sets, and beside them
        sets = [own for _, own in rule.checked.structure.of_column[j]]
        ends = np.unique([end for own in sets for end in (own.low, own.high)])
        ends = ends[np.isfinite(ends)]
        ends = np.concatenate([ends, np.nextafter(ends, np.inf), [1e300, -1e300]])
        points[: len(ends[:120]), j] = ends[:120]
    rule.at(points[:1], labels)  # which makes the tables
    made = Counted(monkeypatch, SumOfProducts, "factors_at")
    quick = rule.at(points, labels)
    alone = np.concatenate([rule.at(row, labels) for row in points[:, None]])
    assert made.count == 0
    monkeypatch.setenv("PROPOPT_KERNELS", "numpy")
    slow = dataclasses.replace(rule).at(points, labels)
    assert made.count == 2  # of the background, and of the points
    assert quick.tobytes() == alone.tobytes()
    np.testing.assert_allclose(quick, slow, rtol=0, atol=1e-12)


def test_distances_to_rows_that_stay_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    points, rows = rng.normal(size=(50, 4)), rng.normal(size=(6, 4))
    rows[1] *= 1e3  # its unit is a larger one
    rows[2, 1], rows[3], rows[4] = np.nan, 0.0, 1e200
    gaps = points.copy()
    gaps[4, 2] = np.nan
    for own in (points, gaps, np.zeros((5, 4)), points * 1e200):
        expected = Distances(own)
        for n in range(len(rows)):
            result = expected.of(rows[[n]])
            assert result.tobytes() == distances_between(rows[[n]], own).tobytes()
        assert expected.of(rows).tobytes() == distances_between(rows, own).tobytes()
