"""Data splits: one fit for each set of features, evaluated on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    check_cv,
)

from propopt.base.arrays import Array, Values
from propopt.base.checkpoints import checkpoint_path, read_checkpoint, write_checkpoint
from propopt.base.checks import refuse_overflow
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.interactions.features import FeatureSets, subsets_of
from propopt.interactions.fitting import fitted_parts
from propopt.interactions.learning import Prediction
from propopt.interactions.refits import RefitErrors, Refits, SetErrors
from propopt.structures.kinds import has_method
from propopt.tables.frames import select_rows


# ---- Fits for sets of features, each evaluated on its test rows


@final
@dataclass(frozen=True, eq=False)
class Fold:
    """Rows that a learner is fitted to, and the test rows that it predicts."""

    training: NDArray[np.intp]
    test: NDArray[np.intp]  # positions in means over test rows
    table: Any  # the test rows
    y: NDArray[Any]  # their target
    # weight of the error: 1, or less if learners of several folds predict a row
    share: float = 1.0


@final
@dataclass(frozen=True, eq=False)
class SetPlan:
    """Fits for sets of features: a learner for each set and fold, with one seed."""

    left_out: Sequence[tuple[int, ...]]
    folds: tuple[Fold, ...]
    n_rows: int  # N, the number of test rows
    seed: int

    def __len__(self) -> int:
        return len(self.left_out)

    def part(self, some: slice) -> SetPlan:
        """A slice of the sets."""
        return replace(self, left_out=self.left_out[some])

    def results(self, k: int, refits: Refits) -> tuple[Array, list[Prediction]]:
        """Errors (N,) of all rows without set k, and the learner of each fold."""
        included = np.ones(len(refits.features.names), dtype=bool)
        included[list(self.left_out[k])] = False
        result = np.zeros(self.n_rows)
        learners = []
        for fold in self.folds:
            predict = refits.fit_predictor(fold.training, included, self.seed)
            outputs = refits.error.relevant_outputs(predict(fold.table), fold.y)
            with np.errstate(over="ignore"):  # infinite errors are refused
                errors = refits.error.compute(fold.y, outputs[:, None, :])[:, 0]
            result[fold.test] += fold.share * errors
            learners.append(predict)
        refuse_overflow(result, "estimator: errors of predictions")
        return result, learners


# ---- Errors at held-out rows, of predictors that are fitted on demand


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SplitErrors(RefitErrors):
    """Errors at held-out rows; a set is fitted when it is first requested.

    Errors are cached: 8 bytes for each set and test row.
    """

    refits: Refits  # learner, table, target
    plan: SetPlan  # without sets: folds and seed
    n_jobs: int | None = None  # workers
    progress: bool | None = None  # show a bar
    used: set[int] = field(default_factory=set)  # grows with each fit
    _cache: dict[tuple[int, ...], Values] = field(default_factory=dict, init=False)

    def errors(self, sets: FeatureSets) -> SetErrors:
        requested = _tuples(sets)
        self._fit(requested)
        rows = np.stack([self._cache[members] for members in requested], axis=1)
        return SetErrors(rows, np.zeros((0, len(sets))), np.ones(len(sets)))

    def fit_subsets_of(self, sets: FeatureSets) -> None:
        """Fit the predictors that scores of sets (Q, r) and of each feature need."""
        sets_to_fit = [(), *_tuples(self.features.all_sets(1))]
        for size in range(2, sets.shape[1] + 1):
            sets_to_fit += _tuples(subsets_of(sets, size)[0])
        self._fit(sets_to_fit)

    def evaluate_on(self, table: Any, y: NDArray[Any]) -> SplitErrors:
        """Errors of the same predictors on new rows, refitted with the same seed.

        The predictors of all K folds predict each row, weighted by their test rows.
        """
        every = np.arange(len(y))
        sizes = np.array([fold.share * len(fold.test) for fold in self.plan.folds])
        shares = sizes / sizes.sum()
        folds = tuple(
            Fold(fold.training, every, table, y, share)
            for fold, share in zip(self.plan.folds, shares, strict=True)
        )
        return replace(
            self,
            plan=replace(self.plan, folds=folds, n_rows=len(y)),
            row_weights=np.ones(len(y)),
            row_groups=None,
            method=f"{self.method}, evaluated on new rows",
        )

    def _fit(self, requested: Sequence[tuple[int, ...]]) -> None:
        """Fit sets that are not in the cache; finished sets are saved."""
        paths = {
            members: checkpoint_path("set", np.array(members, np.int64))
            for members in dict.fromkeys(requested)
            if members not in self._cache
        }
        for members, path in paths.items():
            saved = None if path is None else read_checkpoint(path)
            if saved is not None:
                self._cache[members] = saved["errors"]
                self.used.update(saved["used"].tolist())
        new = [members for members in paths if members not in self._cache]
        if not new:
            return
        row_bytes = 8 * self.plan.n_rows
        require_memory(
            row_bytes * len(new),
            f"errors of {len(new)} sets at {self.plan.n_rows} rows",
            "score fewer sets",
        )
        for block, fitted in fitted_parts(
            replace(self.plan, left_out=new),
            self.refits,
            "fits without features",
            np.ones(len(new), dtype=bool),
            row_bytes,
            spread=True,
            used=self.used,
            n_jobs=self.n_jobs,
            progress=self.progress,
        ):
            seconds = fitted.seconds / len(fitted.results)
            used = np.array(sorted(fitted.used), np.int64)
            for members, errors in zip(new[block], fitted.results, strict=True):
                self._cache[members] = errors
                if paths[members] is not None:
                    write_checkpoint(paths[members], seconds, errors=errors, used=used)
            self.used.update(fitted.used)


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
    ``cv=TimeSeriesSplit()``: use blocks of time as groups, longer than the
    dependence.

    A set of features costs one fit, or K; all pairs of M features cost 1 + M(M + 1)/2.

    Parameters
    ----------
    cv : float, int, splitter or sequence of pairs
        The share of test rows; or a number K of folds, each of which serves once as the
        test rows; or a splitter of scikit-learn, such as ``TimeSeriesSplit(5)``; or
        pairs of training rows and test rows. No row is tested twice; some may never be
        tested. A splitter without a seed uses that of the fit.
    groups : sequence (N,), optional
        Labels of rows; rows with one label are dependent. Shares and numbers of folds
        are then those of groups.

    Raises
    ------
    InvalidInput
        If an argument is invalid.

    Examples
    --------
    >>> DataSplit(cv=5)
    DataSplit(cv=5)
    >>> from sklearn.model_selection import GroupKFold
    >>> DataSplit(cv=GroupKFold(2), groups=["ann", "ann", "bob", "eve"])
    DataSplit(cv=GroupKFold(n_splits=2, random_state=None, shuffle=False), 3 groups)
    """

    cv: Any = 0.5
    groups: Any = None

    def __post_init__(self) -> None:
        cv: Any = self.cv
        is_splitter = has_method(cv, "split") and not isinstance(cv, str | type)
        is_pairs = isinstance(cv, Sequence) and not isinstance(cv, str)
        is_share = isinstance(cv, float) and 0.0 < cv < 1.0
        is_count = isinstance(cv, Integral) and not isinstance(cv, bool)
        if not (is_splitter or is_pairs or is_share or is_count):
            raise InvalidInput(
                "cv: expected a share between 0 and 1 of test rows, a number of folds, "
                f"a splitter such as KFold(5), or pairs of rows, got {cv!r}"
            )
        if self.groups is not None:
            labels = np.asarray(self.groups)
            if labels.ndim != 1 or pd.isna(labels).any():
                raise InvalidInput(
                    "groups: expected a label for each row, none of them missing, got "
                    f"{self.groups!r}"
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
        groups = self._groups(refits.n_rows)
        pairs = self.rows(refits, seed)
        tested = np.sort(np.concatenate([test for _, test in pairs]))
        weights = refits.row_weights[tested]
        codes = None
        if groups is not None:
            codes = np.unique(groups[tested], return_inverse=True)[1]
        units = tested if codes is None else codes
        n_units = len(np.unique(units[weights > 0.0]))
        if n_units < 2:
            raise InvalidInput(
                f"cv: expected at least two {'rows' if groups is None else 'groups'} "
                f"with a positive sample_weight for testing, got {n_units}"
            )
        folds = tuple(
            Fold(
                training,
                np.searchsorted(tested, test),
                select_rows(refits.learner_table, test),
                refits.y[test],
            )
            for training, test in pairs
        )
        errors = SplitErrors(
            features=refits.features,
            error=refits.error,
            row_weights=weights * (len(weights) / weights.sum()),
            row_groups=codes,
            method=repr(self),
            refits=refits,
            plan=SetPlan((), folds, len(tested), seed % SEEDS),
            n_jobs=n_jobs,
            progress=progress,
        )
        if sets is not None:
            errors.fit_subsets_of(sets)
        return errors

    def rows(
        self, refits: Refits, seed: int
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training rows and test rows of each fold, ascending.

        Parameters
        ----------
        refits : Refits
            The table (N, D) and the target (N,).
        seed : int
            The seed of the random draw.

        Returns
        -------
        list of pairs of int arrays
            One pair, or a pair for each fold; groups are not split.

        Raises
        ------
        InvalidInput
            If the folds or the groups do not fit the table.
        """
        groups = self._groups(refits.n_rows)
        y = refits.y if refits.classes is None else refits.classes[refits.y]

        def ascending(rows: Any) -> NDArray[np.intp]:
            return np.unique(np.arange(refits.n_rows)[np.asarray(rows)])

        try:
            with warnings.catch_warnings():
                # splitters that ignore groups: split groups are refused below
                warnings.simplefilter("ignore", UserWarning)
                splits = self._splitter(seed % SEEDS).split(refits.table, y, groups)
                pairs = [
                    (ascending(training), ascending(test)) for training, test in splits
                ]
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidInput(f"cv: {self.cv!r}: {error}") from error
        _check_folds(pairs, groups)
        return pairs

    def __repr__(self) -> str:
        how = f"cv={self.cv!r}"
        if isinstance(self.cv, Sequence):
            how = plural(len(self.cv), "given fold")
        if self.groups is not None:
            how += f", {plural(len(set(self.groups)), 'group')}"
        return f"DataSplit({how})"

    def _splitter(self, seed: int) -> Any:
        """The splitter of scikit-learn; one without a seed gets this one."""
        cv = self.cv
        grouped = self.groups is not None
        if isinstance(cv, float):
            shuffled = GroupShuffleSplit if grouped else ShuffleSplit
            return shuffled(1, test_size=cv, random_state=seed)
        if isinstance(cv, Integral):
            dealt = GroupKFold if grouped else KFold
            return dealt(int(cv), shuffle=True, random_state=seed)
        splitter = deepcopy(check_cv(cv))
        if getattr(splitter, "random_state", 0) is None:
            splitter.random_state = seed
        return splitter

    def _groups(self, n_rows: int) -> NDArray[np.intp] | None:
        """Groups of the rows, as integers from 0 in the order of their labels."""
        if self.groups is None:
            return None
        if len(self.groups) != n_rows:
            raise InvalidInput(
                f"groups: expected a label for each of {n_rows} rows, got "
                f"{len(self.groups)}"
            )
        codes, _ = pd.factorize(np.array(self.groups, dtype=object), sort=True)
        return codes


def _check_folds(
    pairs: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    groups: NDArray[np.intp] | None,
) -> None:
    """Refuse rows or groups that are trained and tested in a fold, or tested twice."""
    unit = "row" if groups is None else "group"
    splitter = "KFold(5)" if groups is None else "GroupKFold(5)"
    tested = set[int]()
    for k, (training, test) in enumerate(pairs):
        if not (len(training) and len(test)):
            raise InvalidInput(f"cv: fold {k} has no training rows or no test rows")
        tests = test if groups is None else groups[test]
        if np.isin(tests, training if groups is None else groups[training]).any():
            raise InvalidInput(
                f"cv: a {unit} has training rows and test rows in fold {k}; use "
                f"{splitter}"
            )
        if twice := tested.intersection(test.tolist()):
            raise InvalidInput(
                f"cv: row {min(twice)} is tested twice; use folds that test each row "
                f"once, such as {splitter}"
            )
        tested.update(test.tolist())
