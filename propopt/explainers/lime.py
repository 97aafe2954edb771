"""LIME: a local linear fit at each point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from propopt._typing import Array, Values
from propopt.batches import Budget
from propopt.checks import read_nonnegative, read_positive
from propopt.errors import InvalidInput
from propopt.explainers.base import Baseline, Findings
from propopt.explainers.request import Request
from propopt.memory import require_memory
from propopt.sampling.neighbourhoods import CategoryDraws, MissingDraws, Neighbourhood
from propopt.sampling.perturbations import Distribution, Perturbations
from propopt.sampling.regressions import Fits, Regressions


FITTED_TOGETHER: Final = Budget(2**19)
"""Regressors of one call of LAPACK, few enough to stay in a processor's cache."""


@dataclass(frozen=True, kw_only=True)
class Lime(Baseline):
    """Slopes of a weighted least-squares fit of f around each point.

    minimise over w, b:  Σ_s π_s (f(x̃_s) − b − wᵀx̃_s)² + ridge ‖w‖²,
    x̃_s = x_n + ε_s,  π_s = exp(−‖ε_s‖² / (2 kernel_width²))

    (Tadesse et al. 2024, Eq. 16 and 18; Ribeiro et al. 2016). The paper's model has no
    intercept: ``fit_intercept=False`` with b = 0 reproduces it. With an intercept,
    gaussian draws and no kernel, the fit tends to SmoothGrad of the same scale as S
    grows (Stein's lemma). For the ``lime`` package see :class:`LimePackage`.

    A category is kept with probability 1/2 and else drawn from its frequencies p in the
    function's schema. Its regressor is 1[c̃_s = c_n] − p_{c_n}, its slope β is given as
    β (1 − p_{c_n}), and in ‖ε_s‖² another category counts 1. For a model that is linear
    in indicators, without interactions, this tends to f(x) − Σ_c p_c f(x with c), which
    is what gradients have: β is f at c_n less its mean over the other categories.
    Numeric slopes then need more samples: other categories are noise to them.

    A number that is missing gets no noise: it stays missing with probability 1/2 and is
    else drawn from the values that were observed in its column, with the regressor 1
    where it stayed. Its slope is f where it is missing less the mean of f over them.

    The result has ``standard_errors`` (N, D), the Monte-Carlo standard error of each
    slope (sandwich), and these ``details``:

    ===================== ======= ====================================================
    ``intercept``         (N,)    b; zero where none was fitted
    ``r2``                (N,)    weighted R² of the fit, about the weighted mean of f;
                                  1 where f is constant on the samples
    ``effective_samples`` (N,)    Kish: (Σπ)² / Σπ²
    ===================== ======= ====================================================

    Parameters
    ----------
    scale : float
        δ > 0, in the units of the features.
    n_samples : int
        S draws per point; at least as many as unknowns, unless ``ridge`` > 0.
    distribution : {"gaussian", "uniform", "ball"}
        ε ~ N(0, δ² I), uniform in the cube [−δ, δ]^D, or uniform in the ball of radius
        δ.
    kernel_width : float or None
        None: all weights are one.
    ridge : float
        Penalty on the slopes, not on the intercept; it competes with Σ_s π_s, which
        grows with S.
    fit_intercept : bool
        Whether b is fitted.
    relative : bool
        Whether ``scale`` and ``kernel_width`` are in units of the standard deviations
        of the function's schema, see :func:`propopt.wrap` and its ``data``.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, or if the samples do not determine the fit.
    Refused
        If the samples of one point do not fit into memory.

    Examples
    --------
    >>> from propopt.functions import Power
    >>> lime = Lime(scale=0.1, n_samples=500).explain(Power(2), [[1.0, -3.0]])
    >>> lime.attributions.round(1)
    array([[ 2., -6.]])
    >>> bool(lime.details["r2"] > 0.99)
    True
    """

    method: ClassVar[str] = "lime"

    scale: float
    n_samples: int = 1000
    distribution: Distribution = "gaussian"
    kernel_width: float | None = None
    ridge: float = 0.0
    fit_intercept: bool = True
    relative: bool = False

    def __post_init__(self) -> None:
        self._perturbations()
        if self.kernel_width is not None:
            read_positive(self.kernel_width, "kernel_width")
        read_nonnegative(self.ridge, "ridge")

    def _expected(self, request: Request) -> int:
        return len(request.points) * self.n_samples

    def _findings(self, request: Request) -> Findings:
        self._check_size(request.points.shape[1])
        categories = CategoryDraws.of(request.function.schema, request.rng)
        observed = request.function.observed
        missing = MissingDraws.of(observed, request.points, request.rng)
        noise = self._perturbations().blocks(
            request.points.shape, request.rng, units=request.noise_units(self.relative)
        )
        units = self._units(request)
        blocks = []
        for rows, draws in noise:
            near = Neighbourhood.of(
                request.points[rows], draws, units, categories, missing
            )
            values = request.value(near.samples)
            for part, nearer in near.parts(FITTED_TOGETHER):
                first = rows.start + part.start
                blocks.append(self._fit(nearer, values[part], first))
            request.advance(len(draws))
        names = ("intercept", "r2", "effective_samples")
        return Findings(
            attributions=_joined(blocks, "slopes"),
            standard_errors=_joined(blocks, "standard_errors"),
            details={name: _joined(blocks, name) for name in names},
        )

    def _units(self, request: Request) -> Array:
        """The size of each regressor, (D,): δ in numeric columns, 1 for categories."""
        units = request.feature_units(self.relative)
        return np.where(request.categorical, 1.0, self.scale * units)

    def _fit(self, near: Neighbourhood, values: Array, first: int) -> dict[str, Array]:
        """The fits at consecutive points, all at once, from S samples around each."""
        weights = self._weights(near)
        design, targets, means = self._centred(near, values, weights)
        root_ridge = math.sqrt(self.ridge) / near.units + near.is_constant
        kernel = None if self.kernel_width is None else weights
        fits = Regressions(design, targets, kernel, root_ridge).solve()
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

    def _weights(self, near: Neighbourhood) -> Array:
        """π, shape (n, S)."""
        if self.kernel_width is None:
            return np.ones(near.samples.shape[:-1])
        squares = near.squared_distances(self.scale)
        weights: Array = np.exp(-squares / (2 * self.kernel_width**2))
        if weights.max(axis=1).min() < np.finfo(float).tiny:
            raise InvalidInput(
                f"kernel_width: {self.kernel_width} is so small beside scale "
                f"{self.scale} that all weights of a point vanish"
            )
        return weights

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

    def _check_size(self, n_features: int) -> None:
        unknowns = n_features + self.fit_intercept
        if self.ridge == 0 and self.n_samples < unknowns:
            raise InvalidInput(
                f"n_samples: {self.n_samples} samples cannot determine {unknowns} "
                f"unknowns; expected n_samples >= {unknowns}, or ridge > 0"
            )
        # Draws, copies, design, weighted system, its factorisation, influences.
        n_bytes = 6.0 * 8 * self.n_samples * n_features
        what = f"a fit of {self.n_samples} samples x {n_features} features"
        require_memory(n_bytes, what, "use fewer samples, or SmoothGrad")

    def _check_determined(self, fits: Fits, weights: Array, first: int) -> None:
        lost = fits.undetermined(weights.shape[1])
        if lost.any():
            n = int(lost.argmax())
            raise InvalidInput(
                f"lime at point {first + n}: {self.n_samples} samples "
                f"({_kish(weights[n : n + 1])[0]:.3g} effective) do not determine the "
                "fit; use a larger scale, kernel_width or n_samples, or ridge > 0"
            )

    def _perturbations(self) -> Perturbations:
        return Perturbations(
            scale=self.scale, n_samples=self.n_samples, distribution=self.distribution
        )


def _joined(blocks: Sequence[Mapping[str, Array]], name: str) -> Array:
    return np.concatenate([block[name] for block in blocks])


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
