"""Contributions by default: against dense linear algebra, Clarabel and theory."""

from types import SimpleNamespace

import numpy as np
import pytest
from coalitions import shapley_by_definition
from command_line import done
from contribution_program import (
    joint_optimum,
    nearest_of,
    partial_dependences,
    reach_of,
    row_optimum,
    similarities_of,
    winsorised_places,
)
from estimators import sk
from quiet_boosters import booster

import propopt as po


N, D, K = 48, 4, 8
B_OF_8 = 1.0 / 48.0
rng = np.random.default_rng(11)
X = rng.normal(size=(N, D)) * [1.0, 20.0, 0.1, 3.0]
X[3, 1] = 4e4  # a lost decimal point
X[10] = X[11]  # equal rows
X[12:20, 0], X[12:20, 3] = 1.0, 3.0  # ties of others, in a column of few values
Z = X / [1.0, 20.0, 0.1, 3.0]
Y = Z[:, 0] * Z[:, 2] + np.clip(Z[:, 1], -2, 2) + np.sin(2.0 * Z[:, 3]) * Z[:, 0]


@pytest.fixture(scope="module")
def trees():
    """Joint effects, of three of four columns, and what explain makes of them."""
    model = sk.GradientBoostingRegressor(n_estimators=25, max_depth=3, random_state=0)
    model.fit(X, Y)
    f = model.predict
    phi, G = shapley_by_definition(f, X, X), partial_dependences(f, X, X)
    omega = ((phi - G) ** 2).mean(axis=0)
    places = winsorised_places(X, X)
    return SimpleNamespace(
        model=model,
        f=f,
        base=f(X).mean(),
        phi=phi,
        G=G,
        omega=omega,
        places=places,
        S=similarities_of(places, K),
    )


# ---- the joint optimum


def test_the_joint_optimum_is_that_of_one_linear_system(trees):
    best = po.explain(trees.model, X)
    t = trees.f(X) - trees.base
    W = joint_optimum(trees.phi, trees.G, trees.omega, trees.S, B_OF_8, t)
    assert np.abs(W - trees.phi).max() > 0.03 * np.abs(trees.phi).max()
    np.testing.assert_allclose(best.contributions, trees.phi, atol=1e-12)
    np.testing.assert_allclose(best.metric, trees.omega, rtol=1e-10)
    np.testing.assert_allclose(best.attributions, W, atol=1e-11)
    np.testing.assert_allclose(best.attributions.sum(axis=1), t, atol=1e-13)
    assert best.weights["pairwise_robustness"] == pytest.approx(B_OF_8, rel=1e-15)
    assert best.gap < 1e-12


def test_without_robustness_they_are_shapley_values(trees):
    for data in (None, X):
        rows = X[:20] if data is not None else X
        best = po.explain(trees.model, rows, data=data, robustness=0.0)
        exact = trees.phi[: len(rows)]
        np.testing.assert_allclose(best.attributions, exact, atol=1e-12)
        # and as the weight falls they tend to these
        moves = [
            np.abs(
                po.explain(
                    trees.model, rows, data=data, robustness=10.0**-k
                ).attributions
                - exact
            ).max()
            for k in (2, 4, 6)
        ]
        np.testing.assert_allclose(moves[2] / moves[1], 0.01, rtol=0.01)
        assert moves[0] > 10 * moves[1] > 0.0


# ---- one row beside fixed ones


NEW = np.random.default_rng(5).normal(size=(12, D)) * [1.0, 20.0, 0.1, 3.0]
FAR = np.array([[9.0, 150.0, 1.0, -30.0]])
ASKED = np.concatenate([NEW, FAR, 5.0 * FAR])


def closed(trees, rows):
    """Each row by itself; and the pieces of it."""
    f, phi = trees.f, shapley_by_definition(trees.f, rows, X)
    G = partial_dependences(f, rows, X)
    t = f(X) - trees.base
    joint = joint_optimum(trees.phi, trees.G, trees.omega, trees.S, B_OF_8, t)
    reach, S, W = reach_of(trees.places, K), [], []
    for n, place in enumerate(winsorised_places(rows, X)):
        apart = np.linalg.norm(trees.places - place, axis=1)
        s, _ = nearest_of(apart, K, reach)
        total = f(rows[[n]])[0] - trees.base
        own = (phi[n], G[n], trees.omega, s, joint - trees.G, B_OF_8, total)
        W.append(row_optimum(*own))
        S.append(s)
    left = joint - trees.G
    return SimpleNamespace(W=np.array(W), phi=phi, G=G, S=np.array(S), left=left)


