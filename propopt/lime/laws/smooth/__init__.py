"""Weights that depend on where a sample is, and not on its bin alone.

- :class:`~propopt.lime.laws.smooth.law.SmoothLaw`: tabular LIME with these weights.
- :class:`~propopt.lime.laws.smooth.column.SmoothColumn`: bins of one column of numbers.
- :class:`~propopt.lime.laws.smooth.polyline.Polyline`: τ, of straight pieces.
"""

from propopt.lime.laws.smooth.column import SmoothColumn
from propopt.lime.laws.smooth.law import SmoothLaw
from propopt.lime.laws.smooth.polyline import Polyline


__all__ = ["Polyline", "SmoothColumn", "SmoothLaw"]
