"""SmoothGrad: the gradient, averaged over noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from propopt._typing import Array
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.explainers.base import Baseline, Findings
from propopt.explainers.request import Request
from propopt.sampling.perturbations import Distribution, Perturbations


@dataclass(frozen=True, kw_only=True)
class SmoothGrad(Baseline):
    """Mean gradient over perturbed copies of each point.

    w_n = (1/S) Σ_s ∇f(x_n + ε_s) (Tadesse et al. 2024, Eq. 15; Smilkov et al. 2017).
    With uniform draws the method is also called UniGrad.

    The result has ``standard_errors`` (N, D): the Monte-Carlo standard error of each
    attribution, to be halved by four times as many samples. Memory stays
    bounded for any N, S and D: gradients are averaged as they come. Categories are kept
    as they are; their effects are averaged over the noise in the numeric columns.

    Parameters
    ----------
    scale : float
        δ > 0, in the units of the features: the standard deviation of the noise, or
        the half-width or radius of its support.
    n_samples : int
        S ≥ 2 gradients per point.
    distribution : {"gaussian", "uniform", "ball"}
        ε ~ N(0, δ² I), uniform in the cube [−δ, δ]^D, or uniform in the ball of radius
        δ (the paper writes "radius δ²").
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
    distribution: Distribution = "gaussian"
    relative: bool = False

    def __post_init__(self) -> None:
        if read_count(self.n_samples, "n_samples") < 2:
            raise InvalidInput(
                "n_samples: expected at least 2, which a standard error needs, got "
                f"{self.n_samples}"
            )
        self._perturbations()

    def _texts_refusal(self) -> str:
        return (
            "words get no noise; Gradient is the effect of each word, and "
            "Lime(law=po.lime.TextLaw()) is about texts in which others are deleted too"
        )

    def _findings(self, request: Request) -> Findings:
        moments = _Moments(request.points.shape)
        noise = self._perturbations()
        units = request.noise_units(self.relative)
        for rows, draws in noise.blocks(
            request.points.shape, request.rng, units=units, split=True
        ):
            moments.add(rows, request.gradient(request.points[rows, None] + draws))
            request.advance(draws.shape[0] * draws.shape[1] / self.n_samples)
        return Findings(
            attributions=moments.mean, standard_errors=moments.standard_errors()
        )

    def _perturbations(self) -> Perturbations:
        return Perturbations(
            scale=self.scale, n_samples=self.n_samples, distribution=self.distribution
        )


class _Moments:
    """Running mean and sum of squared deviations (Chan, Golub and LeVeque 1983)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = np.zeros((shape[0], 1))
        self.mean = np.zeros(shape)
        self.squares = np.zeros(shape)

    def add(self, rows: slice, samples: Array) -> None:
        """Take in samples (n, s, D) of the given rows."""
        mean = samples.mean(axis=1)
        shift = mean - self.mean[rows]
        new = samples.shape[1]
        part = new / (self.count[rows] + new)
        self.squares[rows] += ((samples - mean[:, None]) ** 2).sum(axis=1)
        self.squares[rows] += shift**2 * self.count[rows] * part
        self.mean[rows] += shift * part
        self.count[rows] += new

    def standard_errors(self) -> Array:
        """Of the means, (N, D)."""
        error: Array = np.sqrt(self.squares / (self.count - 1) / self.count)
        return error
