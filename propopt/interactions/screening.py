"""Which sets are scored where there are too many to score all."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import final

import numpy as np

from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.interactions.features import Features, Places
from propopt.interactions.inference.scores import set_scores
from propopt.interactions.left_out import LeftOut
from propopt.interactions.minipatches.scheme import Minipatches
from propopt.interactions.sets import read_order
from propopt.interactions.splitting.errors import SplitErrors


@final
@dataclass(frozen=True, eq=False)
class ChosenSets:
    """Sets that are scored, and how many there were to choose from.

    Parameters
    ----------
    places : array of int (Q, r)
        The sets.
    n_candidates : int
        For how many sets p-values and intervals are corrected.
    notes : tuple of str
        How they were chosen, a sentence each.
    """

    places: Places
    n_candidates: int
    notes: tuple[str, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Screen:
    """The sets of largest scores, of either sign, in minipatches.

    Of a split they are chosen by minipatches of its training rows alone, which say
    nothing of the rows that are judged: intervals are corrected for the chosen sets
    only. Of minipatches they are chosen by those that are fitted, and of K folds by
    minipatches of all rows: the rows that choose are judged, too, so that intervals are
    corrected for all sets there were.

    Pairs are all looked at. Larger sets are made of the chosen sets of one feature
    less and any other feature, size by size. With independent features a set has no
    larger score, in the population, than the sets within it (Little, Zheng & Allen,
    Proposition 2), so that one is missed only where ``n_sets`` others score more than
    each set within it.

    Parameters
    ----------
    n_sets : int
        How many are chosen.
    scheme : Minipatches
        By which sets are chosen where predictors are fitted for each set.

    Raises
    ------
    InvalidInput
        If ``n_sets`` is no number of sets, or ``scheme`` no minipatches.

    Examples
    --------
    >>> Screen(n_sets=20).n_sets
    20
    """

    n_sets: int = 100
    scheme: Minipatches = field(
        default=Minipatches(n_patches=1000, n_features=0.5, columns="bernoulli")
    )

    def __post_init__(self) -> None:
        read_count(self.n_sets, "n_sets")
        if not isinstance(self.scheme, Minipatches):
            raise InvalidInput(f"scheme: expected Minipatches, got {self.scheme!r}")

    def one_set(self, order: int, features: Features) -> Places:
        """A set of a size, as those that will be chosen, (1, order).

        Parameters
        ----------
        order : int
            The size.
        features : Features
            M features.

        Raises
        ------
        InvalidInput
            If there are no sets of that size.
        """
        return np.arange(read_order(order, len(features)), dtype=np.intp)[None]

    def choose(self, source: LeftOut, order: int) -> ChosenSets:
        """The sets that are scored.

        Parameters
        ----------
        source : LeftOut
            The fitted predictors that are going to judge them.
        order : int
            Size of the sets.

        Raises
        ------
        InvalidInput
            If there are no sets of that size.
        """
        n_all = comb(len(source.features), self.one_set(order, source.features).size)
        judge, what, apart = self._judge(source)
        places = _largest(judge, order, self.n_sets)
        counted = len(places) if apart else n_all
        note = (
            f"{len(places):,} of {n_all:,} sets were chosen for their scores in "
            f"{what}; corrections count {counted:,}"
        )
        return ChosenSets(places, counted, (note,))

    def _judge(self, source: LeftOut) -> tuple[LeftOut, str, bool]:
        """Who chooses, and whether the rows that choose are not judged."""
        if not isinstance(source, SplitErrors):
            return source, "the minipatches that judge them", False
        apart = len(source.judges) == 1
        rows = source.judges[0].training
        refits = source.refits.on(rows) if apart else source.refits
        chosen = self.scheme.fit(
            refits, seed=source.seed, n_jobs=source.n_jobs, progress=source.progress
        )
        return (
            chosen,
            f"minipatches of {'the training' if apart else 'all'} rows",
            apart,
        )


def _largest(judge: LeftOut, order: int, n_sets: int) -> Places:
    """The sets of largest scores, made of those of one feature less; in their order."""
    features = judge.features
    chosen = features.all_sets(min(order, 2))
    for size in range(min(order, 2), order + 1):
        if size > 2:
            chosen = _extended(chosen, features)
        scores = np.abs(set_scores(judge, chosen).estimates)
        # the first of equal ones
        best = np.argsort(-scores, kind="stable")[:n_sets]
        chosen = chosen[np.sort(best)]
    return chosen


def _extended(sets: Places, features: Features) -> Places:
    """Each set with each feature that it does not have, once."""
    n_sets, n_all = len(sets), len(features)
    every = np.concatenate(
        [np.repeat(sets, n_all, axis=0), np.tile(np.arange(n_all), n_sets)[:, None]], 1
    )
    new = ~(every[:, :-1] == every[:, -1:]).any(axis=1)
    return np.unique(np.sort(every[new], axis=1), axis=0)
