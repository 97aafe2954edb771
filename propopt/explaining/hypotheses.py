"""What could have happened to values: one hypothesis a cause, each with its own test.

An audit asks them in order, and the first that holds is its diagnosis: a cause, the
evidence, the next step. Values are right if every number agrees with somebody's exact
values. They are wrong only where a cause is named; all else is undetermined, with the
likely causes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, final

import numpy as np
from scipy.optimize import linear_sum_assignment

from propopt.base.arrays import Array, Attributions, Indices, Mask
from propopt.base.text import percent, plural
from propopt.explaining.evidence import MAJORITY, AuditEvidence
from propopt.explaining.mixtures import Mixture
from propopt.explaining.sources import PATHS, ReferenceHypothesis, fits
from propopt.results.audit import Verdict


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """Why values are what they are."""

    cause: str  # such as "another background"
    headline: str  # the same of this table: "10 rows are permuted"
    evidence: str
    next_step: str = ""
    verdict: Verdict = "wrong"
    # (N, D): whose values they are, or should be; None where nobody's
    values: Attributions | None = None
    whose: str = ""  # in words
    base: float | None = None  # what those values are added to

    @property
    def is_owned(self) -> bool:
        """Whether all of them are values of somebody that is known."""
        return self.verdict in ("right", "depends on settings")

    @property
    def is_wrong(self) -> bool:
        """Whether a cause is known that makes them wrong."""
        return self.verdict == "wrong"


Test: TypeAlias = Callable[[AuditEvidence], Diagnosis | None]
"""The diagnosis where a cause holds."""

SourceTest: TypeAlias = Callable[[AuditEvidence, ReferenceHypothesis], Diagnosis | None]
"""The same of values that are a source's, but for what happened to them."""

CLEARLY: Final = 0.9
"""Of rows: what holds for more is no accident."""

FEWEST_ROWS: Final = 5
"""Rows from which their sums alone tell a factor."""

AGREES: Final = 0.06
"""Of the size of values: a mixture that leaves less agrees with them."""


def _of(
    one: ReferenceHypothesis, cause: str, headline: str, evidence: str
) -> Diagnosis:
    """A cause, of values that are a source's but for what it did to them."""
    return Diagnosis(
        cause=cause,
        headline=headline,
        evidence=evidence,
        next_step=_NEXT_STEPS[cause],
        values=one.values,
        whose=one.words,
        base=one.base,
    )


_NEXT_STEPS: Final = {
    "a constant factor": "Undo the factor, in the base too, then audit again.",
    "absolute values": "Export the values with their signs.",
    "another class": "Choose the class that is explained, then audit again.",
    "columns in another's place": "Put the columns in the order of the table, then "
    "audit again.",
    "draws": "Draw more samples, or take the exact values: audit.exact.",
    "one-hot sums": "Compare sums over the same columns, or export each column.",
    "rows in another's place": "Put the rows in the order of the table, then audit "
    "again.",
    "signs": "Turn the signs of these values, then audit again.",
    "single slips": "Take the exact values: audit.exact, or the file _exact.csv.",
}


# ---- Right values: against the given background, another one, rounded, optimized


