"""How far conclusions agree between one table of attributions and several others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Truths
from propopt.results.conclusions.zeros import signs_of, without_dust


MEASURES = ("signs", "weighted_signs", "top", "ranks")
_PAIRS_AT_ONCE = 2**22
"""Entries of a block of rows × pairs of features."""

_FEW_COLUMNS = 100
"""Up to these all pairs of a row cost less than what sorting costs before it sorts."""


@final
@dataclass(frozen=True, kw_only=True)
class Agreement:
    """What survives when one thing varies: numbers from 0 to 1.

    Parameters
    ----------
    varied : str
        What varies, and from where to where.
    signs, weighted_signs : float
        The share of attributions, or of Σ|w|, whose sign is the same in all settings.
    top : float
        The k largest |w| of a row as a set: its least Jaccard overlap with that in a
        setting, the mean over rows.
    ranks : float
        The least Kendall τ_b of |w| in a row, the mean over rows; 0 where negative.
    worst : mapping
        By measure the setting that breaks most.
    """

    varied: str
    signs: float
    weighted_signs: float
    top: float
    ranks: float
    worst: Mapping[str, str]

    @classmethod
    def of(
        cls,
        varied: str,
        W: Attributions,
        settings: Mapping[str, Attributions],
        k: int,
        present: Truths | None = None,
    ) -> Agreement:
        """Of W with the attributions in each setting, by its name.

        Only of those that are ``present`` (N, D), such as words of documents, in rows
        that have some.
        """
        here = np.ones(W.shape, bool) if present is None else present
        rows = here.any(axis=1)
        own = without_dust(W)
        others = {name: without_dust(V) for name, V in settings.items()}
        same = np.stack([(signs_of(V) == signs_of(own))[here] for V in others.values()])
        sizes = np.abs(own[here]) / (np.abs(own).max(initial=0.0) or 1.0)
        overlaps = np.stack([_overlaps(own, V, k)[rows] for V in others.values()])
        close, kept = _packed(own, here)[rows], partial(_packed, present=here)
        ranks = np.stack([_correlations(close, kept(V)[rows]) for V in others.values()])
        everywhere = np.asarray(same.all(axis=0))
        found = {
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
            worst=dict(_worst(found, list(others))),
        )


def _worst(
    found: Mapping[str, Array], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The setting where each measure is least; none where nothing breaks."""
    for measure, values in found.items():
        place = int(values.argmin())
        yield measure, names[place] if values[place] < 1.0 else "none"


def _weighted(same: NDArray[np.bool_], sizes: Array) -> float:
    """The share of Σ|w|; all of it where there is none."""
    total = float(sizes.sum())
    return float(sizes[same].sum()) / total if total else 1.0


def _overlaps(W: Attributions, V: Attributions, k: int) -> Array:
    """Jaccard overlap of the k largest of each row; entries of zero are in no set."""
    own, other = _largest(W, k), _largest(V, k)
    union = (own | other).sum(axis=1)
    both = (own & other).sum(axis=1)
    return np.divide(both, union, out=np.ones(len(W)), where=union > 0)


def _largest(W: Attributions, k: int) -> NDArray[np.bool_]:
    places = np.argsort(-np.abs(W), axis=1, kind="stable")[:, :k]
    chosen = np.zeros(W.shape, dtype=bool)
    np.put_along_axis(chosen, places, True, axis=1)
    return chosen & (W != 0.0)


def _packed(W: Attributions, present: Truths) -> Attributions:
    """The attributions of each row that are present, then NaN, (N, most of a row)."""
    if present.all():
        return W
    most = int(present.sum(axis=1).max(initial=1))
    places = np.argsort(~present, axis=1, kind="stable")[:, :most]
    return np.take_along_axis(np.where(present, W, np.nan), places, axis=1)


def _correlations(W: Attributions, V: Attributions) -> Array:
    """Kendall's τ_b of |w| and |v| in each row.

    1 where neither row orders anything, 0 where one of them does. NaN is in no pair.
    """
    if W.shape[1] > _FEW_COLUMNS:
        rows = zip(np.abs(W), np.abs(V), strict=True)
        return np.array(
            [_tau_by_sorting(w[~np.isnan(w)], v[~np.isnan(v)]) for w, v in rows]
        )
    step = max(1, _PAIRS_AT_ONCE // W.shape[1] ** 2)
    blocks = [slice(first, first + step) for first in range(0, len(W), step)]
    return np.concatenate([_tau_of_pairs(np.abs(W[b]), np.abs(V[b])) for b in blocks])


def _tau_of_pairs(W: Array, V: Array) -> Array:
    """Of each row, by all pairs of its columns at once."""
    first, second = np.triu_indices(W.shape[1], k=1)
    own = np.nan_to_num(np.sign(W[:, first] - W[:, second]))
    other = np.nan_to_num(np.sign(V[:, first] - V[:, second]))
    ordered = np.abs(own).sum(axis=1) * np.abs(other).sum(axis=1)
    neither = ~(own.any(axis=1) | other.any(axis=1))
    concordant = (own * other).sum(axis=1)
    default = np.asarray(neither, dtype=np.float64)
    return np.divide(concordant, np.sqrt(ordered), out=default, where=ordered > 0.0)


def _tau_by_sorting(w: Array, v: Array) -> float:
    """Of one row in O(D log D), by scipy.

    Its quotient is rounded otherwise, and is not 1 where the orders are the same: the
    surplus of concordant pairs, a whole number, is what it stands for.
    """
    from scipy.stats import kendalltau

    own, other = _ordered_pairs(w), _ordered_pairs(v)
    if own * other == 0.0:
        return float(own == other)
    with np.errstate(divide="ignore", invalid="ignore"):  # of its p, of two columns
        tau = float(kendalltau(w, v, method="asymptotic").statistic)
    return round(tau * math.sqrt(own) * math.sqrt(other)) / math.sqrt(own * other)


def _ordered_pairs(w: Array) -> float:
    """How many pairs of entries differ."""
    counts = np.unique(w, return_counts=True)[1].astype(np.float64)
    return (float(len(w)) ** 2 - float((counts**2).sum())) / 2.0
