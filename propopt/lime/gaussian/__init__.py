"""Normal samples in closed form: gains, critical bandwidths, noise."""

from propopt.lime.gaussian.bandwidths import CriticalBandwidths, critical_bandwidths
from propopt.lime.gaussian.gains import Gains, gains
from propopt.lime.gaussian.noise import linear_noise


__all__ = [
    "CriticalBandwidths",
    "Gains",
    "critical_bandwidths",
    "gains",
    "linear_noise",
]
