"""What is seen beside a row: other bins of one column, cells of two.

- :class:`~propopt.lime.views.profile.RowProfile`: means of f over the bins of each
  column.
- :class:`~propopt.lime.views.cells.RowCells`: coefficients of two columns in each
  cell of their bins.
- :mod:`propopt.lime.views.columns`: edges of bins around values, values in bins.
"""

from propopt.lime.views.cells import RowCells
from propopt.lime.views.profile import RowProfile


__all__ = ["RowCells", "RowProfile"]
