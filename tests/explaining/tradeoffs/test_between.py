"""What optima prove of weights that were not tried, and of a whole front."""

import dataclasses
import itertools

import numpy as np
import pytest
from refusals import refusals
from sweeps import Scripted

import propopt as po
from propopt.base.errors import (
    ImpreciseWarning,
    InvalidInput,
    Refused,
    SolverFailure,
    UnsolvedWarning,
)
from propopt.explaining import sweeping
from propopt.solvers import Task
from propopt.solvers.curves import Spectral


X = np.random.default_rng(2).normal(size=(14, 4))
G = 2.0 * X + np.sin(3.0 * X)
MATCHING = po.GradientMatching(G)
ROBUST, SPARSE = po.PairwiseRobustness(po.graphs.knn_graph(X, 3)), po.Sparsity()
SMOOTH = po.Smoothness(po.graphs.chain_graph(4))
SUMS = [po.losses.Completeness(G.sum(axis=1) + 1.0)]
FRONTS = {
    "two": (MATCHING + ROBUST, 0.02, ()),
    "three": (MATCHING + ROBUST + SMOOTH, 0.05, ()),
    "add up": (MATCHING + ROBUST + SMOOTH, 0.05, SUMS),
    "with sizes": (ROBUST + MATCHING + SPARSE, 0.05, ()),
    "four": (MATCHING + ROBUST + SMOOTH + SPARSE, 0.05, ()),
    "largest": (
        MATCHING
        + po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 3))
        + SPARSE,
        0.1,
        (),
    ),
}


def optimum(task, c):
    """The losses of the optimum at weights c, and a lower bound of its objective."""
    if task.has_curve(c):
        measured = task.measure(c, 1e-9)
        return measured.losses, c @ measured.losses - measured.excess
    best = task.best(c, 1e-6, 0.0)
    losses = [best.losses[loss.name] for loss in task.program.losses]
    return np.array(losses), best.certificate.lower_bound


@pytest.mark.parametrize(("objective", "error", "sums"), FRONTS.values(), ids=FRONTS)
def test_random_weights_never_cross_the_bounds_of_a_front(objective, error, sums):
    front = po.sweep(objective, error=error, subject_to=sums)
    assert 0.0 < front.error <= error
    names, losses = front.losses, objective.losses
    ranges = np.array([b - a for a, b in map(front.ends.range_of, names)])
    bounds = [x.bound(4, np.ones(4, bool)) for x in sums]
    task = Task(po.losses.Program(losses, tuple(bounds)))
    curve = SPARSE not in losses
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(
        np.full(len(names), 0.4), size=1000 if curve and len(names) == 3 else 100
    )
    solved = [[best.weights[name] for name in names] for best in front.optimized]
    widest = 0.0
    for c in [*np.maximum(shares, 1e-7) / ranges, *map(np.array, solved)]:
        low, high = front.between(dict(zip(names, c, strict=True)))
        losses_at_c, lower = optimum(task, c)
        assert low <= (c @ losses_at_c) * (1 + 1e-9)
        assert high >= lower * (1 - 1e-9)
        widest = max(widest, (high - low) / (c @ ranges))
    assert widest <= front.error * (1 + 1e-9)
    assert widest > 0.3 * front.error
    for best, c in zip(front.optimized, solved, strict=True):  # where nothing is left
        low, high = front.between(dict(zip(names, c, strict=True)))
        assert low == pytest.approx(best.certificate.lower_bound, rel=1e-7, abs=1e-9)
        assert high == pytest.approx(best.objective, rel=1e-9, abs=1e-9)


PATHS = {
    "sizes": (MATCHING + 0.5 * ROBUST + SPARSE, "sparsity", np.geomspace(0.05, 5, 8)),
    "in l1": (po.GradientMatching(G, norm="l1") + ROBUST, ROBUST.name, [0.1, 0.3, 1]),
    "squares": (MATCHING + ROBUST, ROBUST.name, np.geomspace(1e-3, 10, 12)),
    "matched": (MATCHING + ROBUST, MATCHING.name, [3.0, 0.5, 1.0]),
}


