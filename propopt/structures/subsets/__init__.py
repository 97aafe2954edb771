"""Functions of sets of words, whose means over sets of one size are known exactly.

- :class:`~propopt.structures.subsets.set_function.SetFunction`: what is asked of one;
  :class:`~propopt.structures.subsets.set_function.NoSetFunction`: why there is none;
  :class:`~propopt.structures.subsets.set_function.SizeMeans`: its means alone.
- :class:`~propopt.structures.subsets.conjunctions.Conjunctions`: trees on words.
- :class:`~propopt.structures.subsets.plain.PlainSum` and
  :class:`~propopt.structures.subsets.normalised.NormalisedSum`: linear models, of
  :class:`~propopt.structures.subsets.blocks.Blocks` of words that share features.
- :class:`~propopt.structures.subsets.enumerated.Enumerated`: anything of few words.
- :class:`~propopt.structures.subsets.word_pairs.WordPairs`: sizes, words and pairs.
- :class:`~propopt.structures.subsets.added.AddedSets`: weighted sums of these.
- :class:`~propopt.structures.subsets.shapley.WordShapley`: what each word adds.
"""

from propopt.structures.subsets.added import AddedSets
from propopt.structures.subsets.blocks import Blocks
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.enumerated import MOST_ENUMERATED, Enumerated
from propopt.structures.subsets.normalised import NormalisedSum
from propopt.structures.subsets.plain import PlainSum
from propopt.structures.subsets.set_function import (
    NoSetFunction,
    SetFunction,
    SizeMeans,
)
from propopt.structures.subsets.sets import all_sets
from propopt.structures.subsets.shapley import WordShapley
from propopt.structures.subsets.word_pairs import WordPairs


__all__ = [
    "MOST_ENUMERATED",
    "AddedSets",
    "Blocks",
    "Conjunctions",
    "Enumerated",
    "NoSetFunction",
    "NormalisedSum",
    "PlainSum",
    "SetFunction",
    "SizeMeans",
    "WordPairs",
    "WordShapley",
    "all_sets",
]
