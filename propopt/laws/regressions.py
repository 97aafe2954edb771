"""Weighted regressions on samples around points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Mask
from propopt.base.resources import Budget


@final
@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Normal equations H β = m of many least-squares problems, H = ZᵀZ, m = Zᵀy."""

    gram: Array  # (..., p, p): H
    moments: Array  # (..., p): m

    @classmethod
    def of(cls, design: Array, targets: Array) -> LeastSquares:
        """Make the equations of samples Z (..., S, p) and y (..., S)."""
        turned = np.swapaxes(design, -1, -2)
        return cls(turned @ design, (turned @ targets[..., None])[..., 0])

    def __add__(self, other: LeastSquares) -> LeastSquares:
        return LeastSquares(self.gram + other.gram, self.moments + other.moments)

    def __sub__(self, other: LeastSquares) -> LeastSquares:
        return LeastSquares(self.gram - other.gram, self.moments - other.moments)

    def ridged(self, ridge: Array | float) -> LeastSquares:
        """The equations with a ridge Σ_j ρ_j β_j², ρ (..., p) or one number."""
        gram = self.gram.copy()
        positions = np.arange(self.gram.shape[-1])
        gram[..., positions, positions] += ridge
        return LeastSquares(gram, self.moments)

    @property
    def solution(self) -> Array:
        """The solutions β (..., p) of all problems."""
        solved = np.linalg.solve(self.gram, self.moments[..., None])
        return np.asarray(solved[..., 0], np.float64)


def sums_of_other_blocks(sums: Array) -> Array:
    """Sums over all other blocks, from the sums of each block (n, B, ...)."""
    return sums.sum(axis=1, keepdims=True) - sums


@dataclass(frozen=True, eq=False)
class Regressions:
    """Weighted ridge regressions min_β Σ_s π_s (y_s − z_sᵀβ)² + ‖ρ ∘ β‖², n of them."""

    design: Array  # (n, S, D): z
    targets: Array  # (n, S): y
    weights: Array | None  # (n, S): π; None where all are one
    root_ridge: Array  # (n, D): ρ

    @property
    def factor(self) -> Array:
        """Triangular factors R with RᵀR = H = Zᵀ diag(π) Z + diag(ρ²), (n, D, D)."""
        return self._solved[0]

    @property
    def slopes(self) -> Array:
        """The solutions β of all regressions, (n, D)."""
        return self._solved[1]

    @cached_property
    def _solved(self) -> tuple[Array, Array]:
        """R and β, by QR."""
        design = self.design
        targets = self.targets
        if self.weights is not None:
            root: Array = np.sqrt(self.weights)
            design = design * root[..., None]
            targets = targets * root
        return _qr(design, targets, self.root_ridge)

    @cached_property
    def residuals(self) -> Array:
        """The residuals e = y − Zβ, shape (n, S)."""
        return self.targets - (self.design @ self.slopes[..., None])[..., 0]

    @property
    def undetermined(self) -> NDArray[np.bool_]:
        """Whether some direction of β is undetermined to rounding, (n,)."""
        pivots = np.abs(np.diagonal(self.factor, axis1=1, axis2=2))
        smallest = np.finfo(float).eps * self.targets.shape[1] * pivots.max(axis=1)
        return pivots.min(axis=1) <= smallest

    @property
    def errors(self) -> Array:
        """Sandwich standard errors of β: H⁻¹ (Σ_s u_s u_sᵀ) H⁻¹ with u = π e z."""
        scores = self.residuals
        if self.weights is not None:
            scores = self.weights * scores
        influence = self.design * scores[..., None]
        inverse = np.linalg.inv(self.factor)
        bread = inverse @ inverse.transpose(0, 2, 1)
        half = bread @ (influence.transpose(0, 2, 1) @ influence)
        squares = np.einsum("nde,ned->nd", half, bread)
        return np.sqrt(np.maximum(squares, 0.0))


def _qr(design: Array, targets: Array, root_ridge: Array) -> tuple[Array, Array]:
    """R and R⁻¹Qᵀy; a ridge adds D rows with its root on the diagonal."""
    system = np.concatenate([design, targets[..., None]], axis=2)
    n_problems, _, width = system.shape
    if root_ridge.any():
        rows = np.zeros((n_problems, width - 1, width))
        diagonal = np.arange(width - 1)
        rows[:, diagonal, diagonal] = root_ridge
        system = np.concatenate([system, rows], axis=1)
    triangle: Array = np.linalg.qr(system, mode="r")  # type: ignore[assignment]  # NumPy's stub has the answer of another mode
    factor = triangle[:, : width - 1, :-1]
    product = triangle[:, : width - 1, -1:]
    with np.errstate(all="ignore"):
        try:
            slopes = np.linalg.solve(factor, product)[..., 0]
        except np.linalg.LinAlgError:  # a pivot is zero: see ``undetermined``
            slopes = np.full(factor.shape[:2], np.nan)
    return factor, np.asarray(slopes, float)


@final
@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Samples around n points, with regressors and weights."""

    samples: Array  # (n, S, D): where f is evaluated
    regressors: Array  # (n, S, D)
    weights: Array | None  # (n, S): π; None where all are one
    origin: Array  # (n, D): the origin of the regressors
    # (n, D): factors of slopes; 0 for constant regressors
    contrast: Array
    units: Array  # (n, D): the sizes of the regressors

    def parts(self, budget: Budget) -> Iterator[tuple[slice, Neighbourhood]]:
        """Yield blocks of points with regressors within a memory budget."""
        row_bytes = self.regressors[0].nbytes
        fields = vars(self).items()
        for rows in budget.blocks(len(self.regressors), row_bytes):
            part_of_fields: Any = {
                k: None if part is None else part[rows] for k, part in fields
            }
            yield rows, Neighbourhood(**part_of_fields)

    @property
    def is_constant(self) -> Mask:
        """Whether a regressor is zero in all samples, without another category."""
        return self.contrast == 0
