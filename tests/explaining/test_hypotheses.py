"""Causes that are planted are named first; right values of any source are not wrong."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.products.sums import Game


TABLE, Y = load_diabetes(return_X_y=True, as_frame=True)
TABLE = TABLE.drop(columns="s3").assign(unused=np.sin(np.arange(len(TABLE))))
ORDER = np.random.default_rng(0).permutation(len(TABLE))
LEARNED, GIVEN, ROWS, OTHERS = np.split(TABLE.index.to_numpy()[ORDER], [200, 300, 360])


def booster(n_estimators=50):
    return GradientBoostingRegressor(
        n_estimators=n_estimators, max_depth=3, random_state=0
    )


def classes(n):
    return pd.Series(pd.qcut(Y, n, labels=False), index=Y.index)


MAKES = {
    "boosted": (booster, Y, None),
    "forest": (lambda: RandomForestRegressor(20, max_depth=5, random_state=0), Y, None),
    "classes": (
        lambda: GradientBoostingClassifier(
            n_estimators=30, max_depth=2, random_state=0
        ),
        classes(3),
        "margin",
    ),
    "kernel": (
        lambda: make_pipeline(StandardScaler(), SVR(C=300.0, gamma=0.05)),
        Y,
        None,
    ),
}
"""Models that are read exactly, in which faults are planted."""

MORE = {
    **MAKES,
    "linear": (LinearRegression, Y, None),
    "logistic": (lambda: LogisticRegression(C=1e3), classes(2), "log_odds"),
}


@cache
def case(name):
    """The model, its function, what it is read as, and its output."""
    make, y, output = MORE[name]
    chosen = LEARNED[:50] if name == "kernel" else LEARNED
    model = make().fit(TABLE.loc[chosen].assign(unused=0.0), y[chosen])
    target = 2 if output == "margin" else None
    function = po.wrap(model, output=output or "auto", target=target, data=TABLE)
    return model, function, function.products_in(TABLE.shape[1]), output, target


def values_of(name, background, rows=None):
    """Exact values, and their base."""
    _, function, structure, *_ = case(name)
    X = TABLE.loc[ROWS] if rows is None else rows
    points, labels = function.read(pd.DataFrame(background, columns=TABLE.columns))
    base = float(function.value_at(points, labels).mean())
    return shapley_against(structure, Game(points)).values(X.to_numpy()), base


def audited(name, W, base=None, rows=None):
    model, *_, output, target = case(name)
    X = TABLE.loc[ROWS] if rows is None else rows
    how = {"output": output, "target": target, "base": base, "rng": 0}
    return po.audit(np.array(W), model, X, data=TABLE.loc[GIVEN], **how)


# ---- Planted causes


def other_rows(name, rng, _W, _base):
    return values_of(name, TABLE.loc[rng.choice(OTHERS, 40, replace=False)])


def paths(name, _rng, _W, _base):
    shap = pytest.importorskip("shap")
    model = case(name)[0]
    explainer = shap.TreeExplainer(model)
    phi = np.asarray(explainer.shap_values(TABLE.loc[ROWS], check_additivity=False))
    return phi, float(np.ravel(explainer.expected_value)[0])


def other_class(name, rng, _W, _base):
    model = case(name)[0]
    function = po.wrap(model, output="margin", target=int(rng.integers(2)), data=TABLE)
    background = TABLE.loc[GIVEN].to_numpy()
    structure = function.products_in(TABLE.shape[1])
    phi = shapley_against(structure, Game(background)).values(
        TABLE.loc[ROWS].to_numpy()
    )
    return phi, float(structure.value(background).mean())


def other_unit(name, rng, W, _base):
    model = case(name)[0]
    X = TABLE.loc[ROWS]
    p = model.predict_proba(X)[:, 2]
    scale = rng.choice([1.0, 100.0])
    f = scale * p
    share = rng.dirichlet(np.ones(W.shape[1]), size=len(X))
    return share * (f - f.mean())[:, None], float(f.mean())


def factor(_name, rng, W, base):
    a = rng.choice([1 / np.log(2), 0.5, 2.0, np.log(2), 1 / np.log(10), 100.0])
    return a * W, a * base


def normalised(_name, _rng, W, _base):
    return W / np.abs(W).sum(axis=1, keepdims=True), None


def sizes(_name, _rng, W, base):
    return np.abs(W), base


def all_signs(_name, _rng, W, base):
    return -W, -base


def signs_of_a_column(_name, rng, W, base):
    W[
        :, rng.choice(np.flatnonzero(np.abs(W).mean(axis=0) > 0.01 * np.abs(W).mean()))
    ] *= -1.0
    return W, base


def columns_swapped(_name, rng, W, base):
    i, j = rng.choice(W.shape[1], 2, replace=False)
    while not (W[:, i].any() or W[:, j].any()):
        i, j = rng.choice(W.shape[1], 2, replace=False)
    W[:, [i, j]] = W[:, [j, i]]
    return W, base


def columns_rolled(_name, rng, W, base):
    return np.roll(W, rng.integers(1, W.shape[1]), axis=1), base


def rows_shifted(_name, rng, W, base):
    return np.roll(W, rng.choice([-2, -1, 1, 2]), axis=0), base


def rows_permuted(_name, rng, W, base):
    chosen = rng.choice(len(W), 10, replace=False)
    W[chosen] = W[np.roll(chosen, 1)]
    return W, base


def rows_doubled(_name, rng, W, base):
    chosen = rng.choice(len(W), 6, replace=False)
    W[chosen[:3]] = W[chosen[3:]]
    return W, base


def summed(_name, rng, W, base):
    chosen = rng.choice(W.shape[1] - 1, 3, replace=False)
    total = W[:, chosen].sum(axis=1)
    W[:, chosen] = 0.0
    W[:, chosen[0]] = total
    return W, base


def rounded(_name, rng, W, base):
    digits = 2 - int(np.floor(np.log10(np.abs(W).max()))) - int(rng.integers(2))
    return W.round(digits), base


def sampled_orders(name, rng, W, base):
    """Means over 150 orders, each beside one background row."""
    _, _, structure, *_ = case(name)
    X, B = TABLE.loc[ROWS].to_numpy(), TABLE.loc[GIVEN].to_numpy()
    total, count = np.zeros(W.shape), 150
    for _ in range(count):
        walk = B[rng.choice(len(B), len(X))]
        before = structure.value(walk)
        for column in rng.permutation(W.shape[1]):
            walk[:, column] = X[:, column]
            after = structure.value(walk)
            total[:, column] += after - before
            before = after
    phi = total / count
    missed = W.sum(axis=1) - phi.sum(axis=1)
    return phi + missed[:, None] / W.shape[1], base


def other_version(name, rng, _W, _base):
    """Of a model with fewer trees, or refitted without some of its support."""
    make, y, output = MAKES[name]
    share = rng.choice([0.99, 0.95, 0.8])
    X = TABLE.loc[LEARNED].assign(unused=0.0)
    if name in ("boosted", "classes", "forest"):
        other = make()
        count = other.n_estimators
        other.set_params(n_estimators=min(count - 1, round(share * count)))
        other.fit(X, y[LEARNED])
    else:
        chosen = LEARNED[:50]
        used = chosen[case(name)[0][-1].support_]  # others leave the model as it is
        count = max(round((1.0 - share) * len(chosen)), 1)
        keep = chosen[~np.isin(chosen, rng.choice(used, count, replace=False))]
        other = make().fit(X.loc[keep], y[keep])
    target = 2 if output == "margin" else None
    function = po.wrap(other, output=output or "auto", target=target, data=TABLE)
    structure, B = function.products_in(TABLE.shape[1]), TABLE.loc[GIVEN].to_numpy()
    phi = shapley_against(structure, Game(B)).values(TABLE.loc[ROWS].to_numpy())
    return phi, float(structure.value(B).mean())


def slip(_name, rng, W, base):
    chosen = np.abs(W) > 0.2 * np.abs(W).max()
    n, j = rng.choice(np.argwhere(chosen))
    W[n, j] *= rng.choice([-1.0, 10.0, 1.001, 0.0])
    return W, base


def moved_share(_name, rng, W, base):
    """80 % of a column in another: rows still add up."""
    i, j = rng.choice(np.flatnonzero(np.abs(W).mean(axis=0) > 0.01), 2, replace=False)
    W[:, j] += 0.8 * W[:, i]
    W[:, i] *= 0.2
    return W, base


def permuted_in_rows(_name, rng, W, base):
    return rng.permuted(W, axis=1), base


def top_four(_name, _rng, W, base):
    """An export of the four largest values of each row."""
    last = np.sort(np.abs(W), axis=1)[:, [-4]]
    return np.where(np.abs(W) >= last, W, 0.0), base


PLANTED = {
    other_rows: "undetermined",
    paths: "path-dependent",
    other_class: "another class",
    other_unit: "another output",
    factor: "a constant factor",
    normalised: "normalised rows",
    sizes: "absolute values",
    all_signs: "signs",
    signs_of_a_column: "signs",
    columns_swapped: "columns in another's place",
    columns_rolled: "columns in another's place",
    rows_shifted: "rows in another's place",
    rows_permuted: "rows in another's place",
    rows_doubled: "rows in another's place",
    summed: "one-hot sums",
    rounded: "rounding",
    sampled_orders: "samples",
    other_version: "undetermined",  # rows do not add up, which is said
    moved_share: "single slips",
    permuted_in_rows: "values permuted within rows",
    top_four: "blanked values",
    slip: "single slips",
}
ONLY = {
    paths: ("boosted", "forest"),
    other_class: ("classes",),
    other_unit: ("classes",),
}
"""Models that have such a fault."""


def named(name, plant, seed):
    """The cause that is named, and its verdict."""
    rng = np.random.default_rng(seed)
    W, base = values_of(name, TABLE.loc[GIVEN])
    W, base = plant(name, rng, W.copy(), base)
    try:
        checked = audited(name, W, base)["values"]
    except InvalidInput as error:
        start = "output: rows of attributions add up to"
        is_other_output = str(error).startswith(start)
        return ("another output" if is_other_output else str(error)), "wrong"
    return checked.cause, checked.verdict


EXACT = ("path-dependent", "rounding")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("plant", "name"),
    [(plant, name) for plant in PLANTED for name in ONLY.get(plant, MAKES)],
)
def test_a_planted_cause_is_named_first(plant, name, seed):
    cause, verdict = named(name, plant, seed)
    assert cause == PLANTED[plant]
    assert (verdict == "exact") == (cause in EXACT)


# ---- Right values


def other(count, seed):
    return TABLE.loc[np.random.default_rng(seed).choice(OTHERS, count, replace=False)]


def centres(rows, count):
    means = KMeans(count, n_init=1, random_state=0).fit(TABLE.loc[rows])
    return pd.DataFrame(means.cluster_centers_, columns=TABLE.columns)


def accepted(name):
    model = case(name)[0]
    rows = TABLE.loc[OTHERS]
    return rows[model.predict(rows) > np.median(model.predict(rows))]


RIGHT = {
    "sample": lambda _: TABLE.loc[GIVEN].sample(50, random_state=3),
    "others": lambda _: other(80, 1),
    "last": lambda _: TABLE.loc[GIVEN][-60:],
    "few": lambda _: other(20, 2),
    "five": lambda _: other(5, 3),
    "one": lambda _: other(1, 4),
    "median": lambda _: TABLE.loc[OTHERS].median().to_frame().T,
    "clusters": lambda _: centres(OTHERS, 2),
    "centres": lambda _: centres(GIVEN, 10),
    "accepted": accepted,
}
"""Backgrounds that are not the one given."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("digits", [None, 3], ids=["whole", "rounded"])
@pytest.mark.parametrize("background", RIGHT)
@pytest.mark.parametrize("name", MORE)
def test_right_values_of_any_background_are_not_wrong(name, background, digits):
    W, base = values_of(name, RIGHT[background](name))
    if digits is not None:  # significant ones of the largest
        W = W.round(digits - 1 - int(np.floor(np.log10(np.abs(W).max()))))
    checked = audited(name, W, base)
    assert checked.verdict != "wrong"
    assert checked["row sums"].verdict == "exact"
    if background in ("one", "median") or checked.verdict == "exact":
        return  # of a row that was tried
    assert checked["base"].value == pytest.approx(base, abs=1e-3)
