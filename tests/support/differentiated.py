"""Central differences and the jump test of any function, as models are given them."""

import numpy as np

from propopt.functions.differences import differences, read_step
from propopt.functions.jumps import Segments, jumps_along
from propopt.tables.frames import read_table


def central_differences(evaluate, X, step=None):
    """Those of a function that takes an array (m, D), at the rows of a table."""
    points, _ = read_table(X, "X")
    return differences(evaluate, points, read_step(step))


def jump_test(function, X, rng=0):
    """The verdict on a function between rows of X, whatever is known of it."""
    points, labels = function.read(X)
    numeric, names = function.numeric_columns(points), labels.of_columns()
    segments = Segments.between(points, numeric, np.random.default_rng(rng))
    with function.calls.as_trial():
        return jumps_along(
            lambda between: function.value_at(between, names), segments, function
        )
