"""iLOCO-MP: an ensemble of learners on random rows and features, fitted once."""

from __future__ import annotations

import warnings
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

from numpy.typing import NDArray

from propopt.checks import known_word, read_count, read_flag
from propopt.errors import InterruptedWarning, InvalidInput, SolverFailure
from propopt.interactions.features import Features, Places
from propopt.interactions.minipatches.drawing.counts import check_counts, check_order
from propopt.interactions.minipatches.drawing.patches import (
    ColumnSampling,
    Patches,
    draw_patches,
)
from propopt.interactions.minipatches.drawing.sizes import (
    PatchFeatures,
    PatchRows,
    check_features,
    check_rows,
    features_in_patch,
    rows_in_patch,
    whole_features,
)
from propopt.interactions.minipatches.drawing.strata import Strata
from propopt.interactions.minipatches.drawing.usable import Usable
from propopt.interactions.minipatches.fingerprint import fingerprint
from propopt.interactions.minipatches.fitting import outputs_of
from propopt.interactions.minipatches.folder import FolderStore
from propopt.interactions.minipatches.means import PatchErrors
from propopt.interactions.minipatches.running import Ensemble, Run
from propopt.interactions.minipatches.store import Store, new_store
from propopt.interactions.refits import Refits


GROUPS: Final = 20
"""Of patches, where a user does not say how many."""

RowSampling: TypeAlias = Literal["uniform", "stratified"]


