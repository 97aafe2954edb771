"""Weighted least squares around points, with errors and measures of fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Values
from propopt.errors import InvalidInput
from propopt.sampling.neighbourhoods import Neighbourhood
from propopt.sampling.regressions import Fits, Regressions


@final
@dataclass(frozen=True)
class LocalFit:
    """minimise over w, b:  Σ_s π_s (f(x̃_s) − b − wᵀz_s)² + ridge ‖w‖².

    Parameters
    ----------
    ridge : float
        Penalty on the slopes, not on the intercept.
    fit_intercept : bool
        Whether b is fitted; else it is 0.
    """

    ridge: float
    fit_intercept: bool

    def around(
        self, near: Neighbourhood, values: Array, first: int
    ) -> dict[str, Array]:
        """Slopes, and what is known of them, at consecutive points, all at once.

        Parameters
        ----------
        near : Neighbourhood
            S samples around each of n points.
        values : array (n, S)
            f at the samples.
        first : int
            The position of the first point, for errors.

        Raises
        ------
        InvalidInput
            If the samples do not determine the fit.
        """
        weights = near.weights
        if weights is None:
            weights = np.ones(near.samples.shape[:-1])
        self._check_weights(weights, first)
        design, targets, means = self._centred(near, values, weights)
        root_ridge = math.sqrt(self.ridge) / near.units + near.is_constant
        fits = Regressions(design, targets, near.weights, root_ridge).solve()
        self._check_determined(fits, weights, first)
        residuals = fits.residuals
        per_unit = fits.slopes / near.units
        return {
            "slopes": per_unit * near.contrast,
            "intercept": self._intercept(near, means, per_unit),
            "r2": _r2(values, residuals, weights),
            "effective_samples": _kish(weights),
            "standard_errors": fits.errors(residuals) / near.units * near.contrast,
        }

    def _centred(
        self, near: Neighbourhood, values: Array, weights: Array
    ) -> tuple[Array, Array, tuple[Array, Values]]:
        """Regressors in units of the scale, targets, and the weighted means removed.

        An intercept takes up the weighted means, so the fit needs ε alone: x̃ − mean x̃
        would lose the digits of a small ε in those of x.
        """
        if not self.fit_intercept:
            none = np.zeros_like(near.origin), np.zeros(len(near.origin))
            whole = near.origin[:, None] + near.regressors
            return whole / near.units[:, None], values, none
        shares = weights / weights.sum(axis=1, keepdims=True)
        centre = np.einsum("ns,nsd->nd", shares, near.regressors)
        mean = np.einsum("ns,ns->n", shares, values)
        design = near.regressors - centre[:, None]
        design /= near.units[:, None]
        return design, values - mean[:, None], (centre, mean)

    def _intercept(
        self, near: Neighbourhood, means: tuple[Array, Values], slopes: Array
    ) -> Values:
        if not self.fit_intercept:
            return np.zeros(len(slopes))
        centre, mean = means
        intercept: Values = mean - np.einsum("nd,nd->n", near.origin + centre, slopes)
        return intercept

    def _check_weights(self, weights: Array, first: int) -> None:
        nothing = ~weights.any(axis=1)
        if nothing.any():
            raise InvalidInput(
                f"lime at point {first + int(nothing.argmax())}: the weights of all "
                f"{weights.shape[1]} samples vanish; use a larger kernel_width or "
                "bandwidth"
            )

    def _check_determined(self, fits: Fits, weights: Array, first: int) -> None:
        lost = fits.undetermined(weights.shape[1])
        if lost.any():
            n = int(lost.argmax())
            raise InvalidInput(
                f"lime at point {first + n}: {weights.shape[1]} samples "
                f"({_kish(weights[n : n + 1])[0]:.3g} effective) do not determine the "
                "fit; use a larger scale, kernel_width or n_samples, or ridge > 0"
            )


def _r2(values: Array, residuals: Array, weights: Array) -> Values:
    """1 − Σπe² / Σπ(f − f̄)²; 1 where f varies by no more than rounding."""
    mean = np.average(values, axis=1, weights=weights)
    spread = (weights * (values - mean[:, None]) ** 2).sum(axis=1)
    rounding = (weights * (16 * np.finfo(float).eps * values) ** 2).sum(axis=1)
    left = (weights * residuals**2).sum(axis=1)
    varies = spread > rounding
    unexplained: Values = np.zeros_like(left)
    np.divide(left, spread, out=unexplained, where=varies)
    return 1 - unexplained


def _kish(weights: Array) -> Values:
    relative = weights / weights.max(axis=1, keepdims=True)
    size: Values = relative.sum(axis=1) ** 2 / (relative**2).sum(axis=1)
    return size
