"""Which patches are drawn, whether they are enough, and what they leak."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, nbinom

from propopt.base.arrays import Array, Indices, Values
from propopt.base.checks import read_count
from propopt.base.errors import FewPatchesWarning, InvalidInput
from propopt.base.resources import BATCH_BUDGET, require_memory
from propopt.interactions.features import FeatureSets
from propopt.interactions.fitting import Fit
from propopt.interactions.refits import Refits
from propopt.interactions.row_errors import PROBABILITY, SQUARED, RowError
from propopt.tables.frames import listed, select_rows


# ---- Which rows and features patches have, and whether they are enough


PatchRows: TypeAlias = float | int | str
PatchFeatures: TypeAlias = float | int | None

SHARE_AT_LEAST = 20
"""Rows that a share stands for at least, as long as they are no more than half."""


def read_share_or_count(value: object, what: str, other: str) -> float | int:
    """A share in (0, 1) as a float, or a number of at least one as an int."""
    if isinstance(value, Real) and not isinstance(value, Integral):
        share = float(value)
        if 0.0 < share < 1.0:
            return share
    elif not isinstance(value, str | None):
        return read_count(value, what)
    raise InvalidInput(
        f"{what}: expected a share between 0 and 1, a number >= 1{other}, got {value!r}"
    )


def rows_in_patch(rows: PatchRows, n_table: int) -> int:
    """n, of a table of N rows; at least one row is out of each patch."""
    if rows == "sqrt":
        n_rows = math.ceil(math.sqrt(n_table))
    elif isinstance(rows, int | np.integer):
        n_rows = int(rows)
    else:
        least = max(min(SHARE_AT_LEAST, n_table // 2), 1)
        n_rows = max(rounded_up(float(rows) * n_table), least)
    if n_rows >= n_table:
        raise InvalidInput(
            f"rows: a patch of {n_rows} of {n_table} rows leaves none out to be judged "
            f"by it; expected at most {n_table - 1}"
        )
    return n_rows


def features_in_patch(n_features: PatchFeatures, n_all: int) -> float:
    """How many of M features, m: a share may be no whole number."""
    if n_features is None:
        return rounded_up((0.5 if n_all <= 20 else 0.2) * n_all)
    whole = isinstance(n_features, int | np.integer)
    return n_features if whole else n_features * n_all


def rounded_up(number: float) -> int:
    """The next whole number; 0.2 · 15 = 3.0000000000000004 is 3."""
    return math.ceil(number - 1e-9)


# ---- Rows of a patch: uniformly from all rows, or from those of each class


@final
@dataclass(frozen=True, eq=False)
class Strata:
    """Disjoint sets of rows, and how many of each are in a patch."""

    members: tuple[NDArray[np.intp], ...]
    sizes: tuple[int, ...]  # rows of each that a patch has: at least one, and never all

    @classmethod
    def of(cls, n_table: int, n_rows: int, labels: NDArray[Any] | None) -> Strata:
        """One stratum for each label, or one of all rows; labels (N,)."""
        if labels is None:
            return cls((np.arange(n_table),), (n_rows,))
        _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
        n_labels = len(counts)
        if counts.min() < 2 or not n_labels <= n_rows <= n_table - n_labels:
            raise InvalidInput(
                f"row_sampling: 'stratified' needs rows of each of {n_labels} classes "
                f"in each patch and out of it, so that {n_labels} <= n <= "
                f"{n_table - n_labels} and each class has two rows; got n = {n_rows} "
                f"and a class of {counts.min()} rows; take 'uniform'"
            )
        members = tuple(np.flatnonzero(place == k) for k in range(n_labels))
        return cls(members, _shares(counts, n_rows))

    def draw(self, rng: np.random.Generator, n_patches: int) -> NDArray[np.intp]:
        """Rows of each of so many patches, ascending, (n_patches, n)."""
        keys = rng.random((n_patches, sum(map(len, self.members))))
        parts = [
            own[np.argpartition(keys[:, own], size - 1, axis=1)[:, :size]]
            for own, size in zip(self.members, self.sizes, strict=True)
        ]
        return np.sort(np.concatenate(parts, axis=1), axis=1)


def _shares(counts: NDArray[np.intp], n_rows: int) -> tuple[int, ...]:
    """Numbers in proportion to the counts: one at least in, one at least out."""
    quotas = n_rows * counts / counts.sum()
    sizes = np.clip(np.floor(quotas).astype(np.intp), 1, counts - 1)
    while sizes.sum() != n_rows:
        step = 1 if sizes.sum() < n_rows else -1
        may = sizes < counts - 1 if step == 1 else sizes > 1
        lack = np.where(may, step * (quotas - sizes), -np.inf)
        sizes[np.argmax(lack)] += step
    return tuple(sizes.tolist())


# ---- Which rows and features each minipatch has


ColumnSampling: TypeAlias = Literal["fixed", "bernoulli"]

BLOCK = 2**16
"""Random numbers for rows that are drawn at once."""


@final
@dataclass(frozen=True, eq=False)
class Patches:
    """B minipatches, drawn once."""

    rows: NDArray[np.intp]  # (B, n): the rows I_b of each, ascending
    features: NDArray[np.bool_]  # (B, M): whether a feature is in F_b
    seeds: NDArray[np.int64]  # (B,): for the learners
    n_table: int  # N, rows of the table
    first: int = 0  # number of the first of these patches

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def out(self) -> NDArray[np.bool_]:
        """Whether a row is not in a patch, (B, N)."""
        out = np.ones((len(self), self.n_table), dtype=bool)
        np.put_along_axis(out, self.rows, False, axis=1)
        return out

    def part(self, some: slice) -> Patches:
        """Some of the patches, of the same table."""
        return replace(
            self,
            rows=self.rows[some],
            features=self.features[some],
            seeds=self.seeds[some],
            first=self.first + (some.start or 0),
        )

    def known(self, k: int, refits: Refits, fit: Fit) -> Array:
        """Of the predictions of patch k at rows out of it, (N, R); zero in it."""
        rows, kept = self.rows[k], self.features[k]
        known = np.zeros((self.n_table, refits.n_outputs))
        out = np.delete(np.arange(self.n_table), rows)
        try:
            predicted = fit(rows, kept, int(self.seeds[k]))(
                select_rows(refits.seen, out)
            )
        except Exception as error:
            error.add_note(
                f"while fitting patch {self.first + k}, of {len(rows)} rows and "
                f"{int(kept.sum())} features"
            )
            raise
        known[out] = refits.error.known(predicted, refits.y[out])
        return known

    def for_new_rows(self, n_table: int) -> Patches:
        """The same patches beside a table of new rows: each is out of all patches."""
        return replace(self, rows=self.rows[:, :0], n_table=n_table)


def draw_patches(
    n_patches: int,
    n_table: int,
    n_rows: int,
    n_features: int,
    n_in_patch: float,
    sampling: ColumnSampling,
    seed: int,
    labels: NDArray[Any] | None = None,  # shape (N,)
) -> Patches:
    """Rows and features of each patch, uniformly without replacement.

    Blocks of patches have a stream each, so that patch b is the same however many.
    """
    # blocks, and all of them in one
    n_bytes = 2.0 * n_patches * (8 * (n_rows + 1) + n_features)
    require_memory(n_bytes, f"{n_patches:,} minipatches", "draw fewer of them")
    strata, size = Strata.of(n_table, n_rows, labels), max(1, BLOCK // n_table)
    parts = []
    for number in range(math.ceil(n_patches / size)):  # the last is drawn whole, too
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        rows, keys = strata.draw(rng, size), rng.random((size, n_features))
        if sampling == "bernoulli":
            features = keys < n_in_patch / n_features
        else:
            n_exact = round(n_in_patch)
            chosen = np.argpartition(keys, n_exact - 1, axis=1)[:, :n_exact]
            features = np.zeros(keys.shape, dtype=bool)
            np.put_along_axis(features, chosen, True, axis=1)
        parts.append((rows, features, rng.integers(2**31, size=size)))
    rows, features, seeds = map(np.concatenate, zip(*parts, strict=True))
    kept = slice(n_patches)
    return Patches(rows[kept], features[kept], seeds[kept], n_table)


# ---- How likely a patch is of use, and how many patches are enough


SURE: Final = 0.99
"""How likely the number of patches that messages name is enough."""


@final
@dataclass(frozen=True, kw_only=True)
class PatchCoverage:
    """How likely one patch is of use to the prediction at a row without t features.

    The row is out of the patch and these disjoint from its features: (1 − n/N)
    C(M − t, m)/C(M, m), with ``"bernoulli"`` (1 − n/N)(1 − m/M)^t.
    """

    row_share: float  # n/N
    n_features: int  # M
    n_in_patch: float  # m
    columns: ColumnSampling  # how features are drawn

    @classmethod
    def of(cls, patches: Patches) -> PatchCoverage:
        """By what was drawn: fixed where all patches have one number of features."""
        kept = patches.features.sum(axis=1)
        return cls(
            row_share=patches.rows.shape[1] / patches.n_table,
            n_features=patches.features.shape[1],
            n_in_patch=float(kept.mean()),
            columns="fixed" if (kept == kept[0]).all() else "bernoulli",
        )

    def without(self, size: int) -> float:
        """The probability of a set of ``size`` features to be of use at a row."""
        share, k = 1.0 - self.row_share, round(self.n_in_patch)
        if self.columns == "bernoulli":
            return share * (1.0 - self.n_in_patch / self.n_features) ** size
        absent = math.comb(self.n_features - size, k) / math.comb(self.n_features, k)
        return share * absent

    def together(self, size: int) -> float:
        """The probability that a patch has all features of a set of that size."""
        if self.columns == "bernoulli":
            return (self.n_in_patch / self.n_features) ** size
        rest = math.comb(self.n_features - size, round(self.n_in_patch) - size)
        return rest / math.comb(self.n_features, round(self.n_in_patch))

    def patches_needed(self, size: int, n_predictions: int, at_least: int = 1) -> int:
        """The least B with Q N P(Bin(B, p) < at_least) ≤ 1 %, p as above.

        All predictions are then means of enough patches, in 99 draws of 100.
        """
        goal = (1.0 - SURE) / n_predictions
        return at_least + int(nbinom.isf(goal, at_least, self.without(size)))


# ---- How many patches a prediction without some features is averaged over, beforehand


ENOUGH: Final = 30
"""Patches that a mean is taken over; with fewer it says little."""

SEEN_TOGETHER: Final = 100
"""Patches that see all features of a set, on average; fewer learn little of it."""

_NEGLIGIBLE = 1e-9
"""Probability of too few patches below which nothing is counted row by row."""


def check_order(usable: PatchCoverage, order: int) -> None:
    """Refuse sets that no patch could leave out, or that none could see whole."""
    if usable.columns == "bernoulli":
        return
    n_all, m = usable.n_features, round(usable.n_in_patch)
    instead = (
        f"with {n_all} features take {order} <= n_features <= {n_all - order}"
        if n_all >= 2 * order
        else f"{n_all} features are too few for that: take DataSplit()"
    )
    if m < order:
        raise InvalidInput(
            f"n_features: {order} features never co-occur in a patch of {m}, so no "
            f"interaction of them can be learnt; {instead}, or columns='bernoulli'"
        )
    if n_all - m < order:
        raise InvalidInput(
            f"n_features: a patch of {m} of {n_all} features never leaves out {order} "
            f"of them; {instead}, or columns='bernoulli'"
        )


def check_counts(
    patches: Patches,
    sets: FeatureSets,
    usable: PatchCoverage,
    names: Sequence[Hashable],
) -> None:
    """Refuse patches that never leave some set (Q, r) out; warn where there are few."""
    n_sets, size = sets.shape
    if not n_sets:
        return
    fewest, place = fewest_usable(patches, sets, usable)
    n_all = n_sets * patches.n_table
    if fewest == 0:
        needed = usable.patches_needed(size, n_all)
        raise never_left_out(patches, sets[place], needed, names)
    reasons = []
    if fewest < ENOUGH:
        needed = usable.patches_needed(size, n_all, ENOUGH)
        reasons.append(
            f"some predictions are means of only {fewest} patches (of {ENOUGH} with "
            f"n_patches={needed})"
        )
    joint = usable.together(size)
    if size > 1 and joint * len(patches) < SEEN_TOGETHER:
        reasons.append(
            f"a set of {size} features is seen whole by about "
            f"{joint * len(patches):.0f} patches (by {SEEN_TOGETHER} with n_patches="
            f"{math.ceil(SEEN_TOGETHER / joint)})"
        )
    if reasons:
        warnings.warn(
            f"{len(patches)} patches are few: {'; '.join(reasons)}",
            FewPatchesWarning,
            stacklevel=4,
        )


def never_left_out(
    patches: Patches, left_out: Indices, needed: int, names: Sequence[Hashable]
) -> InvalidInput:
    """The error of patches of which, at some row, none is without a set (t,)."""
    return InvalidInput(
        f"n_patches: of {len(patches)} patches none is without "
        f"{listed([names[k] for k in left_out])} and without some row; with {needed} "
        f"each set is left out at each row in {SURE:.0%} of draws"
    )


def are_enough(patches: Patches, sets: FeatureSets, usable: PatchCoverage) -> bool:
    """Whether :func:`check_counts` has nothing to say of these patches."""
    size = sets.shape[1]
    together = usable.together(size) * len(patches)
    return (size < 2 or together >= SEEN_TOGETHER) and (
        not len(sets) or fewest_usable(patches, sets, usable)[0] >= ENOUGH
    )


def fewest_usable(
    patches: Patches, sets: FeatureSets, usable: PatchCoverage
) -> tuple[int, int]:
    """The least number of patches of a mean, and the place of the set that has it.

    Rows are counted one by one only for sets of which some row may have less than 30;
    else 30 stands for all that is more.
    """
    absent = _absent(patches, sets)
    short = binom.cdf(ENOUGH - 1, absent, 1.0 - usable.row_share)  # at one row
    doubtful = np.flatnonzero(short * len(sets) * patches.n_table > _NEGLIGIBLE)
    if not len(doubtful):
        return ENOUGH, 0
    counts = _counts(patches, sets[doubtful])
    place = int(counts.argmin())
    return int(counts[place]), int(doubtful[place])


def _absent(patches: Patches, sets: FeatureSets) -> NDArray[np.int64]:
    """In how many patches no feature of each set is, (Q,)."""
    marks = ~patches.features
    if sets.shape[1] == 2:  # one product for all pairs; exact below 2^24 patches
        alone = marks.astype(np.float32)
        return (alone.T @ alone)[sets[:, 0], sets[:, 1]].astype(np.int64)
    columns = np.ascontiguousarray(marks.T)
    blocks = BATCH_BUDGET.blocks(len(sets), len(marks) * (1 + sets.shape[1]))
    return np.concatenate([columns[sets[q]].all(axis=1).sum(axis=1) for q in blocks])


def _counts(patches: Patches, sets: FeatureSets) -> NDArray[np.int64]:
    """Patches without each set, at the row that has fewest, (Q,)."""
    out = patches.out.T.astype(np.float32)
    columns = np.ascontiguousarray(~patches.features.T)
    row_bytes = (5 + sets.shape[1]) * len(patches) + 4 * patches.n_table
    parts = [
        (out @ columns[sets[q]].all(axis=1).T.astype(np.float32)).min(axis=0)
        for q in BATCH_BUDGET.blocks(len(sets), row_bytes)
    ]
    return np.concatenate(parts).astype(np.int64)


# ---- When patches are precise enough, so that no more of them are fitted


MOST_PATCHES: Final = 10_000
"""That are fitted where a user does not say how many."""

PRECISE: Final = 0.002
"""Error of patches that is small, in units of the error of a constant prediction.

