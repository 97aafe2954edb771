"""How the bins of each column are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np

from propopt._typing import Array
from propopt.checks import did_you_mean, read_array
from propopt.errors import InvalidInput
from propopt.tables.names import listed


BinChoice: TypeAlias = int | str | Sequence[float] | Array
BinsOfColumns: TypeAlias = int | str | Sequence[BinChoice] | Mapping[str, BinChoice]

NAMED_BINS: Final = {"quartile": 4, "decile": 10}
"""The package's names of numbers of bins."""


@final
@dataclass(frozen=True, eq=False)
class BinRule:
    """Bins between quantiles of the data, or between edges that are given.

    Parameters
    ----------
    n_bins : int
        p, at least 2.
    edges : array (p − 1,) or None
        Where bins end, increasing; None for the quantiles at b/p.

    Examples
    --------
    >>> import numpy as np
    >>> BinRule(4).inner_edges(np.arange(9.0))
    array([2., 4., 6.])
    """

    n_bins: int
    edges: Array | None = None

    def inner_edges(self, values: Array) -> Array:
        """Where bins of these numbers end, fewer where quantiles are equal."""
        if self.edges is not None:
            return self.edges
        if len(values) == 0:
            return np.zeros(0)
        at = 100.0 * np.arange(1, self.n_bins) / self.n_bins
        return np.unique(np.percentile(values, at))


def read_rules(n_bins: object, names: Sequence[str]) -> tuple[BinRule, ...]:
    """A rule for each of D columns.

    Parameters
    ----------
    n_bins : int, str, mapping or sequence
        One for all columns; by names of columns, others get 4; or a sequence (D,). One
        is a number of bins, ``"quartile"``, ``"decile"``, or inner edges.
    names : sequence of str (D,)
        The columns.

    Raises
    ------
    InvalidInput
        If one is no such thing, a name is unknown, or there are not D of them.
    """
    if isinstance(n_bins, Mapping):
        unknown = [name for name in n_bins if name not in names]
        if unknown:
            raise InvalidInput(
                f"n_bins: no column {listed(unknown)}"
                f"{did_you_mean(unknown[0], names)}; there are {listed(names)}"
            )
        return tuple(_rule(n_bins.get(name, 4), f"n_bins[{name!r}]") for name in names)
    if isinstance(n_bins, Sequence | np.ndarray) and not isinstance(n_bins, str):
        if len(n_bins) != len(names):
            raise InvalidInput(
                f"n_bins: expected one for each of {len(names)} columns, got "
                f"{len(n_bins)}; edges for all columns are given by name"
            )
        return tuple(_rule(one, f"n_bins[{j}]") for j, one in enumerate(n_bins))
    return (_rule(n_bins, "n_bins"),) * len(names)


def _rule(given: Any, what: str) -> BinRule:
    if isinstance(given, str):
        if given not in NAMED_BINS:
            raise InvalidInput(
                f"{what}: expected an integer >= 2, edges, or one of "
                f"{listed(tuple(NAMED_BINS))}, got {given!r}"
                f"{did_you_mean(given, tuple(NAMED_BINS))}"
            )
        return BinRule(NAMED_BINS[given])
    if isinstance(given, Sequence | np.ndarray) and np.ndim(given) > 0:
        return _between(given, what)
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 2:
        raise InvalidInput(
            f"{what}: expected an integer >= 2, 'quartile', 'decile' or edges, got "
            f"{given!r}; a single bin leaves nothing to explain"
        )
    return BinRule(int(given))


def _between(given: Any, what: str) -> BinRule:
    edges = read_array(given, what, ndim=1)
    if (np.diff(edges) <= 0.0).any():
        raise InvalidInput(f"{what}: edges have to increase, got {edges.tolist()}")
    return BinRule(len(edges) + 1, edges)
