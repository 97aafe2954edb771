"""Losses and constraints of users: optima against closed forms, and honest bounds."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import propopt as po
from propopt.losses.completeness import split_constraints
from propopt.proofs import conic_bound


VERIFY = Path(__file__).parents[2] / "tools" / "verify.py"
N, D = 12, 3
RNG = np.random.default_rng(5)
G = RNG.normal(size=(N, D))
gradient = po.GradientMatching(G)
robustness = po.PairwiseRobustness(po.graphs.chain_graph(N))
sparsity = po.Sparsity()
squares = po.losses.Custom(lambda W: cp.sum_squares(W), name="squares")


def positive(W):
    return [W[:, 0] >= 0.1, cp.sum(W, axis=1) <= 1.5]


def optimum(expression, constraints):
    """The least value, by another solver than the one that proves."""
    problem = cp.Problem(cp.Minimize(expression), list(constraints))
    return problem.solve(solver="SCS", eps=1e-9, max_iters=200_000)


CASES = {
    "linear": (gradient + 0.3 * robustness, positive),
    "l1": (gradient + 0.2 * sparsity, positive),
    "l1 alone": (po.GradientMatching(G, norm="l1") + robustness, positive),
    "largest differences": (
        gradient + po.losses.MaxDifferenceRobustness(po.graphs.chain_graph(N)),
        positive,
    ),
    "norms": (
        gradient
        + po.losses.Custom(lambda W: cp.sum(cp.norm(W, axis=1)) + cp.norm(W[0])),
        None,
    ),
    "matrix": (
        gradient + robustness + po.losses.Custom(lambda W: 2 * cp.normNuc(W)),
        lambda W: W[2] == W[3],
    ),
    "exponential": (
        gradient + po.losses.Custom(lambda W: cp.sum(cp.logistic(3 * W))),
        positive,
    ),
    "log-sum-exp": (
        gradient + po.losses.Custom(lambda W: cp.pos(1 + cp.log_sum_exp(W))),
        None,
    ),
    "power": (
        gradient
        + po.losses.Custom(lambda W: cp.sum(cp.power(cp.abs(W), 2.3, approx=False))),
        None,
    ),
    "dense form": (
        gradient + po.losses.Custom(lambda W: cp.quad_form(W[0], np.ones((D, D)))),
        positive,
    ),
    "semidefinite": (gradient, lambda W: [W[:3] == W[:3].T, W[:3] >> 0]),
}


@pytest.mark.parametrize("name", CASES)
def test_optimum_is_that_of_another_solver_and_the_bound_is_below(name):
    objective, constraints = CASES[name]
    best = po.solve(objective, subject_to=() if constraints is None else [constraints])
    W = cp.Variable((N, D))
    made = [] if constraints is None else constraints(W)
    made = made if isinstance(made, list) else [made]
    least = optimum(objective(W), made)
    assert best.objective == pytest.approx(least, rel=1e-5)
    assert best.gap < 1e-6
    assert best.certificate.kind == "conic duals"
    assert best.certificate.violation < 1e-7
    assert best.certificate.lower_bound <= least * (1 + 1e-6)
    assert best.certificate.lower_bound > 0.0


@pytest.mark.parametrize(("backend", "solves"), [("CLARABEL", 1), ("ECOS", 2)])
def test_clarabel_solves_once_for_attributions_and_duals(backend, solves, monkeypatch):
    from cvxpy.reductions.solvers.solving_chain import SolvingChain

    solved, solve = [], SolvingChain.solve_via_data
    monkeypatch.setattr(
        SolvingChain,
        "solve_via_data",
        lambda chain, *given, **reported: (
            solved.append(chain.solver.name()) or solve(chain, *given, **reported)
        ),
    )
    best = po.solve(CASES["linear"][0], subject_to=[positive], solver=backend)
    assert best.certificate.holds(1e-5)
    assert len(solved) == solves
    assert set(solved) == {backend, "CLARABEL"}


def test_closed_form():
    """‖W − G‖² + ‖W‖² with w ≥ 0 is best at max(G, 0)/2."""
    best = po.solve(gradient + squares, subject_to=lambda W: W >= 0)
    expected = np.maximum(G, 0.0) / 2.0
    assert best.attributions == pytest.approx(expected, abs=1e-5)
    exact = ((expected - G) ** 2).sum() + (expected**2).sum()
    assert best.certificate.lower_bound <= exact
    assert best.certificate.lower_bound == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("backend", ["CLARABEL", "OSQP", "SCS", "ECOS"])
def test_backends_of_cvxpy_are_proved_by_the_same_rule(backend):
    if backend not in cp.installed_solvers():
        pytest.skip(f"{backend} is not installed")
    objective = gradient + 0.3 * robustness + 0.1 * sparsity
    limits = [positive, robustness <= 3.0]
    if backend == "OSQP":
        limits = limits[:1]
    best = po.solve(
        objective if backend == "OSQP" else gradient, backend, subject_to=limits
    )
    assert best.solver == backend
    assert best.gap < 1e-6
    assert positive(cp.Constant(best.attributions))[0].violation().max() < 1e-7


def perturbed(monkeypatch, change):
    """Clarabel's duals changed before they are checked."""
    ours = conic_bound.ConicProgram.bound
    monkeypatch.setattr(
        conic_bound.ConicProgram,
        "bound",
        lambda self, z, most: ours(self, change(z), most),
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1e-6, 1e-2, 1.0, 30.0])
def test_no_duals_prove_too_much(name, size, monkeypatch):
    """Whatever a backend says: the bound stays below what is attainable."""
    objective, constraints = CASES[name]
    bounds = () if constraints is None else [constraints]
    best = po.solve(objective, subject_to=bounds)
    rng = np.random.default_rng(3)
    for change in (
        lambda z: z + size * rng.normal(size=z.shape),
        lambda z: z * (1.0 + size),
        lambda z: -size * z,
        lambda z: rng.permutation(z),
    ):
        with monkeypatch.context() as context:
            perturbed(context, change)
            bound = po.proofs.certify(objective, best, bounds=bounds).lower_bound
        assert bound <= best.objective * (1 + 1e-9)
        if size <= 1e-6 and name != "semidefinite":
            break
    with monkeypatch.context() as context:  # a poor W has the same bound, and a gap
        worse = best.attributions + 0.1
        result = po.proofs.certify(objective, worse, bounds=bounds)
        assert result.lower_bound <= best.objective * (1 + 1e-9)
        assert result.gap > 1e-3


