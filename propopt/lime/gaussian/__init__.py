"""Normal samples in closed form: gains, critical bandwidths, errors at the row."""

from propopt.lime.gaussian.bandwidths import CriticalBandwidths, critical_bandwidths
from propopt.lime.gaussian.gains import Gains, gains
from propopt.lime.gaussian.local_error import LocalError, local_error


__all__ = [
    "CriticalBandwidths",
    "Gains",
    "LocalError",
    "critical_bandwidths",
    "gains",
    "local_error",
]
