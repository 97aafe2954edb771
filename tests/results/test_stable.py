"""Stable reasons: formulas by loops, votes by counting, refits by explanations."""

import math

import numpy as np
import pandas as pd
import pytest
from exact_values import same
from refusals import refusals
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from propopt.base.document import share_text
from propopt.base.errors import InvalidInput
from propopt.explaining.null_models import bootstrap_refits


RNG = np.random.default_rng(3)
B, N, R, D = 7, 30, 40, 6
SCALE = np.array([3.0, 2.0, 1.0, 0.5, 0.2, 0.0])
PHI = SCALE * RNG.normal(size=(N, D))
REFERENCE = SCALE * RNG.normal(size=(R, D))
REFITS = PHI + 0.4 * (SCALE > 0.0) * RNG.normal(size=(B, N, D))
AT_REFERENCE = REFERENCE + 0.4 * (SCALE > 0.0) * RNG.normal(size=(B, R, D))
GROUPS = {"pair": ["x1", "x3"]}
NAMES = [f"x{d}" for d in range(D)]


class Given:
    """Contributions of models that are numbers from 0 to B − 1."""

    def __init__(self, n_rows=500, rows=slice(None)):
        self.n_rows = n_rows
        self.rows = rows

    def of_rows(self, rows):
        return Given(self.n_rows, rows)

    def contributions(self, model=None):
        if model is None:
            return PHI[self.rows], REFERENCE
        return REFITS[model][self.rows], AT_REFERENCE[model]


def parts(**fields):
    known = {"method": "mine", "units": "output", "retrained": Given(), **fields}
    return po.results.Explanation(attributions=PHI, contributions=PHI, **known)


def by_loops(phi, refits, reference, at_reference, k):
    """Votes, directions, lines and firsts, one entry after the other."""
    n_models, n_rows, n_columns = refits.shape

    def column_noise(a, c=None):
        shifts = at_reference[..., a] - reference[..., a]
        if c is not None:
            shifts = shifts - (at_reference[..., c] - reference[..., c])
        return np.mean(shifts**2)

    def kappa(a):
        size = np.mean(reference[:, a] ** 2)
        return max(0.0, 1.0 - column_noise(a) / size) if size else 1.0

    def noise(n, a, c=None):
        total = 0.0
        for b in range(n_models):
            shift = refits[b, n, a] - phi[n, a]
            if c is not None:
                shift -= refits[b, n, c] - phi[n, c]
            total += shift**2
        return (total + 4 * column_noise(a, c)) / (n_models + 4)

    def top(row):
        order = sorted(range(n_columns), key=lambda d: -row[d])
        return [d for d in order[:k] if row[d] > 0.0]

    def has_direction(n, a, z):
        noise_of_sign = (1 + kappa(a)) * noise(n, a)
        return kappa(a) * abs(phi[n, a]) > z * math.sqrt(noise_of_sign)

    def is_above(n, a, c, z):
        noise_apart = (1 + (kappa(a) + kappa(c)) / 2) * noise(n, a, c)
        apart = kappa(a) * phi[n, a] - kappa(c) * phi[n, c]
        return apart > z * math.sqrt(noise_apart)

    shape = n_rows, n_columns
    votes, directions, lines = np.zeros(shape, int), np.zeros(shape, bool), None
    lines, first = np.zeros(shape, bool), np.zeros(n_rows, bool)
    for n in range(n_rows):
        listed = top(phi[n])
        for a in range(n_columns):
            votes[n, a] = sum(a in top(refits[b, n]) for b in range(n_models))
            directions[n, a] = has_direction(n, a, 1.3)
            others = [c for c in range(n_columns) if c not in listed]
            above = all(is_above(n, a, c, 1.3) for c in others)
            lines[n, a] = a in listed and directions[n, a] and above
        a = listed[0] if listed else 0
        others = [c for c in range(n_columns) if c != a]
        above = all(is_above(n, a, c, 2.0) for c in others)
        first[n] = bool(listed) and has_direction(n, a, 2.0) and above
    return votes, directions, lines, first


