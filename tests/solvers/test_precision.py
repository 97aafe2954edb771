"""Values, bounds and optima are right to their last digits, whatever mean and scale.

Constants cost nothing but in the matching losses, so that the optimum beside an offset
is the one without it, shifted; sparsity of attributions of one sign is linear.
"""

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from catalogue import LOSSES, NOISE, SHAPE, D, G, N, S, X
from oracles import exact_value

import propopt as po
from propopt.losses import Program
from propopt.losses.maps import ImplicitOverPoints, OverFeatures, OverPoints
from propopt.solvers.task import Task


OFFSETS = (0.0, 1e3, 1e6)
COUPLED = {
    name: loss
    for name, loss in LOSSES.items()
    if isinstance(loss.map, OverPoints | ImplicitOverPoints | OverFeatures)
    and loss.map.components is not None
    and loss.offset is None  # beside others constants cost what these do
}
gradient, absolute = po.GradientMatching(G), po.GradientMatching(G, norm="l1")
each_coupled = pytest.mark.parametrize("name", COUPLED)
each_offset = pytest.mark.parametrize("offset", OFFSETS)


def rounded(loss: po.losses.PropertyLoss, W: np.ndarray, exact: float) -> float:
    """What the value may be off by: its last digits, and what the map declares."""
    declared = loss.map.rounding(W)[0]
    return 1e-13 * exact + declared * (2.0 * np.sqrt(exact) + declared)


@pytest.mark.parametrize("name", LOSSES)
@each_offset
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_value_is_that_of_extended_precision(name, offset, scale, rng):
    loss = LOSSES[name]
    W = scale * (rng.normal(size=SHAPE) + offset)
    exact = float(exact_value(loss, W))
    assert abs(loss.value(W) - exact) <= rounded(loss, W, exact)
    if name == "function":
        assert rounded(loss, W, exact) <= 1e-12 * exact


@each_coupled
@pytest.mark.parametrize("size", [1e6, 1e17 / 3])
def test_what_is_constant_on_components_costs_exactly_nothing(name, size, rng):
    loss = COUPLED[name]
    parts = loss.map.components
    over_points = not isinstance(loss.map, OverFeatures)
    means = size * rng.normal(size=(parts.count, D if over_points else N))
    W = means[parts.labels] if over_points else means[parts.labels].T
    W = np.ascontiguousarray(W)
    assert loss.value(W) == 0.0
    assert not loss.map.gradient(W).any()
    assert po.proofs.certify(1.0 * loss, W).gap == 0.0
    # multiples of 2⁻²⁰ stay what they are when 2²⁰ is added
    W = np.round(rng.normal(size=SHAPE) * 2**20) / 2**20
    assert loss.value(W + 2.0**20) == pytest.approx(loss.value(W), rel=1e-14)
    # also for programs that know no components
    matrix = loss.map.flat(SHAPE)
    sums = np.abs(np.asarray(matrix.sum(axis=1)))
    largest = np.abs(matrix.data).max(initial=0.0)
    assert sums.max(initial=0.0) <= 4e-16 * np.sqrt(N) * largest


def test_signed_similarities_of_different_scale_keep_the_small_ones(rng):
    root = rng.normal(size=(8, 8)) @ (np.eye(8) - 1.0 / 8)
    block = -root.T @ root
    np.fill_diagonal(block, 0.0)
    S = np.zeros((16, 16))
    S[::2, ::2], S[1::2, 1::2] = 1e-8 * block, 1e8 * block
    loss = po.PairwiseRobustness(po.graphs.graph_from_matrix((S + S.T) / 2))
    W = np.zeros((16, 1))
    W[::2] = rng.normal(size=(8, 1))
    expected = 2e-8 * ((root @ W[::2]) ** 2).sum()
    assert loss.value(W) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("digits", [1, 3, 5])
def test_differences_are_taken_before_they_are_scaled(digits):
    graph = po.graphs.graph_from_matrix(np.array([[0.0, 0.3], [0.3, 0.0]]))
    W = np.array([[1.1], [1.1 + digits * 2.0**-52]])
    expected = pytest.approx(0.6 * digits**2 * 2.0**-104, rel=1e-14, abs=0.0)
    assert po.PairwiseRobustness(graph).value(W) == expected


# ---- lower bounds: those of a problem that differs by a constant alone

