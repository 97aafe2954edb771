"""SmoothGrad: mean gradients over perturbed copies of each point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers.baseline import Baseline, Findings, Request
from propopt.laws.perturbations import Perturbations
from propopt.laws.sampling import DrawCost, Sampler
from propopt.losses.faithfulness import relative_size


@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class SmoothGrad(Baseline):
    """Mean gradient over perturbed copies of each point.

    w_n = (1/S) Σ_s ∇f(x_n + ε_s) (Tadesse et al. 2024, Eq. 15; Smilkov et al. 2017).

    The result has ``standard_errors`` (N, D): the Monte-Carlo standard error of each
    attribution, to be halved by four times as many samples. Memory stays
    bounded for any N, S and D: gradients are averaged as they come. Categories are kept
    as they are; their effects are averaged over the noise in the numeric columns.

    Parameters
    ----------
    scale : float
        δ > 0, in the units of the features: the standard deviation of the noise.
    n_samples : int
        S ≥ 2 gradients per point.
    precision : float, optional
        Draw on until the standard errors of all attributions together, √Σ e², are this
        part of √Σ w², such as 0.02.
    max_evaluations : int, optional
        The most gradients for it; if they are too few, a warning says what was reached.
    relative : bool
        Whether ``scale`` is in units of the standard deviations of the function's
        schema, see :func:`propopt.wrap` and its ``data``.

    Raises
    ------
    InvalidInput
        If a setting is outside its range.

    Examples
    --------
    The mean of 3(x + ε)² is 3x² + 3δ².

    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> smooth = SmoothGrad(scale=1.0, n_samples=2000).explain(Power(3), [[2.0]])
    >>> error = smooth.attributions - 15
    >>> bool(np.abs(error) < 4 * smooth.standard_errors)
    True
    """

    method: ClassVar[str] = "smoothgrad"

    scale: float
    n_samples: int = 100
    relative: bool = False
    precision: float | None = None
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if read_count(self.n_samples, "n_samples") < 2:
            raise InvalidInput(
                "n_samples: expected at least 2, which a standard error needs, got "
                f"{self.n_samples}"
            )
        self.noise(self.n_samples)
        _ = self._draws

    def _texts_refusal(self) -> str:
        return (
            "words get no noise; Gradient is the effect of each word, and "
            "Lime(law=po.lime.TextLaw()) is about texts in which others are deleted too"
        )

    def _findings(self, request: Request) -> Findings:
        drawn = SmoothedGradients.of(self, request, self._draws)
        self._draws.warn_if_larger(drawn.error)
        return Findings(attributions=drawn.mean, standard_errors=drawn.standard_errors)

    @property
    def _draws(self) -> DrawPlan:
        return DrawPlan(
            self.n_samples,
            precision=self.precision,
            max_evaluations=self.max_evaluations,
        )

    def noise(self, n_samples: int) -> Perturbations:
        """Make the given number of noise draws ε around each point."""
        return Perturbations(scale=self.scale, n_samples=n_samples)


@final
@dataclass(frozen=True, eq=False)
class SmoothedGradients(Sampler):
    """Means and squares, joined as they come (Chan, Golub and LeVeque 1983)."""

    method: SmoothGrad
    request: Request
    mean: Attributions  # (N, D)
    squares: Array  # (N, D)
    n_draws: int

    @classmethod
    def of(
        cls, method: SmoothGrad, request: Request, draws: DrawPlan
    ) -> SmoothedGradients:
        """Sample as many as requested, or as the precision requires."""
        mean, squares = np.zeros((2, *request.points.shape))
        empty = cls(method, request, mean, squares, 0)
        return empty.extended(empty.cost.first(draws)).enough(draws)

    @property
    def cost(self) -> DrawCost:
        return DrawCost(len(self.mean), fewest=2)

    @property
    def standard_errors(self) -> Array:
        """Of the means, (N, D)."""
        return np.sqrt(self.squares / (self.n_draws - 1) / self.n_draws)

    @property
    def error(self) -> float:
        return relative_size(self.standard_errors, self.mean)

    def extended(self, n_draws: int) -> SmoothedGradients:
        mean = self.mean.copy()
        squares = self.squares.copy()
        count = np.full((len(mean), 1), float(self.n_draws))
        request = self.request
        more = n_draws - self.n_draws
        noise = self.method.noise(more)
        units = request.noise_units(self.method.relative)
        for rows, draws in noise.blocks(
            mean.shape, request.rng, units=units, split=True
        ):
            samples = request.gradient(request.points[rows, None] + draws)
            means = samples.mean(axis=1)
            new = samples.shape[1]
            shift = means - mean[rows]
            part = new / (count[rows] + new)
            squares[rows] += ((samples - means[:, None]) ** 2).sum(axis=1)
            squares[rows] += shift**2 * count[rows] * part
            mean[rows] += shift * part
            count[rows] += new
            if self.n_draws == 0:
                request.advance(draws.shape[0] * draws.shape[1] / more)
        return replace(self, mean=mean, squares=squares, n_draws=n_draws)
