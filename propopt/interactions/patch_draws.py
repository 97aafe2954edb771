"""Draws of minipatches, and their sufficient number."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, nbinom

from propopt.base.arrays import Array, Indices
from propopt.base.checks import read_count
from propopt.base.errors import ImpreciseWarning, InvalidInput
from propopt.base.resources import BATCH_BUDGET, require_memory
from propopt.interactions.features import FeatureSets
from propopt.interactions.learning import Prediction
from propopt.interactions.refits import Refits
from propopt.tables.frames import listed


# ---- The numbers of rows and features of a patch


PatchRows: TypeAlias = float | int | str
PatchFeatures: TypeAlias = float | int | None

SHARE_AT_LEAST = 20
"""The smallest number of rows that a share means, if that is at most half of them."""


def read_share_or_count(value: object, label: str, alternative: str) -> float | int:
    """A share in (0, 1) as a float, or a number of at least one as an int."""
    if isinstance(value, Real) and not isinstance(value, Integral):
        share = float(value)
        if 0.0 < share < 1.0:
            return share
    elif not isinstance(value, str | None):
        return read_count(value, label)
    raise InvalidInput(
        f"{label}: expected a share of all between 0 and 1, or a count >= 1"
        f"{alternative}, got {value!r}"
    )


def rows_in_patch(rows: PatchRows, n_table: int) -> int:
    """The number n of rows of a patch, at most N − 1 of N rows."""
    if rows == "sqrt":
        n_rows = math.ceil(math.sqrt(n_table))
    elif isinstance(rows, int | np.integer):
        n_rows = int(rows)
    else:
        least = max(min(SHARE_AT_LEAST, n_table // 2), 1)
        n_rows = max(rounded_up(float(rows) * n_table), least)
    if n_rows >= n_table:
        raise InvalidInput(
            f"rows: a patch of {n_rows} of {n_table} rows leaves no row to be "
            f"predicted; expected at most {n_table - 1}"
        )
    return n_rows


def features_in_patch(n_features: PatchFeatures, n_all: int) -> float:
    """The number m of M features in a patch; a share may give a fraction."""
    if n_features is None:
        return rounded_up((0.5 if n_all <= 20 else 0.2) * n_all)
    whole = isinstance(n_features, int | np.integer)
    return n_features if whole else n_features * n_all


def rounded_up(number: float) -> int:
    """The next integer; 0.2 · 15 = 3.0000000000000004 gives 3."""
    return math.ceil(number - 1e-9)


# ---- The rows and features of each minipatch


BLOCK = 2**16
"""Random numbers for rows in one block of draws."""


@final
@dataclass(frozen=True, eq=False)
class Patches:
    """Rows, features and seeds of B minipatches."""

    rows: NDArray[np.intp]  # (B, n): the rows I_b of each, ascending
    features: NDArray[np.bool_]  # (B, M): whether a feature is in F_b
    seeds: NDArray[np.int64]  # (B,): for the learners
    n_table: int  # N, rows of the table
    first: int = 0  # number of the first of these patches

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def out(self) -> NDArray[np.bool_]:
        """Whether a row is outside a patch, (B, N)."""
        out = np.ones((len(self), self.n_table), dtype=bool)
        np.put_along_axis(out, self.rows, False, axis=1)
        return out

    def part(self, some: slice) -> Patches:
        """A slice of the patches."""
        return replace(
            self,
            rows=self.rows[some],
            features=self.features[some],
            seeds=self.seeds[some],
            first=self.first + (some.start or 0),
        )

    def results(self, k: int, refits: Refits) -> tuple[Array, list[Prediction]]:
        """Outputs (N, R) at rows outside patch k, zero at others; and its learner."""
        rows = self.rows[k]
        included = self.features[k]
        outputs = np.zeros((self.n_table, refits.n_outputs))
        out = np.delete(np.arange(self.n_table), rows)
        try:
            predict = refits.fit_predictor(rows, included, int(self.seeds[k]))
            predicted = predict(refits.learner_table, out)
        except Exception as error:
            error.add_note(
                f"while fitting patch {self.first + k}, of {len(rows)} rows and "
                f"{int(included.sum())} features"
            )
            raise
        outputs[out] = refits.error.relevant_outputs(predicted, refits.y[out])
        return outputs, [predict]

    def for_new_rows(self, n_table: int) -> Patches:
        """The same patches for a table of new rows, which are outside all patches."""
        return replace(self, rows=self.rows[:, :0], n_table=n_table)


def draw_patches(
    n_patches: int,
    n_table: int,
    n_rows: int,
    n_features: int,
    n_in_patch: float,
    seed: int,
) -> Patches:
    """Draw rows of patches without replacement, and each feature independently.

    Each block of patches has its random stream, so that patch b does not depend on the
    number of patches.
    """
    # the blocks, and their concatenation
    n_bytes = 2.0 * n_patches * (8 * (n_rows + 1) + n_features)
    require_memory(n_bytes, f"{n_patches:,} minipatches", "draw fewer of them")
    size = max(1, BLOCK // n_table)
    parts = []
    # the last block is drawn completely, too
    for number in range(math.ceil(n_patches / size)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        row_keys = rng.random((size, n_table))
        rows = np.sort(
            np.argpartition(row_keys, n_rows - 1, axis=1)[:, :n_rows], axis=1
        )
        features = rng.random((size, n_features)) < n_in_patch / n_features
        parts.append((rows, features, rng.integers(2**31, size=size)))
    rows, features, seeds = map(np.concatenate, zip(*parts, strict=True))
    first_patches = slice(n_patches)
    return Patches(
        rows[first_patches], features[first_patches], seeds[first_patches], n_table
    )


# ---- Probabilities that a patch enters a prediction


SURE: Final = 0.99
"""Probability that the number of patches in messages is sufficient."""


@final
@dataclass(frozen=True, kw_only=True)
class PatchCoverage:
    """Probabilities that a patch enters the prediction at a row without t features.

    The row is outside the patch and the patch has none of the features:
    (1 − n/N)(1 − m/M)^t.
    """

    row_share: float  # n/N
    n_features: int  # M
    n_in_patch: float  # m

    @classmethod
    def of(cls, patches: Patches) -> PatchCoverage:
        """Estimates from drawn patches."""
        return cls(
            row_share=patches.rows.shape[1] / patches.n_table,
            n_features=patches.features.shape[1],
            n_in_patch=float(patches.features.sum(axis=1).mean()),
        )

    def probability_without(self, size: int) -> float:
        """The probability that a patch lacks a row and a set of ``size`` features."""
        absent = (1.0 - self.n_in_patch / self.n_features) ** size
        return (1.0 - self.row_share) * absent

    def probability_together(self, size: int) -> float:
        """The probability that a patch has all of ``size`` features."""
        return (self.n_in_patch / self.n_features) ** size

    def patches_needed(self, size: int, n_predictions: int, at_least: int = 1) -> int:
        """The least B with Q N P(Bin(B, p) < at_least) ≤ 1 %, p as above.

        All predictions are then means of ``at_least`` patches, in 99 draws of 100.
        """
        goal = (1.0 - SURE) / n_predictions
        return at_least + int(
            nbinom.isf(goal, at_least, self.probability_without(size))
        )


# ---- Checks of the number of patches before any fit


ENOUGH: Final = 30
"""Sufficient number of patches in a mean."""

ENOUGH_TOGETHER: Final = 100
"""Sufficient expected number of patches with all features of a set."""

_NEGLIGIBLE = 1e-9
"""Probability of too few patches below which rows are not counted one by one."""


def check_counts(
    patches: Patches,
    sets: FeatureSets,
    coverage: PatchCoverage,
    names: Sequence[Hashable],
) -> None:
    """Refuse patches that never leave a set (Q, r) out; warn if there are few."""
    n_sets, size = sets.shape
    if not n_sets:
        return
    fewest, worst = fewest_patches(patches, sets, coverage)
    n_all = n_sets * patches.n_table
    if fewest == 0:
        needed = coverage.patches_needed(size, n_all)
        raise never_left_out(patches, sets[worst], needed, names)
    reasons = []
    if fewest < ENOUGH:
        needed = coverage.patches_needed(size, n_all, ENOUGH)
        reasons.append(
            f"some predictions are means of only {fewest} patches ({ENOUGH} with "
            f"n_patches={needed})"
        )
    probability = coverage.probability_together(size)
    if size > 1 and probability * len(patches) < ENOUGH_TOGETHER:
        reasons.append(
            f"only about {probability * len(patches):.0f} patches contain all {size} "
            f"features of a set ({ENOUGH_TOGETHER} with n_patches="
            f"{math.ceil(ENOUGH_TOGETHER / probability)})"
        )
    if reasons:
        warnings.warn(
            f"{len(patches)} patches are few: {'; '.join(reasons)}",
            ImpreciseWarning,
            stacklevel=4,
        )


def never_left_out(
    patches: Patches, left_out: Indices, needed: int, names: Sequence[Hashable]
) -> InvalidInput:
    """The error that all patches contain a set (t,), or a row."""
    return InvalidInput(
        f"n_patches: none of {len(patches)} patches is without "
        f"{listed([names[k] for k in left_out])} and without some row; with {needed} "
        f"each set is left out at each row in {SURE:.0%} of draws"
    )


def are_enough(patches: Patches, sets: FeatureSets, coverage: PatchCoverage) -> bool:
    """Whether :func:`check_counts` neither refuses these patches nor warns."""
    size = sets.shape[1]
    together = coverage.probability_together(size) * len(patches)
    return (size < 2 or together >= ENOUGH_TOGETHER) and (
        not len(sets) or fewest_patches(patches, sets, coverage)[0] >= ENOUGH
    )


def fewest_patches(
    patches: Patches, sets: FeatureSets, coverage: PatchCoverage
) -> tuple[int, int]:
    """The smallest number of patches in a mean, and the index of its set.

    Rows are counted one by one only for sets that may have fewer than 30 patches at
    some row; otherwise the result is 30.
    """
    absent = _absent(patches, sets)
    short = binom.cdf(ENOUGH - 1, absent, 1.0 - coverage.row_share)  # at one row
    doubtful = np.flatnonzero(short * len(sets) * patches.n_table > _NEGLIGIBLE)
    if not len(doubtful):
        return ENOUGH, 0
    counts = _counts(patches, sets[doubtful])
    worst = int(counts.argmin())
    return int(counts[worst]), int(doubtful[worst])


def _absent(patches: Patches, sets: FeatureSets) -> NDArray[np.int64]:
    """Number of patches without any feature of a set, (Q,)."""
    marks = ~patches.features
    if sets.shape[1] == 2:  # one product for all pairs; exact below 2^24 patches
        alone = marks.astype(np.float32)
        return (alone.T @ alone)[sets[:, 0], sets[:, 1]].astype(np.int64)
    columns = np.ascontiguousarray(marks.T)
    blocks = BATCH_BUDGET.blocks(len(sets), len(marks) * (1 + sets.shape[1]))
    return np.concatenate([columns[sets[q]].all(axis=1).sum(axis=1) for q in blocks])


def _counts(patches: Patches, sets: FeatureSets) -> NDArray[np.int64]:
    """Number of patches without a set, at the row with fewest, (Q,)."""
    out = patches.out.T.astype(np.float32)
    columns = np.ascontiguousarray(~patches.features.T)
    row_bytes = (5 + sets.shape[1]) * len(patches) + 4 * patches.n_table
    parts = [
        (out @ columns[sets[q]].all(axis=1).T.astype(np.float32)).min(axis=0)
        for q in BATCH_BUDGET.blocks(len(sets), row_bytes)
    ]
    return np.concatenate(parts).astype(np.int64)


# ---- When the error due to patches is small enough to stop


MOST_PATCHES: Final = 10_000
"""Default maximum number of patches."""

PRECISE: Final = 0.002
"""Default of ``until``, a share of the error of a constant prediction.

For squared errors this is in units of R². The largest scores of pairs of small trees
are 0.004 to 0.05 on tables of 442 to 2,000 rows.
"""

FIRST_PATCHES: Final = 1000
"""Patches before the first estimate of their error: 50 in each of 20 groups."""

CHECKED_SETS: Final = 200
"""The largest number of sets in that estimate."""


def looks(most: int) -> Iterator[int]:
    """Numbers of patches at which their error is estimated, in ratios of √2."""
    n_patches = float(FIRST_PATCHES)
    while n_patches < most:
        yield round(n_patches)
        n_patches *= math.sqrt(2.0)
    yield most


WhyStopped: TypeAlias = Literal["as requested", "precise", "at most", "interrupted"]
"""Why fitting of patches stopped."""