For squared errors these are units of R². The largest scores of pairs of small trees are
0.004 to 0.05 on tables of 442 to 2,000 rows.
"""

FIRST_PATCHES: Final = 1000
"""Patches that are fitted before their error is estimated: 50 in each of 20 groups."""

LOOKED_AT: Final = 200
"""Sets of which that error is estimated at most."""


def looks(most: int) -> Iterator[int]:
    """After how many patches their error is estimated: each √2 times the last."""
    n_patches = float(FIRST_PATCHES)
    while n_patches < most:
        yield round(n_patches)
        n_patches *= math.sqrt(2.0)
    yield most


WhyStopped: TypeAlias = Literal["as asked", "precise", "at most", "interrupted"]


@final
@dataclass(frozen=True, kw_only=True)
class Stop:
    """How many patches were fitted, and why no more."""

    why: WhyStopped
    n_patches: int  # B
    most: int  # patches that were allowed
    until: float | None = None  # the share that was asked for
    # root mean square of se_mc over some sets, in units of the error of a constant;
    # NaN where it was not estimated
    share: float = math.nan

    @property
    def record(self) -> dict[str, object]:
        """For files: None is what was not asked for, or not estimated."""
        share = None if math.isnan(self.share) else self.share
        return {**asdict(self), "share": share}

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence, unless the number was asked for."""
        if self.until is None:
            return ()
        error = "an error that is not known"
        if not math.isnan(self.share):
            error = f"a standard error of {100 * self.share:.2g} % (estimated)"
        goal = f"{100 * self.until:.3g} %"
        reason = {
            "precise": f"at most {goal} were asked for",
            "at most": f"{goal} were asked for, and {self.most:,} patches are the most",
        }.get(self.why, f"{self.why} before {goal}")
        return (
            f"{self.n_patches:,} patches were fitted: they leave {error} of the error "
            f"of a constant prediction; {reason}",
        )


