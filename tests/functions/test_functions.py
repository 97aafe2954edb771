"""Functions under explanation: formulas, differences, grids, and what they refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from differentiated import central_differences

from propopt import functions
from propopt.base import resources
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.functions import PAPER_FUNCTIONS, Function, Power, Sine
from propopt.functions.formulas import Interactions, PaperFormula
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
]


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(-2.0, 2.0, size=(12, 3))


@pytest.fixture
def frame(X):
    index = [f"row {n}" for n in range(len(X))]
    return pd.DataFrame(X, index=index, columns=["a", "b", "c"])


@pytest.mark.parametrize(("function", "term"), PAPER, ids=repr)
def test_paper_functions_are_sums_over_features(function, term, X):
    np.testing.assert_allclose(function.value(X), term(X).sum(axis=1), rtol=1e-13)


def test_interactions_count_all_ordered_pairs_and_the_diagonal(X):
    pairs = np.einsum("nd,ne->n", X, X)
    expected = (X**2).sum(axis=1) + pairs
    np.testing.assert_allclose(Interactions().value(X), expected, rtol=1e-12)


@pytest.mark.parametrize("function", [f for f, _ in PAPER] + [Interactions()], ids=repr)
def test_paper_gradients_are_those_of_central_differences(function, X):
    exact, numerical = function.gradient(X), central_differences(function.value, X)
    assert function.gradient_method == "exact"
    assert np.abs(exact - numerical).max() <= 1e-6 * np.abs(exact).max()


def test_every_paper_function_has_a_name():
    named = [name for name in PAPER_FUNCTIONS if name != "power"]
    functions = [PAPER_FUNCTIONS[name]() for name in named]
    known = [function for function, _ in PAPER if not isinstance(function, Power)]
    assert len(functions) == len(known) + 1
    assert all(function in [*known, Interactions()] for function in functions)


def test_paper_functions_are_values_with_a_readable_repr():
    assert PAPER_FUNCTIONS["power"](degree=3) == Power(3)
    assert repr(Power(3)) == "Power(degree=3)"
    assert repr(Sine()) == "Sine()"
    exponential = PAPER_FUNCTIONS["exponential"]()
    assert repr(exponential) == "PAPER_FUNCTIONS['exponential']()"


@pytest.mark.parametrize("degree", [0, -1, 1.5, True])
def test_powers_refuse_a_degree_that_is_no_positive_integer(degree):
    with pytest.raises(InvalidInput, match="degree"):
        Power(degree)


def test_the_gradient_of_a_dataframe_has_its_index_and_columns(frame):
    gradient = Sine().gradient(frame)
    pd.testing.assert_frame_equal(gradient, np.cos(frame))


def test_integer_columns_stay_integers(X):
    frame = pd.DataFrame(X, columns=[10, 20, 30])
    assert list(Sine().gradient(frame).columns) == [10, 20, 30]


def test_the_value_of_a_dataframe_is_an_array(frame):
    value = Sine().value(frame)
    assert isinstance(value, np.ndarray)
    assert value.shape == (len(frame),)


def test_a_value_that_is_not_finite_names_its_row_by_position(X):
    X[4, 1] = X[7, 0] = 1000.0
    with pytest.raises(
        InvalidInput, match=r"'exponential'\]\(\): the value .* 2 of 12 .* row 4$"
    ):
        PaperFormula("exponential").value(X)


def test_a_gradient_that_is_not_finite_names_its_row_by_label(frame):
    frame.iloc[4, 1] = 1000.0
    with pytest.raises(InvalidInput, match=r"gradient .* 1 of 12 rows .* 'row 4'$"):
        PaperFormula("sine_of_exponential").gradient(frame)


@pytest.mark.parametrize(
    "points", [np.zeros(3), np.zeros((0, 2)), [[np.nan]], [["a"]], None]
)
def test_functions_refuse_what_is_no_finite_table(points):
    with pytest.raises(InvalidInput, match="X"):
        Sine().value(points)


def test_a_function_that_returns_a_wrong_shape_is_refused(X):
    class Lazy(Function):
        gradient_method = "none"

        def _value(self, *_):
            return np.zeros(1)

        def _gradient(self, *_):
            return np.zeros((1, 3))

    with pytest.raises(InvalidInput, match=r"value of shape \(12,\), got \(1,\)"):
        Lazy().value(X)


def test_central_differences_are_exact_for_quadratics_up_to_rounding(X):
    numerical = central_differences(Power(2).value, 1e3 * X)
    np.testing.assert_allclose(numerical, 2e3 * X, rtol=1e-8)


def test_central_differences_do_not_depend_on_the_batches(X, monkeypatch):
    whole = central_differences(Sine().value, X)
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(2**25, 10))
    np.testing.assert_array_equal(central_differences(Sine().value, X), whole)


def test_central_differences_stay_within_their_budget():
    sizes = []

    def evaluate(points):
        sizes.append(points.shape)
        return points.sum(axis=1)

    central_differences(evaluate, np.ones((3, 3000)))
    rows = np.array([size[0] for size in sizes])
    assert rows.sum() == 2 * 3 * 3000
    assert (rows * 3000 * 8 <= resources.MODEL_CALLS.n_bytes).all()
    assert (rows <= resources.MODEL_CALLS.n_rows).all()


def test_one_point_wider_than_the_budget_is_still_differentiated(X, monkeypatch):
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(1))
    numerical = central_differences(Sine().value, X)
    np.testing.assert_allclose(numerical, np.cos(X), atol=1e-9)


def test_the_step_of_central_differences_is_relative_above_one():
    observed = []

    def evaluate(points):
        observed.append(points)
        return points[:, 0]

    central_differences(evaluate, [[0.5], [-100.0]], step=0.25)
    np.testing.assert_array_equal(
        np.concatenate(observed).ravel(), [0.75, -75.0, 0.25, -125.0]
    )


def test_a_longer_step_sees_across_the_plateaus_of_a_staircase():
    X = np.linspace(-2.05, 2.05, 12)[:, None]
    slope = central_differences(lambda X: np.floor(10 * X[:, 0]) / 10, X, step=1.0)
    np.testing.assert_allclose(slope, 1.0, atol=0.1)


@pytest.mark.parametrize("step", [0.0, -1.0, np.inf, 1e-20, "small"])
def test_central_differences_refuse_a_bad_step(step, X):
    with pytest.raises(InvalidInput, match="step"):
        central_differences(Sine().value, X, step=step)


def test_a_function_that_is_flat_only_in_part_is_not_reported(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        functions.wrap(lambda X: np.maximum(X, 0.0).sum(axis=1)).gradient(X)


def test_central_differences_refuse_a_function_of_the_wrong_shape(X):
    with pytest.raises(InvalidInput, match="one value for each"):
        central_differences(lambda X: X, X)


def test_a_grid_has_its_last_coordinate_fastest():
    expected = [[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)]
    points = grid(-1, 1, per_dimension=3, dimensions=2)
    np.testing.assert_array_equal(points, expected)
    assert points.flags.c_contiguous


def test_first_keeps_the_first_rows_of_the_grid():
    whole = grid(-5, 5, per_dimension=5, dimensions=3)
    np.testing.assert_array_equal(grid(-5, 5, 5, 3, first=100), whole[:100])


def test_the_first_rows_of_a_huge_grid_are_cheap():
    assert grid(0, 1, per_dimension=1000, dimensions=6, first=3).shape == (3, 6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 1, 5, 2), "low < high"),
        ((-np.inf, 1, 5, 2), "finite"),
        ((0, 1, 1, 2), "at least 2"),
        ((0, 1, 2.0, 2), "per_dimension"),
        ((0, 1, 2, 0), "dimensions"),
        ((0, 1, 2, 2, 5), "only 4 points"),
        ((0, 1, 2, 2, 0), "first"),
        ((0, 1, 10, 30, 3), "too many"),
    ],
)
def test_grids_refuse_bad_arguments(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        grid(*arguments)


def test_public_names_are_sorted_and_documented():
    names = functions.__all__
    by_kind = sorted(names, key=lambda name: (not name.isupper(), name))
    assert names == by_kind
    assert all(getattr(functions, name).__doc__ for name in names)
