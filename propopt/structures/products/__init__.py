"""Sums of products of functions of one column each, and what laws make of them.

- :class:`~propopt.structures.products.sum_of_products.SumOfProducts`: such a function;
  :class:`~propopt.structures.products.sum_of_products.NoProducts`: why one is not.
- :class:`~propopt.structures.products.factors.Factors`: families of functions of one
  column: :class:`~propopt.structures.products.bumps.Bumps`,
  :class:`~propopt.structures.products.powers.Powers`,
  :class:`~propopt.structures.products.exponentials.Exponentials`,
  :class:`~propopt.structures.products.tables.Tables`,
  :class:`~propopt.structures.products.curves.Curves` of any shape, and sets of boxes;
  :class:`~propopt.structures.products.imputed.Imputed` gives others values of NaN.
- :class:`~propopt.structures.products.pieces.Pieces`: laws of one column under which
  factors have means: single values, and truncated
  :class:`~propopt.structures.products.normals.Normals`.
- :class:`~propopt.structures.products.products.Products`: sums of products of
  :class:`~propopt.structures.products.measures.Measures`.
"""

from propopt.structures.products.bumps import Bumps
from propopt.structures.products.curves import CurveRule, Curves
from propopt.structures.products.exponentials import Exponentials
from propopt.structures.products.factors import Factors
from propopt.structures.products.imputed import Imputed
from propopt.structures.products.measures import Measures, SetMeasures
from propopt.structures.products.normals import Normals
from propopt.structures.products.pieces import Pieces
from propopt.structures.products.powers import Powers
from propopt.structures.products.products import Products
from propopt.structures.products.sum_of_products import NoProducts, SumOfProducts
from propopt.structures.products.tables import Tables


__all__ = [
    "Bumps",
    "CurveRule",
    "Curves",
    "Exponentials",
    "Factors",
    "Imputed",
    "Measures",
    "NoProducts",
    "Normals",
    "Pieces",
    "Powers",
    "Products",
    "SetMeasures",
    "SumOfProducts",
    "Tables",
]
