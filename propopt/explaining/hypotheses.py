"""Hypotheses on what happened to the audited values, each with its own test.

They are tested in order, and the first that holds is the diagnosis: a cause, and where
it shows. Values are right if every number agrees with the exact values of some source.
They are wrong only if a cause can be named; everything else is undetermined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, final

import numpy as np
from scipy.optimize import linear_sum_assignment

from propopt.base.arrays import Array, Attributions, Indices
from propopt.base.document import minus
from propopt.explaining.evidence import MAJORITY, AuditEvidence
from propopt.explaining.sources import (
    PATHS,
    RESCALED,
    SUMMED,
    ReferenceHypothesis,
    adds_up_to,
)
from propopt.results.audit import AuditFinding, Verdict


@final
@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The cause of what the values are, where it shows, and what they should be."""

    finding: AuditFinding  # without the error
    values: Attributions | None = None  # (N, D): what they are, or should be, if known

    @property
    def cause(self) -> str:
        """The cause, such as "another background"."""
        return self.finding.cause

    @property
    def has_source(self) -> bool:
        """True if all values come from a known source."""
        return self.finding.verdict in ("ok", "other settings")

    @property
    def is_wrong(self) -> bool:
        """True if a known cause makes the values wrong."""
        return self.finding.verdict == "wrong"


Test: TypeAlias = Callable[[AuditEvidence, ReferenceHypothesis], Diagnosis | None]
"""Returns the diagnosis if a hypothesis holds for values that come from a source."""

CLEARLY: Final = 0.9  # share of rows or values above which a pattern is no accident
MIN_ROWS: Final = 5  # number of rows from which row sums alone show a factor
LIME: Final = "LIME weights"
# share of rows that must agree only after columns are put in the right order
_MIN_GAIN: Final = 0.2
_MAX_ROWS: Final = 1000  # number of rows that are assigned
_MAX_SLIPS: Final = 3  # number of turned signs that count as single slips
_MAX_BALANCED: Final = 3  # number of rows with slips that may still add up


def _finding_of(
    cause: str,
    values: Attributions | None = None,
    verdict: Verdict = "wrong",
    **where: Any,
) -> Diagnosis:
    """A diagnosis, with the source, count, rows and features of its cause."""
    finding = AuditFinding("values", math.nan, "", verdict, cause=cause, **where)
    return Diagnosis(finding, values)


# ---- Right values: of the given background or another, rounded, optimized