def exact_values(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Every number is that of a known source."""
    if (np.abs(e.V - one.values) > e.tolerance).any():
        return None
    return _agreeing(e, one, "exact values")


def rounded_values(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Every number is a source's to its last digit."""
    apart, size = e.V - one.values, float(np.linalg.norm(one.values))
    if not e.step.any() or (np.abs(apart) > e.tolerance + e.step).any():
        return None
    if float(np.linalg.norm(apart)) > 0.5 * size:
        return None
    found = _agreeing(e, one, "rounding", f", rounded to {e.digits}")
    return replace(found, cause="rounding")


def _agreeing(
    e: AuditEvidence, one: ReferenceHypothesis, cause: str, how: str = ""
) -> Diagnosis:
    """Of values that are a source's in every number."""
    evidence = next_step = ""
    if one.words == PATHS:
        cause, evidence = "path-dependent", "They are right, but for another question."
        next_step = "Say that they are path-dependent, or take audit.exact."
    elif not one.is_given:
        cause = "one-hot sums" if "one-hot" in one.words else "another background"
        evidence = "They are right, for another game."
        if cause == "another background":
            evidence = "They are right, for another background than the one given."
        next_step = f"Say that they are {one.words}."
    return Diagnosis(
        cause=cause,
        headline=f"All {e.V.size:,} values are {one.words}{how}",
        evidence=evidence,
        next_step=next_step,
        verdict="right" if one.is_given else "depends on settings",
        values=one.values,
        whose=one.words,
        base=one.base,
    )


def other_background(e: AuditEvidence) -> Diagnosis | None:
    """The values are a mixture of single-row values, and all rows add up."""
    found = e.mixture
    if found is None or found.left > AGREES or not e.adds_up.all():
        return None
    if (np.abs(e.V - found.values) > e.room_beside(found, e.V)).any():
        return None
    return Diagnosis(
        cause="another background",
        headline="All values agree with exact ones for another background",
        evidence=f"A weighted background of {plural(found.size, 'row')} leaves "
        f"{percent(found.left)} % of their size, and all rows add up; noise below "
        "2 % would pass, too.",
        next_step="Name the background that they were made with, or give it: data=.",
        verdict="depends on settings",
        values=e.V,  # their own background is not known to the last digit
        whose="values against another background",
        base=float(np.median(e.implied)),
    )


def optimized(e: AuditEvidence) -> Diagnosis | None:
    """An explanation of ours, which moved exact values on purpose."""
    if e.came.exact is None:
        return None
    inner = diagnosed(replace(e, came=replace(e.came, values=e.came.exact, exact=None)))
    if inner.is_wrong:
        return replace(inner, headline=f"Before optimizing: {inner.headline}")
    moved = float(np.linalg.norm(e.W - e.came.exact))
    share = percent(moved / max(float(np.linalg.norm(e.came.exact)), 1e-300))
    is_known = inner.values is not None
    return Diagnosis(
        cause="optimized contributions",
        headline="They are optimized contributions of propopt",
        evidence=f"Exact values were moved by {share} % of their size, on purpose. "
        f"Of the exact ones: {inner.headline[0].lower()}{inner.headline[1:]}.",
        next_step="Report them as optimized; .contributions has the exact ones.",
        verdict="depends on settings" if is_known else "undetermined",
        values=e.W,
        whose="optimized contributions",
        base=inner.base,
    )


def weights_of_lime(e: AuditEvidence) -> Diagnosis | None:
    """Weights of LIME, which are no Shapley values and need not add up."""
    if not e.came.source.startswith("lists of LIME"):
        return None
    return Diagnosis(
        cause=LIME,
        headline="They are weights of LIME, not Shapley values",
        evidence="They are compared with exact values, and need not equal them.",
        next_step="Judge them by fidelity, or take audit.exact.",
        verdict="undetermined",
    )


LIME: Final = "LIME weights"


# ---- Found by the sums of rows: another class, another unit, a factor


def other_class(e: AuditEvidence) -> Diagnosis | None:
    """Rows add up to what the model predicts for another class."""
    if e.adds_up.mean() > MAJORITY:
        return None
    sums, cause = e.V.sum(axis=1), "another class"
    for name, f in e.other_outputs:
        if name.startswith("class") and fits(sums, f):
            return Diagnosis(
                cause=cause,
                headline=f"They are parts of another output: {name}",
                evidence="The rows add up to that prediction.",
                next_step=_NEXT_STEPS[cause],
            )
    return None


def constant_factor(e: AuditEvidence) -> Diagnosis | None:
    """Σ w = a f + c in most rows, whatever the background."""
    if e.adds_up.mean() > MAJORITY:
        return None
    sums, f = e.V.sum(axis=1), e.prediction
    are_few = len(f) < FEWEST_ROWS
    if are_few or not np.ptp(f):
        a = slope_of(e.V, e.E)
    else:
        left, right = _pairs(len(f), e.seed)
        rise = f[left] - f[right]
        usable = np.abs(rise) > 0.1 * float(np.std(f))
        if not usable.any():
            return None
        apart = sums[left] - sums[right]
        a = float(np.median(apart[usable] / rise[usable]))
    if not np.isfinite(a) or abs(a) < 1e-9 or abs(a - 1.0) < 1e-4:
        return None
    missed = sums / a - f
    missed = np.abs(missed - np.median(missed))
    share = float((missed <= e.room / abs(a) + 1e-4 * np.ptp(f)).mean())
    if unexplained(e.V, a * e.E) > 1e-4 if are_few else share <= CLEARLY:
        return None
    evidence = f"Rows add up to {a:.4g} times the prediction less a constant"
    evidence += f" in {percent(share)} % of rows (slope {a:.4g}, R² above .999)."
    values = None
    for one in e.knowns:
        near = np.abs(e.V / a - one.values) <= one.room / min(abs(a), 1.0)
        if near.mean() > MAJORITY:
            evidence += f" Divided by it, they are {one.words}."
            values = one.values
            break
    cause, name = "a constant factor", [x for y, x in _FACTORS if abs(a / y - 1) < 1e-3]
    found = Diagnosis(
        cause=cause,
        headline=f"All values are {a:.4g} times what they should be{''.join(name)}",
        evidence=evidence,
        next_step=_NEXT_STEPS[cause],
        values=values,
    )
    if abs(a + 1.0) >= 1e-4:
        return found
    head = "All signs are turned, as for the other class"
    step = "Turn all signs, in the base too, then audit again."
    return replace(found, cause="signs", headline=head, next_step=step)


_FACTORS: Final = (
    (1.0 / np.log(2.0), ": logarithms to base 2"),
    (1.0 / np.log(10.0), ": logarithms to base 10"),
    (np.log(2.0), ": logarithms to base 2 taken for natural ones"),
    (100.0, ": per cent"),
    (0.01, ": per cent taken for shares"),
)


def scaled_rows(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Each row is a multiple of a source's."""
    S, most = one.values, float(np.abs(e.V).max())
    size = (S * S).sum(axis=1)
    own = (e.V * S).sum(axis=1) / np.maximum(size, 1e-300)
    if e.adds_up.mean() > MAJORITY or S.shape[1] < 2 or (own <= 0).any():
        return None
    if (size > 0).sum() < min(FEWEST_ROWS, len(S)):
        return None
    rest, room = np.abs(e.V - own[:, None] * S), np.maximum(one.room, 1e-6 * most)
    if (rest <= room * np.maximum(own[:, None], 1.0)).all(axis=1).mean() <= CLEARLY:
        return None
    norms = {
        "sizes add up to one number": np.abs(e.V).sum(axis=1),
        "values add up to one number": e.V.sum(axis=1),
        "the largest size is one number": np.abs(e.V).max(axis=1),
        "lengths are one number": np.linalg.norm(e.V, axis=1),
    }
    for words, sizes in norms.items():
        if np.ptp(sizes) <= 1e-4 * max(float(sizes.mean()), 1e-300):
            return _of(
                one,
                "a constant factor",
                f"Each row is scaled so that {words}",
                f"Row by row they are multiples of {one.words}, by "
                f"{own.min():.3g} to {own.max():.3g}.",
            )
    return None


def _pairs(count: int, seed: int) -> tuple[Indices, Indices]:
    """Pairs of rows whose differences have no base."""
    order = np.random.default_rng(seed).permutation(count)
    pairs = np.concatenate([np.roll(order, k) for k in (1, 2, 3, 5, 7)])
    return np.tile(order, 5), pairs


def slope_of(V: Array, S: Array) -> float:
    """The factor a of least squares, V ≈ a S."""
    return float((V * S).sum() / max(float((S * S).sum()), 1e-300))


def unexplained(V: Array, S: Array) -> float:
    """‖V − S‖ / ‖V‖."""
    return float(np.linalg.norm(V - S)) / max(float(np.linalg.norm(V)), 1e-300)


# ---- A source's values of which something was changed


def absolute_values(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """All values are sizes."""
    lost = int((one.values < -e.tolerance).sum())
    if (-e.tolerance > e.V).any() or not lost or e.adds_up.all():
        return None
    same = np.abs(np.abs(one.values) - e.V) <= one.room
    if same.mean() <= CLEARLY:
        return None
    told = f"They are the sizes of {one.words}; {plural(lost, 'sign')} are lost."
    return _of(one, "absolute values", "The values have lost their signs", told)


def moved_columns(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Columns stand in each other's place."""
    V, S, D = e.V, one.values, e.V.shape[1]
    room = np.broadcast_to(one.room, V.shape)
    fit = np.stack(
        [(np.abs(V[:, [j]] - S) <= room[:, [j]]).mean(axis=0) for j in range(D)]
    )  # (D, D): shares of rows in which column j has the values of column k
    _, place = linear_sum_assignment(-fit - 1e-6 * np.eye(D))
    moved = np.flatnonzero(place != np.arange(D))
    if not len(moved) or fit[np.arange(D), place].min() <= MAJORITY:
        return None
    if (fit[moved, place[moved]] - fit[moved, moved]).mean() <= _GAINED:
        return None  # numbers of few digits are alike by accident
    j = int(moved[np.abs(S[:, place[moved]]).sum(axis=0).argmax()])
    names = e.labels.feature_names(D)
    return _of(
        one,
        "columns in another's place",
        f"{plural(len(moved), 'column')} stand in another's place",
        f"{names[j]} holds the values of {names[place[j]]}; in the right order "
        f"they are {one.words}.",
    )


_GAINED: Final = 0.2
"""Of the rows: moved columns agree in so many more in the right order."""


def moved_rows(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Rows stand in each other's place, or twice."""
    V, S, N = e.V, one.values, len(e.V)
    room = np.broadcast_to(one.room, V.shape)
    bad = np.flatnonzero((np.abs(V - S) > room).any(axis=1))[:_MOST_ROWS]
    if not len(bad) or V.shape[1] < 2 or e.adds_up.all():
        return None
    near = np.stack([(np.abs(V[n] - S) <= room[n]).all(axis=1) for n in bad])
    holds = near.any(axis=1)
    if holds.mean() <= MAJORITY:
        return None
    bad, near = bad[holds], near[holds]
    # each bad row gets a row of its own if there is one, first among the bad ones
    cost = np.where(near, 0.0, 2.0)
    cost[:, np.setdiff1d(np.arange(N), bad)] += 0.5
    _, place = linear_sum_assignment(cost)
    is_own = near[np.arange(len(bad)), place]
    place = np.where(is_own, place, near.argmax(axis=1))
    n, m = int(bad[0]), int(place[0])
    shift = _shift(near, bad, N)
    if shift and len(bad) > MAJORITY * N:
        words = f"The rows are shifted by {shift}"
    elif set(place) == set(bad) and is_own.all() and (place != bad).all():
        words = f"{plural(len(bad), 'row')} are permuted"
    else:
        words = f"{plural(len(bad), 'row')} {'holds' if len(bad) == 1 else 'hold'}"
        words += " the values of other rows"
    told = f"Row {e.row(n)} holds the values of row {e.row(m)}; in the right order "
    return _of(one, "rows in another's place", words, f"{told}they are {one.words}.")


def _shift(near: Mask, bad: Indices, N: int) -> int:
    """The step by which nearly all rows are moved, with a sign; 0 where none."""
    for step in (*range(1, min(N, 30)), *range(-1, -min(N, 30), -1)):
        if near[np.arange(len(bad)), (bad - step) % N].mean() > CLEARLY:
            return step
    return 0


_MOST_ROWS: Final = 1000
"""Rows that are assigned."""


def turned_signs(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Several values have the other sign."""
    V, S = e.V, one.values
    other = np.abs(V - S) > one.room
    turned = other & (np.abs(V + S) <= one.room)
    count = int(turned.sum())
    if count <= _FEW_SLIPS or count < CLEARLY * other.sum() or e.adds_up.all():
        return None
    head, told = f"{plural(count, 'sign')} are turned", f"All others are {one.words}."
    n, j = (int(x) for x in np.argwhere(turned)[0])
    is_large = np.abs(S[:, j]) > e.tolerance
    if turned[:, j].sum() == count and turned[is_large, j].mean() > CLEARLY:
        head = f"The signs of {e.labels.feature_names(V.shape[1])[j]} are turned"
    else:
        told = f"The first is {e.place(n, j)}; all others are {one.words}."
    return _of(one, "signs", head, told)


_FEW_SLIPS: Final = 3
"""Turned signs that count as single slips."""


def summed_columns(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Columns hold nothing, and their sum stands in one of them."""
    V, S = e.V, one.values
    columns = np.flatnonzero((np.abs(V - S) > one.room).any(axis=0))
    filled = [j for j in columns if np.abs(V[:, j]).max() > e.tolerance]
    if len(columns) < 2 or len(filled) != 1:
        return None
    apart = np.abs(V[:, columns].sum(axis=1) - S[:, columns].sum(axis=1))
    room = np.broadcast_to(one.room, V.shape)[:, columns].sum(axis=1)
    if (apart <= room).mean() <= CLEARLY:
        return None
    name = e.labels.feature_names(V.shape[1])[filled[0]]
    told = f"{name} holds the sum of {plural(len(columns), 'column')}"
    return _of(one, "one-hot sums", told, f"Otherwise they are {one.words}.")


def single_slips(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Some values are wrong, and all others a source's."""
    V, S = e.V, one.values
    other = np.abs(V - S) > one.room
    in_rows = other.any(axis=1)
    if not other.any() or other.mean() >= (_FITTED if one.is_fitted else MAJORITY):
        return None
    if one.is_fitted and in_rows.mean() > _FEW_ROWS:
        return None
    balanced = int(e.adds_up[in_rows].sum())
    if balanced > (0 if one.is_fitted else min(_BALANCED, 0.1 * len(V))):
        return None  # these rows add up: they are of another background
    if len(V) >= FEWEST_ROWS and in_rows.mean() > CLEARLY > e.adds_up.mean():
        return None  # no slip is in every row
    n, j = (int(x) for x in np.unravel_index(np.abs(V - S).argmax(), V.shape))
    count, lines = int(other.sum()), int(in_rows.sum())
    turned = int((other & (np.abs(V + S) <= one.room)).sum())
    told = f"{e.place(n, j)}: {V[n, j]:+.3g} should be {S[n, j]:+.3g}."
    told = told[0].upper() + told[1:]
    if turned:
        told += f" {plural(turned, 'sign')} turned."
    told += f" {V.size - count:,} of {V.size:,} values are {one.words}."
    where = f"{lines:,} rows" if lines > 1 else "one row"
    head = f"{count:,} values are wrong in {where}"
    if count == 1:
        head = "One value is wrong"
    found = _of(one, "single slips", head, told)
    if one.is_given:
        return found
    return replace(found, next_step="Compute these values again, as the others were.")


_BALANCED: Final = 3
"""Rows with slips that may still add up."""

_FITTED: Final = 0.05
"""Of values that may differ from a fitted mixture."""

_FEW_ROWS: Final = 0.2
"""Of rows in which they may: what is in more is no slip, but another model."""


# ---- What has no exact source: draws, another model, nothing that is known


def sampled_values(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Rows add up, and errors are spread as those of sampled values are."""
    if e.adds_up.mean() <= CLEARLY or len(e.V) < FEWEST_ROWS:
        return None
    R, S = e.V - one.values, one.values
    share = float(np.linalg.norm(R)) / max(float(np.linalg.norm(S)), 1e-300)
    if share > _LARGEST or abs(slope_of(e.V, S) - 1.0) > 0.1:
        return None
    drift = np.abs(R.mean(axis=0)) * np.sqrt(len(R))
    if (drift > _DRIFT * np.maximum(R.std(axis=0), e.tolerance)).any():
        return None
    like = e.like_draws(R)
    if like is None:
        return None
    told = f"They scatter around {one.words} by {percent(share)} % of their "
    told += f"size, without drift, like means of {like:,.0f} orders."
    head = "They are sampled values, such as those of KernelSHAP"
    return replace(_of(one, "draws", head, told), verdict="depends on settings")


_LARGEST: Final = 0.6
"""Of the size of values: sampled values with a larger error tell nothing."""

_DRIFT: Final = 5.0
"""Standard errors by which the mean error of a column may differ from 0."""


def other_model(e: AuditEvidence, one: ReferenceHypothesis) -> Diagnosis | None:
    """Rows do not add up, and values are near the exact ones."""
    a, b = e.V.ravel(), one.values.ravel()
    if (
        len(e.V) < FEWEST_ROWS
        or e.adds_up.mean() > CLEARLY
        or not (a.any() and b.any())
    ):
        return None
    r = float(a @ b / np.sqrt((a @ a) * (b @ b)))
    if r < CLEARLY or not 0.5 < slope_of(e.V, one.values) < 2.0:
        return None
    return Diagnosis(
        cause="another version of the model",
        headline="They are values of another version of the model, or noisy",
        evidence=f"{int((~e.adds_up).sum()):,} of {len(e.V):,} rows miss the "
        f"prediction of this one; the correlation with {one.words} is "
        f"{min(r, 0.9999):.4g}.",
        next_step="Compute them again with this model; compare versions and files.",
        values=e.E,
    )


def undetermined(e: AuditEvidence) -> Diagnosis:
    """Nothing that is known."""
    likely = "another model, another output or another order"
    step = "Compare model, class, output and order of rows with their source."
    if e.adds_up.mean() > CLEARLY:
        likely = "a background far from the rows given, few samples, or smoothing"
        step = "Give the background that they were made with: data=."
    return Diagnosis(
        cause="undetermined",
        headline="Their origin could not be determined",
        evidence=f"Likely: {likely}. They differ from exact values by "
        f"{percent(unexplained(e.V, e.E))} % of their size.",
        next_step=step,
        verdict="undetermined",
    )


# ---- With which sources values are compared, and in which order


SourcesOf: TypeAlias = Callable[[AuditEvidence], Iterator[ReferenceHypothesis]]


def known_sources(e: AuditEvidence) -> Iterator[ReferenceHypothesis]:
    """SourcesOf with names."""
    yield from e.knowns


def fitted_mixture(e: AuditEvidence) -> Iterator[ReferenceHypothesis]:
    """The fitted mixture, where rows that add up agree with it."""
    yield from _fitted(e, e.V, e.mixture)


def mixture_of_sorted_columns(e: AuditEvidence) -> Iterator[ReferenceHypothesis]:
    """The mixture fitted to columns in the order that is most like the exact values."""
    V, S = e.V, e.E
    with np.errstate(invalid="ignore", divide="ignore"):
        alike = V.T @ S / np.linalg.norm(V, axis=0)[:, None] / np.linalg.norm(S, axis=0)
    alike = np.nan_to_num(alike) + 1e-6 * np.eye(V.shape[1])
    _, place = linear_sum_assignment(-alike)
    if (place != np.arange(len(place))).any():
        V = V[:, np.argsort(place)]
        yield from _fitted(e, V, e.nearest_mixture(V))


def _fitted(
    e: AuditEvidence, V: Attributions, found: Mixture | None
) -> Iterator[ReferenceHypothesis]:
    """A mixture as a source, where it agrees with V, to which it was fitted."""
    if found is None or found.left > AGREES or e.adds_up.mean() <= MAJORITY:
        return
    yield ReferenceHypothesis(
        words="values against another background",
        exact=found.values,
        room=e.room_beside(found, V),
        base=float(np.median(e.implied)),
        is_fitted=True,
    )


def _first(sources: SourcesOf, test: SourceTest, e: AuditEvidence) -> Diagnosis | None:
    """The diagnosis of the first source for which a test holds."""
    found = (test(e, one) for one in sources(e))
    return next((one for one in found if one is not None), None)


HYPOTHESES: Final[tuple[Test, ...]] = (
    optimized,
    weights_of_lime,
    *(partial(_first, known_sources, own) for own in (exact_values, rounded_values)),
    other_class,
    constant_factor,
    *(
        partial(_first, known_sources, own)
        for own in (
            *(scaled_rows, absolute_values, moved_columns, moved_rows),
            *(turned_signs, summed_columns, single_slips),
        )
    ),
    other_background,
    *(
        partial(_first, fitted_mixture, own)
        for own in (moved_rows, turned_signs, single_slips)
    ),
    partial(_first, mixture_of_sorted_columns, moved_columns),
    *(partial(_first, known_sources, own) for own in (sampled_values, other_model)),
    undetermined,
)
"""In the order in which they are asked; the first that holds is the diagnosis."""


def diagnosed(e: AuditEvidence) -> Diagnosis:
    """The first hypothesis that holds; of a model that can only be called none."""
    if not e.is_exact:
        return Diagnosis(
            cause="undetermined",
            headline="Undetermined, because the model can only be called",
            evidence="",
            next_step="Exact values are known for sums of products, such as the "
            "log-odds of trees, not for their probabilities.",
            verdict="undetermined",
        )
    found = (own(e) for own in HYPOTHESES)
    return next(one for one in found if one is not None)