@pytest.mark.parametrize(("objective", "name", "tried"), PATHS.values(), ids=PATHS)
def test_a_path_is_certified_for_every_weight_between(objective, name, tried):
    curve = po.sweep(objective, {name: tried})
    rest = dict(objective.weights)
    rng = np.random.default_rng(1)
    for weight in rng.uniform(min(tried), max(tried), size=25):
        row = objective.with_weights({name: weight})
        best = po.solve(row)
        low, high = curve.between(row.weights)
        assert low <= best.objective * (1 + 1e-9)
        assert high >= best.certificate.lower_bound
        assert (high - low) / high <= curve.gap_between * (1 + 1e-9)
    # chords and tangents of neighbours, on a dense grid
    solved = sorted(curve.optimized, key=lambda best: best.weights[name])
    gaps = []
    for one, other in itertools.pairwise(solved):
        for s in np.linspace(0, 1, 2001):
            weight = (1 - s) * one.weights[name] + s * other.weights[name]
            c = {**rest, name: weight}
            upper = min(sum(c[x] * b.losses[x] for x in c) for b in (one, other))
            bounds = [b.certificate.lower_bound for b in (one, other)]
            gaps.append(1 - ((1 - s) * bounds[0] + s * bounds[1]) / upper)
    assert curve.gap_between == pytest.approx(max(gaps), rel=1e-3)
    assert max(gaps) <= curve.gap_between * (1 + 1e-9)
    assert 1e-4 < curve.gap_between < 0.5
    assert curve.document().facts["between weights"].value == curve.gap_between


def test_the_error_is_kept_told_and_written(tmp_path):
    front = po.sweep(MATCHING + ROBUST + SMOOTH, error=0.1)
    assert 3 < len(front.optimized) < 12
    assert front.gap_between is None
    assert set(front.to_frame()["front_error"]) == {front.error}
    assert "front_error" not in po.sweep(MATCHING + ROBUST, {}).to_frame()
    assert (
        "faithfulness and pairwise robustness and smoothness"
        in front.document().subtitle
    )
    facts = front.document().facts
    assert facts["front error"].value == front.error
    assert "between weights" not in facts
    front.save(tmp_path / "front.npz")
    loaded = po.TradeOffs.load(tmp_path / "front.npz")
    assert loaded.error == front.error
    weights = dict.fromkeys(front.losses, 1.0)
    assert loaded.between(weights) == pytest.approx(front.between(weights), rel=1e-9)


def test_what_is_not_reached_is_said(monkeypatch):
    monkeypatch.setattr(sweeping, "_MOST_WEIGHTS", 3)
    with pytest.warns(ImpreciseWarning, match=r"0\.01 .* 3 weights prove 0\.\d+"):
        front = po.sweep(MATCHING + ROBUST, error=0.01)
    assert front.error > 0.01
    solver = Scripted(Spectral(), {2: SolverFailure("tired")})
    with pytest.warns() as warned:
        front = po.sweep(MATCHING + ROBUST, error=0.01, solver=solver)
    assert {w.category for w in warned} == {ImpreciseWarning, UnsolvedWarning}
    assert len(front.failures) == 1
    solver = Scripted(Spectral(), {1: SolverFailure("tired")})
    with pytest.warns(UnsolvedWarning):
        front = po.sweep(MATCHING + ROBUST, error=0.01, solver=solver)
    assert front.error is None


LOCAL = po.losses.FunctionMatching(X, (X**2).sum(axis=1))


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "front"))
def test_what_has_no_error_is_refused(line, message):
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line, {**globals(), "sweep": po.sweep})


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_bounds_between_do_not_depend_on_units(unit):
    plain = po.sweep(MATCHING + ROBUST + SMOOTH, error=0.05)
    other = po.sweep(po.GradientMatching(unit * G) + ROBUST + SMOOTH, error=0.05)
    assert other.error == pytest.approx(plain.error, rel=1e-9)
    rng = np.random.default_rng(4)
    for c in [*rng.dirichlet(np.full(3, 0.3), size=50), np.eye(3)[0]]:
        c = c / [plain.ends.range_of(name)[1] for name in plain.losses]
        bounds = plain.between(dict(zip(plain.losses, c, strict=True)))
        c = c / unit**2  # so that losses weigh as much
        moved = other.between(dict(zip(other.losses, c, strict=True)))
        assert moved == pytest.approx(bounds, rel=1e-6, abs=1e-12)


def test_the_card_of_optima_without_a_target_says_that_its_error_is_unknown():
    curve = po.sweep(MATCHING + ROBUST, {ROBUST.name: [0.1, 1.0]})
    bare = [dataclasses.replace(best, target=None) for best in curve.optimized]
    document = dataclasses.replace(curve, optimized=tuple(bare)).document()
    assert document.facts["sampling error"].value is None
    assert curve.document().facts["sampling error"].value is None  # given as numbers
