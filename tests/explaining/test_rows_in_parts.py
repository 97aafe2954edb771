"""One row in parts that add up: its optimum, its bounds, and who else is asked."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from crafted_archives import members_of, npy, write_signed
from explainer_cases import (
    IN_PARTS,
    X_NEW,
    D,
    N,
    X,
    black_box,
    forest,
    mixed,
    same,
)
from orders import all_orders

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.conditional import ConditionalRow


pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


# --- one row beside fixed ones --------------------------------------------------------


def random_row(seed, shared=False):
    """A row that adds up over some columns, beside rows that add up over fewer."""
    rng = np.random.default_rng(seed)
    n_features, k = 6, 5
    axis = rng.uniform(0.3, 2.0, n_features)
    axis[5] = 0.0  # contributes to nobody
    fixed_axis = axis.copy()
    fixed_axis[4] = 0.0  # contributes to the row alone
    fixed = rng.normal(size=(k, n_features)) * (fixed_axis > 0)
    target = rng.normal(size=n_features) * (axis > 0)
    return ConditionalRow(
        target=target,
        near=np.arange(k),
        similarities=rng.random(k),
        fixed=fixed,
        weights=(float(10 ** rng.uniform(-1, 1)), float(10 ** rng.uniform(-1, 1))),
        shared=rng.random(fixed.shape) < 0.6 if shared else None,
        axis=axis,
        fixed_axis=fixed_axis,
        total=float(rng.normal()) * 3,
    )


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_optimum_among_rows_that_add_up(seed, shared):
    row = random_row(seed, shared)
    w = cp.Variable(6)
    a, b = row.weights
    own = a * cp.sum_squares(w - row.target)
    here = np.ones(row.fixed.shape) if row.shared is None else row.shared
    pairs = [
        s * cp.sum_squares(cp.multiply(counts, w - v))
        for s, v, counts in zip(row.similarities, row.fixed, here, strict=True)
    ]
    kept = [row.axis @ w == row.total, w[5] == 0.0]
    problem = cp.Problem(cp.Minimize(own + 2 * b * sum(pairs)), kept)
    problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(row.w, w.value, atol=1e-6)
    assert row.value == pytest.approx(problem.value, rel=1e-7)
    assert row.w[5] == 0.0
    assert abs(row.axis @ row.w - row.total) <= 1e-14
    assert row.excess <= 1e-15 * row.value
    assert row.violation <= 1e-15


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_it_solves_the_equations_of_its_optimum(seed, shared):
    row = random_row(seed, shared)
    a, b = row.weights
    here = row.axis > 0
    v = row.axis[here]
    s = row.similarities[:, None] * (1.0 if row.shared is None else row.shared)
    h = np.broadcast_to(a + 2 * b * s.sum(axis=0), row.axis.shape)[here]
    right = a * row.target[here] + 2 * b * (s * row.fixed).sum(axis=0)[here]
    K = np.block([[np.diag(h), v[:, None]], [v[None], np.zeros((1, 1))]])
    w = np.linalg.solve(K, np.append(right, row.total))[:-1]
    np.testing.assert_allclose(row.w[here], w, rtol=0, atol=1e-13)


@pytest.mark.parametrize("shared", [False, True])
def test_a_row_that_adds_up_elsewhere_is_proved_worse_by_what_it_is(shared):
    row = random_row(0, shared)
    best = row.value
    step = np.array([1.0, -row.axis[0] / row.axis[1], 0, 0, 0, 0]) * 0.01
    other = dataclasses.replace(row)
    vars(other)["w"] = row.w + step  # still complete
    assert best < other.value
    assert other.value - other.excess == pytest.approx(best, rel=1e-9)
    assert other.distance == pytest.approx(np.linalg.norm(step), rel=1e-6)


def joint(seed):
    """A row appended to rows that were the optimum without it, and their optimum."""
    rng = np.random.default_rng(seed)
    n, n_features = 7, 4
    S = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
    S = S + S.T
    s = rng.random(n) * (rng.random(n) < 0.7)
    s[0] += 0.2
    a, b = 10.0 ** rng.uniform(-1, 1, 2)
    v = rng.uniform(0.5, 1.5, n_features)
    fixed_v = v.copy()
    fixed_v[3] = 0.0
    G = rng.normal(size=(n, n_features)) * (fixed_v > 0)
    t = rng.normal(size=n)
    g, total = rng.normal(size=n_features), float(rng.normal())
    alone = optimum(a, b, S, G, np.tile(fixed_v, (n, 1)), t)[1]
    row = ConditionalRow(
        target=g,
        similarities=s,
        fixed=alone,
        near=np.arange(n),
        weights=(a, b),
        axis=v,
        fixed_axis=fixed_v,
        total=total,
    )
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[n, :n], whole[:n, n] = S, s, s
    axes = np.vstack([np.tile(fixed_v, (n, 1)), v])
    F, W = optimum(a, b, whole, np.vstack([G, g]), axes, np.append(t, total))
    return F, W, alone, row


def optimum(a, b, S, G, axes, totals):
    """F of all rows, and its least point where rows add up over their own columns."""
    n, n_features = G.shape
    L = np.diag(S.sum(axis=1)) - S
    H = np.kron(a * np.eye(n) + 2 * b * L, np.eye(n_features))
    here = axes.ravel() > 0
    A = np.zeros((n, n * n_features))
    for k in range(n):
        A[k, k * n_features : (k + 1) * n_features] = axes[k]
    A = A[:, here]
    K = np.block([[H[np.ix_(here, here)], A.T], [A, np.zeros((n, n))]])
    w = np.zeros(n * n_features)
    solution = np.linalg.solve(K, np.append(a * G.ravel()[here], totals))
    w[here] = solution[: here.sum()]
    W = w.reshape(n, n_features)

    def F(W):
        return a * ((W - G) ** 2).sum() + 2 * b * np.trace(W.T @ L @ W)

    return F, W


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_against_solving_all_rows_together(seed):
    F, best, alone, row = joint(seed)
    W = np.vstack([alone, row.w])
    excess = F(W) - F(best)
    assert -1e-12 < excess <= row.joint_excess * (1 + 1e-9) + 1e-12
    moved = np.linalg.norm(W - best)
    assert 1e-9 < moved <= row.joint_distance * (1 + 1e-9)


# --- explainers -----------------------------------------------------------------------

PREDICTED = {
    "forest": lambda model, rows: model.predict(rows),
    "forest, by effects": lambda model, rows: model.predict(rows),
    "sampled": lambda model, rows: model(rows),
    "categories": lambda model, rows: model.predict_proba(rows)[:, 1],
    "slopes": lambda model, rows: model.predict(rows),
}


@pytest.fixture(scope="module", params=IN_PARTS, ids=IN_PARTS.keys())
def case(request):
    explainer = IN_PARTS[request.param]().fit()
    rows = mixed(1, 12) if request.param == "categories" else X_NEW.iloc[:12]
    return SimpleNamespace(
        name=request.param,
        explainer=explainer,
        rows=rows,
        found=explainer.explain(rows),
        predicted=PREDICTED[request.param](explainer.model, rows),
    )


def test_rows_add_up_to_the_prediction_less_the_base(case):
    result = case.found
    np.testing.assert_allclose(result.prediction, case.predicted, rtol=1e-12)
    base = case.explainer.reference_.base_value[0]
    assert (result.base_value == base).all()
    np.testing.assert_allclose(
        case.found.attributions.sum(axis=1), case.predicted - base, rtol=0, atol=1e-12
    )
    assert case.found.gap <= 1e-12
    assert case.found.certificate.violation <= 1e-14
    assert case.found.units == "output"


def test_one_row_is_what_is_left_of_the_joint_problem_with_its_reference_fixed(case):
    reference, result, n = case.explainer.reference_, case.found, 4
    phi = reference.contributions
    omega = np.ones(phi.shape[1])
    if case.explainer.metric == "effects":
        squares = (phi**2).mean(axis=0)
        omega = np.maximum(squares, 1e-6 * squares.max())
    near = result.details["reference_rows"][n]
    s = np.ones(len(near))
    own = result.contributions[n]
    used = (phi != 0).any(axis=0) | (own != 0)
    b, total = (
        case.explainer.robustness_,
        case.predicted[n] - result.base_value[n],
    )
    # h w/ω + y = (Φ + 2b Σ s_j w_j)/ω where used, Σ w = t
    h = 1 + 2 * b * s.sum()
    W = reference.attributions[near]
    p = (own + 2 * b * s @ W) / h
    K = np.block(
        [
            [np.diag(h / omega[used]), np.ones((used.sum(), 1))],
            [np.ones((1, used.sum())), np.zeros((1, 1))],
        ]
    )
    right = np.append(h * p[used] / omega[used], total)
    w = np.linalg.solve(K, right)[:-1]
    scale = np.abs(w).max()
    np.testing.assert_allclose(
        result.attributions[n][used], w, rtol=0, atol=1e-9 * scale
    )
    assert (result.attributions[n][~used] == 0.0).all()


@pytest.mark.parametrize("name", ["forest", "slopes"])
def test_contributions_of_a_row_are_those_that_it_has_in_a_table(name):
    explainer = IN_PARTS[name]().fit()
    reference = explainer.reference_
    rows = X.loc[list(reference.labels.points[:4])]
    result = explainer.explain(rows).contributions
    wanted = reference.contributions[:4]
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-12)


def test_sampled_contributions_scatter_about_exact_ones_as_they_say(tmp_path):
    explainer = po.Explainer(
        black_box, data=X, units="output", n_reference=12, robustness=0.05
    ).fit()
    result = explainer.explain(X_NEW[:20])
    explainer.save(tmp_path / "it.npz")
    with np.load(tmp_path / "it.npz", allow_pickle=False) as file:
        background = file["background"]
    function = po.wrap(black_box)
    exact = all_orders(function, X_NEW[:20].to_numpy(), background)
    phi = result.contributions
    h = 1 + 2 * 0.05 * result.details["similarity"]
    # what W moves by, of errors of Φ that add up to nothing: a/h
    errors = (phi - exact) / h[:, None]
    scores = errors / result.standard_errors
    # t of nine degrees: 100 scores beyond 12 once in 13,000 runs
    assert np.abs(scores).max() <= 12.0
    assert 0.7 <= np.sqrt((scores**2).mean()) <= 1.5
    # the excess is Σ ‖error of Φ‖²/h; one draw of it within a factor of four
    excess = ((phi - exact) ** 2 / h[:, None]).sum()
    assert 0.25 <= result.target.value / excess <= 4.0
    assert "draws" in result.target.in_words()


def test_rows_of_equal_values_have_equal_draws_and_others_have_others():
    explainer = IN_PARTS["sampled"]().fit()
    twice = X_NEW.iloc[[3, 3, 4]]
    result = explainer.explain(twice)
    assert (result.attributions[0] == result.attributions[1]).all()
    other = po.Explainer(
        black_box, data=X, units="output", n_reference=15, robustness=0.1, rng=4
    ).fit()
    phi = other.explain(twice).contributions
    assert (phi != result.contributions).all()


def test_certain_signs_are_those_of_the_conditional_program(case):
    if case.explainer.metric == "effects":
        assert case.found.program is None
        return
    certain = case.found.certain()
    assert certain.signs.shape == case.found.shape
    b = case.explainer.robustness_
    h = 1 + 2 * b * case.found.details["similarity"]
    used = case.found.attributions.any(axis=0)
    budget = 0.1 * case.found.certificate.value / len(case.rows)
    # the diagonal of (I − 11ᵀ/D)/h among used columns
    widths = np.sqrt(budget * (1 - 1 / used.sum()) / h)
    if case.found.target.n_blocks == 0:
        np.testing.assert_allclose(
            certain.half_widths[:, used],
            np.tile(widths[:, None], used.sum()),
            rtol=1e-6,
        )


# --- columns that not all use ---------------------------------------------------------


def switched(table):
    points = np.asarray(table, dtype=float)
    return points[:, 0] + points[:, 0] * points[:, 1] + 5.0 * points[:, 2]


def with_constant(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, 4))
    points[:, 2] = 1.0  # contributes to no row of the table
    return points


def test_a_column_that_contributes_to_the_row_alone_has_a_part_of_it():
    explainer = po.Explainer(
        switched, data=with_constant(0, 40), units="output", robustness=0.2
    ).fit()
    assert (explainer.reference_.attributions[:, 2:] == 0.0).all()
    rows = with_constant(1, 3)
    rows[1, 2] = 3.0
    result = explainer.explain(rows)
    assert (result.attributions[:, 3] == 0.0).all()
    assert (result.attributions[[0, 2], 2] == 0.0).all()
    # sampled: its part of what the drawn background rows miss beside it
    assert result.contributions[1, 2] == pytest.approx(10.0, abs=0.1)
    h = 1 + 2 * 0.2 * result.details["similarity"][1]
    p = result.contributions[1] / h
    near = explainer.reference_.attributions[result.details["reference_rows"][1]]
    p = p + 2 * 0.2 * near.sum(axis=0) / h
    total = switched(rows)[1] - result.base_value[1]
    p[:3] += (total - p[:3].sum()) / 3
    np.testing.assert_allclose(result.attributions[1], p, atol=1e-12)
    same(explainer.explain(rows[[1]]), result, [1])
    with pytest.raises(po.errors.Refused, match="features of their own"):
        result.certain()
    assert explainer.explain(rows[[1]]).certain().signs[0, 2] == 1


def test_where_nothing_contributes_a_row_of_another_prediction_is_refused():
    def flat(table):
        return np.zeros(len(table))

    explainer = po.Explainer(
        flat, data=X.to_numpy(), units="output", robustness=0.1
    ).fit()
    result = explainer.explain(X_NEW.to_numpy()[:2])
    assert (result.attributions == 0.0).all()

    def elsewhere(table):
        return np.zeros(len(table)) + (1e-3 if len(table) == 1 else 0.0)

    odd = po.Explainer(elsewhere, data=X.to_numpy(), units="output", robustness=0.1)
    with pytest.raises(InvalidInput, match=r"row 0: no feature contributes"):
        odd.fit().explain(X.to_numpy()[:1])


# --- what asks it ---------------------------------------------------------------------


def test_one_row_of_explain_is_that_of_the_explainer():
    model = forest()
    result = po.explain(
        model, X_NEW.iloc[[3]], data=X, units="output", metric="effects"
    )
    explainer = po.Explainer(model, data=X, units="output", metric="effects").fit()
    same(result, explainer.explain(X_NEW), [3])
    assert result.parameters["metric"] == "effects"


def test_reference_rows_are_those_of_explain():
    model = forest()
    together = po.explain(model, X, units="output")
    explainer = po.Explainer(model, data=X, units="output").fit()
    reference = explainer.reference_
    np.testing.assert_array_equal(reference.attributions, together.attributions)
    assert explainer.robustness_ == together.weights["pairwise_robustness"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"law": "data"}, "Shapley values take none"),
        ({"contributions": np.zeros((N, D))}, "those of rows to come are not known"),
        ({"contributions": "lime"}, "contributions"),
        ({"metric": "euclid"}, "metric"),
        ({"units": "gradient"}, "units"),
        ({"units": "scaled", "metric": "effects"}, "it is of units='output'"),
        ({"units": "scaled", "contributions": "slopes"}, "it is of units='output'"),
    ],
)
def test_settings_that_do_not_apply_are_refused(settings, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        po.Explainer(black_box, **{"data": X, "units": "output", **settings}).fit()


@pytest.mark.parametrize(
    "settings", [{"same_pattern": True}, {"precision": 0.1}, {"max_evaluations": 9}]
)
@pytest.mark.parametrize("units", ["scaled", "output"])
def test_one_row_refuses_what_is_of_several(units, settings):
    with pytest.raises(InvalidInput, match="give two rows or more"):
        po.explain(black_box, X_NEW.iloc[[3]], data=X, units=units, **settings)


def test_another_model_is_refused_by_its_contributions(tmp_path):
    function = po.wrap(black_box)
    few = po.Explainer(
        function, data=X.to_numpy(), units="output", n_reference=10, robustness=0.1
    )
    few.fit().save(tmp_path / "it.npz")
    observed = X.to_numpy()

    def elsewhere(table):  # the same at all reference rows, not between them
        points = np.asarray(table, dtype=float)
        there = (points[:, None] == observed[None]).all(axis=2).any(axis=1)
        return np.where(there, black_box(points), 2.0 * black_box(points))

    with pytest.raises(InvalidInput, match=r"another function .* its target is"):
        po.Explainer.load(tmp_path / "it.npz", po.wrap(elsewhere))


def test_parts_that_do_not_add_up_are_not_loaded(tmp_path):
    path = tmp_path / "it.npz"
    model = forest()
    po.Explainer(model, data=X, units="output").fit().save(path)
    with np.load(path, allow_pickle=False) as file:
        W = file["reference.attributions"].copy()
    W[5, 0] += 1e-6 * np.abs(W).max()
    write_signed(path, {**members_of(path), "reference.attributions.npy": npy(W)})
    with pytest.raises(InvalidInput, match=r"row 5 does not add up|is said to be"):
        po.Explainer.load(path, model)


def test_a_row_of_a_pipeline_with_missing_numbers_adds_up():
    from sklearn.ensemble import HistGradientBoostingRegressor

    gaps = X.mask(np.random.default_rng(5).random(X.shape) < 0.2)
    model = HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5)
    model.fit(gaps, X["f0"] ** 2 + X["f3"])
    new = X_NEW.mask(np.random.default_rng(6).random(X_NEW.shape) < 0.2)
    explainer = po.Explainer(model, data=gaps, units="output").fit()
    result = explainer.explain(new.iloc[:6])
    same(explainer.explain(new.iloc[[2]]), result, [2])
    total = model.predict(new.iloc[:6]) - result.base_value
    np.testing.assert_allclose(result.attributions.sum(axis=1), total, atol=1e-12)
    assert result.target_error == 0.0


def test_names_of_rows_stay(case):
    frame = case.found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.index) == list(case.rows.index)