# ---- What main effects alone make of the scores of larger sets, by patches of one size


def additive_leak(
    effects: Values, n_in_patch: int, sets: FeatureSets, error: RowError
) -> Values:
    """Scores that sets (Q, r) would have if no features interacted, by patches of m.

    Without one feature the others are in more patches, and shrunk less. V_j ≥ 0 are of
    the additive f* whose LOCO is nearest to main effects (M,); NaN without closed form.
    """
    phi, order = shortfall(error), sets.shape[1]
    if phi is None:
        return np.full(len(sets), np.nan)

    def kept(n_left_out: int) -> float:
        return n_in_patch / (len(effects) - n_left_out)

    variances = _main_variances(
        effects, coefficient(kept, phi, 0), coefficient(kept, phi, 1)
    )
    inside = variances[sets].sum(axis=1)
    leak = coefficient(kept, phi, order) * (variances.sum() - inside)
    if order > 1:
        leak += coefficient(kept, phi, order - 1) * inside
    return np.asarray(leak)


def coefficient(
    kept: Callable[[int], float], phi: Callable[[float], float], free: int
) -> float:
    """What V_u counts in the score of S, of which ``free`` features are not in u.

    Σ_{T ⊆ S} (−1)^(|T| + 1) φ(p_u^T), where p_u^T = kept(|T|), and 0 if T meets u. With
    φ(p_u) taken off each φ(p_u^T) this is φ(0) − φ(p_u) if u ⊇ S, and what leaks: a sum
    over T disjoint from u of terms that are zero unless p_u^T depends on T.
    """
    whole = phi(kept(0))
    leaks = (
        math.comb(free, t) * (-1) ** (t + 1) * (phi(kept(t)) - whole)
        for t in range(1, free + 1)
    )
    return (phi(0.0) - whole if free == 0 else 0.0) + sum(leaks)


