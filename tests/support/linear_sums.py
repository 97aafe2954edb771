"""Functions that are sums of products, written down by hand."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from propopt.structures.products.families import Powers
from propopt.structures.products.sums import SumOfProducts


def linear(weights, base=0.0):
    """Base + Σ_j weights_j x_j."""
    a = np.asarray(weights, dtype=float)
    return SumOfProducts.additive(base, a, Powers.first(np.arange(len(a))), len(a))


@dataclass(frozen=True, eq=False)
class Smooth:
    """Functions of one column each, with means by Gauss and Legendre's rule."""

    column: np.ndarray
    functions: tuple[Callable[[np.ndarray], np.ndarray], ...]

    def __len__(self):
        return len(self.functions)

    def take(self, chosen):
        which = np.arange(len(self))[chosen]
        return Smooth(self.column[chosen], tuple(self.functions[u] for u in which))

    def at(self, values):
        return np.stack([g(values) for g in self.functions])

    def under(self, normals):
        t, w = np.polynomial.legendre.leggauss(80)
        sd = normals.sd[..., None]
        low = np.maximum(normals.low[..., None], normals.mean[..., None] - 12 * sd)
        high = np.minimum(normals.high[..., None], normals.mean[..., None] + 12 * sd)
        x = low + 0.5 * (high - low) * (t + 1.0)
        density = w * np.exp(-0.5 * ((x - normals.mean[..., None]) / sd) ** 2)
        density /= density.sum(axis=-1, keepdims=True)
        return np.stack([(g(x) * density).sum(axis=-1) for g in self.functions])


def sum_of_terms(terms, factors, n_columns):
    """Σ_l v_l Π_{u in l} g_u."""
    width = max(len(numbers) for _, numbers in terms)
    paths = [[*numbers, *[-1] * (width - len(numbers))] for _, numbers in terms]
    values = np.array([value for value, _ in terms], dtype=float)
    return SumOfProducts(0.0, values, np.array(paths), (factors,), n_columns)


def wavy():
    """sin 2x_0 + x_1² + x_0 x_2 − x_3 / 2."""
    factors = Smooth(
        np.array([0, 1, 0, 2, 3]),
        (lambda x: np.sin(2.0 * x), np.square, np.copy, np.copy, np.copy),
    )
    terms = [(1.0, [0]), (1.0, [1]), (1.0, [2, 3]), (-0.5, [4])]
    return sum_of_terms(terms, factors, 4)


def curved():
    """sin 2x_0 + x_1² + x_0 x_2."""
    factors = Smooth(
        np.array([0, 1, 0, 2]), (lambda x: np.sin(2.0 * x), np.square, np.copy, np.copy)
    )
    return sum_of_terms([(1.0, [0]), (1.0, [1]), (1.0, [2, 3])], factors, 3)