@pytest.mark.parametrize("towards", ["higher", "lower"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_statements_are_those_of_loops_over_rows_and_features(k, grouped, towards):
    A = np.eye(D)
    if grouped:
        A = np.eye(D)[[0, 1, 2, 4, 5]]
        A[1, 3] = 1.0
    side = 1.0 if towards == "higher" else -1.0
    stable = parts().stable(
        range(B), k=k, towards=towards, groups=GROUPS if grouped else None
    )
    arrays = (side * x @ A.T for x in (PHI, REFITS, REFERENCE, AT_REFERENCE))
    votes, directions, lines, first = by_loops(*arrays, k=k)
    np.testing.assert_array_equal(stable.votes, votes)
    np.testing.assert_array_equal(stable.directions, directions)
    np.testing.assert_array_equal(stable.lines, lines)
    np.testing.assert_array_equal(stable.first, first)
    np.testing.assert_allclose(stable.contributions, PHI @ A.T)
    assert first.any()
    assert not lines.all()
    table = stable.to_frame()
    np.testing.assert_array_equal(table["stable_rows"], lines.mean(axis=0))
    top = (side * PHI @ A.T).argmax(axis=1)
    counts = np.bincount(top[first], minlength=len(A))
    np.testing.assert_allclose(table["stably_first"], counts / N)
    assert list(table.index) == (["x0", "pair", "x2", "x4", "x5"] if grouped else NAMES)


def test_a_line_has_its_votes_and_whether_it_is_stable(tmp_path):
    best = parts()
    stable = best.stable(range(B), k=3)
    reasons = best.reasons(k=3, models=range(B), least_share=0.0)
    columns = [NAMES.index(name) for name in reasons.features]
    np.testing.assert_array_equal(reasons.votes, stable.votes[reasons.rows, columns])
    expected = stable.lines[reasons.rows, columns].astype(int)
    expected += (reasons.ranks == 1) & stable.first[reasons.rows]
    np.testing.assert_array_equal(reasons.stable, expected)
    assert {*expected.tolist()} == {0, 1, 2}
    table = reasons.to_frame()
    assert table["stable"].tolist() == (expected > 0).tolist()
    assert table["stable_first"].tolist() == (expected == 2).tolist()
    assert {*table["retrained_models"]} == {B}
    words = ["not shown", "yes", "as first"]
    for n in range(N):
        here = reasons.rows == n
        frame = best.reasons(k=3, models=range(B), rows=[n], least_share=0.0)
        frame = frame.document().blocks[0].frame
        votes = [f"{x} of {B}" for x in reasons.votes[here]]
        assert frame["retrained models"].tolist() == votes
        assert frame["stable"].tolist() == [words[x] for x in expected[here]]
    by_rank = reasons.document().blocks[0].frame
    shares = [(expected[reasons.ranks == rank] > 0).mean() for rank in (1, 2, 3)]
    assert by_rank["stable rows"].tolist() == [share_text(x) for x in shares]
    assert "stable" not in reasons.document().facts
    for result in (stable, reasons):
        result.save(tmp_path / "result")
        assert same(type(result).load(tmp_path / "result"), result)


def test_without_retrained_models_a_line_says_that_it_was_not_tested():
    reasons = parts().reasons()
    assert reasons.to_frame()[["stable", "stable_first", "votes"]].isna().all(axis=None)
    fact = reasons.document().facts["stable"]
    assert (fact.value, fact.shown_basis) == ("not tested by refits", "")
    assert "not tested by refits" in reasons.sheet(0)


def test_no_first_reason_is_stable_below_500_rows():
    few = parts(retrained=Given(n_rows=499)).stable(range(B))
    many = parts().stable(range(B))
    assert many.first.any()
    assert not few.first.any()
    np.testing.assert_array_equal(few.lines, many.lines)


def test_noise_has_no_signal_and_no_stable_reason():
    rng = np.random.default_rng(0)
    # φ and φᵇ − φ are independent, of variance 1 and 1: 40 columns of 300 rows
    own, reference = rng.normal(size=(2, 300, 40))
    refits = own + rng.normal(size=(10, 300, 40))
    at_reference = reference + rng.normal(size=(10, 300, 40))

    class Noise(Given):
        def contributions(self, model=None):
            if model is None:
                return own, reference
            return refits[model], at_reference[model]

    noise = po.results.Explanation(
        attributions=own,
        contributions=own,
        method="mine",
        units="output",
        retrained=Noise(),
    )
    stable = noise.stable(range(10))
    # the sd of v̄ / mean φ² is √(2/3000 + 2/300) = .086: beyond 4.5 in 40 columns with
    # a chance of 1.4e-4; κ = .4 shrinks the largest of 40, about 3, to 1.2 < 1.3 · 1.2
    assert stable.signal.max() < 4.5 * 0.086
    assert stable.lines.sum() <= 2
    assert not stable.first.any()


# ---- contributions of retrained models


@pytest.fixture(scope="module")
def customers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(220, 4)), columns=["income", "debt", "age", "c"])
    X["plan"] = pd.Categorical(rng.choice(["long", "short"], 220))
    y = X["debt"] - X["income"] + (X["plan"] == "long") + rng.normal(size=220) > 0.5
    X.loc[X.index[::9], "age"] = np.nan
    rows = X[:25].set_axis([f"r{n}" for n in range(25)])
    return X, y.to_numpy(int), rows