def test_a_row_by_itself_is_the_closed_form(trees):
    best, expected = po.explain(trees.model, ASKED, data=X), closed(trees, ASKED)
    np.testing.assert_allclose(best.attributions, expected.W, atol=1e-11)
    sigma = best.details["similarity"]
    np.testing.assert_allclose(sigma, expected.S.sum(axis=1), rtol=1e-9)
    assert sigma[:-2].max() == pytest.approx(K)
    assert 0.0 < sigma[-1] < 1e-3 < sigma[-2] < 1.0
    moved = np.abs(best.attributions - best.contributions)
    assert moved[-1].max() < 1e-3 * moved[:-2].max()  # nobody is near: it stays


def test_before_sums_rows_move_a_quarter_of_the_way_to_their_neighbours(trees):
    best, expected = po.explain(trees.model, ASKED, data=X), closed(trees, ASKED)
    near = np.flatnonzero(np.isclose(expected.S.sum(axis=1), K))
    assert len(near) >= 5
    for n in near:
        aim = expected.G[n] + expected.S[n] @ expected.left / K
        back = best.attributions[n] - expected.phi[n] - 0.25 * (aim - expected.phi[n])
        # what sums take back is in proportion to ω
        shift = back.sum() / trees.omega.sum()
        assert abs(shift) > 1e-9
        np.testing.assert_allclose(back, shift * trees.omega, atol=1e-11)


def test_a_row_that_is_a_reference_row_has_its_joint_value(trees):
    t = trees.f(X) - trees.base
    joint = joint_optimum(trees.phi, trees.G, trees.omega, trees.S, B_OF_8, t)
    best = po.explain(trees.model, X, data=X)
    np.testing.assert_allclose(best.attributions, joint, atol=1e-9)


def test_similarity_is_not_that_of_one_wrong_value(trees):
    """Row 3 is far in a column of which it has a wrong value, and nobody else is."""
    scale = 1.0 / winsorised_places(np.ones((1, D)), X)[0, 1]
    plain = X[:, 1].std()
    assert scale == pytest.approx(plain, rel=1e-12)  # of 48 rows no tail is cut
    rows = np.concatenate([X] * 9)  # of 432 two on each side are
    rows[48:, 1] = np.tile(np.delete(X[:, 1], 3), 9)[: len(rows) - 48]
    rows[48:, 1] *= 1.0 + 0.01 * np.arange(len(rows) - 48)  # no two are equal
    cut = 1.0 / winsorised_places(np.ones((1, D)), rows)[0, 1]
    assert cut < 0.1 * rows[:, 1].std()
    sizes = po.Explainer(trees.model, data=rows).fit().fitted_.problem.sizes
    assert sizes[1] == pytest.approx(cut, rel=1e-12)


# ---- order and company


def test_ties_are_not_decided_by_order():
    """On a grid most eighth neighbours are equally far as others."""
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    a, b, c = grid.T
    y = a * b + np.sin(b) * c + a * (c > 1)
    model = sk.HistGradientBoostingRegressor(
        max_iter=20, max_leaf_nodes=8, min_samples_leaf=2, random_state=0
    ).fit(grid, y)
    asked = grid[::3] + 0.5
    best = po.explain(model, asked, data=grid)
    assert np.abs(best.attributions - best.contributions).max() > 1e-2
    order = np.random.default_rng(0).permutation(len(grid))
    again = po.explain(model, asked, data=grid[order])
    np.testing.assert_allclose(again.attributions, best.attributions, atol=1e-12)
    joint = po.explain(model, grid).attributions
    np.testing.assert_allclose(
        po.explain(model, grid[order]).attributions, joint[order], atol=1e-12
    )


READ = {
    "trees": lambda: sk.GradientBoostingRegressor(n_estimators=20, random_state=0),
    "hist": lambda: sk.HistGradientBoostingRegressor(max_iter=20, random_state=0),
    "linear": sk.LinearRegression,
}
FILES = [
    "{kind: hist_gradient_boosting, target_class: malignant, max_iter: 10}",
    "{kind: logistic, target_class: malignant}",
]


