"""Functions under explanation: formulas, differences, and models that misbehave."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from differentiated import central_differences
from refusals import refusals
from sklearn.linear_model import Ridge

import propopt as po
from propopt import functions
from propopt.base import resources
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.functions import PAPER_FUNCTIONS, Function, Power, Sine
from propopt.functions.formulas import PaperFormula, SquaresAndProducts
from propopt.losses.graphs import grid


PAPER = [
    (Power(1), lambda x: x),
    (Power(2), lambda x: x**2),
    (Power(3), lambda x: x**3),
    (Power(6), lambda x: x**6),
    (Sine(), np.sin),
    (PaperFormula("sine_of_exponential"), lambda x: np.sin(np.exp(x))),
    (PaperFormula("linear_plus_sine_of_exponential"), lambda x: x + np.sin(np.exp(x))),
    (PaperFormula("linear_plus_sine"), lambda x: x + np.sin(3 * x)),
    (PaperFormula("quadratic_plus_sine"), lambda x: x**2 / 10 + np.sin(3 * x)),
    (PaperFormula("exponential"), np.exp),
    (SquaresAndProducts(), lambda x: x**2 + x * x.sum(axis=1, keepdims=True)),
]
X = np.random.default_rng(2).normal(size=(6, 3))
each_use = pytest.mark.parametrize("use", ["value", "gradient"])


@pytest.fixture
def frame(points):
    index = [f"row {n}" for n in range(len(points))]
    return pd.DataFrame(points.copy(), index=index, columns=["a", "b", "c"])


def ask(model, use, **settings):
    return getattr(po.wrap(model, **settings), use)(X)


@pytest.fixture
def points():
    return np.random.default_rng(0).uniform(-2.0, 2.0, size=(12, 3))


@pytest.mark.parametrize(("function", "term"), PAPER, ids=repr)
def test_paper_functions_are_sums_and_have_exact_gradients(function, term, points):
    expected = term(points).sum(axis=1)
    np.testing.assert_allclose(function.value(points), expected, rtol=1e-13)
    exact = function.gradient(points)
    numerical = central_differences(function.value, points)
    assert function.gradient_method == "exact"
    assert np.abs(exact - numerical).max() <= 1e-6 * np.abs(exact).max()


def test_paper_functions_are_values_with_names():
    named = [name for name in PAPER_FUNCTIONS if name != "power"]
    own = [PAPER_FUNCTIONS[name]() for name in named]
    known = [function for function, _ in PAPER if not isinstance(function, Power)]
    assert len(own) == len(known)
    assert all(function in known for function in own)
    assert PAPER_FUNCTIONS["power"](degree=3) == Power(3)


def test_what_is_not_finite_names_its_row_by_position_or_label(points, frame):
    points[4, 1] = points[7, 0] = 1000.0
    message = r"'exponential'\]\(\): the value .* 2 of 12 .* row 4$"
    with pytest.raises(InvalidInput, match=message):
        PaperFormula("exponential").value(points)
    frame.iloc[4, 1] = 1000.0
    with pytest.raises(InvalidInput, match=r"gradient .* 1 of 12 rows .* 'row 4'$"):
        PaperFormula("sine_of_exponential").gradient(frame)


class Lazy(Function):
    """Whose answers have a wrong shape."""

    gradient_method = "none"

    def _value(self, *_):
        return np.zeros(1)

    def _gradient(self, *_):
        return np.zeros((1, 3))


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "formulas"))
def test_what_cannot_be_computed_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def test_central_differences_are_exact_for_quadratics_in_any_batches(
    points, monkeypatch
):
    numerical = central_differences(Power(2).value, 1e3 * points)
    np.testing.assert_allclose(numerical, 2e3 * points, rtol=1e-8)
    whole = central_differences(Sine().value, points)
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(2**25, 10))
    np.testing.assert_array_equal(central_differences(Sine().value, points), whole)
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(1))  # narrower than a point
    numerical = central_differences(Sine().value, points)
    np.testing.assert_allclose(numerical, np.cos(points), atol=1e-9)
    with warnings.catch_warnings():  # a function that is flat only in part
        warnings.simplefilter("error")
        functions.wrap(lambda X: np.maximum(X, 0.0).sum(axis=1)).gradient(points)


def test_the_step_of_central_differences_is_relative_above_one():
    observed = []

    def evaluate(points):
        observed.append(points)
        return points[:, 0]

    central_differences(evaluate, [[0.5], [-100.0]], step=0.25)
    np.testing.assert_array_equal(
        np.concatenate(observed).ravel(), [0.75, -75.0, 0.25, -125.0]
    )


def test_a_grid_has_its_last_coordinate_fastest_and_its_first_rows_are_cheap():
    expected = [[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)]
    result = grid(-1, 1, per_dimension=3, dimensions=2)
    np.testing.assert_array_equal(result, expected)
    assert result.flags.c_contiguous
    whole = grid(-5, 5, per_dimension=5, dimensions=3)
    np.testing.assert_array_equal(grid(-5, 5, 5, 3, first=100), whole[:100])
    assert grid(0, 1, per_dimension=1000, dimensions=6, first=3).shape == (3, 6)


ANSWERS = {
    "complex": (lambda v: v + 0j, r"complex numbers \(complex128\)"),
    "masked": (lambda v: np.ma.masked_less(v, np.inf), "masked array, with"),
    "sparse": (lambda v: sp.csr_array(v[:, None]), "sparse csr_array"),
    "text": (lambda v: v.astype(str), "no numbers, but <U32"),
    "dates": (lambda v: v.astype("M8[s]"), r"no numbers, but datetime64\[s\]"),
    "sets": (lambda v: [{n} for n in v], "no numbers: "),
}


@pytest.mark.parametrize(("answer", "message"), ANSWERS.values(), ids=ANSWERS)
def test_answers_that_are_no_real_numbers_are_named(answer, message):
    for use in ("value", "gradient"):
        with pytest.raises(InvalidInput, match=f"^the model returned (a )?{message}"):
            ask(lambda P: answer(P[:, 0] ** 2), use)
    start = r"^gradient: expected numbers; the callable returned (a )?"
    with pytest.raises(InvalidInput, match=start + message):
        ask(lambda P: P[:, 0], "gradient", gradient=lambda P: answer(P[:, 0]))
    # masked arrays without masked values are numbers
    np.testing.assert_array_equal(ask(lambda P: np.ma.array(P[:, 0]), "value"), X[:, 0])


def counting(change):
    """x₀², with something added that grows from call to call."""
    calls = itertools.count()
    return lambda P: P[:, 0] ** 2 + change * next(calls)


@each_use
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"data": pd.DataFrame(X, columns=list("abc"))},
        {"step": 1e-5},
    ],
)
def test_answers_that_change_between_identical_calls_are_named(use, settings):
    model = counting(1e-6)
    function = po.wrap(lambda table: model(np.asarray(table)), **settings)
    message = (
        "called twice for the same row, the model returned .* and then .*; fix its"
    )
    with pytest.raises(InvalidInput, match=message):
        getattr(function, use)(settings.get("data", X))
    assert np.isfinite(ask(counting(1e-15), use)).all()  # by rounding they may


def smooth(P):
    return np.sin(P[:, 0]) * np.exp(0.3 * P[:, 1]) + P[:, 2]


def exact():
    sine, power = np.sin(X[:, 0]), np.exp(0.3 * X[:, 1])
    return np.column_stack(
        [np.cos(X[:, 0]) * power, 0.3 * sine * power, np.ones(len(X))]
    )


SINGLE = {
    "returned as such": lambda P: smooth(P).astype(np.float32),
    "converted": lambda P: smooth(P).astype(np.float32).astype(np.float64),
    "inside": lambda P: smooth(P.astype(np.float32)).astype(float),
    "as a list": lambda P: smooth(P).astype(np.float32).tolist(),
}
ROUND = {
    "a column": lambda P: P[:, 0],
    "a square": lambda P: P[:, 0] ** 2,
    "whole numbers": lambda P: P[:, 0] + 0.0 * np.rint(P[:, 1]),
}


@pytest.mark.parametrize("model", SINGLE.values(), ids=SINGLE)
@pytest.mark.parametrize("data", [None, pd.DataFrame(X, columns=list("abc"))])
def test_steps_suit_models_that_compute_in_single_precision(model, data):
    function = po.wrap(lambda table: model(np.asarray(table)), data=data)
    gradient = np.asarray(function.gradient(X if data is None else data))
    # h² |f'''| / 6 ≤ 1e-5 and ε |f| / h ≤ 3e-5 at h = 4.9e-3 · max(1, |x|)
    np.testing.assert_allclose(gradient, exact(), rtol=0, atol=2e-4)
    assert "step 0.0049" in function.gradient_method


@pytest.mark.parametrize("points", [X.astype(np.float32), np.rint(X)])
@pytest.mark.parametrize("model", ROUND.values(), ids=ROUND)
def test_steps_suit_double_precision_where_values_are_round(model, points):
    function = po.wrap(model)
    function.value(points)
    function.gradient(points)
    assert "step 6.1e-06" in function.gradient_method


def test_values_of_few_bits_tell_nothing_and_half_precision_has_no_differences():
    function = po.wrap(lambda P: np.where(P[:, 0] > 0, 0.25, 130.0))
    with pytest.warns(po.errors.FlatFunctionWarning):
        function.gradient(X)
    assert "step 6.1e-06" in function.gradient_method
    function = po.wrap(lambda P: smooth(P).astype(np.float16))
    np.testing.assert_allclose(function.value(X), smooth(X), rtol=1e-3)
    message = "half precision, 3 digits, .* `step` of about 0.1"
    with pytest.raises(InvalidInput, match=message):
        function.gradient(X)
    own = po.wrap(lambda P: smooth(P).astype(np.float16), step=0.1).gradient(X)
    np.testing.assert_allclose(own, exact(), rtol=0, atol=0.1)


# ---- underflow and overflow


UNDER = np.random.default_rng(3).normal(size=(30, 4))
UNDER_GRAPH = po.graphs.knn_graph(UNDER, 4)
LAPLACIAN = np.diag(np.asarray(UNDER_GRAPH.similarities.sum(axis=1)).ravel())
LAPLACIAN = LAPLACIAN - UNDER_GRAPH.similarities.toarray()


def far_from_it(size):
    """Programs of gradients of one size, and what their optima are over that size."""
    matching = po.GradientMatching(size * UNDER)
    robust = po.PairwiseRobustness(UNDER_GRAPH)
    return {
        "robust": matching + 0.5 * robust,
        "smooth": matching
        + 0.5 * robust
        + 0.3 * po.Smoothness(po.graphs.chain_graph(4)),
        "sparse": matching + 0.5 * robust + 0.5 * size * po.Sparsity(),
        "differences": matching + 5.0 * po.losses.MaxDifferenceRobustness(UNDER_GRAPH),
        "values": matching
        + 0.5 * po.losses.FunctionMatching(UNDER, size * UNDER[:, 0]),
    }


@pytest.mark.parametrize("name", list(far_from_it(1.0)))
@pytest.mark.parametrize("size", [1e-138, 1e-100, 1e130])
def test_optima_scale_with_their_gradients(name, size):
    result = po.solve(far_from_it(size)[name])
    if name == "robust":  # by a dense solve
        expected = np.linalg.solve(np.eye(30) + 2.0 * 0.5 * LAPLACIAN, UNDER)
    else:
        expected = po.solve(far_from_it(1.0)[name]).attributions
    np.testing.assert_allclose(result.attributions / size, expected, rtol=0, atol=1e-9)
    assert result.gap <= 1e-6


def ridge_of(G):
    learner = po.interactions.ILOCO(Ridge(), po.interactions.DataSplit())
    return learner.fit(UNDER, 1e-20 * G[:, 0])


def limited(objective, *constraints):
    return po.solve(objective, subject_to=constraints)


def slopes_of(a):
    return po.explain(lambda P: P @ a, X, scale=None, kind="slopes")


ROBUST = po.PairwiseRobustness(UNDER_GRAPH)


@pytest.mark.parametrize("size", [1e-150, 1e-158, 1e-170])
@pytest.mark.parametrize(("line", "message"), refusals(__file__, "vanishing"))
def test_whatever_claims_a_gap_of_squares_that_vanish_is_refused(line, message, size):
    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | {"G": size * UNDER})


@pytest.mark.parametrize("scale", [1e150, 1e155, 1e300])
@pytest.mark.parametrize(("line", "what"), refusals(__file__, "overflowing"))
def test_tables_whose_squares_overflow_are_named(line, what, scale):
    message = f"^{what}: sums of squares of numbers up to .* overflow; divide"
    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | {"W": scale * X})
