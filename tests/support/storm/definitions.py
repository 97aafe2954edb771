"""The losses from their definitions, in extended precision, with their slopes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np


Long = np.longdouble


def long(values) -> np.ndarray:
    return np.asarray(values, dtype=Long)


class Definition(ABC):
    """A loss of W (N, D), which is an array of extended precision."""

    @abstractmethod
    def value(self, W: np.ndarray) -> np.longdouble: ...


class Quadratic(Definition):
    """A squared loss: it has a slope, and a curvature that does not depend on W."""

    @abstractmethod
    def slope(self, W: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def curvature(self, shape: tuple[int, int]) -> np.ndarray:
        """The Hessian (N·D, N·D) for row-major W, in double precision."""

    def energy(self, V: np.ndarray) -> np.longdouble:
        """The loss of V where the target is zero."""
        return ((self.slope(V) - self.slope(0 * V)) * V).sum() / 2


@dataclass(frozen=True, eq=False)
class Squares(Quadratic):
    """Σ_n ‖w_n − g_n‖²."""

    G: np.ndarray

    def value(self, W):
        return ((W - long(self.G)) ** 2).sum()

    def slope(self, W):
        return 2 * (W - long(self.G))

    def curvature(self, shape):
        return 2.0 * np.eye(shape[0] * shape[1])


@dataclass(frozen=True, eq=False)
class Distances(Definition):
    """Σ_n ‖w_n − g_n‖₁; sparsity where G is zero."""

    G: np.ndarray | float = 0.0

    def value(self, W):
        return np.abs(W - long(self.G)).sum()


@dataclass(frozen=True, eq=False)
class Regressions(Quadratic):
    """Σ_n Σ_s (t_ns − w_nᵀ z_ns)²."""

    designs: np.ndarray  # (N, S, D)
    targets: np.ndarray  # (N, S)

    def _residual(self, W):
        predicted = (long(self.designs) * W[:, None]).sum(axis=2)
        return predicted - long(self.targets)

    def value(self, W):
        return (self._residual(W) ** 2).sum()

    def slope(self, W):
        return 2 * (self._residual(W)[:, :, None] * long(self.designs)).sum(axis=1)

    def curvature(self, shape):
        n, d = shape
        blocks = np.zeros((n, d, n, d))
        for i, Z in enumerate(self.designs):
            blocks[i, :, i] = 2.0 * Z.T @ Z
        return blocks.reshape(n * d, n * d)


@dataclass(frozen=True, eq=False)
class Pairs(Quadratic):
    """Σ_{n,n'} ‖w_n − w_n'‖² S_nn' over ordered pairs of rows, or of columns."""

    S: np.ndarray
    of_columns: bool = False

    def _rows(self, W):
        return W.T if self.of_columns else W

    @cached_property
    def _edges(self):
        first, second = np.nonzero(np.triu(self.S, 1))
        return first, second, long(self.S[first, second])[:, None]

    def value(self, W):
        first, second, s = self._edges
        rows = self._rows(W)
        return 2 * (s * (rows[first] - rows[second]) ** 2).sum()

    def slope(self, W):
        first, second, s = self._edges
        rows = self._rows(W)
        pull = 4 * s * (rows[first] - rows[second])
        total = np.zeros_like(rows)
        np.add.at(total, first, pull)
        np.subtract.at(total, second, pull)
        return total.T if self.of_columns else total

    def curvature(self, shape):
        L = 4.0 * (np.diag(self.S.sum(axis=1)) - self.S)
        if self.of_columns:
            return np.kron(np.eye(shape[0]), L)
        return np.kron(L, np.eye(shape[1]))


@dataclass(frozen=True, eq=False)
class Precision(Quadratic):
    """2 tr(Wᵀ K⁻¹ W), or with one constant per feature marginalised out."""

    K: np.ndarray
    per_feature: bool

    @cached_property
    def _precision(self):
        inverse = long_inverse(self.K)
        if not self.per_feature:
            return inverse
        sums = inverse.sum(axis=1)
        return inverse - np.outer(sums, sums) / sums.sum()

    def centred(self, W):
        return W - W.mean(axis=0) if self.per_feature else W

    def value(self, W):
        W = self.centred(W)
        return 2 * (W * (self._precision @ W)).sum()

    def slope(self, W):
        return 4 * (self._precision @ self.centred(W))

    def curvature(self, shape):
        return np.kron(4.0 * self._precision.astype(float), np.eye(shape[1]))


@dataclass(frozen=True, eq=False)
class Largest(Definition):
    """max over edges, or Σ_n max over neighbours, of ‖w_n − w_n'‖²."""

    linked: np.ndarray
    aggregate: str

    def value(self, W):
        sizes = ((W[:, None] - W[None]) ** 2).sum(axis=2)
        worst = np.where(self.linked, sizes, 0).max(axis=1)
        return worst.max() if self.aggregate == "max" else worst.sum()


def long_inverse(K: np.ndarray) -> np.ndarray:
    """K⁻¹ in extended precision: Newton's steps from the double inverse."""
    exact, inverse = long(K), long(np.linalg.inv(K))
    for _ in range(4):
        inverse = inverse + inverse @ (np.eye(len(K)) - exact @ inverse)
    return (inverse + inverse.T) / 2