OBJECTIVES = {
    "pairwise": gradient + 0.7 * LOSSES["pairwise, knn"],
    "offset": gradient + 0.7 * LOSSES["pairwise, offset"],
    "disconnected": gradient + 3.0 * LOSSES["pairwise, disconnected"],
    "signed": gradient + 0.2 * LOSSES["pairwise, signed"],
    "kernel": gradient + 0.05 * LOSSES["kernel"],
    "lattice": gradient + 0.7 * LOSSES["pairwise, lattice"],
    "grid": gradient + 0.7 * LOSSES["pairwise, grid"],
    "smoothness": gradient + LOSSES["pairwise, knn"] + LOSSES["smoothness, chain"],
    "max": gradient + 0.5 * LOSSES["difference, max"],
    "sum": gradient + 0.5 * LOSSES["difference, sum"],
    "l1, pairwise": absolute + 0.3 * LOSSES["pairwise, knn"],
    "l1, kernel": absolute + 0.01 * LOSSES["kernel"],
    "l1, max": absolute + 0.4 * LOSSES["difference, max"],
    "l1, sum": absolute + 0.8 * LOSSES["difference, sum"],
}
each_objective = pytest.mark.parametrize("name", OBJECTIVES)


def changed(objective, change):
    """The same losses, with other gradients."""
    terms = [
        (weight, po.GradientMatching(change(loss.G), norm=loss.norm))
        if isinstance(loss, po.GradientMatching)
        else (weight, loss)
        for weight, loss in objective.terms
    ]
    return po.losses.Objective(tuple(terms))


@each_objective
def test_bounds_do_not_know_the_mean(name, rng):
    # gradients to which constants can be added exactly
    objective = changed(OBJECTIVES[name], lambda G: np.round(G * 2**10) / 2**10)
    moved = changed(objective, lambda G: G + 2.0**20)
    result = Task(Program(objective.losses)).solve(objective.coefficients, 1e-8)
    best = np.round(result.W * 2**30) / 2**30
    steps = rng.normal(size=(3, *SHAPE))
    for W in [best, *(best + np.round(2**20 * step) / 2**30 for step in steps)]:
        here = po.proofs.certify(objective, W, duals=result.duals)
        there = po.proofs.certify(moved, W + 2.0**20, duals=result.duals)
        assert there.value == pytest.approx(here.value, rel=1e-13)
        bound = pytest.approx(here.lower_bound, rel=1e-9, abs=1e-9 * here.value)
        assert there.lower_bound == bound


@pytest.mark.parametrize("seed", range(20))
def test_bound_of_function_matching_stays_below_the_value_it_rounds(seed):
    rng = np.random.default_rng(seed)
    points = 1e3 * rng.normal(size=(5, 4, 2))
    slopes = 1e6 + rng.normal(size=(5, 2))
    residuals = 1e-3 * rng.normal(size=(5, 4))
    changes = np.einsum("nsd,nd->ns", points, slopes) + residuals
    loss = po.losses.FunctionMatching(X[:5, :2], changes, perturbations=points)
    pairs = zip(points, changes, strict=True)
    W = np.stack([np.linalg.lstsq(Z, f, rcond=None)[0] for Z, f in pairs])
    result = po.proofs.certify(1.0 * loss, W)
    assert result.lower_bound <= float(exact_value(loss, W))


@pytest.mark.parametrize("residual", [0.0, 1e-3])
@pytest.mark.parametrize("size", [0.0, 1e-3, 0.1])
def test_what_rounding_may_do_is_part_of_the_gap(residual, size, monkeypatch):
    objective = OBJECTIVES["kernel"]
    best = po.solve(objective)
    monkeypatch.setattr(OverPoints, "rounding", lambda *_: (residual, size))
    result = po.proofs.certify(objective, best.attributions)
    # the slope at W is within 2cδ of what is computed, and q is 2-strongly convex
    excess = (2 * 0.05 * size) ** 2 / 4
    root = np.sqrt(best.losses["kernel_robustness"])
    excess += 0.05 * residual * (2 * root + residual)
    gap = result.value - result.lower_bound
    assert gap == pytest.approx(excess, rel=1e-6, abs=1e-12 * result.value)


@pytest.mark.parametrize("error", [-1e-11, -1e-12, 0.0, 1e-12, 1e-11])
def test_duals_projected_to_rounding_leave_a_bound(error, monkeypatch, rng):
    W = rng.normal(size=SHAPE)
    changes = np.einsum("nsd,nd->ns", NOISE, W) + 1e-2 * rng.normal(size=(N, S))
    local = po.losses.FunctionMatching(X, changes, perturbations=NOISE)
    exact = po.proofs.certify(1.0 * local, po.solve(1.0 * local).attributions)
    assert exact.gap <= 1e-9
    lsmr = spla.lsmr
    monkeypatch.setattr("propopt.proofs.certificate.DENSE_LIMIT", 1)
    monkeypatch.setattr(
        spla, "lsmr", lambda *args, **kwargs: [(1 + error) * lsmr(*args, **kwargs)[0]]
    )
    result = po.proofs.certify(1.0 * local, 2.0 * W)
    assert result.lower_bound <= exact.value * (1 + 1e-9)
    if error == 0.0:
        assert result.kind == "projected dual"
        assert result.lower_bound == pytest.approx(exact.value, rel=1e-3, abs=0.0)