@pytest.mark.parametrize("model", FILES)
def test_a_problem_file_has_the_same_bits(model, tmp_path):
    data = "data: {sklearn: breast_cancer, explain: 15}"
    text = f"{data}\nmodel: {model}\nexplain: {{}}\n"
    result = done(tmp_path, text)
    best, subject = result.load(), result.subject
    f, rows, data = subject.function, subject.points, subject.others
    assert best.parameters["weight rule"] == (
        "a quarter of the way to the nearest rows"
    )
    again = po.explain(f, rows, data=data)
    np.testing.assert_array_equal(best.attributions, again.attributions)
    alone = po.explain(f, rows.iloc[[4]], data=data)
    np.testing.assert_array_equal(best.attributions[4], alone.attributions[0])


@pytest.mark.parametrize("kind", READ)
def test_seeds_change_nothing_where_nothing_is_drawn(kind):
    model = READ[kind]().fit(X, Y)
    first = po.explain(model, NEW, data=X)
    for seed in range(12):
        again = po.explain(model, NEW, data=X, sampling=po.Sampling(rng=seed))
        np.testing.assert_array_equal(again.attributions, first.attributions)
        np.testing.assert_array_equal(again.base_value, first.base_value)


def test_a_seed_moves_no_base_of_a_model_that_is_called():
    def f(rows):
        return rows[:, 0] * rows[:, 2] + rows[:, 3]

    data = np.random.default_rng(1).normal(size=(300, D))
    bases = {
        float(
            po.explain(f, NEW[:2], data=data, sampling=po.Sampling(rng=s)).base_value[0]
        )
        for s in range(12)
    }
    assert len(bases) == 1


# ---- additive columns, and joint parts that vanish


def test_additive_models_keep_their_shapley_values():
    stumps = sk.GradientBoostingRegressor(max_depth=1, n_estimators=40, random_state=0)
    light = booster("lightgbm", n_estimators=40, num_leaves=2, min_child_samples=3)
    models = [stumps, light, sk.LinearRegression()]
    cases = [(model.fit(Z, Y), "auto") for model in models]
    cases.append((sk.LogisticRegression(max_iter=500).fit(Z, Y > 0), "log_odds"))
    for model, output in cases:
        for data in (None, Z):
            rows = Z if data is None else Z[5:25] + 0.3
            best = po.explain(model, rows, data=data, output=output)
            size = np.abs(best.contributions).max()
            moved = np.abs(best.attributions - best.contributions).max()
            assert moved <= 1e-12 * size
            assert size > 0.1


def test_two_columns_do_jointly_the_same_and_keep_their_shapley_values():
    """What they share is divided in halves: sums take back whatever would move."""
    model = sk.GradientBoostingRegressor(n_estimators=30, random_state=0)
    model.fit(Z[:, :2], Z[:, 0] * Z[:, 1])
    for data in (None, Z[:, :2]):
        rows = Z[:, :2] if data is None else Z[:9, :2] + 0.2
        best = po.explain(model, rows, data=data)
        assert best.metric.max() > 0.01
        np.testing.assert_allclose(best.attributions, best.contributions, atol=1e-14)


def tables_of(kind):
    """Rows, and two parts of a model: additive, and joint of three of four columns."""
    rows = np.random.default_rng(2).normal(size=(96, 4))  # all are background
    a, b, c, d = rows.T
    y, joint = a + np.sin(b) + 0.5 * c + d**2, a * b + np.sin(b) * c + a * c**2
    if kind == "callable":

        def plain(x):
            return x[:, 0] + np.sin(x[:, 1]) + 0.5 * x[:, 2] + x[:, 3] ** 2

        def mixed(x):
            a, b, c, _ = x.T
            return a * b + np.sin(b) * c + a * c**2

        return rows, plain, mixed
    if kind == "linear":
        parts = sk.LinearRegression(), sk.GradientBoostingRegressor(n_estimators=8)
    elif kind == "hist":
        stumps = sk.HistGradientBoostingRegressor(max_leaf_nodes=2, max_iter=20)
        parts = stumps, sk.HistGradientBoostingRegressor(max_iter=15)
    else:
        stumps = booster("lightgbm", n_estimators=20, num_leaves=2)
        parts = stumps, booster("lightgbm", n_estimators=15, num_leaves=6)
    parts[0].fit(rows, y)
    parts[1].fit(rows[:, :3], joint)
    widened = po.wrap(parts[1].fit(rows * [1, 1, 1, 0], joint), data=rows)
    return rows, po.wrap(parts[0], data=rows), widened


