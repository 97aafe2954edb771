"""Bins of columns: where they end, what is in them, and what they are called.

- :class:`~propopt.lime.bins.rules.BinRule`: how many bins, or where they end;
  :func:`~propopt.lime.bins.rules.read_rules` reads one for each column.
- :class:`~propopt.lime.bins.numbers.NumberBins`: statistics of numbers in bins.
- :class:`~propopt.lime.bins.codes.CodeBins`: values that are bins by themselves.
"""

from propopt.lime.bins.codes import CodeBins
from propopt.lime.bins.numbers import NumberBins
from propopt.lime.bins.rules import BinRule, read_rules


__all__ = ["BinRule", "CodeBins", "NumberBins", "read_rules"]
