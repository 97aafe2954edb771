"""One ensemble for all sets: masked means, sums, the scheme."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Mask, Sparse, Values
from propopt.base.checks import read_count, read_flag, read_option
from propopt.base.errors import InterruptedWarning, InvalidInput, SolverFailure
from propopt.base.resources import BATCH_BUDGET, Budget
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.interactions.features import Features, FeatureSets, subsets_of
from propopt.interactions.fitting import (
    allocate_predictions,
    fingerprint,
    fitted_parts,
    patch_folder,
    save_part,
    saved_parts,
)
from propopt.interactions.learning import Predictor
from propopt.interactions.patch_draws import (
    LOOKED_AT,
    MOST_PATCHES,
    PRECISE,
    ColumnSampling,
    PatchCoverage,
    Patches,
    PatchFeatures,
    PatchRows,
    Stop,
    Strata,
    WhyStopped,
    additive_leak,
    are_enough,
    check_counts,
    check_order,
    draw_patches,
    features_in_patch,
    looks,
    never_left_out,
    read_share_or_count,
    rounded_up,
    rows_in_patch,
)
from propopt.interactions.refits import (
    RefitErrors,
    Refits,
    SetErrors,
    set_scores,
)


# ---- iLOCO-MP: an ensemble of learners on random rows and features, fitted once


Counts: TypeAlias = NDArray[np.float32]
"""Numbers of patches, exact below 2^24."""


# ---- Sums over the patches that have none of some features, for all rows and sets


_Float = TypeVar("_Float", bound=np.floating[Any])

SPARSE_COST: Final = 8.0
"""Seconds of an entry of a sparse product, in those of an entry of a dense one."""


SumsWithout: TypeAlias = Callable[[NDArray[_Float]], NDArray[_Float]]
"""From a (b, L) to Σ_b 1{T ∩ F_b = ∅} a_b, (q, L), of q sets T, in a's precision."""


def dense_sums(absent: Mask, summed: NDArray[_Float]) -> NDArray[_Float]:
    """By the mask 1{T ∩ F_b = ∅} itself, (q, b)."""
    return absent.astype(summed.dtype) @ summed


def sparse_sums(
    # (n_s, b): 1{u ⊆ F_b} of the proper subsets, by their sizes s = 0, ..., t − 1
    proper: Sequence[Sparse],
    whole: Sparse,  # (q, b): 1{T ⊆ F_b}
    signs: Sparse,  # (q, Σ n_s): (−1)^|u| where u is in T
    summed: NDArray[_Float],
) -> NDArray[_Float]:
    """By the patches that have all of u, for all u ⊆ T: few of them where m ≪ M.

    With S_u = Σ_b 1{u ⊆ F_b} a_b, the sum without two features is S − S_j − S_k + S_jk,
    and without any number Σ_{u ⊆ T} (−1)^|u| S_u.
    """
    result: NDArray[_Float] = whole @ summed
    result *= (-1) ** len(proper)
    if proper:
        result += signs @ np.concatenate([own @ summed for own in proper])
    return result


def patches_without(
    sets: FeatureSets, present: Mask, groups: Sequence[slice]
) -> list[SumsWithout[Any]]:
    """Of each group of patches, in the form whose products are cheaper; sets (q, t)."""
    proper, signs = _proper_subsets(sets)
    share = float(present.mean())  # patches with all of t features are about share^t
    entries = sum(len(own) * share ** own.shape[1] for own in (*proper, sets))
    if SPARSE_COST * entries >= len(sets):
        absent = (_with_all(sets, ~present[:, own]) for own in groups)
        return [partial(dense_sums, own) for own in absent]
    with_all = [
        [_sparse(_with_all(own, present[:, group])) for own in (*proper, sets)]
        for group in groups
    ]
    return [partial(sparse_sums, own, whole, signs) for *own, whole in with_all]


def _proper_subsets(sets: FeatureSets) -> tuple[list[FeatureSets], Sparse]:
    """Smaller subsets u of q sets T, each once, by their sizes; and their signs."""
    n_sets, order = sets.shape
    proper, signs = [], [sp.coo_array((n_sets, 0), dtype=np.int8)]
    for size in range(order):
        own, indices = subsets_of(sets, size)
        where = (np.tile(np.arange(n_sets), len(indices)), indices.reshape(-1))
        sign = np.full(indices.size, (-1) ** size, dtype=np.int8)
        proper.append(own)
        signs.append(sp.coo_array((sign, where), (n_sets, len(own))))
    return proper, sp.hstack(signs, format="csr")