def trees(X, y):
    return HistGradientBoostingClassifier(
        max_iter=8, categorical_features="from_dtype"
    ).fit(X, y)


def pipeline(X, y):
    encoder = make_column_transformer(
        (OneHotEncoder(), ["plan"]), remainder="passthrough"
    )
    return make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=8)).fit(X, y)


def numbers(X, y):
    return HistGradientBoostingRegressor(max_iter=8).fit(X[["debt", "age"]], y)


SETTINGS = [
    (trees, {"outcome": "default"}),
    (trees, {"output": "probability"}),
    (trees, {"target": 0, "groups": {"money": ["income", "debt"]}}),
    (pipeline, {}),
    (numbers, {}),
]


@pytest.mark.parametrize(("learner", "settings"), SETTINGS)
def test_refits_are_explained_by_the_settings_of_the_explanation(
    learner, settings, customers
):
    X, y, rows = customers
    model = learner(X, y)
    if learner is numbers:
        X, rows = X[["debt", "age"]], rows[["debt", "age"]]
    best = po.explain(model, rows, data=X, **settings)
    refits = bootstrap_refits(model, X, y, times=5)
    for chosen in (best, best[3:7], po.Explainer(model, data=X, **settings).fit(rows)):
        explained = getattr(chosen, "reference_", chosen)
        phi, reference = explained.retrained.contributions(refits[0])
        kept = rows if explained is not chosen else rows.loc[[*chosen.labels.points]]
        theirs = po.explain(refits[0], kept, data=X, **settings)
        np.testing.assert_allclose(phi, theirs.contributions, atol=1e-9)
        # all rows, or the 100 of a background that is costly
        assert reference.shape == (len(reference), best.shape[1])
        assert len(reference) >= 100
        own, _ = explained.retrained.contributions()
        np.testing.assert_allclose(own, explained.contributions, atol=1e-9)
    stable = best[3:7].stable(refits)
    names = list(X) if "groups" not in settings else ["money", "age", "c", "plan"]
    assert list(stable.to_frame().index) == names
    assert stable.labels.points == tuple(rows.index[3:7])
    np.testing.assert_array_equal(stable.votes, best.stable(refits).votes[3:7])
    np.testing.assert_array_equal(stable.lines, best.stable(refits).lines[3:7])


def test_sampled_models_have_the_same_draws(customers):
    X = customers[0][["income", "debt", "age", "c"]].fillna(0.0).iloc[:60]
    model = po.wrap(lambda X: np.sin(X.to_numpy()).prod(axis=1) * 9.0, data=X)
    best = po.explain(model, X[:3], data=X)
    with pytest.raises(InvalidInput, match="models: all have the contributions"):
        best.stable([model] * 5)


# ---- refusals


LINEAR = LinearRegression().fit(RNG.normal(size=(60, 3)), RNG.normal(size=60))
TABLE = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
MODEL = LinearRegression().fit(TABLE, TABLE["a"] + RNG.normal(size=60))
REFITTED = bootstrap_refits(MODEL, TABLE, TABLE["a"] * 2.0 + 1.0 * RNG.normal(size=60))
OTHER = LogisticRegression().fit(TABLE, TABLE["a"] > 0.0)
BEST = po.explain(MODEL, TABLE[:9], data=TABLE)
SLOPES = po.explain(MODEL, TABLE[:9], data=TABLE, kind="slopes")


def loaded(tmp):
    BEST.save(tmp / "best")
    return po.results.Explanation.load(tmp / "best")


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "stable"))
def test_what_cannot_be_tested_is_refused(line, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        eval(line, globals(), {"tmp": tmp_path})
