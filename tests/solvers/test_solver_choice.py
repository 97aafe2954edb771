"""The choice of a solver: by name, by structure, and what it refuses with a reason."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from catalogue import LOSSES, OBJECTIVES

import propopt as po
from propopt.base.errors import InvalidInput, Refused, SolverFailure, UncertifiedWarning
from propopt.losses import Program
from propopt.solvers import conic as conic_module
from propopt.solvers.task import find_solver


gradient, robustness = LOSSES["gradient l2"], LOSSES["pairwise, gaussian"]


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("gradient, pairwise, smoothness", "spectral"),
        ("gradient, kernel", "spectral"),
        ("gradient, pairwise, sparsity", "lasso"),
        ("gradient, max", "splitting"),
        ("function, pairwise", "normal_equations"),
        ("gradient l1, max linf", "conic"),
    ],
)
def test_automatic_choice_is_named_on_the_result(name, choice):
    assert po.solve(OBJECTIVES[name]).solver == choice
    program = Program(OBJECTIVES[name].losses)
    assert po.solvers.Auto().select(program).name == choice


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gradient l1, max linf", "LP"),
        ("gradient, pairwise, sparsity", "QP"),
        ("gradient l1, pairwise", "QP"),
        ("gradient l1, max", "SOCP"),
    ],
)
def test_program_has_the_smallest_class_that_holds_it(name, kind):
    program = Program(OBJECTIVES[name].losses)
    assert conic_module.program_class(program) == kind


def test_unknown_solver_is_refused_with_a_suggestion():
    with pytest.raises(InvalidInput, match=r"did you mean 'spectral'\?.*minimum_norm"):
        po.solve(1.0 * gradient, "spectrall")


def test_backends_are_found_in_any_case():
    assert find_solver("clarabel").name == "CLARABEL"


@pytest.mark.parametrize("backend", ["OSQP", "PIQP", "HIGHS"])
def test_backend_without_cones_refuses_them(backend):
    if backend not in cp.installed_solvers():
        pytest.skip(f"{backend} is not installed")
    with pytest.raises(Refused, match="second-order cones"):
        po.solve(OBJECTIVES["gradient, max"], backend)
    with pytest.raises(Refused, match="second-order cones"):
        po.solve(1.0 * gradient, backend, subject_to=[robustness <= 1])


def test_options_reach_the_backend():
    hurried = po.solvers.Conic("CLARABEL", options={"max_iter": 1})
    with pytest.warns(UncertifiedWarning, match="CLARABEL reached a certified gap"):
        po.solve(OBJECTIVES["gradient, max"], hurried)


def test_backend_that_gives_nothing_is_a_failure_with_advice():
    spoilt = po.solvers.Conic(
        "CLARABEL", options={"static_regularization_constant": 1e10}
    )
    with pytest.raises(SolverFailure, match=r"CLARABEL stopped.*solver='SCS'"):
        po.solve(OBJECTIVES["gradient, pairwise, sparsity"], spoilt)


def test_missed_tolerance_is_a_warning_and_not_an_error():
    solver = po.solvers.Conic(
        "CLARABEL", options={"tol_gap_rel": 1e-2, "tol_gap_abs": 1e-2}
    )
    with pytest.warns(UncertifiedWarning, match="another solver may do better"):
        rough = po.solve(OBJECTIVES["gradient, max"], solver, tolerance=1e-13)
    assert rough.gap > 1e-13


@pytest.mark.parametrize("tolerance", [0, -1, np.nan, "tight"])
def test_tolerance_is_a_positive_number(tolerance):
    with pytest.raises(InvalidInput, match=r"^tolerance:"):
        po.solve(1.0 * gradient, tolerance=tolerance)