def members(rng, kind, alpha=0.3):
    """Points on the boundary of a cone, (many, size), in the order of Clarabel."""
    u = rng.normal(size=(20_000, 2))
    match kind:
        case "nonneg":
            return np.abs(rng.normal(size=(20_000, 3))) * rng.integers(
                0, 2, (20_000, 3)
            )
        case "soc":
            return np.column_stack([np.linalg.norm(u, axis=1), u])
        case "psd":  # vvᵀ: v_0², √2 v_0 v_1, v_1²
            return np.column_stack(
                [u[:, 0] ** 2, np.sqrt(2) * u[:, 0] * u[:, 1], u[:, 1] ** 2]
            )
        case "exp":
            x, y = 4.0 * u[:, 0], np.abs(u[:, 1]) + 1e-3
            return np.column_stack([x, y, y * np.exp(np.minimum(x / y, 50.0))])[
                x / y < 50.0
            ]
        case "p3d":
            a, b = np.exp(2.0 * u.T)
            sign = rng.choice([-1.0, 1.0], len(u))
            return np.column_stack([a, b, sign * a**alpha * b ** (1 - alpha)])


@pytest.mark.parametrize("kind", ["nonneg", "soc", "psd", "exp", "p3d"])
def test_duals_are_moved_into_their_cone(kind, rng):
    """⟨z, s⟩ ≥ 0 for members s of the cone; duals that are inside stay."""
    none = {
        "zero": 0,
        "nonneg": 0,
        "soc": [],
        "psd": [],
        "exp": 0,
        "p3d": [],
        "pnd": [],
    }
    ours = {"nonneg": 3, "soc": [3], "psd": [2], "exp": 1, "p3d": [0.3]}[kind]
    dims = SimpleNamespace(**{**none, kind: ours})
    empty, zero = sp.csr_array((3, 1)), np.zeros(1)
    program = conic_bound.ConicProgram(
        zero, zero, 0.0, empty, np.zeros(3), dims, zero, zero
    )
    S = members(rng, kind)
    outside = 0
    for _ in range(200):
        z = rng.normal(size=3)
        outside += (S @ z).min() < -1e-3
        moved = program.in_dual_cone(z)
        assert (S @ moved >= -1e-9 * (np.abs(S) @ np.abs(moved))).all()
        again = program.in_dual_cone(moved)
        assert again == pytest.approx(moved, rel=1e-10, abs=1e-12)
    assert outside > 50  # not all were inside before