@pytest.mark.parametrize("name", ["pairwise", "kernel", "max", "l1, max", "l1, kernel"])
def test_an_optimum_of_zero_has_no_bound_above_it_wherever_it_is_taken(name, rng):
    terms = [t for t in OBJECTIVES[name].terms if t[1] not in (gradient, absolute)]
    for _ in range(50):
        target = np.broadcast_to(rng.normal(size=D), SHAPE)
        norm = "l1" if name.startswith("l1") else "l2"
        matching = po.GradientMatching(target, norm=norm)
        objective = po.losses.Objective(((1.0, matching), *terms))
        W = target + 10.0 ** rng.uniform(-9, 3) * rng.normal(size=SHAPE)
        assert po.proofs.certify(objective, W).lower_bound == 0.0


# ---- gradients beside a large mean, as nearly linear models have them


RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 2))
T = RNG.normal(size=(120, 3))
GRAPH = po.graphs.knn_graph(ROWS, 5)
CLOSE = po.PairwiseRobustness(GRAPH)
LATTICE = po.graphs.LatticeGraph((12, 10))
DESIGNS = RNG.normal(size=(120, 4, 3))
RESIDUALS = np.sin(np.arange(480.0)).reshape(120, 4)
DIRECTION = np.array([1.0, -1.0, 0.5])


def matching(C):
    return po.GradientMatching(T + C)


def locally(C):
    """Function matching near C, whose values C explains up to the same remainders."""
    values = RESIDUALS + DESIGNS @ C
    return po.losses.FunctionMatching(0.0 * T, values, perturbations=DESIGNS)


def largest(graph=GRAPH, aggregate="sum"):
    return po.losses.MaxDifferenceRobustness(graph, aggregate)


COMBINED = {
    "max": lambda C, b: matching(C) + b * largest(aggregate="max"),
    "sum": lambda C, b: matching(C) + b * largest(),
    "sum, lattice": lambda C, b: matching(C) + b * largest(LATTICE),
    "max and pairs": lambda C, b: (
        matching(C) + b * largest(aggregate="max") + b * CLOSE
    ),
    "function": lambda C, b: locally(C) + b * CLOSE,
    "function and gradient": lambda C, b: locally(C) + 0.1 * matching(C) + b * CLOSE,
    "gradient in l1": lambda C, b: po.GradientMatching(T + C, norm="l1") + b * CLOSE,
    "smooth features": lambda C, b: (
        matching(C.max()) + b * largest() + b * po.Smoothness(po.graphs.chain_graph(3))
    ),
}


@pytest.mark.sampled(27)
@pytest.mark.parametrize("offset", [1e4, 1e5, 1e6])
@pytest.mark.parametrize("b", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("name", COMBINED)
def test_an_offset_shifts_the_optimum_and_changes_nothing_else(name, b, offset):
    C = offset * DIRECTION
    plain = po.solve(COMBINED[name](0.0 * C, b), tolerance=1e-6)
    best = po.solve(COMBINED[name](C, b), tolerance=1e-6)
    assert best.solver == plain.solver != "CLARABEL"
    assert best.objective == pytest.approx(plain.objective, rel=1e-6)
    above = best.certificate.value - best.certificate.lower_bound
    assert above <= 2e-6 * plain.objective


SPARSE = {"pairs": CLOSE, "lattice": po.PairwiseRobustness(LATTICE), "none": None}


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    # a weight of 1e-6 beside 1e6 is below the rounding: it warns, with a gap of 1e-4
    ("weight", "offset"),
    [(1e-8, 1e4), (1e-3, 1e4), (1.0, 1e4), (1e3, 1e4), (1e-3, 1e6), (1e3, 1e6)],
)
@pytest.mark.parametrize("b", [1.0, 1e4, 1e6])
@pytest.mark.parametrize("name", SPARSE)
def test_sparsity_of_one_sign_moves_attributions_and_no_more(name, b, weight, offset):
    C = offset * DIRECTION
    objective, plain = matching(C) + weight * po.Sparsity(), 1.0 * matching(0.0)
    if (close := SPARSE[name]) is not None:
        objective, plain = objective + b * close, plain + b * close
    best = po.solve(objective)
    # λ Σ s(g − s λ/2) + a λ²/4 each, beside the smooth optimum
    signs = np.sign(C)
    linear = weight * float((signs * (T + C)).sum()) - T.size * weight**2 / 4.0
    smooth = po.solve(plain)
    above = best.certificate.value - best.certificate.lower_bound
    rounding = pytest.approx(smooth.objective + linear, rel=1e-9, abs=above)
    assert best.objective == rounding
    # F is strongly convex: ‖W − W*‖² ≤ F(W) − F(W*)
    expected = smooth.attributions - signs * weight / 2.0
    apart = np.linalg.norm(best.attributions - C - expected)
    assert apart <= np.sqrt(above) + 1e-12 * offset + 1e-6
    assert best.gap <= 1e-6
