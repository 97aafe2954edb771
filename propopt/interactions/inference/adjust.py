"""Many sets are looked at: p-values and levels that count them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, Protocol, TypeAlias, final

import numpy as np

from propopt._typing import Positions, Values
from propopt.interactions.inference.options import known_word


Adjustment: TypeAlias = Literal[
    "none", "bonferroni", "holm", "benjamini-hochberg", "benjamini-yekutieli"
]
"""How p-values and intervals count the sets among which one looks.

With Bonferroni, all intervals hold together at the level; so they do with Holm, which
rejects at least as much. Those of Benjamini and Hochberg, and of Benjamini and
Yekutieli, bound the share of false ones among the sets that are found.
"""


class _Correction(Protocol):
    """What one of m p-values is multiplied by, and how much of α an interval has."""

    def factors(self, ranks: Positions, n_candidates: int) -> Values:
        """Of the p-value of each rank, 1 the smallest."""

    def steps_up(self) -> bool:
        """Whether a larger p-value that is rejected rejects all that are smaller."""

    def share(self, n_found: int, n_candidates: int) -> float:
        """Of α, for one interval, where so many sets are found."""


@final
class _None:
    def factors(self, ranks: Positions, n_candidates: int) -> Values:
        del n_candidates
        return np.ones(len(ranks))

    def steps_up(self) -> bool:
        return False

    def share(self, n_found: int, n_candidates: int) -> float:
        del n_found, n_candidates
        return 1.0


@final
class _Bonferroni:
    def factors(self, ranks: Positions, n_candidates: int) -> Values:
        return np.full(len(ranks), float(n_candidates))

    def steps_up(self) -> bool:
        return False

    def share(self, n_found: int, n_candidates: int) -> float:
        del n_found
        return 1.0 / n_candidates


@final
class _Holm:
    def factors(self, ranks: Positions, n_candidates: int) -> Values:
        return np.asarray(n_candidates - ranks + 1.0, dtype=np.float64)

    def steps_up(self) -> bool:
        return False

    def share(self, n_found: int, n_candidates: int) -> float:
        del n_found
        return 1.0 / n_candidates


@final
class _FalseDiscoveries:
    """Σ_{j ≤ m} 1/j more for p-values that depend on each other in any way."""

    def __init__(self, any_dependence: bool) -> None:
        self._any_dependence = any_dependence

    def factors(self, ranks: Positions, n_candidates: int) -> Values:
        return self._price(n_candidates) * n_candidates / ranks

    def steps_up(self) -> bool:
        return True

    def share(self, n_found: int, n_candidates: int) -> float:
        # intervals of the sets found: Benjamini and Yekutieli (2005)
        return max(n_found, 1) / n_candidates / self._price(n_candidates)

    def _price(self, n_candidates: int) -> float:
        if not self._any_dependence:
            return 1.0
        return float((1.0 / np.arange(1, n_candidates + 1)).sum())


_CORRECTIONS: Final[Mapping[str, _Correction]] = MappingProxyType(
    {
        "none": _None(),
        "bonferroni": _Bonferroni(),
        "holm": _Holm(),
        "benjamini-hochberg": _FalseDiscoveries(any_dependence=False),
        "benjamini-yekutieli": _FalseDiscoveries(any_dependence=True),
    }
)


def read_adjustment(adjust: Adjustment) -> Adjustment:
    """The adjustment of that name.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    return known_word(adjust, Adjustment, "adjust")


def adjusted_p_values(p: Values, adjust: Adjustment, n_candidates: int) -> Values:
    """p-values that may be compared with α, shape (Q,).

    Sets of the m candidates that are not among these count as p = 1, and so do NaN,
    which stay NaN.

    Parameters
    ----------
    p : array (Q,)
        Each by itself.
    adjust : Adjustment
        How.
    n_candidates : int
        m, at least Q.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted_p_values(np.array([0.01, 0.04, 0.03]), "holm", 3)
    array([0.03, 0.06, 0.06])
    """
    rule = _CORRECTIONS[adjust]
    order = np.argsort(p, kind="stable")  # NaN come last
    raised = p[order] * rule.factors(np.arange(1, len(p) + 1), n_candidates)
    if rule.steps_up():
        raised = np.fmin.accumulate(raised[::-1])[::-1]
    else:
        raised = np.fmax.accumulate(raised)
    found = np.empty_like(p)
    found[order] = np.minimum(raised, 1.0)
    return np.where(np.isnan(p), np.nan, found)


def interval_alpha(
    p: Values, adjust: Adjustment, n_candidates: int, alpha: float
) -> float:
    """1 − level of each interval, so that all of them together keep α.

    With p of the same side, an interval excludes zero where its adjusted p-value is at
    most α; after Holm's correction a set may be found whose interval, Bonferroni's,
    holds zero.
    """
    adjusted = adjusted_p_values(p, adjust, n_candidates)
    n_found = int((adjusted <= alpha).sum())
    return alpha * _CORRECTIONS[adjust].share(n_found, n_candidates)
