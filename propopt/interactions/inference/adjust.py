"""Many sets are looked at: p-values and levels that count them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np

from propopt._typing import Positions, Values
from propopt.checks import known_word


Adjustment: TypeAlias = Literal[
    "none", "bonferroni", "holm", "benjamini-hochberg", "benjamini-yekutieli"
]
"""How p-values and intervals count the sets among which one looks.

With Bonferroni, all intervals hold together at the level; so they do with Holm, which
rejects at least as much. Those of Benjamini and Hochberg, and of Benjamini and
Yekutieli, bound the share of false ones among the sets that are found.
"""


@final
@dataclass(frozen=True, kw_only=True)
class _Correction:
    """How m candidates count.

    Parameters
    ----------
    factors : callable
        Of p-values of ranks (Q,), 1 the smallest, among m.
    share : callable
        Of α, for one interval, where so many sets are found of m.
    steps_up : bool
        Whether a larger p-value that is rejected rejects all that are smaller.
    """

    factors: Callable[[Positions, int], Values]
    share: Callable[[int, int], float]
    steps_up: bool = False


def _bonferroni_share(n_found: int, n_candidates: int) -> float:
    del n_found
    return 1.0 / n_candidates


def _false_discoveries(price: Callable[[int], float]) -> _Correction:
    """Of Benjamini and others; ``price`` is that of p-values that depend."""
    return _Correction(
        factors=lambda ranks, m: price(m) * m / ranks,
        # intervals of the sets found: Benjamini and Yekutieli (2005)
        share=lambda n_found, m: max(n_found, 1) / m / price(m),
        steps_up=True,
    )


_CORRECTIONS: Final[Mapping[Adjustment, _Correction]] = {
    "none": _Correction(
        factors=lambda ranks, _: np.ones(len(ranks)), share=lambda *_: 1.0
    ),
    "bonferroni": _Correction(
        factors=lambda ranks, m: np.full(len(ranks), float(m)), share=_bonferroni_share
    ),
    "holm": _Correction(
        factors=lambda ranks, m: np.asarray(m - ranks + 1.0), share=_bonferroni_share
    ),
    "benjamini-hochberg": _false_discoveries(lambda _: 1.0),
    "benjamini-yekutieli": _false_discoveries(
        lambda m: float((1.0 / np.arange(1, m + 1)).sum())
    ),
}


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

    Raises
    ------
    InvalidInput
        If there is no such adjustment.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted_p_values(np.array([0.01, 0.04, 0.03]), "holm", 3)
    array([0.03, 0.06, 0.06])
    """
    rule = _CORRECTIONS[known_word(adjust, Adjustment, "adjust")]
    order = np.argsort(p, kind="stable")  # NaN come last
    raised = p[order] * rule.factors(np.arange(1, len(p) + 1), n_candidates)
    if rule.steps_up:
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