@final
@dataclass(frozen=True, kw_only=True)
class Minipatches:
    """Learners on random rows and features; each predicts rows that it did not see.

    Parameters
    ----------
    n_patches : int
        B.
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
        Keep the fitted learners, to predict new rows.
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
    >>> scheme.n_patches
    10000

    How many patches have 30 for each pair of 50 features, of which 10 are in a patch,
    at each of 500 rows:

    >>> from propopt.interactions.minipatches.drawing.usable import Usable
    >>> usable = Usable(row_share=0.2, n_features=50, n_kept=10, columns="fixed")
    >>> usable.patches_needed(2, n_predictions=1225 * 500, at_least=30)
    115
    """

    n_patches: int = 10_000
    rows: PatchRows = 0.2
    n_features: PatchFeatures = None
    columns: ColumnSampling = "bernoulli"
    row_sampling: RowSampling = "uniform"
    n_groups: int | None = None
    keep: bool = field(default=False, repr=False)
    folder: str | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if read_count(self.n_patches, "n_patches") < 2:
            raise InvalidInput("n_patches: expected an integer >= 2, got 1")
        check_rows(self.rows)
        check_features(self.n_features)
        known_word(self.columns, ColumnSampling, "columns")
        known_word(self.row_sampling, RowSampling, "row_sampling")
        if self.n_groups is not None and not (
            2 <= read_count(self.n_groups, "n_groups") <= self.n_patches
        ):
            raise InvalidInput(
                f"n_groups: expected 2 to n_patches={self.n_patches}, got "
                f"{self.n_groups}"
            )
        read_flag(self.keep, "keep")
        if not isinstance(self.folder, str | PathLike | None):
            raise InvalidInput(f"folder: expected a path or None, got {self.folder!r}")
        if self.keep and self.folder is not None:
            raise InvalidInput(
                "keep: a folder holds predictions and no learners; take one of both"
            )

    def fit(
        self,
        refits: Refits,
        *,
        seed: int,
        sets: Places | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> PatchErrors:
        """The fitted predictors: see :meth:`Scheme.fit`."""
        labels = self._labels(refits)
        patches = self.draw(refits.n_rows, refits.features, seed, labels)
        usable = self.usable(refits.n_rows, refits.features, labels)
        first = refits.features.all_sets(1) if sets is None else sets
        check_order(usable, first.shape[1])
        check_counts(patches, first, usable, refits.features.names)
        run = Run(
            refits=refits,
            patches=patches,
            keep=self.keep,
            n_jobs=n_jobs,
            progress=progress,
        )
        with closing(self._store(refits, usable, seed)) as store:
            ensemble = self._run(run, store)
        self._check_whole(ensemble, usable, first, refits.features)
        return PatchErrors(
            patches=ensemble.patches,
            predictions=ensemble.predictions,
            y=refits.y,
            error=refits.error,
            features=refits.features,
            row_weights=refits.row_weights,
            n_groups=min(self.n_groups or GROUPS, len(ensemble.patches)),
            used=ensemble.used,
            learners=ensemble.learners,
        )

    def check_more(self, source: PatchErrors, sets: Places, order: int) -> None:
        """Refuse larger sets than a fit was for, where its patches say nothing of them.

        Where they say little it is warned of, unless that was done before the fit.

        Parameters
        ----------
        source : PatchErrors
            By patches of this scheme.
        sets : array of int (Q, r)
            Sets that are asked for later than the fit.
        order : int
            Size of the sets that the fit was for.

        Raises
        ------
        InvalidInput
            If no patch sees a set whole, or leaves it out at some row.
        """
        labels = None if self.row_sampling == "uniform" else source.y
        usable = self.usable(len(source.y), source.features, labels)
        check_order(usable, sets.shape[1])
        if sets.shape[1] > order:
            check_counts(source.patches, sets, usable, source.features.names)

    def draw(
        self,
        n_table: int,
        features: Features,
        seed: int,
        labels: NDArray[Any] | None = None,
    ) -> Patches:
        """The patches of a table.

        Parameters
        ----------
        n_table : int
            N.
        features : Features
            M features.
        seed : int
            Patch b of a seed is the same, however many are drawn.
        labels : array (N,), optional
            Of rows that are drawn by label.
        """
        return draw_patches(
            self.n_patches,
            n_table,
            rows_in_patch(self.rows, n_table),
            len(features),
            self.kept(len(features)),
            self.columns,
            seed,
            labels,
        )

    def kept(self, n_all: int) -> float:
        """How many of M features, m; a whole number where it is fixed.

        Parameters
        ----------
        n_all : int
            M.

        Raises
        ------
        InvalidInput
            If no feature could ever be left out.
        """
        kept = features_in_patch(self.n_features, n_all)
        whole = whole_features(kept) if self.columns == "fixed" else kept
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

    def usable(
        self, n_table: int, features: Features, labels: NDArray[Any] | None = None
    ) -> Usable:
        """How likely a patch is of use to a prediction.

        Parameters
        ----------
        n_table : int
            N.
        features : Features
            M features.
        labels : array (N,), optional
            Of rows that are drawn by label.
        """
        strata = Strata.of(n_table, rows_in_patch(self.rows, n_table), labels)
        return Usable(
            row_share=strata.largest_share,
            n_features=len(features),
            n_kept=self.kept(len(features)),
            columns=self.columns,
        )

    def _run(self, run: Run, store: Store) -> Ensemble:
        """What a run fits; where a worker is killed, what becomes of the finished."""
        try:
            return run.fitted(store)
        except SolverFailure as error:
            folder = self.folder
            kept = (
                "Minipatches(folder=...) keeps what is finished"
                if folder is None
                else f"what is finished is in {folder}, and the same call goes on there"
            )
            raise SolverFailure(f"{error}; {kept}") from error

    def _store(self, refits: Refits, usable: Usable, seed: int) -> Store:
        shape = (self.n_patches, refits.n_rows, outputs_of(refits))
        if self.folder is None:
            return new_store(shape)
        drawn = {
            "seed": seed,
            "rows of a patch": rows_in_patch(self.rows, refits.n_rows),
            "row_sampling": self.row_sampling,
            "features of a patch": usable.n_kept,
            "columns": self.columns,
        }
        return FolderStore.opened(self.folder, fingerprint(refits, drawn), shape)

    def _labels(self, refits: Refits) -> NDArray[Any] | None:
        if self.row_sampling == "uniform":
            return None
        if refits.classes is None:
            raise InvalidInput(
                "row_sampling: 'stratified' draws from each class, and a regressor has "
                "none; take 'uniform'"
            )
        return refits.y

    def _check_whole(
        self, ensemble: Ensemble, usable: Usable, sets: Places, features: Features
    ) -> None:
        """After Ctrl-C, say so, or go on with it where too little was finished."""
        n_fitted = len(ensemble.patches)
        if n_fitted == self.n_patches:
            return
        warnings.warn(
            f"interrupted: {n_fitted} of {self.n_patches} patches are fitted"
            + ("" if self.folder is None else "; the same call goes on from there"),
            InterruptedWarning,
            stacklevel=3,
        )
        try:
            check_counts(ensemble.patches, sets, usable, features.names)
        except InvalidInput as error:
            raise KeyboardInterrupt from error
