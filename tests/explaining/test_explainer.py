"""The explainer of single rows: independent of who else is asked, with its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from explainer_cases import (
    EXPLAINERS,
    IN_PARTS,
    N_NEW,
    X_NEW,
    D,
    N,
    X,
    black_box,
    mixed,
    same,
    taken,
)
from sklearn.exceptions import NotFittedError

import propopt as po
from propopt.base.errors import InvalidInput


EVERY = EXPLAINERS | {f"parts: {name}": IN_PARTS[name] for name in IN_PARTS}


@pytest.fixture(scope="module", params=EVERY)
def case(request):
    """A fitted explainer and 100 rows, in the form that it takes; 12 of parts."""
    explainer = EVERY[request.param]().fit()
    count = 12 if request.param.startswith("parts") else N_NEW
    if request.param.endswith("categories"):
        return explainer, mixed(1, count)
    if request.param == "network, without names":
        return explainer, X_NEW.to_numpy()
    return explainer, X_NEW[:count]


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_no_bit_depends_on_who_else_is_asked(case):
    explainer, rows = case
    joint = explainer.explain(rows)
    order = np.random.default_rng(2).permutation(len(rows))
    same(explainer.explain(taken(rows, order)), joint, order)
    for n in range(len(rows)):
        same(explainer.explain(taken(rows, [n])), joint, [n])
    for size in (2, 7, min(33, len(rows))):
        same(explainer.explain(taken(rows, range(size))), joint, list(range(size)))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_second_fit_gives_the_same_bits(case):
    explainer, rows = case
    first = explainer.explain(taken(rows, [0, 1]))
    explainer.fit()
    same(explainer.explain(taken(rows, [0, 1])), first, [0, 1])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_are_certified_for_the_reference_as_it_is(case):
    explainer, rows = case
    result = explainer.explain(taken(rows, range(10)))
    assert result.gap < 1e-12
    assert result.objective == pytest.approx(result.certificate.value, rel=1e-12)
    assert result.certificate.kind == "strong convexity"
    assert set(result.losses) == set(result.weights)


@pytest.fixture(scope="module")
def fitted():
    return po.Explainer(black_box, data=X, robustness=0.2).fit()


def appended(explainer, n, answer):
    """The joint optimum of the reference and row n of X_NEW, by po.solve."""
    scaled = X / X.std(ddof=0)
    near = answer.details["reference_rows"][0]
    apart = np.linalg.norm(scaled - X_NEW.iloc[n] / X.std(ddof=0), axis=1)
    S = np.zeros((N + 1, N + 1))
    S[:N, :N] = po.knn_graph(scaled, 8).similarities.toarray()
    S[N, near] = S[near, N] = 1.0
    assert set(near) == set(np.argsort(apart)[:8])
    G = np.vstack([explainer.reference_.gradient, answer.gradient])
    robust = po.PairwiseRobustness(po.graph_from_matrix(S))
    objective = po.GradientMatching(G) + 0.2 * robust
    return objective, po.solve(objective, tolerance=1e-10)


@pytest.mark.parametrize("n", range(10))
def test_bounds_hold_against_solving_all_rows_together(fitted, n):
    answer = fitted.explain(X_NEW.iloc[[n]])
    objective, best = appended(fitted, n, answer)
    W = np.vstack([fitted.reference_.attributions, answer.attributions])
    excess = objective.value(W) - best.objective
    assert -1e-9 < excess <= answer.details["joint_excess"][0] + 1e-9
    moved = np.linalg.norm(W - best.attributions)
    assert 0 < moved <= answer.details["joint_distance"][0] + 1e-9


def test_reference_rows_are_explained_as_explain_does():
    joint = po.explain(black_box, X)
    explainer = po.Explainer(black_box, data=X).fit()
    np.testing.assert_array_equal(explainer.reference_.attributions, joint.attributions)
    assert explainer.robustness_ == joint.weights["pairwise_robustness"]


def test_a_row_of_the_reference_is_new_unless_it_is_looked_up():
    explainer = po.Explainer(black_box, data=X).fit()
    result = explainer.explain(X.iloc[[3]])
    assert result.details["reference_rows"][0, 0] == 3
    assert not np.allclose(
        result.attributions[0], explainer.reference_.attributions[3], rtol=1e-6
    )


def test_scales_are_those_of_the_data_not_of_the_rows_asked():
    explainer = po.Explainer(black_box, data=X).fit()
    constant = X_NEW.iloc[:3].assign(f3=0.0)
    result = explainer.explain(constant)
    slopes = po.wrap(black_box).gradient(constant) * X.std(ddof=0)
    np.testing.assert_allclose(result.gradient, slopes, rtol=1e-5, atol=1e-7)


def test_reference_rows_are_drawn_by_the_seed_where_there_are_many():
    first = po.Explainer(black_box, data=X, n_reference=30, rng=1).fit()
    again = po.Explainer(black_box, data=X, n_reference=30, rng=1).fit()
    other = po.Explainer(black_box, data=X, n_reference=30, rng=2).fit()
    assert first.reference_.shape == (30, D)
    assert first.reference_.labels == again.reference_.labels
    assert first.reference_.labels != other.reference_.labels


def test_rows_given_to_fit_are_the_reference():
    explainer = po.Explainer(black_box, data=X).fit(X.iloc[:20])
    assert explainer.reference_.shape == (20, D)
    assert po.Explainer(black_box).fit(X).reference_.shape == (N, D)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_reference": 0}, "n_reference"),
        ({"n_reference": 1}, "at least two reference rows"),
        ({"robustness": -1.0}, "robustness"),
        ({"data": None}, "expected reference rows"),
        ({"scale": [1.0]}, "scale"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        po.Explainer(black_box, **{"data": X, **settings}).fit()


def test_before_the_fit_there_is_nothing_to_ask():
    explainer = po.Explainer(black_box, data=X)
    with pytest.raises(NotFittedError, match="call fit"):
        explainer.explain(X_NEW)
    with pytest.raises(NotFittedError):
        _ = explainer.reference_


def test_rows_of_another_table_are_refused(fitted):
    with pytest.raises(InvalidInput, match="columns"):
        fitted.explain(X_NEW.rename(columns={"f0": "g0"}))


def test_rows_of_polars_are_explained_alike():
    polars = pytest.importorskip("polars")
    explainer = po.Explainer(black_box, data=X).fit()
    result = explainer.explain(polars.from_pandas(X_NEW))
    same(result, explainer.explain(X_NEW), list(range(N_NEW)))


def test_one_row_is_explained_among_the_rows_of_the_data():
    result = po.explain(black_box, X_NEW.iloc[[3]], data=X)
    explainer = po.Explainer(black_box, data=X).fit()
    same(result, explainer.explain(X_NEW), [3])


@pytest.mark.parametrize("units", ["scaled", "output"])
@pytest.mark.parametrize("data", [None, po.TableSchema.of(X)])
def test_one_row_without_others_is_refused(data, units):
    with pytest.raises(InvalidInput, match="or the table that it comes from as data"):
        po.explain(black_box, X_NEW.iloc[[3]], data=data, units=units)


def test_missing_numbers_count_in_distances_as_in_graphs():
    def model(table):
        return np.nan_to_num(np.asarray(table, dtype=float)) @ np.arange(1.0, D + 1.0)

    gaps = X.mask(np.random.default_rng(5).random(X.shape) < 0.2)
    new = X_NEW.mask(np.random.default_rng(6).random(X_NEW.shape) < 0.2)
    explainer = po.Explainer(model, data=gaps, scale=None, law="none").fit()
    result = explainer.explain(new.iloc[:10])
    same(explainer.explain(new.iloc[[4]]), result, [4])
    for n, row in enumerate(new.to_numpy()[:10]):
        points = gaps.to_numpy()
        odd = np.isnan(points) != np.isnan(row)
        squares = np.where(odd, 1.0, np.nan_to_num((points - row) ** 2)).sum(axis=1)
        near = result.details["reference_rows"][n]
        np.testing.assert_allclose(squares[near], np.sort(squares)[:8], rtol=1e-12)
