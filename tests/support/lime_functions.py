"""Functions that only answer, made of sums of products that tell their limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Truths, Values
from propopt.functions import Function
from propopt.structures.products.families import Bumps, Powers
from propopt.structures.products.normals import Normals, normal_nodes
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


def plain_lime(law, function, row, n_samples, rng, ridge=0.0, first_row=False):
    """(b_0, ..., b_D) of one run of LIME, by its normal equations."""
    draws = law.draw(row, n_samples, rng, first_row=first_row)
    bits, weights = draws.bits[0], draws.weights[0]
    values = function(draws.samples[0])
    Z = np.column_stack([np.ones(len(bits)), bits])
    H = Z.T @ (weights[:, None] * Z)
    H[1:, 1:] += ridge * np.eye(bits.shape[1])
    return np.linalg.solve(H, Z.T @ (weights * values))


@dataclass(frozen=True, eq=False)
class Known(Answering):
    """A sum of products that says that it is one."""

    @property
    def products(self) -> SumOfProducts:
        return self.function


def product_of(terms, n_columns, base=0.0):
    """Base + Σ weight Π x_j over ``(weight, columns)``."""
    width = max(len(columns) for _, columns in terms)
    paths = np.full((len(terms), width), -1)
    for path, (_, columns) in zip(paths, terms, strict=True):
        path[: len(columns)] = columns
    weights = np.array([weight for weight, _ in terms])
    factors = Powers.first(np.arange(n_columns))
    return SumOfProducts(base, weights, paths, (factors,), n_columns)


def bump_at(center, width):
    """exp(−‖x − center‖² / (2 width²))."""
    n = len(center)
    bumps = Bumps(np.arange(n), np.asarray(center, float), np.full(n, float(width)))
    path = np.arange(n)[None, :]
    return SumOfProducts(0.0, np.ones(1), path, (bumps,), n)


@dataclass(frozen=True, eq=False)
class Curves:
    """Any functions of one column each, with means by quadrature."""

    column: Positions
    functions: tuple[Callable[[Array], Array], ...]

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Positions | Truths) -> Curves:
        indices = np.arange(len(self))[chosen]
        return Curves(self.column[indices], tuple(self.functions[i] for i in indices))

    def at(self, values: Array) -> Array:
        return np.array([function(values) for function in self.functions])

    def under(self, normals: Normals) -> Array:
        nodes, weights = normal_nodes(normals, n_nodes=200)
        return np.array(
            [(weights * function(nodes)).sum(axis=-1) for function in self.functions]
        )


def sum_of_curves(functions, n_columns):
    """Σ_j g_j(x_j), of the first columns."""
    curves = Curves(np.arange(len(functions)), tuple(functions))
    return SumOfProducts.additive(0.0, np.ones(len(functions)), curves, n_columns)


def product_of_curves(functions, n_columns):
    """Π_j g_j(x_j), of the first columns."""
    curves = Curves(np.arange(len(functions)), tuple(functions))
    path = np.arange(len(functions))[None, :]
    return SumOfProducts(0.0, np.ones(1), path, (curves,), n_columns)
