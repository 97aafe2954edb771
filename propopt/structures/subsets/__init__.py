"""Functions of sets of words, whose means over sets of one size are known exactly.

- :class:`~propopt.structures.subsets.set_function.SetFunction`: what is asked of one;
  :class:`~propopt.structures.subsets.set_function.NoSetFunction`: why there is none.
- :class:`~propopt.structures.subsets.conjunctions.Conjunctions`: trees on words.
"""

from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.set_function import NoSetFunction, SetFunction


__all__ = ["Conjunctions", "NoSetFunction", "SetFunction"]
