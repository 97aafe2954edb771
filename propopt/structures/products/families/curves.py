"""Any functions of one column, whose means are found by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.errors import Refused
from propopt.structures.products.normals import Normals
from propopt.structures.products.quadrature import LOG_TAIL, normal_nodes


CurveRule: TypeAlias = Callable[[Array], Array]
"""From values (n,) of a column, numbers or codes or NaN, to numbers (n,)."""

CURVE_TOLERANCE: Final = 1e-10
"""How near two quadratures have to be, over the mean of |g|."""

_ROUNDING: Final = 1e-14
"""How near is near enough, over the largest mean of |g| in any piece of a column."""

_FEWEST: Final = 32
_MOST: Final = 4096
"""Nodes between knots."""

_FARTHER: Final = 15.0
"""What is added to how far tails are followed, each time."""


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """g(x), a callable each.

    Means under normals are by Gauss-Legendre quadrature between knots, with twice as
    many nodes, and farther into the tails, until two agree.

    Parameters
    ----------
    column : array (U,)
        The position of the column that each is of.
    rules : tuple of callables (U,)
        g.
    knots : tuple of arrays (U,)
        Where g has kinks or jumps, increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.structures.products import Curves, Normals
    >>> absolute = Curves(np.array([0]), (np.abs,), (np.array([0.0]),))
    >>> mean = absolute.under(Normals.of(0.0, 1.0, -np.inf, np.inf))
    >>> bool(np.isclose(mean[0, 0], np.sqrt(2 / np.pi), rtol=1e-12))
    True
    """

    column: Positions
    rules: tuple[CurveRule, ...]
    knots: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Positions | Truths) -> Curves:
        """Those that are chosen."""
        places = np.arange(len(self))[chosen].tolist()
        return Curves(
            self.column[chosen],
            tuple(self.rules[u] for u in places),
            tuple(self.knots[u] for u in places),
        )

    def at(self, values: Array) -> Array:
        """Values, (U, S)."""
        result = np.empty((len(self), *values.shape))
        for u, rule in enumerate(self.rules):
            result[u] = _values(rule, values)
        return result

    def under(self, normals: Normals) -> Array:
        """Means, (U, S).

        Raises
        ------
        Refused
            Where quadratures do not agree.
        """
        means = np.empty((len(self), *normals.shape))
        for u, (rule, knots) in enumerate(zip(self.rules, self.knots, strict=True)):
            means[u] = _mean(rule, knots, normals, int(self.column[u]))
        return means


def _mean(rule: CurveRule, knots: Array, normals: Normals, column: int) -> Array:
    """By as many nodes as are needed, the same for all laws."""
    n_nodes, log_tail = _FEWEST, LOG_TAIL
    before, _ = _by_nodes(rule, knots, normals, n_nodes, log_tail)
    while n_nodes < _MOST:
        n_nodes, log_tail = 2 * n_nodes, log_tail + _FARTHER
        mean, size = _by_nodes(rule, knots, normals, n_nodes, log_tail)
        largest = size.max(axis=0, initial=0.0)
        with np.errstate(invalid="ignore"):
            near = CURVE_TOLERANCE * size + _ROUNDING * largest
            apart = ~(np.abs(mean - before) <= near)
        if not apart.any():
            return mean
        before = mean
    place = np.unravel_index(int(apart.argmax()), apart.shape)
    raise Refused(
        f"the mean of the function of column {column} (counted from 0) between "
        f"{normals.low[place]:.6g} and {normals.high[place]:.6g} is not found: with "
        f"{_MOST} nodes quadrature gives {mean[place]:.6g}, and another answer with "
        "half as many; give its kinks and jumps as knots"
    )


def _by_nodes(
    rule: CurveRule, knots: Array, normals: Normals, n_nodes: int, log_tail: float
) -> tuple[Array, Array]:
    """Means of g and of |g|."""
    x, weights = normal_nodes(normals, n_nodes, log_tail, knots)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.where(weights > 0.0, _values(rule, x), 0.0)
        mean = np.einsum("...q,...q->...", values, weights)
        return mean, np.einsum("...q,...q->...", np.abs(values), weights)


def _values(rule: CurveRule, values: Array) -> Array:
    if values.size == 0:
        return np.zeros(values.shape)
    answer = np.asarray(rule(values.ravel()), dtype=np.float64)
    return np.broadcast_to(answer, values.size).reshape(values.shape)
