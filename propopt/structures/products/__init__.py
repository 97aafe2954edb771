"""Sums of products of functions of one column each, and what laws make of them.

- :class:`~propopt.structures.products.sum_of_products.SumOfProducts`: such a function;
  :class:`~propopt.structures.products.sum_of_products.NoProducts`: why one is not.
- :class:`~propopt.structures.products.factors.Factors`: families of functions of one
  column: the sets of boxes, and those of :mod:`~propopt.structures.products.families`:
  ``Bumps``, ``Powers``, ``Exponentials``, ``Tables``, ``Curves`` of any shape, and
  ``Imputed``, which gives others values of NaN.
- :class:`~propopt.structures.products.pieces.Pieces`: laws of one column under which
  factors have means: single values, and truncated
  :class:`~propopt.structures.products.normals.Normals`.
- :class:`~propopt.structures.products.products.Products`: sums of products of
  :class:`~propopt.structures.products.measures.Measures`.
"""

from propopt.structures.products.factors import Factors
from propopt.structures.products.families.bumps import Bumps
from propopt.structures.products.families.curves import CurveRule, Curves
from propopt.structures.products.families.exponentials import Exponentials
from propopt.structures.products.families.imputed import Imputed
from propopt.structures.products.families.powers import Powers
from propopt.structures.products.families.tables import Tables
from propopt.structures.products.measures import Measures, SetMeasures
from propopt.structures.products.normals import Normals
from propopt.structures.products.pieces import Pieces
from propopt.structures.products.products import Products
from propopt.structures.products.sum_of_products import NoProducts, SumOfProducts


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
