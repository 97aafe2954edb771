"""What a set of values of one feature asks of the words that feed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from propopt._typing import Array, Positions, Truths


MOST_CUBES: Final = 4_096
"""So many conjunctions one set may become."""


class Cube(NamedTuple):
    """± the indicator that some words are kept and some are deleted."""

    sign: float
    literals: tuple[int, ...]
    """2 j + 1 where word j is kept, 2 j where it is deleted."""


def cubes_of(words: Positions, counts: Array, holds: Truths) -> list[Cube] | None:
    """Conjunctions whose sum is 1 where a set holds a count, and 0 elsewhere.

    The words are asked one after the other, the most frequent first, until the set
    holds all or none of the counts that are left. Where its complement needs fewer, it
    is 1 less that: of k words "at least one is kept" is 1 − Π (1 − z).

    Parameters
    ----------
    words, counts : array (k,)
        The words that feed the feature, and how often each counts.
    holds : array (T,)
        Whether the set holds each of :func:`attained`, the counts that there can be.

    Returns
    -------
    list of Cube or None
        None where there are too many.
    """
    order = np.argsort(-np.abs(counts), kind="stable")
    asked = _Asked(words[order].tolist(), _left(counts[order]), counts[order].tolist())
    totals = asked.left[0]
    direct = asked.cubes(dict(zip(totals.tolist(), holds.tolist(), strict=True)))
    others = asked.cubes(dict(zip(totals.tolist(), (~holds).tolist(), strict=True)))
    if others is not None and (direct is None or len(others) + 1 < len(direct)):
        return [Cube(1.0, ()), *(Cube(-1.0, cube.literals) for cube in others)]
    return direct


def attained(counts: Array) -> Array:
    """The counts that sets of words have, increasing."""
    return _left(counts)[0]


def _left(counts: Array) -> list[Array]:
    """What words from each on can add, increasing."""
    sums = [np.zeros(1)]
    for count in counts[::-1]:
        sums.append(np.unique(np.concatenate([sums[-1], sums[-1] + count])))
    return sums[::-1]


@final
@dataclass(frozen=True, eq=False)
class _Asked:
    """Words in the order in which they are asked."""

    words: list[int]
    left: list[Array]
    counts: list[float]

    def cubes(self, holds: dict[float, bool]) -> list[Cube] | None:
        found: list[Cube] = []
        open_: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
        while open_:
            i, total, literals = open_.pop()
            inside = [holds[total + more] for more in self.left[i].tolist()]
            if all(inside):
                found.append(Cube(1.0, literals))
            elif any(inside):
                word = 2 * self.words[i]
                open_.append((i + 1, total + self.counts[i], (*literals, word + 1)))
                open_.append((i + 1, total, (*literals, word)))
            if len(found) + len(open_) > MOST_CUBES:
                return None
        return found


@final
@dataclass(frozen=True, eq=False)
class CubeTable:
    """The cubes of many sets, one after the other.

    Parameters
    ----------
    start, size : array (G,)
        Where those of each set begin, and how many there are.
    sign : array (C,)
        Of each cube.
    literals : array (C, K)
        Padded with −1.
    """

    start: Positions
    size: Positions
    sign: Array
    literals: Positions

    @classmethod
    def of(cls, groups: Sequence[Sequence[Cube]]) -> CubeTable:
        """The table of lists of cubes."""
        size = np.array([len(cubes) for cubes in groups], np.intp)
        flat = [cube for cubes in groups for cube in cubes]
        width = max((len(cube.literals) for cube in flat), default=0)
        literals = np.full((len(flat), width), -1, np.intp)
        for row, cube in zip(literals, flat, strict=True):
            row[: len(cube.literals)] = cube.literals
        sign = np.array([cube.sign for cube in flat], np.float64)
        return cls(np.cumsum(size) - size, size, sign, literals)

    def multiplied_out(
        self, values: Array, paths: Positions
    ) -> tuple[Array, Positions]:
        """Values (R,) and literals (R, K') of products of one cube of each set.

        Parameters
        ----------
        values : array (L,)
            Of products of sets.
        paths : array (L, K)
            The sets of each, padded with −1.
        """
        nothing = np.full((1, self.literals.shape[1]), -1, np.intp)
        literals = np.concatenate([self.literals, nothing])
        size, start = np.append(self.size, 1), np.append(self.start, len(self.sign))
        sign = np.append(self.sign, 1.0)
        row, parts = np.arange(len(values)), np.zeros((len(values), 0), np.intp)
        for k in range(paths.shape[1]):
            sets = paths[row, k]
            repeats = size[sets]
            before = np.cumsum(repeats) - repeats
            each = np.repeat(np.arange(len(row)), repeats)
            cube = np.arange(len(each)) - before[each] + start[sets][each]
            row, parts = row[each], np.column_stack([parts[each], cube])
        products = values[row] * sign[parts].prod(axis=1)
        return products, literals[parts].reshape(len(row), -1)
