"""The families of factors under test, and the functions of words.

A new family is one line here: every test of ``tests/laws/test_contract.py`` then covers
it under every law. Kinks and jumps are at multiples of ¼ between −8 and 8, where the
oracles cut.
"""

from collections.abc import Mapping

import numpy as np

from papers.text_lime.set_functions import conjunctions, single_words
from propopt.structures.boxes.sets import Sets
from propopt.structures.products import families
from propopt.structures.subsets.conjunctions import Conjunctions, Enumerated
from propopt.structures.subsets.sets import Blocks, SetFunction
from propopt.structures.subsets.sums import AddedSets, NormalisedSum


_RNG = np.random.default_rng(4)
_AT = np.zeros(3, np.intp)
_CENTERS = np.array([-0.5, 0.0, 2.0])
_BUMPS = families.Bumps(_AT, _CENTERS, np.array([0.3, 1.0, 5.0]))
_INF = np.inf
_LEAVES = conjunctions([2.0, -1.0, 0.5], [[0, 3], [1], []], [[2], [], [4]], 6, 0.7)
_NOTHING = np.zeros((1, 4))

FAMILIES: Mapping[str, families.Factors] = {
    "bumps": _BUMPS,
    "exponentials": families.Exponentials(_AT, np.array([-0.7, 0.0, 0.5]), _CENTERS),
    "powers": families.Powers(_AT, np.array([1, 2, 6]), _CENTERS),
    "tables": families.Tables(
        _AT,
        np.array([-1.0, 0.5, 2.0, 3.0]),
        *map(_RNG.normal, _AT, _AT + 1, ((3, 4), 3, 3)),
    ),
    "imputed": families.Imputed(_BUMPS, np.array([0.2, 0.4, 0.9])),
    "curves": families.Curves(
        _AT,
        (np.sin, lambda x: np.abs(x - 0.25), lambda x: np.where(x > 0.5, 2.0, -1.0)),
        (np.zeros(0), np.array([0.25]), np.array([0.5])),
    ),
    "sets": Sets.of_numbers(
        [0] * 5,
        [-_INF, 0.25, 0.5, 2.0, -_INF],
        [0.75, 1.0, _INF, 1.0, _INF],  # the fourth holds nothing but NaN
        [False, True, False, True, False],
    ),
    "sets of codes": Sets.of_codes(
        [0, 0], np.array([[1, 0, 1, 0], [0, 0, 0, 1]], bool)
    ),
}

WORD_FUNCTIONS: Mapping[str, SetFunction] = {
    "conjunctions": _LEAVES,
    "enumerated": Enumerated.of(lambda bits: np.sin(bits @ np.arange(1.0, 7.0)), 6),
    "blocks": Conjunctions.of_blocks(
        0.2,
        (
            Blocks(np.array([[4, 0]]), np.array([[0.0, 1.0, -2.0, 0.3]]), _NOTHING),
            single_words(np.array([1.0, 0.0]), np.zeros(2), np.array([1, 5])),
        ),
        6,
    ),
    "normalised sum": NormalisedSum(
        0.7, (single_words(_RNG.normal(size=6), _RNG.random(6), np.arange(6)),), 0.5
    ),
    "levels": AddedSets([(1.0, _LEAVES)], np.arange(7.0) ** 2),
    "added": AddedSets([(2.0, _LEAVES), (-0.5, _LEAVES)], base=1.25),
}


def is_of(factors: families.Factors, coded: bool) -> bool:
    """Whether they are of numbers, or of codes: sets alone are of one of both."""
    return not isinstance(factors, Sets) or bool(factors.coded[0]) == coded


def is_closed(factors: families.Factors) -> bool:
    """Whether their means under noise are exact; those of others are sampled."""
    return isinstance(factors, families.ClosedFactors | Sets)