def exact_values(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Every number agrees with a source."""
    if (np.abs(e.W - source.values) > e.tolerance).any():
        return None
    cause = _CAUSES.get(source.words, "another background")
    return _agreement(source, "exact values" if source.is_given else cause)


_CAUSES: Final = {
    PATHS: "path-dependent",
    RESCALED: "rescaled log-odds",
    SUMMED: "one-hot sums",
}
"""Causes of right values that are not those of a background."""


def rounded_values(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Every number agrees with a source up to its last digit."""
    difference = e.W - source.values
    S = source.values
    if not e.half_digit.any() or (np.abs(difference) > source.tolerance).any():
        return None
    if float(np.linalg.norm(difference)) > 0.5 * float(np.linalg.norm(S)):
        return None
    return _agreement(source, "rounding", f", rounded to {e.digits}")


def _agreement(source: ReferenceHypothesis, cause: str, how: str = "") -> Diagnosis:
    """The diagnosis for values that agree with a source in every number."""
    verdict: Verdict = "ok" if source.is_given else "other settings"
    return _finding_of(cause, source.values, verdict, source=f"{source.words}{how}")


def optimized(e: AuditEvidence, _: ReferenceHypothesis) -> Diagnosis | None:
    """An explanation of propopt, which changed exact values on purpose."""
    exact = e.imported.exact
    if exact is None:
        return None
    start = diagnose(replace(e, imported=replace(e.imported, values=exact, exact=None)))
    if start.is_wrong:
        return start
    verdict: Verdict = "unknown" if start.values is None else "other settings"
    return _finding_of("optimized contributions", e.W, verdict)


def lime_weights(e: AuditEvidence, _: ReferenceHypothesis) -> Diagnosis | None:
    """Weights of LIME, which are no Shapley values and need not add up."""
    if not e.imported.source.startswith("lists of LIME"):
        return None
    return _finding_of(LIME, verdict="unknown")


# ---- Shown by the sums of rows: another class, another unit, a factor


def other_class(e: AuditEvidence, _: ReferenceHypothesis) -> Diagnosis | None:
    """Rows add up to the prediction for another class."""
    if e.adds_up.mean() > MAJORITY:
        return None
    for name, f in e.other_outputs:
        if name.startswith("class") and adds_up_to(e.W.sum(axis=1), f):
            return _finding_of("another class", source=name)
    return None


def constant_factor(e: AuditEvidence, _: ReferenceHypothesis) -> Diagnosis | None:
    """Σ w = a f + c in most rows, for any background."""
    if e.adds_up.mean() > MAJORITY:
        return None
    sums = e.W.sum(axis=1)
    f = e.prediction
    is_small = len(f) < MIN_ROWS or not np.ptp(f)
    if is_small:
        a = slope(e.W, e.E)
    else:
        first, second = _pairs(len(f), e.seed)
        rise = f[first] - f[second]
        usable = np.abs(rise) > 0.1 * float(np.std(f))
        if not usable.any():
            return None
        a = float(np.median((sums[first] - sums[second])[usable] / rise[usable]))
    if not np.isfinite(a) or abs(a) < 1e-9 or abs(a - 1.0) < 1e-4:
        return None
    missed = sums / a - f
    missed = np.abs(missed - np.median(missed))
    fits = missed <= e.row_tolerance / abs(a) + 1e-4 * np.ptp(f)
    if len(f) < MIN_ROWS:
        if relative_deviation(e.W, a * e.E) > 1e-4:
            return None
    elif fits.mean() <= CLEARLY:
        return None
    values = None
    for source in e.references:
        difference = np.abs(e.W / a - source.values)
        agrees = difference <= source.tolerance / min(abs(a), 1.0)
        if agrees.mean() > MAJORITY:
            values = source.values
            break
    cause = "signs" if abs(a + 1.0) < 1e-4 else "a constant factor"
    words = minus(f"{a:.4g} × prediction + constant")
    return _finding_of(cause, values, source=words, count=int(fits.sum()))


def _pairs(count: int, seed: int) -> tuple[Indices, Indices]:
    """Pairs of rows; their differences do not depend on the base."""
    order = np.random.default_rng(seed).permutation(count)
    pairs = np.concatenate([np.roll(order, k) for k in (1, 2, 3, 5, 7)])
    return np.tile(order, 5), pairs


def slope(V: Array, S: Array) -> float:
    """The factor a of the least squares fit V ≈ a S."""
    return float((V * S).sum() / max(float((S * S).sum()), 1e-300))


def relative_deviation(V: Array, S: Array) -> float:
    """‖V − S‖ / ‖V‖."""
    return float(np.linalg.norm(V - S)) / max(float(np.linalg.norm(V)), 1e-300)


# ---- Values of a source that were changed


def absolute_values(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """All values are absolute values."""
    lost = int((source.values < -e.tolerance).sum())
    if (-e.tolerance > e.W).any() or not lost or e.adds_up.all():
        return None
    if (np.abs(np.abs(source.values) - e.W) <= source.tolerance).mean() <= CLEARLY:
        return None
    return _finding_of("absolute values", source.values, count=lost)


def moved_columns(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Columns hold the values of other columns."""
    W = e.W
    S = source.values
    D = e.W.shape[1]
    tolerance = np.broadcast_to(source.tolerance, W.shape)
    fit = np.stack(
        [(np.abs(W[:, [j]] - S) <= tolerance[:, [j]]).mean(axis=0) for j in range(D)]
    )  # (D, D): shares of rows in which column j has the values of column k
    _, match = linear_sum_assignment(-fit - 1e-6 * np.eye(D))
    moved = np.flatnonzero(match != np.arange(D))
    if not len(moved) or fit[np.arange(D), match].min() <= MAJORITY:
        return None
    if (fit[moved, match[moved]] - fit[moved, moved]).mean() <= _MIN_GAIN:
        return None  # numbers of few digits agree by accident
    j = int(moved[np.abs(S[:, match[moved]]).sum(axis=0).argmax()])
    places = (j, int(match[j]))
    cause = "columns in another's place"
    return _finding_of(cause, source.values, count=len(moved), features=places)


def moved_rows(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Rows are exchanged, or hold the values of another row."""
    W = e.W
    S = source.values
    N = len(e.W)
    tolerance = np.broadcast_to(source.tolerance, W.shape)
    bad = np.flatnonzero((np.abs(W - S) > tolerance).any(axis=1))[:_MAX_ROWS]
    if not len(bad) or W.shape[1] < 2 or e.adds_up.all():
        return None
    agrees = np.stack([(np.abs(W[n] - S) <= tolerance[n]).all(axis=1) for n in bad])
    has_match = agrees.any(axis=1)
    if has_match.mean() <= MAJORITY:
        return None
    bad = bad[has_match]
    agrees = agrees[has_match]
    # each bad row gets a different row if there is one, first among the bad ones
    cost = np.where(agrees, 0.0, 2.0)
    cost[:, np.setdiff1d(np.arange(N), bad)] += 0.5
    _, match = linear_sum_assignment(cost)
    is_match = agrees[np.arange(len(bad)), match]
    match = np.where(is_match, match, agrees.argmax(axis=1))
    places = (int(bad[0]), int(match[0]))
    cause = "rows in another's place"
    return _finding_of(cause, source.values, count=len(bad), rows=places)


def turned_signs(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Several values have the opposite sign."""
    W = e.W
    S = source.values
    differs = np.abs(W - S) > source.tolerance
    turned = differs & (np.abs(W + S) <= source.tolerance)
    count = int(turned.sum())
    if count <= _MAX_SLIPS or count < CLEARLY * differs.sum() or e.adds_up.all():
        return None
    places = tuple(np.flatnonzero(turned.any(axis=0)).tolist())
    return _finding_of("signs", source.values, count=count, features=places)


def summed_columns(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Several columns are zero, and another holds their sum."""
    W = e.W
    S = source.values
    columns = np.flatnonzero((np.abs(W - S) > source.tolerance).any(axis=0))
    filled = [j for j in columns if np.abs(W[:, j]).max() > e.tolerance]
    if len(columns) < 2 or len(filled) != 1:
        return None
    difference = np.abs(W[:, columns].sum(axis=1) - S[:, columns].sum(axis=1))
    tolerance = np.broadcast_to(source.tolerance, W.shape)[:, columns].sum(axis=1)
    if (difference <= tolerance).mean() <= CLEARLY:
        return None
    places = (int(filled[0]),)
    return _finding_of(
        "one-hot sums", source.values, count=len(columns), features=places
    )


def single_slips(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Some values are wrong, and all others agree with a source."""
    W = e.W
    S = source.values
    differs = np.abs(W - S) > source.tolerance
    in_rows = differs.any(axis=1)
    if not differs.any() or differs.mean() >= MAJORITY:
        return None
    if int(e.adds_up[in_rows].sum()) > min(_MAX_BALANCED, 0.1 * len(W)):
        return None  # these rows add up: they belong to another background
    if len(W) >= MIN_ROWS and in_rows.mean() > CLEARLY > e.adds_up.mean():
        return None  # slips are not in every row
    n, j = (int(x) for x in np.unravel_index(np.abs(W - S).argmax(), W.shape))
    return _finding_of(
        *("single slips", source.values),
        source="" if source.is_given else source.words,
        count=int(differs.sum()),
        rows=(n,),
        features=(j,),
        value=float(W[n, j]),
        expected=float(S[n, j]),
    )


def unused_columns(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Only columns that the model does not use differ from a source."""
    if e.structure is None:
        return None
    differs = (np.abs(e.W - source.values) > source.tolerance).any(axis=0)
    if not differs.any() or (differs & e.used).any():
        return None
    places = tuple(np.flatnonzero(differs).tolist())
    return _finding_of(
        "unused columns", source.values, count=len(places), features=places
    )


# ---- No exact source: another model, undetermined


def other_model(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Rows do not add up, and values are close to exact ones."""
    a = e.W.ravel()
    b = source.values.ravel()
    if len(e.W) < MIN_ROWS or e.adds_up.mean() > CLEARLY or not (a.any() and b.any()):
        return None
    r = float(a @ b / np.sqrt((a @ a) * (b @ b)))
    if r < CLEARLY or not 0.5 < slope(e.W, source.values) < 2.0:
        return None
    count = int((~e.adds_up).sum())
    return _finding_of("another version of the model", e.E, count=count)


# ---- The order of the hypotheses, and the sources that each is tested with


HYPOTHESES: Final[tuple[tuple[bool, *tuple[Test, ...]], ...]] = (
    (False, optimized, lime_weights),
    (True, exact_values, rounded_values),
    (False, other_class, constant_factor),
    (True, absolute_values, moved_columns, moved_rows),
    (True, turned_signs, summed_columns, single_slips, unused_columns),
    (True, other_model),
)
"""Whether tests are tried with each source, or without one, and the tests in order."""


def diagnose(e: AuditEvidence) -> Diagnosis:
    """The first hypothesis that holds; undetermined for a black-box model."""
    for with_each, *tests in HYPOTHESES if e.is_exact else ():
        for test in tests:
            for source in e.references if with_each else e.references[:1]:
                if (diagnosis := test(e, source)) is not None:
                    return diagnosis
    return _finding_of("undetermined", verdict="unknown")
