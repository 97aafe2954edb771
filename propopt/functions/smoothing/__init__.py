"""Means of functions under laws of their columns, and the slopes of these means.

``smoothed`` chooses: ``gaussian`` is the mean under noise, ``exact`` that of a sum of
boxes under the data law, ``sampled`` that of any function. ``checked`` compares boxes
with the function that they are; ``growing`` estimates can be drawn on.
"""

from propopt.functions.smoothing.checked import EXACT_BOXES
from propopt.functions.smoothing.exact import ExactMean
from propopt.functions.smoothing.gaussian import Changes, SmoothedFunction
from propopt.functions.smoothing.growing import GrowingEstimate
from propopt.functions.smoothing.sampled import SampledMean
from propopt.functions.smoothing.smoothed import smoothed


__all__ = [
    "EXACT_BOXES",
    "Changes",
    "ExactMean",
    "GrowingEstimate",
    "SampledMean",
    "SmoothedFunction",
    "smoothed",
]
