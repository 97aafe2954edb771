"""Minipatches: one ensemble on random rows and features that scores all sets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Mask, Sparse
from propopt.base.checks import (
    read_count,
    read_flag,
    refuse_overflow,
)
from propopt.base.errors import InterruptedWarning, InvalidInput, SolverFailure
from propopt.base.resources import BATCH_BUDGET, Budget
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.interactions.features import (
    Features,
    FeatureSets,
    subsets_of,
    with_any,
)
from propopt.interactions.fitting import (
    allocate_predictions,
    fitted_parts,
    patch_folder,
    problem_digest,
    save_part,
    saved_parts,
)
from propopt.interactions.learning import Prediction
from propopt.interactions.patch_draws import (
    CHECKED_SETS,
    MOST_PATCHES,
    PRECISE,
    PatchCoverage,
    Patches,
    PatchFeatures,
    PatchRows,
    WhyStopped,
    are_enough,
    check_counts,
    draw_patches,
    features_in_patch,
    looks,
    never_left_out,
    read_share_or_count,
    rows_in_patch,
)
from propopt.interactions.refits import (
    RefitErrors,
    Refits,
    SetErrors,
    set_scores,
)


Counts: TypeAlias = NDArray[np.float32]
"""Numbers of patches, exact up to 2^24."""


# ---- Sums over patches without some features, for all rows and sets


_Float = TypeVar("_Float", bound=np.floating[Any])

SPARSE_COST: Final = 8.0
"""Time per entry of a sparse product, relative to that of a dense product."""


SumsWithout: TypeAlias = Callable[[NDArray[_Float]], NDArray[_Float]]
"""From a (b, L) to Σ_b 1{T ∩ F_b = ∅} a_b, (q, L), for q sets T, in the dtype of a."""


def dense_sums(absent: Mask, summed: NDArray[_Float]) -> NDArray[_Float]:
    """Sums by a dense product with the mask 1{T ∩ F_b = ∅}, (q, b)."""
    return absent.astype(summed.dtype) @ summed


def sparse_sums(
    # (n_s, b): 1{u ⊆ F_b} of the proper subsets, by their sizes s = 0, ..., t − 1
    proper: Sequence[Sparse],
    whole: Sparse,  # (q, b): 1{T ⊆ F_b}
    signs: Sparse,  # (q, Σ n_s): (−1)^|u| where u is in T
    summed: NDArray[_Float],
) -> NDArray[_Float]:
    """Sums by inclusion and exclusion over u ⊆ T: few patches contain u if m ≪ M.

    With S_u = Σ_b 1{u ⊆ F_b} a_b, the sum without two features is S − S_j − S_k + S_jk,
    and without any number Σ_{u ⊆ T} (−1)^|u| S_u.
    """
    result: NDArray[_Float] = whole @ summed
    result *= (-1) ** len(proper)
    if proper:
        result += signs @ np.concatenate([incidence @ summed for incidence in proper])
    return result


def patches_without(
    sets: FeatureSets, present: Mask, groups: Sequence[slice]
) -> list[SumsWithout[Any]]:
    """Sums for each group of patches, by the cheaper product; sets (q, t)."""
    proper, signs = _proper_subsets(sets)
    share = float(present.mean())  # patches with all of t features are about share^t
    entries = sum(len(part) * share ** part.shape[1] for part in (*proper, sets))
    if SPARSE_COST * entries >= len(sets):
        absent = (_with_all(sets, ~present[:, part]) for part in groups)
        return [partial(dense_sums, part) for part in absent]
    with_all = [
        [_sparse(_with_all(part, present[:, group])) for part in (*proper, sets)]
        for group in groups
    ]
    return [partial(sparse_sums, part, whole, signs) for *part, whole in with_all]


def _proper_subsets(sets: FeatureSets) -> tuple[list[FeatureSets], Sparse]:
    """Distinct proper subsets u of q sets T, by size, and their signs (q, n)."""
    n_sets, order = sets.shape
    proper = []
    signs = [sp.coo_array((n_sets, 0), dtype=np.int8)]
    for size in range(order):
        subsets, indices = subsets_of(sets, size)
        where = (np.tile(np.arange(n_sets), len(indices)), indices.reshape(-1))
        sign = np.full(indices.size, (-1) ** size, dtype=np.int8)
        proper.append(subsets)
        signs.append(sp.coo_array((sign, where), (n_sets, len(subsets))))
    return proper, sp.hstack(signs, format="csr")


def _with_all(sets: FeatureSets, marks: Mask) -> Mask:
    """Whether patches are marked for all features of a set, (q, b); marks (M, b)."""
    having = np.ones((len(sets), marks.shape[1]), dtype=bool)
    for indices in sets.T:
        having &= marks[indices]
    return having


def _sparse(having: Mask) -> Sparse:
    starts = np.concatenate([[0], np.cumsum(having.sum(axis=1))])
    columns = np.flatnonzero(having) % having.shape[1]
    ones = np.ones(
        len(columns), dtype=np.int8
    )  # products have the dtype of the other factor
    return sp.csr_array((ones, columns, starts), having.shape)


# ---- Means of patches without a row and without some features, for all sets


Bits: TypeAlias = NDArray[np.uint8]

ROWS_OF_SUMS: Final = 128

PREDICTION_BUDGET: Final = Budget(2**22, ROWS_OF_SUMS)
"""Predictions of a group of patches that fit the cache while they are summed."""


GROUPS: Final = 20
"""Largest number of groups of patches."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PatchErrors(RefitErrors):
    """Errors of means over minipatches without a row and without some features.

    f_(−i)^(−T)(x_i) is the mean of patches with i not in I_b and T disjoint from F_b
    (Little, Zheng & Allen, Algorithm 2). Matrix products compute them for all rows and
    sets, and without each of G groups of patches. They take 8 (B N R + q (N + G + 1))
    bytes, and at most 128 MiB in addition.
    """

    patches: Patches  # B patches
    # (B, N, R): outputs of each prediction; ignored for rows in the patch
    predictions: Array
    y: NDArray[Any]  # (N,): the target
    n_groups: int = GROUPS  # G groups of consecutive patches, for the jackknife
    coverage: PatchCoverage | None = None  # how the patches were drawn
    predictors: tuple[Prediction, ...] = ()  # (B,): the learners, if retained
    # why fitting stopped, the allowed patches, and the requested and reached precision
    stop: Mapping[str, Any] | None = None
    # of the whole predictor and without each feature, which all scores use
    _cache: dict[int, SetErrors] = field(default_factory=dict, init=False)

    def errors(self, sets: FeatureSets) -> SetErrors:
        """Errors without each set; those of single features are cached."""
        order = sets.shape[1]
        if order and not np.array_equal(sets, self.features.all_sets(1)):
            return self._errors(sets)
        if order not in self._cache:
            self._cache[order] = self._errors(sets)
        return self._cache[order]

    def _errors(self, sets: FeatureSets) -> SetErrors:
        n_sets = len(sets)
        result = SetErrors(
            np.empty((n_sets, len(self.y))).T,
            np.zeros((len(self._groups), n_sets)),
            np.full(n_sets, np.inf),
        )
        # blocks of sets keep sums and masks within the budget; blocks of rows (each a
        # multiple of 8) keep the predictions of a group in the cache
        n_outputs = int(self.predictions.shape[2])
        n_groups = len(self._groups)
        sums = ROWS_OF_SUMS * n_groups * (8 * n_outputs + 4)  # of float64, and a count
        set_bytes = max(sums, len(self.patches))
        row_bytes = 8 * n_outputs * -(-len(self.patches) // n_groups)
        step = Budget(max(8, PREDICTION_BUDGET.rows(row_bytes) // 8 * 8))
        for block in BATCH_BUDGET.blocks(n_sets, set_bytes):
            without = patches_without(sets[block], self._present, self._groups)
            for rows in step.blocks(len(self.y), 1):
                groups = list(self._sums(without, rows))
                total, counts = (
                    reduce(np.add, parts) for parts in zip(*groups, strict=True)
                )
                fewest = counts.min(axis=1)
                self._require_patches(fewest, sets[block])
                result.counts[block] = np.minimum(result.counts[block], fewest)
                result.rows[rows, block] = self._mean_errors(total, counts, rows)
                weights = self.row_weights[rows] / len(self.y)
                for replicate, (sums_of_group, n_patches) in zip(
                    result.replicates, groups, strict=True
                ):
                    without_it = self._mean_errors(
                        total - sums_of_group, counts - n_patches, rows
                    )
                    replicate[block] += weights @ without_it
        return result

    @property
    def n_patches(self) -> int:
        return len(self.patches)

    def check(self, sets: FeatureSets, order: int) -> None:
        """Refuse sets that are never left out at a row."""
        if self.coverage is not None and sets.shape[1] > order:
            check_counts(self.patches, sets, self.coverage, self.features.names)

    @property
    def _learners(self) -> tuple[Prediction, ...]:
        """The fitted learners of all patches; refused if they were not retained."""
        if not self.predictors:
            raise InvalidInput(
                "the fitted learners were not retained; fit with Minipatches(keep=True)"
            )
        return self.predictors

    def evaluate_on(self, table: Any, y: NDArray[Any]) -> PatchErrors:
        shape = (len(self._learners), len(y), self.predictions.shape[2])
        predictions = allocate_predictions(shape)
        for prediction, predict in zip(predictions, self._learners, strict=True):
            prediction[:] = self.error.relevant_outputs(predict(table), y)
        refuse_overflow(predictions, "estimator: predictions")
        return replace(
            self,
            patches=self.patches.for_new_rows(len(y)),
            predictions=predictions,
            y=y,
            row_weights=np.ones(len(y)),
            method=f"{self.method}, evaluated on new rows",
            relative_patch_error=np.nan,
        )

    def patch_error(self, sets: FeatureSets) -> float:
        """Root mean square of ``se_mc`` over the sets (Q, r) of used features."""
        counted = sets[~with_any(sets, self.not_used)]
        errors = set_scores(self, counted)["monte_carlo"]
        return float(np.sqrt((errors**2).mean())) if len(errors) else 0.0

    @cached_property
    def _groups(self) -> list[slice]:
        """Slices of consecutive patches, in G groups of about equal size."""
        n_patches = len(self.patches)
        ends = np.linspace(0, n_patches, min(self.n_groups, n_patches) + 1).astype(int)
        return [slice(*ends_of_group) for ends_of_group in pairwise(ends.tolist())]

    @cached_property
    def _bits(self) -> list[Bits]:
        """Whether rows are outside the patches of each group, 8 rows to a byte."""
        return [
            np.packbits(self.patches.part(group).out, axis=1) for group in self._groups
        ]

    @cached_property
    def _present(self) -> Mask:
        """Whether a feature is in a patch, (M, B)."""
        return np.ascontiguousarray(self.patches.features.T)

    def _sums(
        self, without: list[SumsWithout[Any]], rows: slice
    ) -> Iterator[tuple[Array, Counts]]:
        """Sums (q, R, n) of outputs over the patches of each group, and their counts.

        For q sets and the n rows of a slice that starts at a multiple of 8.
        """
        for sums, group, bits in zip(without, self._groups, self._bits, strict=True):
            # whether rows are outside patches, (b, n)
            packed = bits[:, rows.start // 8 : -(-rows.stop // 8)]
            out = np.unpackbits(packed, axis=1, count=rows.stop - rows.start).view(bool)
            predicted = np.moveaxis(self.predictions[group, rows], 2, 1)
            outputs = np.zeros(predicted.shape)  # (b, R, n)
            np.copyto(outputs, predicted, where=out[:, None])
            total = sums(outputs.reshape(len(outputs), -1))
            yield total.reshape(-1, *outputs.shape[1:]), sums(out.astype(np.float32))

    def _mean_errors(self, sums: Array, counts: Counts, rows: slice) -> Array:
        """Errors (n, q) of means, from sums (q, R, n) and counts (q, n); 0/0 is NaN."""
        # a count of 0 is replaced, as error functions need numbers
        means = (sums / np.maximum(counts, 1.0)[:, None]).transpose(2, 0, 1)
        errors = self.error.compute(self.y[rows], means)
        return errors if counts.all() else np.where(counts.T == 0.0, np.nan, errors)

    def _require_patches(self, fewest: Counts, sets: FeatureSets) -> None:
        """Refuse sets that are never left out at some row."""
        if fewest.all():
            return
        coverage = PatchCoverage.of(self.patches)
        needed = coverage.patches_needed(sets.shape[1], len(sets) * len(self.y))
        members = sets[np.argmin(fewest)]
        raise never_left_out(self.patches, members, needed, self.features.names)


@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Minipatches:
    """An ensemble of learners, each fitted to random rows and features of a table.

    Each feature is drawn independently, so that the target of pairs without interaction
    is exactly zero. In the paper of Little, Zheng and Allen each patch has equally many
    features, and most pairs are far from zero even without interaction.

    Parameters
    ----------
    n_patches : int, optional
        B, the number of fits; their maximum if ``until`` is given too. By default as
        many as ``until`` needs, and at most 10,000.
    until : float, optional
        Stop when the standard error due to patches is at most this share of the error
        of a constant prediction; by default 0.002 without ``n_patches``.
    rows : float, int or "sqrt"
        n, rows of a patch: a share, a number, or √N, for which coverage of intervals is
        proved. A share is at least 20 rows, or half of a table of fewer than 40.
    n_features : float, int or None
        m, features of a patch on average: a share, a number, or None for half of up to
        20, and a fifth of more.
    keep : bool
        Retain the fitted learners, to compute scores on new rows
        (:meth:`ILOCO.target`).
    folder : path, optional
        Folder for predictions, written every two seconds, after 1, 3, 7, ... patches
        and after each 200, so that an interrupted run continues from there. Each
        problem has its subfolder. Learners are identified by class, parameters, and
        names and code of functions. More patches of the same problem reuse those in
        the folder.

    Raises
    ------
    InvalidInput
        If an argument is invalid.

    Notes
    -----
    A prediction without t features is a mean of about B (1 − n/N) (1 − m/M)^t patches.
    The patches are counted before any fit. A set that is never left out at some row is
    an error, which names a sufficient number of patches. Fewer than 30 patches in a
    mean, or fewer than 100 that contain all features of a set, give a warning.

    With ``until`` the error due to patches is estimated after 1,000 patches, and then
    each time their number has grown by √2. It is the root mean square of ``se_mc`` over
    at most 200 sets of the scored size, which do not depend on ``sets``. The run
    continues while a mean has fewer than 30 patches, or fewer than 100 contain a set.

    The rule uses only the variance due to patches, and no score, p-value or ``se``. If
    errors due to patches are symmetric, this variance is independent of the sign of a
    score's error. So intervals keep their coverage, and they include ``se_mc`` wherever
    the run stops. B patches give the same scores as ``n_patches=B``.

    The unit is the error of a constant, not ``se``. For ``se_mc`` below a third of
    ``se``, so that patches add 5 %, small trees on tables of 442 to 2,000 rows would
    need 25,000 to 500,000 patches, and more for more rows.

    Rows are drawn one by one and assumed independent: if several belong to one person,
    use ``DataSplit(groups=...)``.

    Predictions take 8 B N R bytes. R is 1, or the number of classes for a classifier
    with an error function of yours. Above 1 GiB they are in a memory-mapped file.
    Results depend only on the seed: not on workers, folders or ``keep``. After Ctrl-C
    the finished patches are the result, with a warning, if there are enough of them.

    Examples
    --------
    >>> scheme = Minipatches(rows="sqrt")
    >>> scheme.most
    10000

    The number of patches for means of 30, for all pairs of 50 features with 10 in a
    patch, at each of 500 rows:

    >>> from propopt.interactions.patch_draws import PatchCoverage
    >>> coverage = PatchCoverage(row_share=0.2, n_features=50, n_in_patch=10)
    >>> coverage.patches_needed(2, n_predictions=1225 * 500, at_least=30)
    115
    """

    n_patches: int | None = None
    until: float | None = None
    rows: PatchRows = 0.2
    n_features: PatchFeatures = None
    keep: bool = field(default=False, repr=False)
    folder: str | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.n_patches is not None and read_count(self.n_patches, "n_patches") < 2:
            raise InvalidInput("n_patches: expected an integer >= 2, got 1")
        until: object = self.until
        if until is not None and (
            isinstance(until, bool)
            or not isinstance(until, Real)
            or not 0.0 < float(until) < 1.0
        ):
            raise InvalidInput(
                "until: expected a share between 0 and 1 of the error of a constant "
                f"prediction, such as {PRECISE}, got {self.until!r}"
            )
        if self.rows != "sqrt":
            read_share_or_count(self.rows, "rows", " or 'sqrt'")
        if self.n_features is not None:
            read_share_or_count(self.n_features, "n_features", " or None")
        read_flag(self.keep, "keep")
        if not isinstance(self.folder, str | PathLike | None):
            raise InvalidInput(f"folder: expected a path or None, got {self.folder!r}")
        if self.keep and self.folder is not None:
            raise InvalidInput(
                "keep: a folder holds predictions and no learners; give one of the two"
            )

    @property
    def most(self) -> int:
        """The largest number of patches that are fitted."""
        return MOST_PATCHES if self.n_patches is None else self.n_patches

    @property
    def precision(self) -> float | None:
        """The precision at which fitting stops; None for a fixed number of patches."""
        return PRECISE if self.n_patches is self.until is None else self.until

    def fit(
        self,
        refits: Refits,
        *,
        seed: int,
        sets: FeatureSets | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> PatchErrors:
        """Fit the patches, and return errors of predictions without each feature set.

        Parameters
        ----------
        refits : Refits
            The learner, the table (N, D), the target (N,) and the error.
        seed : int
            The seed of the patches and of the learners.
        sets : int array (Q, r), optional
            Q sets of r features each, by index; by default all single features.
        n_jobs : int, optional
            Number of parallel workers; results do not depend on it.
        progress : bool, optional
            Whether to show a progress bar; None shows it on a terminal.

        Returns
        -------
        PatchErrors
            Errors of predictions at all N rows, in the units of the error.

        Raises
        ------
        InvalidInput
            If patches do not fit the table, or never contain or leave out a set.
        KeyboardInterrupt
            After Ctrl-C, if the finished patches are too few.
        """
        names = refits.features.names
        patches = self.draw(refits.n_rows, refits.features, seed)
        coverage = self.coverage(refits.n_rows, refits.features)
        first = refits.features.all_sets(1) if sets is None else sets
        check_counts(patches, first, coverage, names)
        drawn = {
            "seed": seed,
            "rows of a patch": patches.rows.shape[1],
            "features of a patch": coverage.n_in_patch,
        }
        some = refits.features.some_sets(first.shape[1], CHECKED_SETS)
        unit = 1.0 if self.precision is None else abs(refits.constant_error) or np.inf

        def errors_of(
            predictions: Array,  # (B, N, R)
            used: frozenset[int],
            predictors: tuple[Prediction, ...],
        ) -> PatchErrors:
            fitted = patches.part(slice(len(predictions)))
            n_rows = plural(fitted.rows.shape[1], "row")
            share = fitted.features.sum(axis=1).mean()
            return PatchErrors(
                features=refits.features,
                error=refits.error,
                row_weights=refits.row_weights,
                used=used,
                method=f"{len(fitted):,} minipatches of {n_rows} and {share:.3g} of "
                f"{plural(len(names), 'feature')}",
                patches=fitted,
                predictions=predictions,
                y=refits.y,
                coverage=coverage,
                predictors=predictors,
            )

        def share_of(errors: PatchErrors) -> float:
            """The relative error due to patches; NaN if there are too few."""
            if not all(
                are_enough(errors.patches, scored, coverage) for scored in (first, some)
            ):
                return np.nan
            return errors.patch_error(some) / unit

        errors, why, share = self._run(
            refits, patches, drawn, errors_of, share_of, n_jobs, progress
        )
        if why == "interrupted":
            self._warn_interrupted(errors, first)
        stop = {
            "why": why,
            "n_patches": errors.n_patches,
            "most": self.most,
            "until": self.precision,
            "share": None if np.isnan(share) else share,
        }
        return replace(errors, stop=stop, relative_patch_error=share)

    def draw(self, n_table: int, features: Features, seed: int) -> Patches:
        """Draw the patches for N rows; patch b does not depend on their number.

        Parameters
        ----------
        n_table : int
            The number of rows N of the table.
        features : Features
            The M features, each of one or more columns.
        seed : int
            The seed of the random draw.

        Returns
        -------
        Patches
            B patches: rows (B, n), features (B, M) and the seeds (B,) of learners.

        Raises
        ------
        InvalidInput
            If a patch would leave no row, or no feature, out.
        """
        return draw_patches(
            self.most,
            n_table,
            rows_in_patch(self.rows, n_table),
            len(features),
            self._n_in_patch(len(features)),
            seed,
        )

    def coverage(self, n_table: int, features: Features) -> PatchCoverage:
        """The probability that a patch is used to predict a given row of N.

        Parameters
        ----------
        n_table : int
            The number of rows N of the table.
        features : Features
            The M features, each of one or more columns.

        Returns
        -------
        PatchCoverage
            The shares of rows and features in a patch, from which it computes
            probabilities.

        Raises
        ------
        InvalidInput
            If a patch would leave no row, or no feature, out.
        """
        return PatchCoverage(
            row_share=rows_in_patch(self.rows, n_table) / n_table,
            n_features=len(features),
            n_in_patch=self._n_in_patch(len(features)),
        )

    def _n_in_patch(self, n_all: int) -> float:
        """The number m of M features in a patch, on average."""
        n_included = features_in_patch(self.n_features, n_all)
        if n_included >= n_all:
            raise InvalidInput(
                f"n_features: a patch of {n_included:g} of {n_all} leaves no feature "
                "out; "
                + (
                    f"expected less than {n_all}"
                    if n_all > 1
                    else "use DataSplit(), which fits without the only feature"
                )
            )
        return n_included

    def _run(
        self,
        refits: Refits,
        patches: Patches,
        drawn: Mapping[str, object],
        errors_of: Callable[
            [Array, frozenset[int], tuple[Prediction, ...]], PatchErrors
        ],
        share_of: Callable[[PatchErrors], float],
        n_jobs: int | None,
        progress: bool | None,
    ) -> tuple[PatchErrors, WhyStopped, float]:
        """Fit patches; return errors, why fitting stopped, and the relative error.

        Calls of workers end where the error is estimated, so that results do not depend
        on the speed of workers.
        """
        shape = (self.most, refits.n_rows, refits.n_outputs)
        folder = None
        done = np.zeros(self.most, dtype=bool)
        predictors = list[Prediction]()
        used = list[tuple[int, frozenset[int]]]()
        hint = "Minipatches(folder=...) saves finished patches"
        label = "minipatches"
        if self.folder is not None:
            folder = patch_folder(self.folder, problem_digest(refits, drawn), shape)
            hint = (
                f"finished patches are in {folder}, and the same call continues there"
            )
        predictions = allocate_predictions(shape, folder)
        for block, result_of_block in (
            () if folder is None else saved_parts(folder, self.most)
        ):
            predictions[block] = result_of_block.results
            done[block] = True
            used.append((block.start, result_of_block.used))

        def errors_up_to(count: int) -> PatchErrors:
            return errors_of(predictions[:count], used_by(count), tuple(predictors))

        def used_by(count: int) -> frozenset[int]:
            return frozenset[int]().union(
                *(features for start, features in used if start < count)
            )

        ends = [self.most]
        goal = self.precision
        share = np.nan
        if goal is not None:
            ends = list(looks(self.most))
            label = f"{label}, {self.most:,} at most"
        end = 0
        try:
            for end in ends:
                for block, result_of_block in fitted_parts(
                    patches.part(slice(end)),
                    refits,
                    label,
                    ~done[:end],
                    8 * refits.n_rows * refits.n_outputs,
                    keep=self.keep,
                    used=used_by(end),
                    n_jobs=n_jobs,
                    progress=progress,
                ):
                    refuse_overflow(result_of_block.results, "estimator: predictions")
                    if folder is not None:
                        save_part(folder, block.start, result_of_block)
                    predictions[block] = result_of_block.results
                    done[block] = True
                    predictors += result_of_block.predictors
                    used.append((block.start, result_of_block.used))
                result = errors_up_to(end)
                if goal is not None:
                    share = share_of(result)
                    if share <= goal:
                        return result, "precise", share
        except KeyboardInterrupt:
            if not done[0]:
                raise
            if not done.all():
                result = errors_up_to(min(int(done.argmin()), end))
                return (
                    result,
                    "interrupted",
                    np.nan if goal is None else share_of(result),
                )
            result = errors_up_to(self.most)
        except SolverFailure as error:
            raise SolverFailure(f"{error}; {hint}") from error
        return result, "as requested" if goal is None else "at most", share

    def _warn_interrupted(self, errors: PatchErrors, sets: FeatureSets) -> None:
        """Warn after Ctrl-C; raise KeyboardInterrupt if there are too few patches."""
        warnings.warn(
            f"interrupted: {errors.n_patches} of "
            f"{'' if self.precision is None else 'at most '}{self.most} patches are "
            "fitted"
            + ("" if self.folder is None else "; the same call continues from there"),
            InterruptedWarning,
            stacklevel=3,
        )
        try:
            errors.check(sets, 0)
        except InvalidInput as error:
            raise KeyboardInterrupt from error
