"""Normal samples, weighted by their distance from the row.

- :class:`~propopt.lime.laws.gaussian.law.GaussianLaw`: the law of the linear paper.
- :class:`~propopt.lime.laws.gaussian.column.NormalColumn`: one column of numbers.
- :class:`~propopt.lime.laws.gaussian.settings.NormalSettings`: how these are made of a
  table.
"""

from propopt.lime.laws.gaussian.column import NormalColumn
from propopt.lime.laws.gaussian.law import FEW_BEYOND, GaussianLaw


__all__ = ["FEW_BEYOND", "GaussianLaw", "NormalColumn"]
