"""Functions that only answer, made of sums of products that tell their limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from propopt.base.arrays import Attributions, Points, Values
from propopt.functions import Function
from propopt.structures.products.families import Bumps
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


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


@dataclass(frozen=True, eq=False)
class Known(Answering):
    """A sum of products that says that it is one."""

    @property
    def products(self) -> SumOfProducts:
        return self.function


def bump_at(center, width):
    """exp(−‖x − center‖² / (2 width²))."""
    n = len(center)
    bumps = Bumps(np.arange(n), np.asarray(center, float), np.full(n, float(width)))
    path = np.arange(n)[None, :]
    return SumOfProducts(0.0, np.ones(1), path, (bumps,), n)
