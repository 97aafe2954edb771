"""Limits that are estimated, where a function is no sum of products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Points, Values
from propopt.functions import Function
from propopt.lime.laws import LimeLaw
from propopt.lime.laws.draws import draw_weighted
from propopt.output.progress import progress_bar
from propopt.sampling.regressions import Regressions


@final
@dataclass(frozen=True, eq=False)
class Estimated:
    """As :class:`~propopt.lime.expectations.limits.Limits`, with standard errors."""

    coefficients: Attributions
    mean: Values
    alpha: Array
    log_weight: Values
    standard_errors: Array
    evaluations: int

    @property
    def intercept(self) -> Values:
        """β_0 = E_Q f − Σ_j α_j β_j, (n,)."""
        pulls = np.einsum("nd,nd->n", self.alpha, self.coefficients)
        return np.asarray(self.mean - pulls)


def estimate(
    function: Function,
    law: LimeLaw,
    points: Points,
    widths: Values,
    *,
    n_samples: int,
    rng: np.random.Generator,
    progress: bool | None = False,
) -> Estimated:
    """Least squares on samples of the weighted law, all with weight one."""
    tilts = [c.tilt(x, widths) for c, x in zip(law.columns, points.T, strict=True)]
    slopes, errors = np.empty((2, *points.shape))
    mean = np.empty(len(points))
    with progress_bar("lime", len(points), progress) as bar:
        for n in range(len(points)):
            one = slice(n, n + 1)
            draws = draw_weighted(law.columns, points[one], widths[one], n_samples, rng)
            values = function.value_at(draws.samples[0])
            mean[n] = values.mean()
            slopes[one], errors[one] = _fit(draws.bits, values - mean[n])
            bar.advance(bar.task_ids[0])
    return Estimated(
        slopes,
        mean,
        np.stack([tilt.alpha for tilt in tilts], axis=1),
        np.sum([tilt.log_weight for tilt in tilts], axis=0),
        errors,
        len(points) * n_samples,
    )


def _fit(bits: Array, values: Values) -> tuple[Array, Array]:
    design = bits - bits.mean(axis=1, keepdims=True)
    constant = (design == 0.0).all(axis=1).astype(float)
    fits = Regressions(design, values[None], None, constant).solve()
    return fits.slopes, fits.errors(fits.residuals)