def _with_all(sets: FeatureSets, marks: Mask) -> Mask:
    """Whether b patches are marked for all of each set, (q, b); marks (M, b)."""
    having = np.ones((len(sets), marks.shape[1]), dtype=bool)
    for indices in sets.T:
        having &= marks[indices]
    return having


def _sparse(having: Mask) -> Sparse:
    starts = np.concatenate([[0], np.cumsum(having.sum(axis=1))])
    columns = np.flatnonzero(having) % having.shape[1]
    ones = np.ones(len(columns), dtype=np.int8)  # products have the other precision
    return sp.csr_array((ones, columns, starts), having.shape)


# ---- Means of patches that saw neither a row nor some features, for all sets at once


Bits: TypeAlias = NDArray[np.uint8]

ROWS_OF_SUMS: Final = 128

PREDICTION_BUDGET: Final = Budget(2**22, ROWS_OF_SUMS)
"""Predictions of a group of patches, which stay near while they are summed."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PatchErrors(RefitErrors):
    """Errors of means of minipatches that did not see a row, nor some features.

    f_(−i)^(−T)(x_i) is the mean of patches with i not in I_b and T disjoint from F_b.
    Matrix products over all rows and sets (Little, Zheng & Allen, Algorithm 2), in G
    groups, each left out in turn: 8 (B N R + q (N + G + 1)) bytes, and 128 MiB at most.
    """

    patches: Patches  # B patches
    # (B, N, R): what is known of each prediction; of rows in the patch it is not read
    predictions: Array
    y: NDArray[Any]  # (N,): the target
    n_groups: int = 20  # G, of patches that follow each other, for the jackknife
    usable: PatchCoverage | None = None  # how the patches were drawn
    predictors: tuple[Predictor, ...] = ()  # (B,): those that predicted, if kept
    stop: Stop | None = None  # why there are so many patches
    # of the whole predictor and without each feature, which all scores have in common
    _known: dict[int, SetErrors] = field(default_factory=dict, init=False)

    def errors(self, sets: FeatureSets) -> SetErrors:
        """Those of the whole predictor, and without each feature, are made once."""
        single = np.array_equal(sets, self.features.all_sets(1))
        if sets.shape[1] and not single:
            return self._errors(sets)
        key = sets.shape[1]
        if key not in self._known:
            self._known[key] = self._errors(sets)
        return self._known[key]

    def _errors(self, sets: FeatureSets) -> SetErrors:
        n_sets = len(sets)
        result = SetErrors(
            np.empty((n_sets, len(self.y))).T,
            np.zeros((len(self._groups), n_sets)),
            np.full(n_sets, np.inf),
        )
        # so many sets that their sums and masks keep to the budget, and so many rows, a
        # multiple of 8, that predictions of a group stay near
        n_known, n_groups = int(self.predictions.shape[2]), len(self._groups)
        sums = ROWS_OF_SUMS * n_groups * (8 * n_known + 4)  # of float64, and a count
        set_bytes = max(sums, len(self.patches))
        row_bytes = 8 * n_known * -(-len(self.patches) // n_groups)
        step = Budget(max(8, PREDICTION_BUDGET.rows(row_bytes) // 8 * 8))
        for own in BATCH_BUDGET.blocks(n_sets, set_bytes):
            without = patches_without(sets[own], self._present, self._groups)
            for rows in step.blocks(len(self.y), 1):
                groups = list(self._sums(without, rows))
                total, counts = groups[0][0].copy(), groups[0][1].copy()
                for known, some in groups[1:]:
                    total += known
                    counts += some
                fewest = counts.min(axis=1)
                self._require_patches(fewest, sets[own])
                result.counts[own] = np.minimum(result.counts[own], fewest)
                result.rows[rows, own] = self._judged(total, counts, rows)
                weights = self.row_weights[rows] / len(self.y)
                for replicate, (known, some) in zip(
                    result.replicates, groups, strict=True
                ):
                    without_it = self._judged(total - known, counts - some, rows)
                    replicate[own] += weights @ without_it
        return result

    @property
    def n_patches(self) -> int:
        return len(self.patches)

    @property
    def not_used(self) -> tuple[int, ...]:
        """None by patches of one size: a useless feature stands in for others."""
        return () if self._of_one_size else super().not_used

    def leak(self, effects: Values, sets: FeatureSets) -> Values:
        """By patches that all have one number of features; else there is none."""
        if not self._of_one_size:
            return np.zeros(len(sets))
        n_in_patch = int(self.patches.features[0].sum())
        return additive_leak(effects, n_in_patch, sets, self.error)

    def check(self, sets: FeatureSets, order: int) -> None:
        """Refuse sets that no patch sees whole, or leaves out at some row."""
        if self.usable is not None:
            check_order(self.usable, sets.shape[1])
            if sets.shape[1] > order:
                check_counts(self.patches, sets, self.usable, self.features.names)

    def predict(self, table: Any) -> Array:
        return np.mean([predict(table) for predict in self._kept], axis=0)

    @property
    def _kept(self) -> tuple[Predictor, ...]:
        """The fitted learners of all patches."""
        if not self.predictors:
            raise InvalidInput(
                "the fitted learners are not there any more; fit with "
                "Minipatches(keep=True)"
            )
        return self.predictors

    def evaluate_on(self, table: Any, y: NDArray[Any]) -> PatchErrors:
        shape = (len(self._kept), len(y), self.predictions.shape[2])
        predictions = allocate_predictions(shape)
        for own, predict in zip(predictions, self._kept, strict=True):
            own[:] = self.error.known(predict(table), y)
        return replace(
            self,
            patches=self.patches.for_new_rows(len(y)),
            predictions=predictions,
            y=y,
            row_weights=np.ones(len(y)),
            method=f"{self.method}, judged on new rows",
            notes=(),  # on other rows
        )

    def patch_error(self, sets: FeatureSets) -> float:
        """Root mean square of ``se_mc`` over those sets (Q, r) whose score is not 0."""
        counted = sets[~np.isin(sets, np.array(self.not_used, np.intp)).any(axis=1)]
        errors = set_scores(self, counted)["monte_carlo"]
        return float(np.sqrt((errors**2).mean())) if len(errors) else 0.0

    @property
    def _of_one_size(self) -> bool:
        return self.usable is not None and self.usable.columns == "fixed"

    @cached_property
    def _groups(self) -> list[slice]:
        """Patches that follow each other, in G groups as equal as can be."""
        n_patches = len(self.patches)
        ends = np.linspace(0, n_patches, min(self.n_groups, n_patches) + 1).astype(int)
        return [slice(*own) for own in pairwise(ends.tolist())]

    @cached_property
    def _bits(self) -> list[Bits]:
        """Whether rows are out of the patches of each group, 8 rows to a byte."""
        return [np.packbits(self.patches.part(own).out, axis=1) for own in self._groups]

    @cached_property
    def _present(self) -> Mask:
        """Whether a feature is in a patch, (M, B)."""
        return np.ascontiguousarray(self.patches.features.T)

    def _sums(
        self, without: list[SumsWithout[Any]], rows: slice
    ) -> Iterator[tuple[Array, Counts]]:
        """Of each group, over patches without q sets, at n rows from a multiple of 8.

        Sums of what is known of their predictions, (q, R, n), and how many they are.
        """
        for sums, own, bits in zip(without, self._groups, self._bits, strict=True):
            # whether rows are out of patches, (b, n)
            some = bits[:, rows.start // 8 : -(-rows.stop // 8)]
            out = np.unpackbits(some, axis=1, count=rows.stop - rows.start).view(bool)
            predicted = np.moveaxis(self.predictions[own, rows], 2, 1)
            known = np.zeros(predicted.shape)  # (b, R, n)
            np.copyto(known, predicted, where=out[:, None])
            total = sums(known.reshape(len(known), -1))
            yield total.reshape(-1, *known.shape[1:]), sums(out.astype(np.float32))

    def _judged(self, known: Array, counts: Counts, rows: slice) -> Array:
        """Err (n, q) of means, of sums (q, R, n) and counts (q, n); NaN of none."""
        # of no patches something, for errors that need numbers
        means = (known / np.maximum(counts, 1.0)[:, None]).transpose(2, 0, 1)
        errors = self.error.of(self.y[rows], means)
        return errors if counts.all() else np.where(counts.T == 0.0, np.nan, errors)

    def _require_patches(self, fewest: Counts, sets: FeatureSets) -> None:
        """Refuse sets that no patch leaves out at some row."""
        if fewest.all():
            return
        usable = PatchCoverage.of(self.patches)
        check_order(usable, sets.shape[1])
        needed = usable.patches_needed(sets.shape[1], len(sets) * len(self.y))
        own = sets[np.argmin(fewest)]
        raise never_left_out(self.patches, own, needed, self.features.names)


GROUPS: Final = 20
"""Of patches, where a user does not say how many."""

RowSampling: TypeAlias = Literal["uniform", "stratified"]


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Minipatches:
    """Learners on random rows and features; each predicts rows that it did not see.

    Parameters
    ----------
    n_patches : int, optional
        B, each one fit; the most of them where ``until`` is given, too. By default as
        many as ``until`` needs, and at most 10,000.
    until : float, optional
        Stop where the patches leave so small a standard error in the scores, as a share
        of the error of a constant prediction; by default 0.002 without ``n_patches``.
    rows : float, int or "sqrt"
        n, rows of a patch: a share, a number, or √N, at which intervals are proved. A
        share is at least 20 rows, or half of a table of fewer than 40.
    n_features : float, int or None
        m, features of a patch: a share, a number, or None for half of up to 20, and a
        fifth of more.
    columns : {"bernoulli", "fixed"}
        Each feature with m/M by itself, by which pairs without interaction have a
        target of exactly zero; or exactly m of them, as in the paper, by which nearly
        every pair is far from zero, interaction or not.
    row_sampling : {"uniform", "stratified"}
        Rows from all, or of classes as many from each as its share.
    n_groups : int, optional
        Groups of patches, by which the error of few patches is told; by default 20, or
        as many as there are patches.
    keep : bool
        Keep the fitted learners, to predict new rows by their mean, and to judge them
        there (:meth:`ILOCO.target`).
    folder : path, optional
        Predictions are written there every two seconds, and after 1, 3, 7, ... patches
        and each 200, so that a run that ended early, for whatever reason, goes on from
        there. Learners are told from others by what they are made of: class and
        parameters, names and code of functions. Of the same problem with more patches
        only those are fitted that are new.

    Raises
    ------
    InvalidInput
        If one of these is something else.

    Notes
    -----
    A prediction without t features is a mean of about B (1 − n/N) (1 − m/M)^t patches,
    with ``"fixed"`` of B (1 − n/N) C(M − t, m)/C(M, m). What was drawn is counted
    before anything is fitted: a set that is never left out at some row is refused with
    the number of patches that would do, and fewer than 30 patches of a mean, or 100
    that see all features of a set, are warned of.

    With ``until`` the error of patches is estimated after 1,000 patches, and after each
    √2 times as many. It is the root mean square of ``se_mc`` over at most 200 sets of
    the scored size; which sets does not depend on ``sets``. A run goes on where a mean
    has fewer than 30 patches, or fewer than 100 see a set whole.

    The rule reads the variance of patches alone: no score, no p-value and no ``se``. If
    errors of patches are symmetric, that variance says nothing of the side on which a
    score errs. So intervals keep their coverage, and they contain ``se_mc`` wherever a
    run stops. B patches are the same, and score the same, as those of ``n_patches=B``.

    The unit is the error of a constant, and not ``se``. For ``se_mc`` below a third of
    ``se``, so that patches add 5 %, small trees on tables of 442 to 2,000 rows would
    need 25,000 to 500,000 patches, and the more the more rows there are.

    Rows are drawn one by one and taken to be independent: where several are of one
    person, take ``DataSplit(groups=...)``.

    Predictions take 8 B N R bytes, R numbers of each: one, but of errors of your own
    for a classifier one for each class. Above 1 GiB they are in a file that is mapped
    to memory. Numbers depend on the seed alone: not on workers, folders or whether
    learners are kept. After Ctrl-C the patches that were finished are the result, with
    a warning, as long as they are enough.

    Examples
    --------
    >>> scheme = Minipatches(rows="sqrt")
    >>> scheme.most
    10000

    How many patches have 30 for each pair of 50 features, of which 10 are in a patch,
    at each of 500 rows:

    >>> from propopt.interactions.patch_draws import PatchCoverage
    >>> usable = PatchCoverage(
    ...     row_share=0.2, n_features=50, n_in_patch=10, columns="fixed"
    ... )
    >>> usable.patches_needed(2, n_predictions=1225 * 500, at_least=30)
    115
    """

    n_patches: int | None = None
    until: float | None = None
    rows: PatchRows = 0.2
    n_features: PatchFeatures = None
    columns: ColumnSampling = "bernoulli"
    row_sampling: RowSampling = "uniform"
    n_groups: int | None = None
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
                "until: expected a share between 0 and 1 of the error of a constant, "
                f"such as {PRECISE}, got {self.until!r}"
            )
        if self.rows != "sqrt":
            read_share_or_count(self.rows, "rows", " or 'sqrt'")
        if self.n_features is not None:
            read_share_or_count(self.n_features, "n_features", " or None")
        read_option(self.columns, ColumnSampling, "columns")
        read_option(self.row_sampling, RowSampling, "row_sampling")
        if self.n_groups is not None and not (
            2 <= read_count(self.n_groups, "n_groups") <= self.most
        ):
            raise InvalidInput(
                f"n_groups: expected 2 to n_patches={self.most}, got {self.n_groups}"
            )
        read_flag(self.keep, "keep")
        if not isinstance(self.folder, str | PathLike | None):
            raise InvalidInput(f"folder: expected a path or None, got {self.folder!r}")
        if self.keep and self.folder is not None:
            raise InvalidInput(
                "keep: a folder holds predictions and no learners; take one of both"
            )

    @property
    def most(self) -> int:
        """How many patches are fitted at most."""
        return MOST_PATCHES if self.n_patches is None else self.n_patches

    @property
    def precision(self) -> float | None:
        """The share at which fitting stops; None fits all."""
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
        """Predictors without sets (Q, r) of features, and their errors."""
        labels, names = None, refits.features.names
        if self.row_sampling == "stratified":
            labels = refits.classes_of_rows("row_sampling")
        patches = self.draw(refits.n_rows, refits.features, seed, labels)
        usable = self.usable(refits.n_rows, refits.features, labels)
        first = refits.features.all_sets(1) if sets is None else sets
        check_order(usable, first.shape[1])
        check_counts(patches, first, usable, names)
        drawn = {
            "seed": seed,
            "rows of a patch": patches.rows.shape[1],
            "row_sampling": self.row_sampling,
            "features of a patch": usable.n_in_patch,
            "columns": self.columns,
        }
        some = refits.features.some_sets(first.shape[1], LOOKED_AT)
        unit = 1.0 if self.precision is None else abs(refits.constant_error) or np.inf

        def errors_of(
            predictions: Array,  # (B, N, R)
            used: frozenset[int],
            predictors: tuple[Predictor, ...],
        ) -> PatchErrors:
            own = patches.part(slice(len(predictions)))
            n_rows = plural(own.rows.shape[1], "row")
            share = own.features.sum(axis=1).mean()
            return PatchErrors(
                features=refits.features,
                error=refits.error,
                row_weights=refits.row_weights,
                used=used,
                method=f"{len(own):,} minipatches of {n_rows} and {share:.3g} of "
                f"{plural(len(names), 'feature')}",
                patches=own,
                predictions=predictions,
                y=refits.y,
                n_groups=min(self.n_groups or GROUPS, len(own)),
                usable=usable,
                predictors=predictors,
            )

        def share_of(found: PatchErrors) -> float:
            """The error of patches that are enough; NaN of others."""
            if not all(are_enough(found.patches, own, usable) for own in (first, some)):
                return np.nan
            error = found.patch_error(some)
            return error / unit if error else 0.0

        found, why, share = self._run(
            refits, patches, drawn, errors_of, share_of, n_jobs, progress
        )
        if why == "interrupted":
            self._go_on_with(found.patches, usable, first, names)
        stop = Stop(
            why=why,
            n_patches=len(found.patches),
            most=self.most,
            until=self.precision,
            share=share,
        )
        return replace(found, stop=stop, notes=stop.notes)

    def draw(
        self,
        n_table: int,
        features: Features,
        seed: int,
        labels: NDArray[Any] | None = None,  # shape (N,)
    ) -> Patches:
        """The patches of N rows; patch b is the same, however many are drawn."""
        return draw_patches(
            self.most,
            n_table,
            rows_in_patch(self.rows, n_table),
            len(features),
            self._kept(len(features)),
            self.columns,
            seed,
            labels,
        )

    def usable(
        self,
        n_table: int,
        features: Features,
        labels: NDArray[Any] | None = None,  # shape (N,)
    ) -> PatchCoverage:
        """How likely a patch is of use to a prediction, of a table of N rows."""
        strata = Strata.of(n_table, rows_in_patch(self.rows, n_table), labels)
        pairs = zip(strata.sizes, strata.members, strict=True)
        return PatchCoverage(
            # of the stratum whose rows are in most patches
            row_share=max(size / len(own) for size, own in pairs),
            n_features=len(features),
            n_in_patch=self._kept(len(features)),
            columns=self.columns,
        )

    def _kept(self, n_all: int) -> float:
        """How many of M features, m; a whole number where it is fixed."""
        kept = features_in_patch(self.n_features, n_all)
        whole = rounded_up(kept) if self.columns == "fixed" else kept
        if whole >= n_all:
            raise InvalidInput(
                f"n_features: a patch of {whole:g} of {n_all} leaves no feature out; "
                + (
                    f"expected less than {n_all}"
                    if n_all > 1
                    else "take DataSplit(), which fits without the only feature"
                )
            )
        return whole

    def _run(
        self,
        refits: Refits,
        patches: Patches,
        drawn: Mapping[str, object],
        errors_of: Callable[
            [Array, frozenset[int], tuple[Predictor, ...]], PatchErrors
        ],
        share_of: Callable[[PatchErrors], float],
        n_jobs: int | None,
        progress: bool | None,
    ) -> tuple[PatchErrors, WhyStopped, float]:
        """Finished patches, why there are so many, and the error that they leave.

        Calls of workers end where the error is looked at, so that what is fitted and
        known there depends on no pace.
        """
        shape = (self.most, refits.n_rows, refits.n_outputs)
        folder, done = None, np.zeros(self.most, dtype=bool)
        predictors, used = list[Predictor](), list[tuple[int, frozenset[int]]]()
        kept, label = "Minipatches(folder=...) keeps what is finished", "minipatches"
        if self.folder is not None:
            folder = patch_folder(self.folder, fingerprint(refits, drawn), shape)
            kept = f"what is finished is in {folder}, and the same call goes on there"
        predictions = allocate_predictions(shape, folder)
        for own, part in () if folder is None else saved_parts(folder, shape):
            predictions[own], done[own] = part.known, True
            used.append((own.start, part.used))

        def found(count: int) -> PatchErrors:
            return errors_of(predictions[:count], used_by(count), tuple(predictors))

        def used_by(count: int) -> frozenset[int]:
            return frozenset[int]().union(*(own for k, own in used if k < count))

        ends, goal, share = [self.most], self.precision, np.nan
        if goal is not None:
            ends, label = list(looks(self.most)), f"{label}, {self.most:,} at most"
        end = 0
        try:
            for end in ends:
                for own, part in fitted_parts(
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
                    if folder is not None:
                        save_part(folder, own.start, part)
                    predictions[own], done[own] = part.known, True
                    predictors += part.predictors
                    used.append((own.start, part.used))
                result = found(end)
                if goal is not None:
                    share = share_of(result)
                    if share <= goal:
                        return result, "precise", share
        except KeyboardInterrupt:
            if not done[0]:
                raise
            if not done.all():
                n_done = int(done.argmin())
                result = found(min(n_done, end))
                return (
                    result,
                    "interrupted",
                    np.nan if goal is None else share_of(result),
                )
            result = found(self.most)
        except SolverFailure as error:
            raise SolverFailure(f"{error}; {kept}") from error
        return result, "as asked" if goal is None else "at most", share

    def _go_on_with(
        self,
        patches: Patches,
        usable: PatchCoverage,
        sets: FeatureSets,
        names: Sequence[Hashable],
    ) -> None:
        """After Ctrl-C, say so, or go on with it where too little was finished."""
        warnings.warn(
            f"interrupted: {len(patches)} of "
            f"{'' if self.precision is None else 'at most '}{self.most} patches are "
            "fitted"
            + ("" if self.folder is None else "; the same call goes on from there"),
            InterruptedWarning,
            stacklevel=3,
        )
        try:
            check_counts(patches, sets, usable, names)
        except InvalidInput as error:
            raise KeyboardInterrupt from error
