"""Models that differ by chance alone, which two versions are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from sklearn.base import clone

from propopt.base.checks import read_count, read_rng
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggesting_getattr, suggests_arguments
from propopt.results.comparison import LevelKind
from propopt.structures.kinds import has_method
from propopt.tables.frames import select_rows


__all__ = ["NullModels", "bootstrap_refits", "seed_refits", "split_half_refits"]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = suggesting_getattr("po.null_models", __all__)

LearnerLike: TypeAlias = Any
"""An estimator, of which copies are fitted, or a callable: (X, y) ↦ fitted model."""

_LEAST: Final[dict[LevelKind, int]] = {
    "split_half_refits": 20,
    "bootstrap_refits": 5,
    "seed_refits": 2,
}
"""Models that a level is made of, at least: with these its errors were counted."""


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class NullModels:
    """Models, or their explanations, that differ by chance alone.

    Parameters
    ----------
    kind : {"split_half_refits", "bootstrap_refits", "seed_refits"}
        What makes them differ. Halves of one table stand one behind the other.
    models : sequence
        As ``before`` and ``after`` of :func:`propopt.compare` are: fitted models, or
        explanations of the rows that are compared.

    Raises
    ------
    InvalidInput
        If there are fewer than the errors of a level were counted with: 20 models on
        halves, 5 bootstrap_refits, 2 other seeds.
    """

    kind: LevelKind
    models: Sequence[Any]

    def __repr__(self) -> str:
        return f"NullModels({self.kind!r}, {len(self.models)} models)"

    def __post_init__(self) -> None:
        if self.kind not in _LEAST:
            raise InvalidInput(
                f"kind: expected one of {', '.join(_LEAST)}, got {self.kind!r}"
            )
        least, came = _LEAST[self.kind], len(self.models)
        if came < least or (self.kind == "split_half_refits" and came % 2):
            noun = "models on halves, two for each" if least == 20 else "models"
            raise InvalidInput(
                f"{self.kind}: expected at least {least} {noun}, with which errors of "
                f"this level were counted, got {came}"
            )

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Which are compared: the two halves of a table, or all pairs."""
        places = range(len(self.models))
        if self.kind == "split_half_refits":
            return list(zip(places[::2], places[1::2], strict=True))
        return list(combinations(places, 2))


@suggests_arguments
def split_half_refits(
    fit: LearnerLike,
    X: Any,
    y: Any,
    *,
    times: int = 10,
    rng: int | np.random.Generator | None = None,
) -> NullModels:
    """Models trained on two disjoint halves of a table, for the level of a comparison.

    Parameters
    ----------
    fit : estimator or callable
        How the old version was made: an estimator, copies of which are fitted, or a
        function from X and y to a fitted model.
    X, y : DataFrame or array (n, D), Series or array (n,)
        What the old version was trained on.
    times : int
        How often the table is halved; ten or more.
    rng : int, numpy.random.Generator or None
        For the halves; None is seed 0.

    Returns
    -------
    NullModels
        The models, of which each two belong to one halving: the ``level`` of
        :func:`propopt.compare`.

    Raises
    ------
    InvalidInput
        If the table is too small, or halved less than ten times.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> len(
    ...     po.null_models.split_half_refits(
    ...         LinearRegression(), X, X @ [1.0, 2.0, 0.0]
    ...     ).models
    ... )
    20
    """
    generator, n = read_rng(rng), _length(X, y)
    orders = (generator.permutation(n) for _ in range(read_count(times, "times")))
    halves = [np.sort(half) for x in orders for half in (x[: n // 2], x[n // 2 :])]
    return NullModels(
        "split_half_refits", [_fitted(fit, X, y, rows) for rows in halves]
    )


@suggests_arguments
def bootstrap_refits(
    fit: LearnerLike,
    X: Any,
    y: Any,
    *,
    times: int = 5,
    rng: int | np.random.Generator | None = None,
) -> NullModels:
    """Models trained on rows drawn with replacement, where halves are too small.

    They share rows, so that their level is raised by a quarter. Parameters and errors
    are those of :func:`propopt.null_models.split_half_refits`; ``times`` is 5 or more.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> len(
    ...     po.null_models.bootstrap_refits(
    ...         LinearRegression(), X, X @ [1.0, 2.0, 0.0]
    ...     ).pairs
    ... )
    10
    """
    generator, n = read_rng(rng), _length(X, y)
    draws = (generator.integers(n, size=n) for _ in range(read_count(times, "times")))
    return NullModels(
        "bootstrap_refits", [_fitted(fit, X, y, np.sort(rows)) for rows in draws]
    )


@suggests_arguments
def seed_refits(estimator: Any, X: Any, y: Any, *, times: int = 5) -> NullModels:
    """The same estimator on the same table with other seeds: no level of a change.

    New data move more than seeds do. A comparison with this level says so.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> forest = RandomForestRegressor(n_estimators=5)
    >>> po.null_models.seed_refits(forest, X, X[:, 0], times=3).kind
    'seed_refits'
    """
    rows = np.arange(_length(X, y))
    if not has_method(estimator, "get_params"):
        raise InvalidInput("seed_refits: expected an estimator, whose seed can be set")
    seeds = [x for x in estimator.get_params() if x.split("__")[-1] == "random_state"]
    if not seeds:
        raise InvalidInput(
            f"seed_refits: {type(estimator).__name__} has no random_state: refits would "
            "be one model; propopt.null_models.split_half_refits makes a level of it"
        )
    models = []
    for seed in range(1, read_count(times, "times") + 1):
        own = clone(estimator).set_params(**dict.fromkeys(seeds, seed))
        models.append(_fitted(own, X, y, rows))
    return NullModels("seed_refits", models)


def _length(X: Any, y: Any) -> int:
    """The rows of a table, of which halves have two at least."""
    n = len(X)
    if n != len(y) or n < 4:
        raise InvalidInput(
            f"X and y: expected four rows or more, as many of both, got {n} and "
            f"{len(y)}"
        )
    return n


def _fitted(fit: LearnerLike, X: Any, y: Any, rows: Any) -> Any:
    """A model of some rows, by whatever makes one."""
    table = select_rows(X, rows)
    target = y.iloc[rows] if isinstance(y, pd.Series) else np.asarray(y)[rows]
    if has_method(fit, "fit"):
        return clone(fit).fit(table, target)
    return fit(table, target)
