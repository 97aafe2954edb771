"""Stability of conclusions under other weights, neighbours and draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Mask
from propopt.base.checks import read_count
from propopt.base.declared import Declared, field
from propopt.base.document import Document, Finding, Table
from propopt.base.errors import InvalidInput
from propopt.base.resources import few_threads
from propopt.base.text import (
    Quantity,
    for_quantity,
    in_percent,
    printable,
    rounded_percent,
)
from propopt.losses import (
    Program,
)
from propopt.losses.restricted import entry_support
from propopt.proofs.near_optimal import rounded_to_zero, signs_of
from propopt.proofs.nearby_optima import Solve, setting_variations
from propopt.proofs.optimum import Optimum
from propopt.results.result import Result


MEASURES = ("signs", "weighted_signs", "top", "ranks")
_PAIRS_AT_ONCE = 2**22
"""Entries of rows × pairs of features that are computed in one block."""

_FEW_COLUMNS = 100
"""Most columns for which all pairs are compared; beyond, sorting is faster."""


@final
class Agreement(Declared, eq=True):
    """The agreement of conclusions while one setting varies: numbers from 0 to 1."""

    varied: str  # the varied setting
    # the share of attributions, or of Σ|w|, with equal signs in all settings
    signs: float = field(low=0.0, high=1.0)
    weighted_signs: float = field(low=0.0, high=1.0)
    top: float = field(low=0.0, high=1.0)  # overlap of the k largest |w| of a row
    # the least Kendall τ_b of |w| in a row, the mean over rows; 0 where negative
    ranks: float = field(low=0.0, high=1.0)
    worst: Mapping[str, str]  # the setting with the least agreement, by measure

    def validate(self) -> None:
        """Refuse worst settings for other measures."""
        if self.worst.keys() != set(MEASURES):
            raise InvalidInput("worst: not of the measures")

    @classmethod
    def of(
        cls,
        varied: str,
        W: Attributions,
        settings: Mapping[str, Attributions],
        k: int,
        present: Mask | None = None,
    ) -> Agreement:
        """Compare W with the attributions of each setting, where ``present`` (N, D)."""
        here = np.ones(W.shape, bool) if present is None else present
        rows = here.any(axis=1)
        rounded = rounded_to_zero(W)
        others = {name: rounded_to_zero(V) for name, V in settings.items()}
        same = np.stack(
            [(signs_of(V) == signs_of(rounded))[here] for V in others.values()]
        )
        sizes = np.abs(rounded[here]) / (np.abs(rounded).max(initial=0.0) or 1.0)
        overlaps = np.stack([_overlaps(rounded, V, k)[rows] for V in others.values()])
        close, pack = _packed(rounded, here)[rows], partial(_packed, present=here)
        ranks = np.stack([_correlations(close, pack(V)[rows]) for V in others.values()])
        everywhere = np.asarray(same.all(axis=0))
        results = {
            "signs": same.mean(axis=1),
            "weighted_signs": np.array([_weighted(row, sizes) for row in same]),
            "top": overlaps.mean(axis=1),
            "ranks": ranks.mean(axis=1),
        }
        return cls(
            varied=varied,
            signs=float(everywhere.mean()),
            weighted_signs=_weighted(everywhere, sizes),
            top=float(overlaps.min(axis=0).mean()),
            ranks=max(float(ranks.min(axis=0).mean()), 0.0),
            worst={  # the setting of the least measure; none if all agree
                measure: list(others)[x.argmin()] if x.min() < 1.0 else "none"
                for measure, x in results.items()
            },
        )


def _weighted(same: NDArray[np.bool_], sizes: Array) -> float:
    """The share of Σ|w| with equal signs; 1 if the sum is zero."""
    total = float(sizes.sum())
    return float(sizes[same].sum()) / total if total else 1.0


def _overlaps(W: Attributions, V: Attributions, k: int) -> Array:
    """Jaccard overlap of the k largest of each row, without zero entries."""
    first, other = (
        largest_of_rows(W, k) & (W != 0.0),
        largest_of_rows(V, k) & (V != 0.0),
    )
    union = (first | other).sum(axis=1)
    both = (first & other).sum(axis=1)
    return np.divide(both, union, out=np.ones(len(W)), where=union > 0)


def largest_of_rows(W: Attributions, k: int) -> NDArray[np.bool_]:
    """Which entries are the k largest |w| of their row; ties go to the first."""
    indices = np.argsort(-np.abs(W), axis=1, kind="stable")[:, :k]
    chosen = np.zeros(W.shape, dtype=bool)
    np.put_along_axis(chosen, indices, True, axis=1)
    return chosen


def _packed(W: Attributions, present: Mask) -> Attributions:
    """The present attributions of each row, followed by NaN."""
    if present.all():
        return W
    most = int(present.sum(axis=1).max(initial=1))
    indices = np.argsort(~present, axis=1, kind="stable")[:, :most]
    return np.take_along_axis(np.where(present, W, np.nan), indices, axis=1)


def _correlations(W: Attributions, V: Attributions) -> Array:
    """Kendall's τ_b of |w| and |v| in each row; 1 if both are constant, 0 if one is."""
    if W.shape[1] > _FEW_COLUMNS:
        rows = zip(np.abs(W), np.abs(V), strict=True)
        return np.array(
            [_tau_by_sorting(w[~np.isnan(w)], v[~np.isnan(v)]) for w, v in rows]
        )
    step = max(1, _PAIRS_AT_ONCE // W.shape[1] ** 2)
    blocks = [slice(first, first + step) for first in range(0, len(W), step)]
    return np.concatenate([_tau_of_pairs(np.abs(W[b]), np.abs(V[b])) for b in blocks])


def _tau_of_pairs(W: Array, V: Array) -> Array:
    """Kendall's τ_b of each row, by all pairs of columns."""
    first, second = np.triu_indices(W.shape[1], k=1)
    first_signs = np.nan_to_num(np.sign(W[:, first] - W[:, second]))
    second_signs = np.nan_to_num(np.sign(V[:, first] - V[:, second]))
    ordered = np.abs(first_signs).sum(axis=1) * np.abs(second_signs).sum(axis=1)
    neither = ~(first_signs.any(axis=1) | second_signs.any(axis=1))
    concordant = (first_signs * second_signs).sum(axis=1)
    default = np.asarray(neither, dtype=np.float64)
    return np.divide(concordant, np.sqrt(ordered), out=default, where=ordered > 0.0)


def _tau_by_sorting(w: Array, v: Array) -> float:
    """Kendall's τ_b of one row in O(D log D), by scipy.

    Its quotient is recomputed from the integer surplus of concordant pairs, so that it
    is exactly 1 for equal orders.
    """
    from scipy.stats import kendalltau

    w_pairs, v_pairs = _ordered_pairs(w), _ordered_pairs(v)
    if w_pairs * v_pairs == 0.0:
        return float(w_pairs == v_pairs)
    with np.errstate(divide="ignore", invalid="ignore"):  # in its p value
        tau = float(kendalltau(w, v, method="asymptotic").statistic)
    return round(tau * math.sqrt(w_pairs) * math.sqrt(v_pairs)) / math.sqrt(
        w_pairs * v_pairs
    )


def _ordered_pairs(w: Array) -> float:
    """The number of pairs of entries that differ."""
    counts = np.unique(w, return_counts=True)[1].astype(np.float64)
    return (float(len(w)) ** 2 - float((counts**2).sum())) / 2.0


# ---- The stability of an explanation


TOP = 3
"""Number of largest features of a row that are compared as a set."""


@final
class ConclusionStability(
    Result, kind="propopt stability", noun="a saved stability", version=2, eq=True
):
    """The stability of signs, largest features and ranks when settings vary.

    Parameters
    ----------
    agreements : tuple of Agreement
        One for each varied setting: the weight of each loss from a half to two, half
        and twice as many neighbours at the same weight times mean degree, the draws of
        the target.
    k : int
        The number of largest attributions of a row that are compared as a set.
    quantity : Quantity, optional
        The explained quantity.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[1.0, -2.0], [1.2, 1.5], [0.9, -1.0]])
    >>> best = po.solve(
    ...     po.GradientMatching(G)
    ...     + 0.25 * po.PairwiseRobustness(po.graphs.chain_graph(3))
    ... )
    >>> best.stability()
    ConclusionStability(weight of pairwise_robustness varied: 83.3 % of signs ...
    """

    agreements: tuple[Agreement, ...] = field(nonempty=True)
    k: int = field(low=1)
    quantity: Quantity | None = None

    @property
    def signs(self) -> float:
        """The smallest share of unchanged signs, over all varied settings."""
        return self._least("signs")

    @property
    def weighted_signs(self) -> float:
        """The smallest share of Σ|w| with unchanged signs, over all varied settings."""
        return self._least("weighted_signs")

    @property
    def top(self) -> float:
        """The least overlap of the k largest attributions."""
        return self._least("top")

    @property
    def ranks(self) -> float:
        """The least rank correlation (Kendall's τ)."""
        return self._least("ranks")

    def to_frame(self) -> pd.DataFrame:
        """A table with the lowest share of equal signs and ranks over each setting."""
        columns = [f"{measure}_breaks_at" for measure in MEASURES]
        rows = [
            [
                x.varied,
                *(getattr(x, m) for m in MEASURES),
                *(x.worst[m] for m in MEASURES),
            ]
            for x in self.agreements
        ]
        return pd.DataFrame(rows, columns=["varied", *MEASURES, *columns])

    def _lines(self) -> list[str]:
        """A sentence for each varied setting."""
        return [
            f"{x.varied} varied: {in_percent(x.signs)} of signs survive, "
            f"{in_percent(x.top)} of the {self.k} largest of a row, and ranks agree by "
            f"{x.ranks:.2f} (Kendall's τ)"
            + (f"; most signs turn at {x.worst['signs']}" if x.signs < 1.0 else "")
            for x in self.agreements
        ]

    def __repr__(self) -> str:
        return f"ConclusionStability({'; '.join(map(printable, self._lines()))})"

    def document(self) -> Document:
        """Summarise the agreement of signs, largest features and ranks."""
        rows = [
            [
                x.varied,
                *map(rounded_percent, (x.signs, x.weighted_signs, x.top)),
                f"{x.ranks:.2f}",
            ]
            for x in self.agreements
        ]
        share = rounded_percent(self.signs)
        subject = "All" if self.signs == 1.0 else f"{share} of"
        head = ("what varies", "signs", "of Σ|w|", f"top {self.k}", "ranks")
        return Document(
            title=f"{subject} signs survive, whichever setting varies"
            f"{for_quantity(self.quantity)}",
            subtitle="agreement over all settings of a line: signs, their share of "
            f"Σ|w|, the {self.k} largest of a row (Jaccard), ranks (Kendall's τ)",
            blocks=[
                Table.of(head, rows),
                *map(Finding, self._lines()),
            ],
            trust=[
                Finding("each setting was solved"),
                Finding("settings between them are not proved", "not said"),
            ],
            chapters=self._table,
        )

    def _least(self, measure: str) -> float:
        values: list[float] = [getattr(x, measure) for x in self.agreements]
        return min(values)


def stability_of(
    best: Optimum, program: Program, k: int, solve: Solve | None
) -> ConclusionStability:
    """Compute the result of :meth:`propopt.results.Explanation.stability`."""
    W = best.attributions
    top = min(read_count(k, "k"), max(W.shape[1] - 1, 1))
    support = entry_support(program)
    present = None if support is None else support.mask
    with few_threads(len(W)):
        agreements = tuple(
            Agreement.of(name, W, settings, top, present)
            for name, settings in setting_variations(best, program, solve)
        )
    if not agreements:
        raise InvalidInput(
            "stability: nothing varies; expected a second weighted loss, or a sampled "
            f"target, got {', '.join(best.weights) or best.method!r}"
        )
    return ConclusionStability(agreements=agreements, k=top, quantity=best.quantity)
