"""How well a prior accounts for the gradients: evidence, and leaving one out.

Rotated feature j of all points has the prior precision R = λ Σ⁻¹ + Λ_j I (Tadesse et
al. 2024, Eq. 9), Λ_j = w_s ς_j, and is observed with unit variance. The observations
have the inverse covariance C⁻¹ = T⁻¹ − z zᵀ/s, where T = U diag((λ + p κ)/(λ + Λ κ)) Uᵀ
is that without a constant, z = λ U (o/(λ + p κ)) and s, r are those of :mod:`means`.
"""

from __future__ import annotations

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.inductive.conditioning import Exact
from propopt.inductive.means import LeftOut, Mean


def log_evidence(state: Exact, pull: Array, scale: float, mean: Mean) -> float:
    """Log density of the gradients under the prior, summed over features.

    A constant that smoothness does not see has the flat prior of density one, which
    gives the density of the contrasts (restricted likelihood) but for a number that
    depends on n and D alone.

    Parameters
    ----------
    state : Exact
        Gradients at all points.
    pull : array (D,) or (1,)
        Λ_j.
    scale : float
        λ.
    mean : Mean
        The constant of the prior.
    """
    kappa = state.eigenvalues[:, None]
    spectrum = (scale + (1.0 + pull) * kappa) / (scale + pull * kappa)
    n_points, n_features = state.targets.shape
    constants = state.constants(1.0 + pull, scale)
    known = scale * pull * ((state.ones**2)[:, None] / (scale + pull * kappa)).sum(0)
    proper = np.broadcast_to(known, n_features)
    squares = (state.targets**2 / spectrum).sum() - mean.explained(constants)
    volume = np.log(spectrum).sum() * (n_features / spectrum.shape[1])
    volume += mean.log_volume(constants, proper)
    count = n_points * n_features - mean.n_flat(proper)
    return float(-0.5 * (squares + volume + count * np.log(2.0 * np.pi)))


def log_leave_one_out(state: Exact, pull: Array, scale: float, mean: Mean) -> float:
    """Σ_n log density of gradient n given the others (Rasmussen and Williams, 5.11).

    All features of a point are left out together. The mean of that density is what
    ``explain`` gives at x_n from the other points.

    Parameters
    ----------
    state, pull, scale, mean
        As for :func:`log_evidence`.
    """
    n_points, n_features = state.targets.shape
    if n_points < 2:
        raise InvalidInput("optimize: leaving one out needs at least two points")
    left, constants = left_out(state, pull, scale), state.constants(1.0 + pull, scale)
    cost = mean.left_out_cost(left, constants)
    return float(-0.5 * (cost + n_points * n_features * np.log(2.0 * np.pi)))


def left_out(state: Exact, pull: Array, scale: float) -> LeftOut:
    """Residuals and leverages of every point in O(n² D), with no constant counted."""
    kappa, vectors = state.eigenvalues[:, None], state.basis.vectors
    inverse = (scale + pull * kappa) / (scale + (1.0 + pull) * kappa)
    slope = scale * state.ones[:, None] / (scale + (1.0 + pull) * kappa)
    return LeftOut(
        residual=vectors @ (inverse * state.targets),
        leverage=np.square(vectors) @ inverse,
        slope=vectors @ slope,
    )