@pytest.mark.parametrize("name", ["l1", "norms"])
def test_the_box_holds_what_it_says(name, rng):
    """Feasible points of a smaller objective are in the box, whichever they are."""
    objective, constraints = CASES[name]
    given = () if constraints is None else [constraints]
    ours, _ = split_constraints(given, ())
    program = conic_bound.CustomProgram(objective, (), ours)
    best = po.solve(objective, subject_to=given)
    most = 2.0 * best.objective
    most /= program.unit
    solved = conic_bound.Solved(program.problem, {})
    box = np.array(program.bounding_box(most * program.unit)) / program.size
    posed = conic_bound.ConicProgram.of(solved.data, solved.P, program.V, box)
    low, high = posed.box(most - posed.d)
    assert np.isfinite([low, high]).all()
    x = cp.Variable(len(posed.c))
    zero, nonneg = posed.dims.zero, posed.dims.nonneg
    s = posed.b - posed.A @ x
    feasible = [s[:zero] == 0, s[zero : zero + nonneg] >= 0]
    start = zero + nonneg
    for size in posed.dims.soc:
        feasible.append(cp.norm(s[start + 1 : start + size]) <= s[start])
        start += size
    value = 0.5 * cp.sum(cp.multiply(posed.P, cp.square(x))) + posed.c @ x + posed.d
    for _ in range(10):
        slope = rng.normal(size=len(posed.c))
        farthest = cp.Problem(cp.Maximize(slope @ x), [*feasible, value <= most])
        farthest.solve(solver="CLARABEL")
        slack = 1e-6 * (1 + np.abs(x.value))
        assert (x.value >= low - slack).all()
        assert (x.value <= high + slack).all()


def test_where_nothing_is_proved_the_gap_is_none(tmp_path):
    V = cp.Variable((2, D))
    basis = RNG.normal(size=(N, 2))
    open_ = [lambda W: basis @ V == W]
    with pytest.warns(
        po.errors.UncertifiedWarning, match="conic program are unbounded"
    ):
        best = po.solve(gradient, subject_to=open_)
    assert best.gap is best.certificate is None
    assert "conic program are unbounded" in best.parameters["not proved"]
    assert "unknowns of the conic program are unbounded" in str(best)
    expected = basis @ np.linalg.lstsq(basis, G)[0]
    assert best.attributions == pytest.approx(expected, abs=1e-5)
    best.save(tmp_path / "open.npz")
    loaded = po.results.Explanation.load(tmp_path / "open.npz")
    assert loaded.gap is None
    assert loaded.parameters == best.parameters
    with pytest.raises(po.errors.Refused, match="conic program are unbounded"):
        po.proofs.certify(best, gradient, bounds=open_)
    closed = [lambda W: [basis @ V == W, cp.abs(V) <= 1e3]]
    best = po.solve(gradient, subject_to=closed)
    assert best.gap < 1e-6
    assert best.attributions == pytest.approx(expected, abs=1e-5)


def test_approximated_atoms_prove_nothing():
    rough = po.losses.Custom(lambda W: cp.sum(cp.power(cp.abs(W), np.e)))
    with pytest.warns() as warned:
        best = po.solve(gradient + rough)
    assert any("cvxpy approximates" in str(one.message) for one in warned)
    assert best.gap is None


