"""Linear functions under normal samples: all that their coefficients are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions, Points, Values
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.lime.expectations import Limits
from propopt.lime.gaussian.geometry import Geometry, rows_of_law
from propopt.lime.gaussian.tails import tails
from propopt.lime.laws.base import LimeLaw
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, eq=False)
class Gains:
    """What becomes of the slopes of linear functions: β_j = a_j g_j.

    g_j = E_Q[x_j | in the bin] − E_Q[x_j | outside] = −θ_j / (α_j (1 − α_j)) is the
    same for all linear functions. It differs between columns, so that coefficients of
    different columns do not compare, and it is negative where the bin lies left of the
    mean μ̃_j of the weighted samples: then the coefficient has the sign that the
    gradient has not.

    Parameters
    ----------
    gain : array (n, D)
        g; NaN where a column or a value is not a number.
    alpha, complement : array (n, D)
        α, the probability of the bin under weighted samples, and 1 − α.
    theta : array (n, D)
        σ̃ (φ(hi) − φ(lo)): the step of the weighted density between the ends of the
        bin, times σ̃².
    mean, deviation : array (n, D)
        μ̃ and σ̃ of the weighted samples.
    log_weight : array (n,)
        log C, the mean weight of a sample.
    labels : Labels
        Names of rows and columns.
    """

    gain: Attributions
    alpha: Array
    complement: Array
    theta: Array
    mean: Array
    deviation: Array
    log_weight: Values
    labels: Labels = Labels()

    @property
    def has_sign_of_gradient(self) -> Array:
        """1 where coefficients of linear functions have the sign of the slope, (n, D).

        −1 where they have the other one, 0 where they vanish, NaN where there is no
        gain.
        """
        return np.asarray(np.sign(self.gain))

    def of_linear(self, slopes: ArrayLike, intercept: float = 0.0) -> Limits:
        """The limits of LIME for f(x) = aᵀx + b, in closed form.

        β_j = a_j g_j,  β_0 = f(μ̃) − Σ_j α_j β_j.

        Parameters
        ----------
        slopes : array (D,)
            a.
        intercept : float
            b.

        Raises
        ------
        InvalidInput
            If there is not one finite slope for each column, or a column that has one
            is not of normal numbers.
        """
        a = read_array(slopes, "slopes", ndim=1)
        if a.shape != self.gain.shape[1:]:
            raise InvalidInput(
                f"slopes: expected {self.gain.shape[1]} numbers, got {len(a)}"
            )
        used = a != 0.0
        absent = np.isnan(self.gain).any(axis=0) & used
        if absent.any():
            name = self.labels.feature_names(len(a))[int(absent.argmax())]
            raise InvalidInput(
                f"slopes: column {name!r} has a slope, but is not of numbers alone; "
                "po.lime.limits explains functions of categories and missing numbers"
            )
        coefficients = np.where(used, a * self.gain, 0.0)
        mean = intercept + self.mean[:, used] @ a[used]
        return Limits(coefficients, mean, self.alpha, self.log_weight)

    def to_frame(self) -> pd.DataFrame:
        """The gains, with the names of rows and columns."""
        return self.labels.frame(self.gain)


def gains(law: LimeLaw, X: Any) -> Gains:
    """What LIME with normal samples makes of the slopes of linear functions.

    Parameters
    ----------
    law : GaussianLaw or GlimeLaw
        GLIME's law of a gaussian law has the same gains.
    X : DataFrame or array (n, D)
        The rows; categories as codes.

    Returns
    -------
    Gains

    Raises
    ------
    InvalidInput
        If the law has no normal samples, or X is no table of its columns.

    Examples
    --------
    >>> import propopt as po
    >>> law = po.lime.GaussianLaw.of([0.0, 0.0], scale=1.0, kernel_width=1.0)
    >>> po.lime.gains(law, [[1.0, -0.5]]).gain.round(4)
    array([[ 1.1378, -0.1271]])

    In the second column a function that increases has a negative coefficient.
    """
    law, points, labels = rows_of_law(law, X)
    return gains_at(Geometry.of(law), points, labels)


def gains_at(geometry: Geometry, points: Points, labels: Labels) -> Gains:
    """As :func:`gains`, at rows that are read."""
    near = geometry.near(points)
    masses = tails(
        (near.low - near.mean) / near.deviation,
        (near.high - near.mean) / near.deviation,
    )
    alpha, complement = masses.alpha, masses.complement
    log_weight = near.log_weight
    # what is no number has no gain, but a bin and a weight
    for j in np.flatnonzero(np.isnan(masses.contrast).any(axis=0)):
        tilt = geometry.law.columns[j].tilt(points[:, j], geometry.law.widths(points))
        alpha[:, j], complement[:, j] = tilt.alpha, tilt.complement
        log_weight[:, j] = tilt.log_weight
    return Gains(
        near.deviation * masses.contrast,
        alpha,
        complement,
        near.deviation * masses.theta,
        near.mean,
        near.deviation,
        log_weight.sum(axis=1),
        labels,
    )