@pytest.mark.parametrize("kind", ["linear", "hist", "lightgbm", "callable"])
def test_joint_parts_that_vanish_move_nothing_continuously(kind):
    """An additive model, plus 10^−k times interactions, k = 0, …, 20."""
    rows, additive, joint = tables_of(kind)
    moves = []
    for k in range(21):
        message = {}
        if kind == "callable":
            # of a model that is called Φ is drawn; here it is given

            def f(x, size=10.0**-k):
                return additive(x) + size * joint(x)

            message["contributions"] = shapley_by_definition(f, rows, rows)
        else:
            f = additive + 10.0**-k * joint
            new = po.explain(f, rows[:9] + 0.1, data=rows)
        best = po.explain(f, rows, **message)
        size = np.sqrt((best.contributions**2).sum(axis=1).mean())
        apart = np.abs(best.attributions - best.contributions).max(axis=0) / size
        moves.append(apart)
        assert apart[3] <= 1e-14  # it takes no part in what is joint
        if not message:
            apart = np.abs(new.attributions - new.contributions).max() / size
            assert apart <= 5.0 * moves[-1].max() + 1e-14
    moves = np.array(moves)
    assert (moves[0, :3] > 3e-3).all()
    limits = 10.0 * moves[0].max() * 10.0 ** -np.arange(21.0)[:, None]
    assert (moves <= limits + 1e-14).all()
    # in proportion, until rounding
    steps = moves[2:9, :3] / moves[3:10, :3]
    np.testing.assert_allclose(steps, 10.0, rtol=0.01)


# ---- classes


def test_all_classes_together_add_up_to_nothing():
    rows = np.random.default_rng(4).normal(size=(90, D))
    y = np.digitize(rows[:, 0] * rows[:, 1] + rows[:, 2], [-0.5, 0.5])
    model = sk.RandomForestClassifier(n_estimators=12, max_depth=5, random_state=0)
    model.fit(rows, y)
    new = rows[:20] + 0.2
    for data in (None, rows):
        asked = rows if data is None else new
        W = [po.explain(model, asked, data=data, target=c) for c in range(3)]
        for best in W[1:]:
            np.testing.assert_allclose(best.metric, W[0].metric, rtol=1e-9)
        parts = np.array([best.attributions for best in W])
        moved = np.array([best.attributions - best.contributions for best in W])
        assert np.abs(moved).max() > 1e-2
        np.testing.assert_allclose(parts.sum(axis=0), 0.0, atol=1e-12)
    # ω is the mean of those of classes
    each = []
    for c in range(3):

        def f(x, c=c):
            return model.predict_proba(x)[:, c]

        phi = shapley_by_definition(f, rows, rows)
        each.append(((phi - partial_dependences(f, rows, rows)) ** 2).mean(axis=0))
    np.testing.assert_allclose(W[0].metric, np.mean(each, axis=0), rtol=1e-9)


# ---- certain


def test_certain_half_widths_are_those_of_dense_matrices(trees):
    """β of the budget, and the inverse of half the Hessian where sums are kept."""
    best = po.explain(trees.model, X)
    delta = 0.03
    result = best.certain(small_change=delta)
    # in z = (w − Φ)/√ω over the null space of sums
    L = np.diag(trees.S.sum(axis=1)) - trees.S
    H = np.kron(np.eye(N) + 2.0 * B_OF_8 * L, np.eye(D))
    roots = np.sqrt(trees.omega)
    rows = np.kron(np.eye(N), roots)
    kept = np.linalg.svd(rows)[2][N:].T  # (N D, N (D − 1))
    inverse = kept @ np.linalg.inv(kept.T @ H @ kept) @ kept.T
    variances = np.diag(inverse).reshape(N, D) * trees.omega
    # the least that a move of δ costs faithfulness, in the metric
    beta = delta**2 / trees.omega.max()
    widths = np.sqrt(beta * variances)
    np.testing.assert_allclose(result.half_widths, widths, rtol=1e-6)


def test_certain_half_widths_of_one_row_are_those_of_dense_matrices(trees):
    best, expected = po.explain(trees.model, NEW, data=X), closed(trees, NEW)
    result = best.certain(small_change=0.03)
    roots = np.sqrt(trees.omega)
    kept = np.linalg.svd(roots[None])[2][1:].T
    beta = 0.03**2 / trees.omega.max()
    for n, s in enumerate(expected.S):
        rate = 1.0 + 2.0 * B_OF_8 * s.sum()
        widths = np.sqrt(beta / rate * np.diag(kept @ kept.T)) * roots
        np.testing.assert_allclose(result.half_widths[n], widths, rtol=1e-6)