def test_files_say_what_holds(tmp_path):
    names = [f"row {n}" for n in range(N)]
    frame = pd.DataFrame(G, names, list("abc"))
    best = po.solve(
        po.GradientMatching(frame) + 0.3 * robustness, subject_to=[positive]
    )
    assert list(best.to_frame().columns) == list("abc")
    assert best.parameters["subject_to"] == "2 constraints of cvxpy"
    best.save(tmp_path / "best.npz")
    loaded = po.results.Explanation.load(tmp_path / "best.npz")
    assert loaded.gap == best.gap
    assert loaded.certificate == best.certificate
    reported = subprocess.run(
        [sys.executable, VERIFY, tmp_path / "best.npz"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert reported.returncode == 0, reported.stdout
    assert "not derived: the bound, from duals of a conic program" in reported.stdout
    assert "not derived: gradient_matching" not in reported.stdout  # its losses are


def test_a_violation_is_reported():
    objective = gradient + robustness
    best = po.solve(objective, subject_to=[positive])
    free = po.solve(objective)
    result = po.proofs.certify(objective, free, bounds=[positive])
    excess = max(
        float(np.max(x.violation())) for x in positive(cp.Constant(free.attributions))
    )
    assert result.violation >= 0.3 * excess / np.abs(free.attributions).max() > 0.01
    assert not result.holds(1e-6)
    assert best.certificate.violation < 1e-8
    assert po.proofs.certify(best, objective, bounds=[positive]).holds(1e-6)


def test_bounds_and_totals_combine_with_constraints():
    totals = po.losses.Completeness(G.sum(axis=1))
    best = po.solve(
        gradient + robustness, subject_to=[totals, lambda W: W[:, 0] >= -0.5]
    )
    assert np.abs(totals.gaps(best)).max() < 1e-8
    assert best.attributions[:, 0].min() > -0.5 - 1e-8
    assert best.gap < 1e-6
    best = po.solve(gradient, subject_to=[robustness <= 2.0, squares <= 9.0])
    assert best.losses["pairwise_robustness"] <= 2.0 * (1 + 1e-6)
    assert best.losses["squares"] <= 9.0 * (1 + 1e-6)
    price = best.multipliers["pairwise_robustness"]
    squared = best.multipliers["squares"]
    same = po.solve(gradient + price * robustness + squared * squares)
    assert same.attributions == pytest.approx(best.attributions, abs=1e-4)


def test_parameters_of_cvxpy_in_custom_programs():
    p, limit = cp.Parameter(nonneg=True, value=0.5), cp.Parameter(value=0.2)
    constraint = [lambda W: W[:, 0] >= limit]
    best = po.solve(gradient + squares * p, subject_to=constraint)
    fresh = po.solve(gradient + 0.5 * squares, subject_to=[lambda W: W[:, 0] >= 0.2])
    assert best.objective == pytest.approx(fresh.objective, rel=1e-7)
    assert best.weights == {"gradient_matching": 1.0, "squares": 0.5}


def test_sums_without_an_entry_are_those_of_the_others(rng):
    rows = np.repeat(np.arange(5), 4)
    a = rng.normal(size=20)
    low = rng.normal(size=20)
    high = low + rng.random(20)
    a[:5] = 1.0
    low[[0, 1, 4]] = -np.inf  # two in the first row, one in the second
    sums = conic_bound.sums_without_entry(rows, a, low, high, 5)
    least = np.minimum(a * low, a * high)
    for i, row in enumerate(rows):
        others = np.delete(least, i)[np.delete(rows, i) == row].sum()
        assert sums[i] <= others  # a bound, never above
        assert sums[i] == pytest.approx(others, abs=1e-7)


@pytest.mark.parametrize("part", ["map", "penalty", "value_at_zero"])
def test_a_custom_loss_has_no_parts_of_a_linear_map(part):
    with pytest.raises(po.errors.Refused, match=r"^squares"):
        getattr(squares, part)
