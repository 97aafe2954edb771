"""Which scores are clear: their intervals exclude what no interaction would show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Truths, Values
from propopt.errors import InvalidInput
from propopt.interactions.inference.adjust import Adjustment
from propopt.interactions.reading.words import level_in_words
from propopt.interactions.result import InteractionScores


_ADJUSTED: Final = {
    "bonferroni": "Bonferroni",
    "holm": "Holm",
    "benjamini-hochberg": "Benjamini–Hochberg",
    "benjamini-yekutieli": "Benjamini–Yekutieli",
}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ClearScores:
    """Scores of Q sets, their intervals, and which of them are beyond zero and leak.

    Parameters
    ----------
    names : tuple of tuple of str (Q,)
        Of the features of each set.
    estimates, low, high : array (Q,)
        Scores and the ends of their intervals; NaN where an error is not known.
    leak : array (Q,)
        What a model without interactions would show; zero where that is not known.
    in_words : str
        What the intervals are.
    used : array of bool (Q,), optional
        False of sets with a feature that no learner uses; by default all are.

    Examples
    --------
    >>> import numpy as np
    >>> found = ClearScores(
    ...     names=(("a", "b"), ("a", "c"), ("b", "c")),
    ...     estimates=np.array([2.0, 0.5, -0.2]),
    ...     low=np.array([1.5, 0.2, -0.3]),
    ...     high=np.array([2.5, 0.8, -0.1]),
    ...     leak=np.array([0.1, 0.4, -0.4]),
    ...     in_words="90 % intervals",
    ... )
    >>> found.above, found.below
    (array([ True, False, False]), array([False, False, False]))
    """

    names: tuple[tuple[str, ...], ...]
    estimates: Values
    low: Values
    high: Values
    leak: Values
    in_words: str
    used: Truths = field(default_factory=lambda: np.array(True))

    def __post_init__(self) -> None:
        used = np.broadcast_to(self.used, len(self.estimates))
        object.__setattr__(self, "used", used)

    @property
    def above(self) -> NDArray[np.bool_]:
        """Joint contributions: the interval is above zero and above the leak, (Q,)."""
        return np.asarray(self.low > np.maximum(self.leak, 0.0))

    @property
    def below(self) -> NDArray[np.bool_]:
        """Features that stand in for each other: below zero and the leak, (Q,)."""
        return np.asarray(self.high < np.minimum(self.leak, 0.0))

    @property
    def beyond(self) -> Values:
        """How far joint contributions are above zero and the leak, ≥ 0, (Q,)."""
        return np.maximum(self.estimates - np.maximum(self.leak, 0.0), 0.0)


def clear_scores(
    result: InteractionScores,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
) -> ClearScores:
    """The scores of a result with intervals that hold for all its candidates at once.

    With a fixed number of columns in each minipatch, scores without interaction are not
    zero. Where the result knows that leak, a score is clear only if it is beyond it.

    Parameters
    ----------
    result : InteractionScores
        Of sets of any size.
    level : float
        Of the intervals, between 0 and 1.
    adjust : Adjustment
        How intervals count the candidates: as :meth:`InteractionScores.intervals` has
        it.

    Raises
    ------
    InvalidInput
        If the result is none of interactions, the level is not between 0 and 1, or
        there is no such adjustment.
    """
    if not isinstance(result, InteractionScores):
        raise InvalidInput(
            "result: expected InteractionScores, such as ILOCO(...).fit(X, y).result_, "
            f"got {type(result).__name__}"
        )
    low, high = result.intervals(level=level, adjust=adjust).T
    names = [str(name) for name in result.names]
    return ClearScores(
        names=tuple(tuple(names[k] for k in own) for own in result.sets.tolist()),
        estimates=result.estimates,
        low=low,
        high=high,
        leak=np.nan_to_num(result.leak, nan=0.0),
        in_words=_in_words(result, level, adjust),
        used=~result.are_not_used,
    )


def require_pairs(result: InteractionScores, what: str) -> None:
    """Refuse scores of sets of other sizes, and of none.

    Raises
    ------
    InvalidInput
        If the sets are no pairs.
    """
    if result.order != 2:
        raise InvalidInput(
            f"{what}: expected scores of pairs, got sets of {result.order}: "
            "interactions(order=2) of a fitted ILOCO gives pairs, and "
            "interaction_intervals draws sets of any size"
        )
    if not len(result.sets):
        raise InvalidInput(f"{what}: there are no pairs")


def _in_words(result: InteractionScores, level: float, adjust: str) -> str:
    name = _ADJUSTED.get(adjust)
    of = "each alone" if name is None else f"{name} of {result.n_candidates:,}"
    return f"{level_in_words(level)} intervals, {of}"
