"""The solved program as arrays, so that files can be checked without this package.

A saved optimum has attributions, losses, weights and a lower bound. The targets and
graphs of its losses, saved with it, show that these belong together. Keys combine the
name of the loss and of the array::

    <loss>.target                     T (N, D) of Σ (W − T)²
    <loss>.sizes                      T of Σ |W − T|
    <loss>.rows, .similarities        edges (E, 2), S (E,) of 2 Σ_e S_e ‖w_n − w_n'‖²
    <loss>.offset                     subtracted from W first
    <loss>.neighbours, .similarities  rows with fixed neighbours: indices j and s (N, k)
    <loss>.fixed                      of 2 Σ_nj s_nj ‖w_n − r_j‖², r (R, D); −1: none
    <loss>.columns, .similarities     edges and S of columns of W
    <loss>.entries, .similarities     edges and S of entries of W, numbered by rows
    <loss>.totals, .parts             t (N,) and v of the constraint W v = t
    <loss>.limit                      for a bounded loss

In a metric ω (``metric``), W, targets and the like are divided by √ω in losses, over
columns with ω > 0; other columns equal those of the target.

These determine each loss, its gradient, and a lower bound by strong convexity;
``tools/verify.py`` computes them with NumPy only. Other losses, such as largest
differences and lattices, are not saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array


def in_units_of_w(
    problem_data: Mapping[str, NDArray[Any]], phi: Array, scales: Array
) -> dict[str, NDArray[Any]]:
    """Convert the arrays of a program of z = (W − Φ)/√ω to the units of W."""
    converted: dict[str, NDArray[Any]] = {}
    for key, array in problem_data.items():
        match key.rpartition(".")[2]:
            case "target" | "offset":
                array = phi + scales * array
            case "totals":
                array = phi.sum(axis=1) + array
            case "parts":
                array = np.ones(array.shape)
        converted[key] = array
    return converted