def shortfall(error: RowError) -> Callable[[float], float] | None:
    """φ: a predictor Σ_u p_u g_u has the expected error Σ_u V_u φ(p_u), and a constant.

    Squared: E(Y − Σ p_u g_u)² = σ² + Σ V_u (1 − p_u)². Of Y ~ Bernoulli(f*),
    E|Y − f| = E[f* + f − 2 f f*], which is a constant + 2 Σ V_u (1 − p_u). None where
    no such identity holds.
    """
    if error == SQUARED:
        return lambda share: (1.0 - share) ** 2
    if error == PROBABILITY:
        return lambda share: 2.0 * (1.0 - share)
    return None


_ROUNDING: Final = 1e-9
"""Of 1 + Mκ, which is zero for probabilities and else of the order of m/M."""


def _main_variances(effects: Values, own: float, other: float) -> Values:
    """V ≥ 0 with the least Σ_j (Δ_j − a V_j − c Σ_{l ≠ j} V_l)², a = own, c = other.

    A = (a − c) I + c J gives AᵀA = (a − c)² (I + κ J), with κ ≤ 0. So the optimum is
    V_j = max(0, h_j − κ Σ V), where h = AᵀΔ/(a − c)²: the k largest h are in it, with
    Σ V = (h_1 + ... + h_k)/(1 + kκ). For probabilities 1 + Mκ = 0: V is known but for a
    constant, which no score depends on, and the least is taken.
    """
    gap, n = own - other, len(effects)
    kappa = (2.0 * gap + n * other) * other / gap**2
    h = effects / gap + other * effects.sum() / gap**2
    ordered = -np.sort(-h)
    shrunk = 1.0 + kappa * np.arange(n + 1)
    most = n if shrunk[n] > _ROUNDING else n - 1
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[: most + 1] / shrunk[: most + 1]
    done = ordered[:most] - kappa * sums[:most] <= 0.0  # the next is not positive
    return np.maximum(h - kappa * sums[np.argmax(np.append(done, True))], 0.0)
