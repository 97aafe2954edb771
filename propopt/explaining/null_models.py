"""Models that differ by chance alone: the level for comparing two versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from propopt.base.checks import read_count, read_rng
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggesting_getattr, suggests_arguments
from propopt.results.comparison import LevelKind
from propopt.structures.kinds import has_method, is_a
from propopt.tables.frames import select_rows


__all__ = ["NullModels", "bootstrap_refits", "seed_refits", "split_half_refits"]

if not TYPE_CHECKING:  # a type checker would take every name for an object
    __getattr__ = suggesting_getattr("po.null_models", __all__)

LearnerLike: TypeAlias = Any
"""An estimator, copies of which are fitted, or a callable: (X, y) ↦ fitted model."""

_MIN_MODELS: Final[dict[LevelKind, int]] = {
    "split_half_refits": 20,
    "bootstrap_refits": 5,
    "seed_refits": 2,
}
"""Number of models with which the error rates of a level were simulated."""


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class NullModels:
    """Models, or their explanations, that differ by chance alone.

    Parameters
    ----------
    kind : {"split_half_refits", "bootstrap_refits", "seed_refits"}
        The source of the differences. Models of the two halves of a table follow each
        other.
    models : sequence
        Fitted models, or explanations of the rows that are compared: of the same type
        as ``before`` and ``after`` of :func:`propopt.compare`.

    Raises
    ------
    InvalidInput
        If there are too few: 20 models on halves, 5 bootstraps, 2 other seeds.
    """

    kind: LevelKind
    models: Sequence[Any]

    def __repr__(self) -> str:
        return f"NullModels({self.kind!r}, {len(self.models)} models)"

    def __post_init__(self) -> None:
        if self.kind not in _MIN_MODELS:
            raise InvalidInput(
                f"kind: expected one of {', '.join(_MIN_MODELS)}, got {self.kind!r}"
            )
        least = _MIN_MODELS[self.kind]
        count = len(self.models)
        in_halves = self.kind == "split_half_refits"
        if count < least or (in_halves and count % 2):
            noun = "models on halves, two for each split" if in_halves else "models"
            raise InvalidInput(
                f"{self.kind}: expected at least {least} {noun}, as error rates are "
                f"unknown with fewer, got {count}"
            )

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of models to compare, by position: two halves of a split, or all."""
        positions = range(len(self.models))
        if self.kind == "split_half_refits":
            return list(zip(positions[::2], positions[1::2], strict=True))
        return list(combinations(positions, 2))


@suggests_arguments
def split_half_refits(
    fit: LearnerLike,
    X: Any,
    y: Any,
    *,
    times: int = 10,
    rng: int | np.random.Generator | None = None,
) -> NullModels:
    """Models trained on two halves of a table, to measure differences by chance.

    Parameters
    ----------
    fit : estimator or callable
        The way the old version was trained: an estimator, copies of which are fitted,
        or a function from X and y to a fitted model.
    X, y : DataFrame or array (n, D), Series or array (n,)
        The training data of the old version.
    times : int
        The number of random splits; at least ten.
    rng : int, numpy.random.Generator or None
        The seed of the splits; None is seed 0.

    Returns
    -------
    NullModels
        2 × ``times`` models, two for each split: the ``level`` of
        :func:`propopt.compare`.

    Raises
    ------
    InvalidInput
        If the table has fewer than four rows, or there are fewer than ten splits.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X, learner = np.random.default_rng(0).normal(size=(60, 3)), LinearRegression()
    >>> len(po.null_models.split_half_refits(learner, X, X[:, 0]).models)
    20
    """
    generator = read_rng(rng)
    n = _n_rows(X, y)
    orders = (generator.permutation(n) for _ in range(read_count(times, "times")))
    halves = [np.sort(half) for x in orders for half in (x[: n // 2], x[n // 2 :])]
    return NullModels("split_half_refits", [_fitted(fit, X, y, x) for x in halves])


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
def seed_refits(estimator: Any, X: Any, y: Any, *, times: int = 5) -> NullModels:
    """Models trained on the same table with other seeds, which understate chance.

    New data change a model more than seeds do, so these do not show which differences
    between versions are due to chance. A comparison with them states so.

    Parameters
    ----------
    estimator : estimator
        One with a ``random_state``.
    X, y : DataFrame or array (n, D), Series or array (n,)
        The training data of the old version.
    times : int
        The number of models; at least two.

    Returns
    -------
    NullModels
        The models, all pairs of which are compared.

    Raises
    ------
    InvalidInput
        If the estimator has no seed to set.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> forest = RandomForestRegressor(n_estimators=5)
    >>> po.null_models.seed_refits(forest, X, X[:, 0], times=3).kind
    'seed_refits'
    """
    rows = np.arange(_n_rows(X, y))
    if not has_method(estimator, "get_params"):
        raise InvalidInput("seed_refits: expected an estimator with a seed")
    seeds = [x for x in estimator.get_params() if x.split("__")[-1] == "random_state"]
    if not seeds:
        raise InvalidInput(
            f"seed_refits: {type(estimator).__name__} has no random_state, so all "
            "refits would be one model; use propopt.null_models.split_half_refits"
        )
    models = []
    for seed in range(1, read_count(times, "times") + 1):
        seeded = clone(estimator).set_params(**dict.fromkeys(seeds, seed))
        models.append(_fitted(seeded, X, y, rows))
    return NullModels("seed_refits", models)


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