# ---- drawn backgrounds


@pytest.mark.parametrize("seed", range(6))
def test_the_error_of_a_drawn_background_covers_exact_values(seed, monkeypatch):
    """Ten blocks: a ratio over 3 has a chance below 1e-3 if errors are as stated."""
    table = np.random.default_rng(seed).normal(size=(1500, D))
    y = table[:, 0] * table[:, 1] + table[:, 2]
    model = sk.GradientBoostingRegressor(n_estimators=25, random_state=seed)
    model.fit(table[:400], y[:400])
    new = table[:25] + 0.1
    whole = po.explain(model, new, data=table)
    assert whole.sampling_excess == 0.0
    monkeypatch.setattr("propopt.laws.background.affordable_rows", lambda *_: 200)
    drawn = po.explain(model, new, data=table)
    assert "200 draws of 1,500 background rows" in drawn.parameters["background"]
    apart = ((drawn.contributions - whole.contributions) ** 2).sum()
    share = apart / (whole.contributions**2).sum()
    assert 0.0 < share < 9.0 * drawn.sampling_excess
    assert share > drawn.sampling_excess / 30.0
    # the base is the mean over all rows, whatever is drawn
    np.testing.assert_allclose(drawn.base_value, model.predict(table).mean(), 1e-13)
    total = (drawn.prediction - drawn.base_value)[:, None]
    sums = [each.sum(axis=1) for each in (drawn.attributions, drawn.contributions)]
    np.testing.assert_allclose(np.stack(sums, axis=1), np.tile(total, 2), atol=1e-12)


@pytest.mark.parametrize("streams", [False, True], ids=["retained", "streamed"])
def test_a_file_says_whether_tables_are_made_anew(streams, monkeypatch, tmp_path):
    model = sk.ExtraTreesRegressor(5, random_state=0).fit(X, X[:, 0] * X[:, 1])
    if streams:
        monkeypatch.setattr("propopt.structures.boxes.shapley.TABLE_BYTES", 0)
    po.Explainer(model, data=X).fit().save(tmp_path / "trees.npz")
    loaded = po.Explainer.load(tmp_path / "trees.npz", model)
    n_leaves = sum(tree.get_n_leaves() for tree in model.estimators_)
    text = f"made anew in each call, for {n_leaves:,} leaves" if streams else None
    for best in (loaded.reference_, loaded.explain(NEW)):
        assert best.parameters.get("tables") == text
        assert best.document().settings.get("tables") == text


def test_a_forest_beyond_the_budget_states_its_draws_and_their_error(monkeypatch):
    table = np.random.default_rng(0).normal(size=(600, D))
    model = sk.RandomForestRegressor(8, random_state=0).fit(table, table[:, 0])
    before = po.explain(model, NEW, data=table)
    monkeypatch.setattr("propopt.laws.background.MOST_TREE_ROWS", 300)
    best = po.explain(model, NEW, data=table)
    assert "300 draws of 600 background rows" in best.parameters["background"]
    np.testing.assert_allclose(best.base_value[0], before.base_value[0], rtol=1e-13)
    assert best.sampling_excess > 0.0


def test_the_mean_of_f_takes_its_part_of_the_errors_of_drawn_rows():
    """Intervals by t of nine degrees of freedom hold .95 of the values.

    The share of one of 24 tables deviates by .11, their mean by .022: it is within .08
    of .95 but once in 3e3. Rows of equal weights are off by .034.
    """
    names = "propopt.laws.background.affordable_rows"
    inside, squares = [], []
    for seed in range(24):
        table = np.random.default_rng(seed).normal(size=(1500, D))
        y = table[:, 0] * table[:, 1] + table[:, 2]
        model = sk.GradientBoostingRegressor(n_estimators=25, random_state=seed)
        model.fit(table[:400], y[:400])
        new = table[:25] + 0.1
        whole = po.explain(model, new, data=table, robustness=0.0)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(names, lambda *_: 200)
            drawn = po.explain(model, new, data=table, robustness=0.0)
        errors = np.abs(drawn.contributions - whole.contributions)
        inside.append((errors < 2.262 * drawn.standard_errors + 1e-9).mean())
        squares.append([(errors**2).mean(), (drawn.standard_errors**2).mean()])
    assert abs(np.mean(inside) - 0.95) < 0.08
    true, stated = np.sqrt(np.mean(squares, axis=0))
    assert 0.8 < stated / true < 1.4
    assert true < 0.02
