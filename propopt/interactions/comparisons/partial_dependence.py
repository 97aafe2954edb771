"""The H-statistic of Friedman and Popescu (2008)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.interactions.comparisons.games import read_games
from propopt.interactions.comparisons.pairs import PairScores


_ROUNDING: Final = 1e-12
"""Of centred partial dependences, over the largest of them."""


def h_statistic(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    groups: Mapping[Hashable, Sequence[Hashable]] | None = None,
    scaled: bool = True,
    n_rows: int = 50,
    n_background: int = 50,
    rng: int | np.random.Generator | None = None,
) -> PairScores:
    """The share of the joint effect of two features that is no sum of their effects.

    H²_jk = Σ_i [PD_jk(x_i) − PD_j(x_i) − PD_k(x_i)]² / Σ_i PD_jk(x_i)²

    with partial dependences PD_S(x_i) = mean over background rows b of f(x_i on S, b
    elsewhere), each less its mean over the rows i (Friedman and Popescu, 2008,
    Predictive learning via rule ensembles). Of a pair without any effect it is 0.

    Parameters
    ----------
    model : estimator, callable or Function
        Fitted; see :func:`propopt.wrap` for what is explained of a classifier.
    X : array or DataFrame (N, D)
        Rows are drawn from it.
    target : class label or int, optional
        The class, as in :func:`propopt.wrap`.
    groups : mapping of a feature to its columns, optional
        Columns that are one feature.
    scaled : bool
        H², a share. A weak pair can have a large one, since both its effects are small;
        False is the root of the mean of the numerator, in units of the output.
    n_rows, n_background : int
        Rows i and b, drawn apart; M (M + 1) / 2 times their product evaluations.
    rng : int, numpy.random.Generator or None
        For the draws; None is seed 0.

    Returns
    -------
    PairScores
        Of all pairs.

    Raises
    ------
    InvalidInput
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> additive = h_statistic(lambda X: np.sin(X).sum(axis=1), X)
    >>> bool(additive.estimates.max() < 1e-20)
    True
    """
    games = read_games(
        model, X, target=target, groups=groups,
        n_rows=n_rows, n_background=n_background, rng=rng,
    )  # fmt: skip
    pairs = games.features.all_sets(2)
    alone: Truths = np.eye(len(games.features), dtype=np.bool_)
    single = _centred(games.values(alone))
    both = _centred(games.values(alone[pairs[:, 0]] | alone[pairs[:, 1]]))
    beyond = both - single[:, pairs].sum(axis=2)
    return PairScores(
        sets=pairs,
        names=games.features.names,
        estimates=_shares(beyond, both) if scaled else _sizes(beyond),
        method="H-statistic",
        units="share of the joint effect" if scaled else "units of the output",
        n_rows=len(games.points),
    )


def _centred(dependences: Array) -> Array:
    return dependences - dependences.mean(axis=0)


def _sizes(beyond: Array) -> Values:
    return np.asarray(np.sqrt((beyond**2).mean(axis=0)))


def _shares(beyond: Array, both: Array) -> Values:
    """Ratios of sums of squares; 0 where the joint effect is rounding."""
    joint = (both**2).sum(axis=0)
    floor = len(both) * (_ROUNDING * np.abs(both).max(initial=0.0)) ** 2
    shares = np.zeros(len(joint))
    np.divide((beyond**2).sum(axis=0), joint, out=shares, where=joint > floor)
    return shares
