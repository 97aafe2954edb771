"""Normal samples in closed form: gains, critical bandwidths, errors at the row."""

from propopt.lime.gaussian.bandwidths import CriticalBandwidths, critical_bandwidths
from propopt.lime.gaussian.bounds import LinearTheorem, linear_theorem_samples
from propopt.lime.gaussian.gains import Gains, gains
from propopt.lime.gaussian.local_error import LocalError, local_error
from propopt.lime.gaussian.noise import linear_noise


__all__ = [
    "CriticalBandwidths",
    "Gains",
    "LinearTheorem",
    "LocalError",
    "critical_bandwidths",
    "gains",
    "linear_noise",
    "linear_theorem_samples",
    "local_error",
]
