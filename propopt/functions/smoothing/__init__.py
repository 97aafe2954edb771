"""Means of functions under laws of their columns, and the slopes of these means.

``gaussian`` is sampled, under noise; ``smoothed`` makes any of them.
"""

from propopt.functions.smoothing.gaussian import Changes, SmoothedFunction, smoothed


__all__ = ["Changes", "SmoothedFunction", "smoothed"]
