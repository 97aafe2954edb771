"""Models that differ by chance alone: the level for comparing two versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from propopt.base.checks import read_count, read_rng
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggesting_getattr, suggests_arguments
from propopt.structures.kinds import has_method, is_a
from propopt.tables.frames import joined_rows, select_rows


__all__ = ["PooledRefits", "bootstrap_refits", "pooled_refits"]

if not TYPE_CHECKING:  # a type checker would take every name for an object
    __getattr__ = suggesting_getattr("po.null_models", __all__)

LearnerLike: TypeAlias = Any
"""An estimator, copies of which are fitted, or a callable: (X, y) ↦ fitted model."""


@final
@suggests_arguments
@dataclass(frozen=True, eq=False)
class PooledRefits:
    """Pairs of models, or of their explanations, of random divisions of two tables.

    Parameters
    ----------
    old, new : list (R,)
        The models of both parts of each division: of the same type as ``before`` and
        ``after`` of :func:`propopt.compare`, which needs at least 19 pairs.
    """

    old: list[Any]
    new: list[Any]


@suggests_arguments
def bootstrap_refits(
    learner: LearnerLike,
    X: Any,
    y: Any,
    *,
    times: int = 10,
    rng: int | np.random.Generator | None = None,
) -> list[Any]:
    """Models that another sample of as many rows and another seed might have given.

    Each is fitted to n rows drawn with replacement [1]_. Every seed of the estimator,
    of its parts and of the steps of a pipeline is drawn anew for each model. Rows of
    a classifier are drawn again until all classes are among them.

    Parameters
    ----------
    learner : estimator or callable
        The way the model was trained: an estimator, fitted or not, copies of which are
        fitted, or a function from X and y to a fitted model.
    X, y : DataFrame or array (n, D), Series or array (n,)
        The training data.
    times : int
        The number B of models.
    rng : int, numpy.random.Generator or None
        The seed of rows and seeds; None is seed 0.

    Returns
    -------
    list
        B fitted models.

    Raises
    ------
    InvalidInput
        If the table has fewer than four rows, or the learner cannot be fitted.

    References
    ----------
    .. [1] Efron, Bootstrap methods: another look at the jackknife, Annals of
       Statistics 7(1), 1979.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X, learner = np.random.default_rng(0).normal(size=(60, 3)), LinearRegression()
    >>> len(po.null_models.bootstrap_refits(learner, X, X[:, 0]))
    10
    """
    generator = read_rng(rng)
    n = _n_rows(X, y)
    gives_classes = has_method(learner, "fit") and is_classifier(learner)
    codes = pd.factorize(np.asarray(y))[0] if gives_classes else np.zeros(n)
    models = []
    for _ in range(read_count(times, "times")):
        rows = np.sort(generator.integers(n, size=n))
        while len(np.unique(codes[rows])) < len(np.unique(codes)):
            rows = np.sort(generator.integers(n, size=n))
        models.append(_fitted(_seeded(learner, generator), X, y, rows))
    return models


@suggests_arguments
def pooled_refits(
    learner: LearnerLike,
    old: tuple[Any, Any],
    new: tuple[Any, Any],
    *,
    times: int = 19,
    rng: int | np.random.Generator | None = None,
) -> PooledRefits:
    """Pairs of models of random divisions of all rows of two tables.

    Without a change each division into parts of these sizes is as likely as the real
    one, whatever the learner does. Both versions must be fitted by it, in the same way.

    Parameters
    ----------
    learner : estimator or callable
        As for :func:`bootstrap_refits`; its seeds are kept.
    old, new : tuple of X and y
        The training data of both versions.
    times : int
        The number of divisions; :func:`propopt.compare` needs at least 19.
    rng : int, numpy.random.Generator or None
        The seed of the divisions; None is seed 0.

    Returns
    -------
    PooledRefits
        The ``level`` of :func:`propopt.compare`.

    Raises
    ------
    InvalidInput
        If a table has fewer than four rows.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X, learner = np.random.default_rng(0).normal(size=(60, 3)), LinearRegression()
    >>> old, new = (X[:30], X[:30, 0]), (X[30:], X[30:, 0])
    >>> len(po.null_models.pooled_refits(learner, old, new).old)
    19
    """
    generator = read_rng(rng)
    n = _n_rows(*old)
    n_all = n + _n_rows(*new)
    X, y = map(joined_rows, old, new)
    refits = PooledRefits([], [])
    for _ in range(read_count(times, "times")):
        order = generator.permutation(n_all)
        for models, rows in ((refits.old, order[:n]), (refits.new, order[n:])):
            models.append(_fitted(learner, X, y, np.sort(rows)))
    return refits


def _n_rows(X: Any, y: Any) -> int:
    """The number of rows of a table; halves need at least two."""
    n = len(X)
    if n != len(y) or n < 4:
        raise InvalidInput(
            f"X and y: expected at least four rows, as many of both, got {n} and "
            f"{len(y)}"
        )
    return n


_SEEDS: Final = re.compile(r"(?:.*_)?seed|random_state")
"""Names of seeds; LightGBM has several, such as ``bagging_seed``."""


def _seeded(learner: LearnerLike, generator: np.random.Generator) -> LearnerLike:
    """A copy of an estimator in which every seed is drawn; a callable as it is."""
    if not has_method(learner, "fit"):
        return learner
    copy = clone(learner)
    parts = {"": copy, **copy.get_params()}
    seeds = {name for name in parts if _SEEDS.fullmatch(name.split("__")[-1])}
    for name, part in parts.items():  # CatBoost lists only what was set
        prefix = f"{name}__" if name else ""
        if is_a(part, "catboost.CatBoost") and f"{prefix}random_state" not in seeds:
            seeds.add(f"{prefix}random_seed")
    drawn = {name: int(generator.integers(2**31 - 1)) for name in sorted(seeds)}
    return copy.set_params(**drawn)


def _fitted(fit: LearnerLike, X: Any, y: Any, rows: Any) -> Any:
    """A model fitted to some rows, by an estimator or a callable."""
    table = select_rows(X, rows)
    target = y.iloc[rows] if isinstance(y, pd.Series) else np.asarray(y)[rows]
    if has_method(fit, "fit"):
        return clone(fit).fit(table, target)
    if not callable(fit):
        raise InvalidInput(
            "learner: expected an estimator, or a function from X and y to a fitted "
            f"model, got {type(fit).__name__}"
        )
    return fit(table, target)
