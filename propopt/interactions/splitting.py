"""Data splits: one fit for each set of features, evaluated on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Values
from propopt.base.checkpoints import checkpoint_path, read_checkpoint, write_checkpoint
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.interactions.features import FeatureSets, subsets_of
from propopt.interactions.fitting import Fit, fitted_parts
from propopt.interactions.refits import RefitErrors, Refits, SetErrors
from propopt.structures.kinds import has_method
from propopt.tables.frames import select_rows


# ---- Splits of rows into training and test rows


@final
@dataclass(frozen=True, eq=False)
class Fold:
    """Training and test rows of a table, both ascending."""

    training: NDArray[np.intp]
    test: NDArray[np.intp]

    @classmethod
    def of(cls, test: NDArray[np.bool_]) -> Fold:
        """The fold with the test rows of a mask (N,)."""
        return cls(np.flatnonzero(~test), np.flatnonzero(test))


def held_out(n_rows: int, n_test: int, seed: int) -> Fold:
    """A random fold with ``n_test`` test rows."""
    order = np.random.default_rng(seed).permutation(n_rows)
    # n_test of N evenly spaced positions: where i n_test / N passes an integer
    passed = np.arange(n_rows + 1) * n_test // n_rows
    test = np.zeros(n_rows, dtype=bool)
    test[order[np.diff(passed) > 0]] = True
    return Fold.of(test)


def dealt_folds(
    n_rows: int,
    n_folds: int,
    seed: int,
    groups: NDArray[np.intp] | None = None,
) -> tuple[Fold, ...]:
    """Random folds of equal size, in which each row is tested once.

    Groups are not split: the largest come first, each to the fold with fewest rows.
    """
    if groups is None:
        number = np.empty(n_rows, dtype=np.intp)
        order = np.random.default_rng(seed).permutation(n_rows)
        number[order] = np.arange(n_rows) % n_folds
    else:
        sizes = np.bincount(groups)
        rows_in_fold = np.zeros(n_folds)
        fold_of_group = np.empty(len(sizes), dtype=np.intp)
        order = np.random.default_rng(seed).permutation(len(sizes))
        for group in order[np.argsort(-sizes[order], kind="stable")]:
            fold_of_group[group] = rows_in_fold.argmin()
            rows_in_fold[fold_of_group[group]] += sizes[group]
        number = fold_of_group[groups]
    return tuple(Fold.of(number == k) for k in range(n_folds))


def held_out_groups(groups: NDArray[np.intp], n_test: int, seed: int) -> Fold:
    """A random fold with whole groups (N,), at least two, of about ``n_test`` rows."""
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    nearest = int(np.abs(np.cumsum(sizes[order]) - n_test).argmin()) + 1
    count = min(max(nearest, 2), len(sizes) - 1)
    return Fold.of(np.isin(groups, order[:count]))


# ---- Fits for sets of features, each evaluated on its test rows


WeightedFolds: TypeAlias = tuple[tuple[Fold, float], ...]
"""Folds with their weights in an error: 1, or less if several predict one row."""


@final
@dataclass(frozen=True, eq=False)
class SetPlan:
    """Fits for sets of features: a learner for each set and fold, with one seed."""

    left_out: Sequence[tuple[int, ...]]
    weighted_folds: WeightedFolds  # test rows are positions in ``table``
    table: Any  # (N, D): the test rows
    y: NDArray[Any]  # (N,): their target
    seed: int

    def __len__(self) -> int:
        return len(self.left_out)

    def part(self, some: slice) -> SetPlan:
        """A slice of the sets."""
        return replace(self, left_out=self.left_out[some])

    def results(self, k: int, refits: Refits, fit: Fit) -> Array:
        """Errors (N,) of all rows without set k."""
        included = np.ones(len(refits.features), dtype=bool)
        included[list(self.left_out[k])] = False
        result = np.zeros(len(self.y))
        for fold, share in self.weighted_folds:
            rows = fold.test
            y = self.y[fold.test]
            table = (
                self.table
                if len(rows) == len(self.y)
                else select_rows(self.table, rows)
            )
            predicted = fit(fold.training, included, self.seed)(table)
            outputs = refits.error.relevant_outputs(predicted, y)[:, None, :]
            result[rows] += share * refits.error.compute(y, outputs)[:, 0]
        return result


# ---- Errors at held-out rows, of predictors that are fitted on demand


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SplitErrors(RefitErrors):
    """Errors at held-out rows; a set is fitted when it is first requested.

    Errors are cached: 8 bytes for each set and test row.
    """

    refits: Refits  # learner, table, target
    folds: tuple[Fold, ...]  # training and test rows
    plan: SetPlan  # without sets: test rows and folds
    n_jobs: int | None = None  # workers
    progress: bool | None = None  # show a bar
    _cache: dict[tuple[int, ...], Values] = field(default_factory=dict, init=False)

    def errors(self, sets: FeatureSets) -> SetErrors:
        requested = _tuples(sets)
        self._fit(requested)
        rows = np.stack([self._cache[members] for members in requested], axis=1)
        return SetErrors(rows, np.zeros((0, len(sets))), np.ones(len(sets)))

    def fit_subsets_of(self, sets: FeatureSets) -> None:
        """Fit the predictors that scores of sets (Q, r) and of each feature need."""
        single = self.features.all_sets(1)
        sets_to_fit = [(), *_tuples(single)]
        for size in range(2, sets.shape[1] + 1):
            sets_to_fit += _tuples(subsets_of(sets, size)[0])
        self._fit(sets_to_fit)

    def evaluate_on(self, table: Any, y: NDArray[Any]) -> SplitErrors:
        """Errors of the same predictors on new rows, refitted with the same seed.

        The predictors of all K folds predict each row, weighted by their test rows.
        """
        every = np.arange(len(y))
        weighted_folds = tuple(
            (Fold(fold.training, every), share) for fold, share in self._shares
        )
        return replace(
            self,
            plan=replace(self.plan, weighted_folds=weighted_folds, table=table, y=y),
            row_weights=np.ones(len(y)),
            row_groups=None,
            method=f"{self.method}, evaluated on new rows",
        )

    def predict(self, table: Any) -> Array:
        """The mean prediction over folds, refitted with the same seed."""
        everything = np.ones(len(self.features), dtype=bool)
        parts = [
            share
            * self.refits.fit_predictor(fold.training, everything, self.plan.seed)(
                table
            )
            for fold, share in self._shares
        ]
        return np.sum(parts, axis=0)

    @property
    def _shares(self) -> list[tuple[Fold, float]]:
        """Folds with weights in proportion to their test rows."""
        evaluated = np.array([len(fold.test) for fold in self.folds], dtype=np.float64)
        return list(zip(self.folds, evaluated / evaluated.sum(), strict=True))

    def _fit(self, requested: Sequence[tuple[int, ...]]) -> None:
        """Fit sets that are not in the cache; finished sets are saved."""
        new = [
            members
            for members in dict.fromkeys(requested)
            if members not in self._cache
        ]
        paths = {
            members: checkpoint_path("set", np.array(members, np.int64))
            for members in new
        }
        for members, path in paths.items():
            saved = read_checkpoint(path)
            if saved is not None:
                self._cache[members] = saved["errors"]
                used = (self.used or frozenset()) | {*saved["used"].tolist()}
                vars(self)["used"] = used
        new = [members for members in new if members not in self._cache]
        if not new:
            return
        n_rows = len(self.row_weights)
        require_memory(
            8 * n_rows * len(new),
            f"errors of {len(new)} sets at {n_rows} rows",
            "score fewer sets, chosen by a Screen",
        )
        used = self.used or frozenset()
        for block, fitted in fitted_parts(
            replace(self.plan, left_out=new),
            self.refits,
            "fits without features",
            np.ones(len(new), dtype=bool),
            8 * n_rows,
            spread=True,
            used=used,
            n_jobs=self.n_jobs,
            progress=self.progress,
        ):
            self._cache.update(zip(new[block], fitted.results, strict=True))
            each = fitted.seconds / len(fitted.results)
            seen = np.array(sorted(fitted.used), np.int64)
            for members, errors in zip(new[block], fitted.results, strict=True):
                write_checkpoint(paths[members], each, errors=errors, used=seen)
            used |= fitted.used
            vars(self)["used"] = used


def _tuples(sets: FeatureSets) -> list[tuple[int, ...]]:
    """Sets as keys of the cache."""
    return [tuple(members) for members in sets.tolist()]


# ---- iLOCO-Split


SEEDS: Final = 2**31
"""An upper bound of seeds that all libraries accept."""


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, repr=False)
class DataSplit:
    """Fit one learner for each set of features on some rows, and test it on others.

    Intervals are for the fitted learners: the target is their mean score over new rows
    (Little, Zheng & Allen, Algorithm 1 and Theorem 1).

    With K folds each row is tested once, by learners of the K − 1 other folds. The
    target is the mean over folds of their learners' scores on new rows, weighted by the
    rows of each fold. The standard error is that of all N scores, s/√N, which is right
    as N grows if learners change little with one row (Bayle, Bayle, Janson & Mackey
    2020, Cross-validation confidence intervals for test error, Theorem 1 and the
    all-pairs variance). It is about 1/√2 of that of halves, and too small for few rows:
    with 100 rows and 5 folds, 90 % intervals covered the target in 79 to 81 % of cases
    for linear models, and in 85 to 87 % for trees (114 tables of a product of two
    normal features).

    Rows are assumed independent unless ``groups`` are given: visits of one patient,
    months of one shop, days of one week. Groups are then not split between training and
    test rows. The target is the mean over rows of *new groups*, and the standard error
    is that of C independent sums, √(C/(C − 1) Σ_c (Σ_{i ∈ c} (z_i − z̄))²)/N, with
    Student's law of C − 1 degrees. This assumes independent groups, none with most of
    the rows; with fewer than about ten groups intervals are too short. For 80 people
    with six rows each, 90 % intervals covered the target in 0.88 of 200 tables by
    halves and in 0.86 by five folds, but in 0.56 and 0.54 with rows assumed
    independent. Rows of a time series are not independent, also with
    ``folds=TimeSeriesSplit()``: use blocks of time as groups, longer than the
    dependence.

    A set of features costs one fit, or K; all pairs of M features cost 1 + M(M + 1)/2.

    Parameters
    ----------
    test_size : float
        Share of test rows.
    n_folds : int, optional
        K folds instead; each serves once as the test rows.
    folds : splitter or sequence of pairs, optional
        Training and test rows instead: a scikit-learn splitter, such as
        ``GroupKFold(5)`` or ``TimeSeriesSplit(5)``, or pairs of training rows and test
        rows. No row is tested twice; some may never be tested. A splitter without a
        seed uses that of the fit.
    groups : sequence (N,), optional
        Labels of rows; rows with one label are dependent.

    Raises
    ------
    InvalidInput
        If an argument is invalid, or if two of them determine the test rows.

    Examples
    --------
    >>> DataSplit(n_folds=5)
    DataSplit(test_size=0.5, n_folds=5)
    >>> from sklearn.model_selection import GroupKFold
    >>> DataSplit(folds=GroupKFold(2), groups=["ann", "ann", "bob", "eve"])
    DataSplit(folds=GroupKFold(n_splits=2, random_state=None, shuffle=False), 3 groups)
    """

    test_size: float = 0.5
    n_folds: int | None = None
    folds: Any = None
    groups: Any = None

    def __post_init__(self) -> None:
        # 1 and True are not meant as shares
        size: object = self.test_size
        if not isinstance(size, float | np.floating) or not 0 < size < 1:
            raise InvalidInput(
                f"test_size: expected a share between 0 and 1, got {size!r}"
            )
        fields = vars(self)
        if self.groups is not None:
            fields["groups"] = _read_groups(self.groups)
        if self.folds is not None:
            fields["folds"] = self._read_folds()
        if self.n_folds is None:
            return
        if read_count(self.n_folds, "n_folds") < 2:
            raise InvalidInput(f"n_folds: expected an integer >= 2, got {self.n_folds}")
        if self.test_size != 0.5:
            raise InvalidInput(
                f"test_size: with n_folds={self.n_folds} each row is tested once; "
                "give one of the two"
            )

    def fit(
        self,
        refits: Refits,
        *,
        seed: int,
        sets: FeatureSets | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> SplitErrors:
        """Fit predictors without each set (Q, r) of features; return their errors.

        Only errors are retained, not the learners. Sets that ``sets`` need are fitted
        now, others on demand.

        Parameters
        ----------
        refits : Refits
            The learner, the table (N, D), the target (N,) and the error.
        seed : int
            The seed of the folds and of the learners.
        sets : int array (Q, r), optional
            Q sets of r features each, by index; None fits nothing yet.
        n_jobs : int, optional
            Number of parallel workers; results do not depend on it.
        progress : bool, optional
            Whether to show a progress bar; None shows it on a terminal.

        Returns
        -------
        SplitErrors
            Errors at the test rows, in the units of the error.

        Raises
        ------
        InvalidInput
            If the folds or the groups do not fit the table.
        """
        codes = self._codes(refits.n_rows)
        if self.folds is None:
            folds = self.drawn_folds(refits.n_rows, seed, codes)
        else:
            folds = self._user_folds(refits, seed)
        _check_folds(folds, codes)
        evaluated = np.sort(np.concatenate([fold.test for fold in folds]))
        weighted_folds = tuple(
            (Fold(fold.training, np.searchsorted(evaluated, fold.test)), 1.0)
            for fold in folds
        )
        table = select_rows(refits.learner_table, evaluated.tolist())
        errors = SplitErrors(
            features=refits.features,
            error=refits.error,
            row_weights=_evaluated_weights(refits, evaluated),
            row_groups=_evaluated_groups(codes, evaluated, refits.row_weights),
            used=frozenset(),
            method=repr(self),
            refits=refits,
            folds=folds,
            plan=SetPlan((), weighted_folds, table, refits.y[evaluated], seed % SEEDS),
            n_jobs=n_jobs,
            progress=progress,
        )
        if sets is not None:
            errors.fit_subsets_of(sets)
        return errors

    def drawn_folds(
        self,
        n_rows: int,
        seed: int,
        groups: NDArray[np.intp] | None = None,
    ) -> tuple[Fold, ...]:
        """Draw training and test rows: one fold, or K.

        Groups are not split.

        Parameters
        ----------
        n_rows : int
            The number of rows N of the table.
        seed : int
            The seed of the random draw.
        groups : int array (N,), optional
            The group of each row, from 0 to C − 1; None treats rows as independent.

        Returns
        -------
        tuple of Fold
            One fold, or ``n_folds`` of them, with ascending indices of rows.

        Raises
        ------
        InvalidInput
            If the rows or groups are too few for these folds or this ``test_size``.
        """
        if self.n_folds is not None:
            n_all = n_rows if groups is None else int(groups.max()) + 1
            if self.n_folds > n_all:
                label = "rows" if groups is None else "groups"
                raise InvalidInput(
                    f"n_folds: expected at most {n_all}, the number of {label}, got "
                    f"{self.n_folds}"
                )
            return dealt_folds(n_rows, self.n_folds, seed, groups)
        n_test = round(self.test_size * n_rows)
        if not 2 <= n_test <= n_rows - 1:
            raise InvalidInput(
                f"test_size: {self.test_size:g} of {n_rows} rows gives {n_test} test "
                "rows; at least two are needed, and one training row"
            )
        if groups is not None:
            return (held_out_groups(groups, n_test, seed),)
        return (held_out(n_rows, n_test, seed),)

    def __repr__(self) -> str:
        drawn = "test_size", "n_folds"
        if self.folds is None:
            how = ", ".join(f"{name}={getattr(self, name)!r}" for name in drawn)
        elif isinstance(self.folds, tuple):
            how = f"{plural(len(self.folds), 'given fold')}"
        else:
            how = f"folds={self.folds!r}"
        if self.groups is not None:
            how += f", {plural(len(set(self.groups)), 'group')}"
        return f"DataSplit({how})"

    def _read_folds(self) -> Any:
        """A validated splitter, or pairs of rows as tuples."""
        if self.n_folds is not None or self.test_size != 0.5:
            other = "n_folds" if self.n_folds is not None else "test_size"
            raise InvalidInput(
                f"folds: the test rows are determined by folds and also by {other}; "
                "give only one of them"
            )
        if has_method(self.folds, "split") and not isinstance(self.folds, str | type):
            return self.folds
        try:
            return tuple((_rows(fit), _rows(judge)) for fit, judge in self.folds)
        except (TypeError, ValueError):
            raise InvalidInput(
                "folds: expected a splitter such as GroupKFold(5), or pairs of "
                f"training rows and test rows, got {self.folds!r}"
            ) from None

    def _user_folds(self, refits: Refits, seed: int) -> tuple[Fold, ...]:
        """Folds of the splitter, or the given folds."""
        pairs = self.folds
        if not isinstance(pairs, tuple):
            splitter = deepcopy(pairs)
            if getattr(splitter, "random_state", 0) is None:
                splitter.random_state = seed % SEEDS
            y = refits.y if refits.classes is None else refits.classes[refits.y]
            try:
                with (
                    warnings.catch_warnings()
                ):  # of those that ignore groups; we do not
                    warnings.simplefilter("ignore", UserWarning)
                    pairs = list(splitter.split(refits.table, y, self.groups))
            except (TypeError, ValueError) as error:
                raise InvalidInput(f"folds: {splitter!r}: {error}") from error
        indices = np.arange(refits.n_rows)
        try:
            parts = [
                [np.unique(indices[np.asarray(rows, dtype=np.intp)]) for rows in pair]
                for pair in pairs
            ]
        except IndexError:
            raise InvalidInput(
                f"folds: expected rows from 0 to {refits.n_rows - 1}"
            ) from None
        return tuple(Fold(training, test) for training, test in parts)

    def _codes(self, n_rows: int) -> NDArray[np.intp] | None:
        """Groups of the rows, as integers from 0."""
        if self.groups is None:
            return None
        if len(self.groups) != n_rows:
            raise InvalidInput(
                f"groups: expected a label for each of {n_rows} rows, got "
                f"{len(self.groups)}"
            )
        numbers = {label: k for k, label in enumerate(dict.fromkeys(self.groups))}
        if len(numbers) < 3:
            raise InvalidInput(
                f"groups: expected at least 3, two of them for testing, got "
                f"{len(numbers)}"
            )
        return np.array([numbers[label] for label in self.groups], dtype=np.intp)


def _read_groups(groups: Any) -> tuple[Hashable, ...]:
    """Validated labels of groups, one for each row."""
    labels = None if isinstance(groups, str) else np.asarray(groups)
    if labels is None or labels.ndim != 1:
        got = repr(groups) if labels is None else f"shape {labels.shape}"
        raise InvalidInput(f"groups: expected a label for each row, got {got}")
    missing = np.asarray(pd.isna(labels))
    if missing.any():
        raise InvalidInput(
            f"groups: {int(missing.sum())} rows have no label, the first is row "
            f"{int(missing.argmax())}; give a label to each row"
        )
    return tuple(labels.tolist())


def _rows(user_rows: Any) -> tuple[int, ...]:
    """Row numbers, or a mask of all rows, as row numbers."""
    rows = np.asarray(user_rows)
    if (
        rows.ndim != 1
        or (rows.size and rows.dtype.kind not in "iub")
        or (rows < 0).any()
    ):
        raise ValueError
    return tuple((np.flatnonzero(rows) if rows.dtype.kind == "b" else rows).tolist())


def _check_folds(folds: tuple[Fold, ...], groups: NDArray[np.intp] | None) -> None:
    """Refuse rows or groups that are trained and tested in a fold, or tested twice."""
    evaluated: set[int] = set()
    for k, fold in enumerate(folds):
        test = set(fold.test.tolist())
        if not (len(fold.training) and test):
            raise InvalidInput(f"folds: fold {k} has no training rows or no test rows")
        if both := test & set(fold.training.tolist()):
            raise InvalidInput(
                f"folds: row {min(both)} is a training row and a test row in fold {k}"
            )
        if twice := evaluated & test:
            raise InvalidInput(
                f"folds: row {min(twice)} is tested twice; use folds that test each "
                "row once, such as KFold(5)"
            )
        evaluated |= test
        if (
            groups is not None
            and np.isin(groups[fold.test], groups[fold.training]).any()
        ):
            raise InvalidInput(
                f"folds: a group has training rows and test rows in fold {k}; use "
                "GroupKFold(5), or leave groups out"
            )
    n_units = (
        len(evaluated) if groups is None else len(set(groups[list(evaluated)].tolist()))
    )
    if n_units < 2:
        label = "rows" if groups is None else "groups"
        raise InvalidInput(f"folds: expected at least two {label} for testing, got 1")


def _evaluated_weights(
    refits: Refits, evaluated: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Weights of the test rows, which sum to their number."""
    weights = refits.row_weights[evaluated]
    if np.count_nonzero(weights) < 2:
        raise InvalidInput(
            f"sample_weight: of {len(weights)} test rows at most one has a positive "
            "weight; at least two are needed"
        )
    return weights * (len(weights) / weights.sum())


def _evaluated_groups(
    groups: NDArray[np.intp] | None, evaluated: NDArray[np.intp], weights: Values
) -> NDArray[np.intp] | None:
    """Groups of the test rows, numbered from 0; at least two need positive weights."""
    if groups is None:
        return None
    codes = groups[evaluated]
    if len(np.unique(codes[weights[evaluated] > 0.0])) < 2:
        raise InvalidInput(
            "sample_weight: only one test group has positive weights; at least two "
            "are needed"
        )
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.intp)
