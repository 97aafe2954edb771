"""What solvers and constraints refuse: the kind of the error, and its words."""

import re

import catalogue
import cvxpy as cp
import golden_chains
import numpy as np
import pytest
from refusals import refused

import propopt as po
from propopt.base.errors import PropoptError
from propopt.solvers import (
    curves,
    factored,
    lasso,
    reductions,
    splitting,
    task,
)
from propopt.solvers import normal_equations as squares


SOLVERS = (reductions, curves, factored, lasso, squares, splitting, task)
NAMES = {name: value for module in SOLVERS for name, value in vars(module).items()}
NAMES |= vars(catalogue) | {
    "np": np,
    "po": po,
    "cp": cp,
    "golden": golden_chains.objective,
}


@pytest.mark.parametrize(("call", "words"), refused(__file__, NAMES))
def test_what_cannot_be_solved_is_refused(call, words):
    with pytest.raises(PropoptError) as raised:
        call()
    assert re.search(words, f"{type(raised.value).__name__}: {raised.value}")
