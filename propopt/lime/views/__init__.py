"""What is seen beside a row: other bins of one column, cells of two.

- :class:`~propopt.lime.views.profile.BinProfile`: means of f over the bins of each
  column.
- :class:`~propopt.lime.views.cell_map.CellMap`: coefficients of two columns in each
  cell of their bins.
- :mod:`propopt.lime.views.columns`: edges of bins around values, values in bins.
"""

from propopt.lime.views.cell_map import CellMap
from propopt.lime.views.profile import BinProfile


__all__ = ["BinProfile", "CellMap"]
