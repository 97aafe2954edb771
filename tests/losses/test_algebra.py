"""Losses as atoms of cvxpy, and their algebra: calls, parameters, sums, bounds."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from catalogue import FRAME, SHAPE, G

import propopt as po


gradient = po.GradientMatching(G)
robustness = po.PairwiseRobustness(po.graphs.chain_graph(SHAPE[0]))
sparsity = po.Sparsity()
VARIABLE, PARAMETER = cp.Variable(SHAPE), cp.Parameter(nonneg=True)


def solved(expression):
    problem = cp.Problem(cp.Minimize(expression))
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("atom", [gradient, robustness, gradient + 0.3 * sparsity])
def test_a_call_is_the_value_or_the_expression(atom, rng):
    array = rng.normal(size=SHAPE)
    W = cp.Variable(SHAPE)
    assert atom(array) == atom.value(array)
    assert atom(pd.DataFrame(array)) == atom.value(array)
    for of_cvxpy in (W, 2.0 * W - array):
        W.value = rng.normal(size=SHAPE)
        expression = atom(of_cvxpy)
        assert expression.is_convex()
        assert expression.value == pytest.approx(atom(of_cvxpy.value), rel=1e-12)


def test_a_call_takes_explanations_and_names():
    best = po.solve(po.GradientMatching(FRAME) + sparsity)
    loss = po.GradientMatching(FRAME)
    assert loss(best) == loss.value(best) == loss(best.to_frame().iloc[:, ::-1])


def test_parameters_keep_dpp_and_solve_again():
    W, p = cp.Variable(SHAPE), cp.Parameter(nonneg=True, name="p")
    objective = gradient + robustness * p + (0.5 * sparsity) * (2 * p)
    problem = cp.Problem(cp.Minimize(objective(W)))
    assert problem.is_dcp(dpp=True)
    for value in (0.1, 3.0, 0.7):
        p.value = value
        problem.solve(solver="CLARABEL")
        fresh = gradient + value * robustness + value * sparsity
        assert problem.value == pytest.approx(solved(fresh(cp.Variable(SHAPE))), 1e-7)
        assert objective.weights == fresh.weights
        best = po.solve(objective)  # which reads the value of now
        assert best.objective == pytest.approx(problem.value, rel=1e-6)
        assert po.proofs.certify(W.value, objective).gap < 1e-6
    assert repr(gradient * p) == "p * gradient_matching"
    merged = gradient * p + 2 * gradient
    assert merged.weights == {"gradient_matching": 2.7}
    retained = objective.with_weights({"sparsity": 9.0})
    p.value = 0.2
    assert retained.weights["pairwise_robustness"] == 0.2


def test_parameters_that_say_nothing_are_refused():
    W = cp.Variable(SHAPE)
    p = cp.Parameter(nonneg=True)
    for weight, words in (
        (cp.Parameter(), "nonneg=True"),
        (cp.Parameter(3, nonneg=True), "scalar"),
        (cp.square(p), "multiple or sum"),
        (W, r"loss\(W\)"),
    ):
        for atom in (robustness, 0.5 * robustness):
            with pytest.raises(po.errors.InvalidInput, match=words):
                atom * weight
    for use in (po.solve, lambda x: x.value(G), lambda x: x.weights):
        with pytest.raises(po.errors.InvalidInput, match=r"no value; set its \.value"):
            use(gradient + sparsity * p)
    assert (robustness * cp.Constant(2.0)).weights == {"pairwise_robustness": 2.0}


@pytest.mark.parametrize("atom", [robustness, gradient + 0.5 * robustness])
@pytest.mark.parametrize(
    "use",
    [
        lambda atom: PARAMETER * atom,
        lambda atom: VARIABLE + atom,
        lambda atom: atom <= PARAMETER,
        lambda atom: cp.sum(atom),
        lambda atom: np.asarray(atom),
        lambda atom: np.array(atom, dtype=float, copy=True),
    ],
)
def test_what_cvxpy_casts_first_names_the_call(atom, use):
    with pytest.raises(po.errors.InvalidInput, match=r"write loss\(W\)"):
        use(atom)


def test_certify_takes_both_orders():
    objective = gradient + 0.4 * sparsity
    W = np.sign(G) * np.maximum(np.abs(G) - 0.2, 0.0)
    for first, second in ((objective, W), (W, objective), (pd.DataFrame(W), objective)):
        assert po.proofs.certify(first, second).gap < 1e-12
    assert po.proofs.certify(1.01 * W, objective).gap > 1e-5
    assert po.proofs.certify(G, gradient).gap == 0.0
    with pytest.raises(po.errors.InvalidInput, match=r"certify\(objective, W\)"):
        po.proofs.certify(W, W)
    with pytest.raises(po.errors.InvalidInput, match="before its problem is"):
        po.proofs.certify(objective, None)


@pytest.mark.parametrize("atom", [robustness, gradient + 0.3 * sparsity])
def test_a_loss_is_divided_by_numbers(atom, rng):
    W = rng.normal(size=SHAPE)
    for number in (4, 0.3, np.float64(7.0), np.int64(3)):
        assert (atom / number)(W) == pytest.approx(atom(W) / number, rel=1e-14)


@pytest.mark.parametrize("atom", [robustness, gradient + 0.3 * sparsity])
def test_losses_are_the_same_where_they_are_one_object(atom):
    assert atom == atom
    assert atom != sparsity
    assert {atom: 1, sparsity: 2}[atom] == 1
    assert [sparsity, atom].index(atom) == 1
    with pytest.raises(po.errors.WrongType, match="=="):
        _ = atom == PARAMETER


# ---- sums, scalings and bounds
@pytest.fixture
def W(rng):
    return rng.normal(size=SHAPE)


def test_sums_and_scalings(W):
    objective = 2 * gradient + 0.5 * robustness
    expected = 2 * gradient.value(W) + 0.5 * robustness.value(W)
    assert objective.value(W) == pytest.approx(expected, rel=1e-14)
    left = (gradient + robustness) + sparsity
    assert left.terms == (gradient + (robustness + sparsity)).terms
    few = po.Sparsity(name="few")
    for made, weights in (
        (gradient + sparsity, {"gradient_matching": 1, "sparsity": 1}),
        (
            sparsity + gradient + robustness,
            {"sparsity": 1, "gradient_matching": 1, "pairwise_robustness": 1},
        ),
        (3 * (gradient + 2 * sparsity), {"gradient_matching": 3, "sparsity": 6}),
        (sum([gradient, sparsity]), {"gradient_matching": 1, "sparsity": 1}),
        (sum([2 * gradient, sparsity]), {"gradient_matching": 2, "sparsity": 1}),
        (gradient + sparsity + 2 * gradient, {"gradient_matching": 3, "sparsity": 1}),
        (sparsity + few, {"sparsity": 1, "few": 1}),
        (
            (gradient + sparsity).with_weights({"sparsity": 0.25}),
            {"gradient_matching": 1, "sparsity": 0.25},
        ),
        (po.losses.Objective.of(sparsity), {"sparsity": 1}),
    ):
        assert list(made.weights.items()) == list(weights.items())
    objective = gradient + sparsity  # which stays as it was
    2 * objective + robustness
    objective.with_weights({"sparsity": 9})
    assert objective.weights == {"gradient_matching": 1, "sparsity": 1}
    assert po.losses.Objective.of(objective) is objective


@pytest.mark.parametrize(
    "weight", [2, 0.5, np.float64(0.5), np.float32(0.5), np.int64(3), 0]
)
def test_weight_may_stand_on_either_side(weight):
    for thing in (sparsity, 1.0 * sparsity):
        for product in (weight * thing, thing * weight):
            assert isinstance(product, po.losses.Objective)
            assert product.weights == {"sparsity": float(weight)}


def test_at_most_makes_a_bound_on_either_side():
    for bound in [sparsity <= 2] + [
        limit >= sparsity for limit in (2, 2.0, np.float64(2), np.int32(2))
    ]:
        assert isinstance(bound, po.losses.Bound)
        assert (bound.loss, bound.limit) == (sparsity, 2.0)


# ---- robustness over shared features: each feature has a graph of its own
def test_what_is_present_and_the_names_are_those_of_the_table():
    counts = np.array([[2, 0], [1, 3], [0, 1]])
    loss = po.losses.SharedRobustness(po.graphs.chain_graph(3), counts)
    np.testing.assert_array_equal(loss.present, counts > 0)
    table = pd.DataFrame({"good": [1, 0], "bad": [1, 1]}, index=["a", "b"])
    loss = po.losses.SharedRobustness(po.graphs.chain_graph(2), table)
    assert loss.labels == po.GradientMatching(table).labels
    W = pd.DataFrame({"bad": [1.0, 3.0], "good": [9.0, 0.0]}, index=["a", "b"])
    assert loss.value(W) == pytest.approx(8.0)
