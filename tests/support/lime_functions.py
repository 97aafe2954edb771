"""Functions that only answer, made of sums of products that tell their limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from propopt._typing import Attributions, Points, Values
from propopt.functions import Function
from propopt.structures.products import SumOfProducts
from propopt.tables.names import Labels


@dataclass(frozen=True, eq=False)
class Answering(Function):
    """A sum of products that does not say that it is one."""

    function: SumOfProducts

    @property
    def gradient_method(self) -> str:
        return "exact"

    def _value(self, points: Points, labels: Labels) -> Values:  # noqa: ARG002  # no names needed
        return self.function.value(points)

    def _gradient(self, points: Points, labels: Labels) -> Attributions:
        raise NotImplementedError


def plain_lime(law, function, row, n_samples, rng, ridge=0.0, first_row=False):
    """(b_0, ..., b_D) of one run of LIME, by its normal equations."""
    draws = law.draw(row, n_samples - first_row, rng)
    bits, weights = draws.bits[0], draws.weights[0]
    values = function(draws.samples[0])
    if first_row:
        bits = np.concatenate([np.ones((1, bits.shape[1])), bits])
        weights = np.concatenate([[1.0], weights])
        values = np.concatenate([function(row), values])
    Z = np.column_stack([np.ones(len(bits)), bits])
    H = Z.T @ (weights[:, None] * Z)
    H[1:, 1:] += ridge * np.eye(bits.shape[1])
    return np.linalg.solve(H, Z.T @ (weights * values))
