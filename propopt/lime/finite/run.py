"""What one run of LIME gives, and how many samples a precision takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Values
from propopt.checks import read_positive
from propopt.errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class SingleRun:
    """What one run of n samples gives, in its mean and its scatter, in n situations.

    Parameters
    ----------
    n_samples : int
        Of the run.
    coefficients : array (n, D)
        In the mean of runs.
    intercept : array (n,)
        Likewise.
    covariance : array (n, D + 1, D + 1)
        Of the intercept and the coefficients of a run.
    """

    n_samples: int
    coefficients: Attributions
    intercept: Values
    covariance: Array

    @property
    def standard_deviations(self) -> Attributions:
        """Of the coefficients of one run, (n, D)."""
        return self._deviations[:, 1:]

    @property
    def intercept_deviation(self) -> Values:
        """Of the intercept of one run, (n,)."""
        return self._deviations[:, 0]

    @property
    def _deviations(self) -> Array:
        squares = np.diagonal(self.covariance, axis1=1, axis2=2)
        return np.sqrt(np.maximum(squares, 0.0))

    def samples_for(
        self, standard_error: float | None = None, *, z: float | None = None
    ) -> Array:
        """The samples that a run needs for a precision, for each coefficient (n, D).

        n (SE(n) / s)², rounded up, as errors fall with 1 / √n. For all coefficients of
        a row it takes their maximum.

        Parameters
        ----------
        standard_error : float, optional
            The standard deviation s of a coefficient from run to run.
        z : float, optional
            Instead: how many times its own standard deviation a coefficient is to be,
            s = |b_j| / z; 2 tells it from 0. No number does for one that is 0: inf.

        Raises
        ------
        InvalidInput
            If not exactly one of both is given, or if it is not positive.
        """
        wanted = self._wanted(standard_error, z)
        return required_samples(self.n_samples, self.standard_deviations, wanted)

    def _wanted(self, standard_error: float | None, z: float | None) -> Array:
        if (standard_error is None) == (z is None):
            raise InvalidInput("samples_for: give either standard_error or z")
        if standard_error is not None:
            s = read_positive(standard_error, "standard_error")
            return np.full(self.coefficients.shape, s)
        return np.abs(self.coefficients) / read_positive(z, "z")


def required_samples(n_samples: int, deviations: Array, wanted: Array | float) -> Array:
    """N (SE(n) / s)² rounded up, of the shape of the deviations; 1 where these are 0.

    Parameters
    ----------
    n_samples : int
        n.
    deviations : array
        SE(n), of coefficients of runs of n samples; NaN where it is not known.
    wanted : array or float
        s; of 0 it is inf.
    """
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.divide(
            deviations, wanted, out=np.zeros_like(deviations), where=deviations != 0.0
        )
        return np.asarray(np.ceil(np.maximum(1.0, n_samples * ratio**2)))
