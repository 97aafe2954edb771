"""Hypotheses on what the audited values are, each tested on every number.

Values are *exact* if a source gives every number. They are *wrong* if a change of a
source gives the numbers, or if rows do not add up. Everything else is *not reproduced*:
no fit within a tolerance is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final, final

import numpy as np
from scipy.optimize import linear_sum_assignment

from propopt.base.arrays import Array, Attributions, Mask, quotient
from propopt.base.checks import largest_entry
from propopt.base.document import minus
from propopt.explaining.evidence import MAJORITY, AuditEvidence
from propopt.explaining.sources import SINGLE_PRECISION, ReferenceHypothesis, adds_up_to
from propopt.results.audit import AuditFinding, Verdict


@final
@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The cause of what the values are, where it shows, and what they should be."""

    finding: AuditFinding  # without the error
    values: Attributions | None = None  # (N, D): what they are, or should be, if known

    @property
    def is_exact(self) -> bool:
        """True if all values come from a source."""
        return self.finding.verdict == "exact"

    @property
    def is_wrong(self) -> bool:
        """True if a cause that was reproduced makes the values wrong."""
        return self.finding.verdict == "wrong"


LIME: Final = "LIME weights"
OPTIMIZED: Final = "optimized contributions"
DRAWS: Final = "samples"
FUNCTION: Final = "a function"
UNDETERMINED: Final = "undetermined"

# share of values that a change leaves to other errors
_MOST_LEFT: Final = 0.1
_MAX_SLIPS: Final = 3  # number of values that are single slips, and no change of all
_MAX_ROWS: Final = 1000  # number of rows that are assigned
MIN_ROWS: Final = 5  # number of rows from which row sums alone show a factor


def _finding_of(
    cause: str,
    values: Attributions | None = None,
    verdict: Verdict = "wrong",
    **where: Any,
) -> Diagnosis:
    """A diagnosis, with the source, count, rows and features of its cause."""
    finding = AuditFinding("values", math.nan, "", verdict, cause=cause, **where)
    return Diagnosis(finding, values)


def _unknown(cause: str) -> Diagnosis:
    return _finding_of(cause, verdict="not reproduced")


def diagnose(e: AuditEvidence) -> Diagnosis:
    """The source of the values, or the change of a source that explains most."""
    if e.imported.source.startswith("lists of LIME"):
        return _unknown(LIME)
    if (contributions := e.imported.exact) is not None:
        given = replace(e.imported, values=contributions, exact=None)
        start = diagnose(replace(e, imported=given))
        return start if start.is_wrong else _unknown(OPTIMIZED)
    if not e.is_exact:
        return _unknown(FUNCTION)
    tried = []
    for source in e.hypotheses:
        if source.compute is not None:
            if (finding := _agreement(e, source)) is not None:
                return finding
            tried.append(source)
    changed = [one for source in tried for one in _changes_of(e, source)]
    if changed:
        return min(changed, key=itemgetter(0))[1]
    for finding in (_correlated(e), _other_class(e), _constant_factor(e)):
        if finding is not None:
            return finding
    return _unknown(DRAWS if _are_draws(e) else UNDETERMINED)


# ---- Right values: of the given background or another source, perhaps rounded


def _agreement(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Every number agrees with a source, perhaps up to its last digit."""
    S = source.values
    difference = np.abs(e.W - S)
    words = source.words
    cause = source.cause
    if (difference > e.tolerance).any():
        size = float(np.linalg.norm(S))
        if (difference > source.tolerance).any() or (
            float(np.linalg.norm(difference)) > 0.5 * size
        ):
            return None
        words += f", rounded to {e.digits}"
        cause = SINGLE_PRECISION if cause == SINGLE_PRECISION else "rounding"
    if cause != SINGLE_PRECISION:
        return _finding_of(cause, S, "exact", source=words)
    return _finding_of(cause, source=words)


def _correlated(e: AuditEvidence) -> Diagnosis | None:
    """Values of a linear model over conditional means of a normal law.

    With c_S = (Σ_SS)⁻¹ Σ_S· β, column j gets the mean of c_{S+j} − c_S over orders,
    times x − μ. The package shap draws 1,000 orders, so that the values are exactly
    linear in x, by a matrix that differs from the mean only by the error of draws.
    """
    X = e.points
    N = len(X)
    D = X.shape[1]
    if N < D + 2 or not (
        np.isfinite(X).all() and np.isfinite(e.background.points).all()
    ):
        return None
    Z = X - e.background.mean(e.background.points.T)
    beta = (Z * e.E).sum(axis=0) / np.maximum((Z**2).sum(axis=0), 1e-300)
    T = np.linalg.lstsq(Z, e.W, rcond=None)[0].T
    is_linear = largest_entry(Z * beta - e.E) <= e.tolerance
    if not is_linear or (np.abs(Z @ T.T - e.W) > e.tolerance + e.half_digit).any():
        return None
    C = np.cov(e.background.points, rowvar=False)
    rng = np.random.default_rng(e.seed)
    draws = np.zeros((_ORDERS, D, D))
    for draw in draws:
        order = rng.permutation(D)
        before = np.zeros(D)
        for k in range(1, D + 1):
            S = order[:k]
            after = np.zeros(D)
            after[S] = np.linalg.lstsq(C[np.ix_(S, S)], C[S] @ beta, rcond=None)[0]
            draw[order[k - 1]] = after - before
            before = after
    scale = Z.std(axis=0)
    error = 6.0 * draws.std(axis=0) * math.sqrt(1.0 / _ORDERS + 1.0 / _ORDERS_OF_SHAP)
    if (np.abs(T - draws.mean(axis=0)) * scale > error * scale + e.tolerance).any():
        return None
    words = "values of LinearExplainer over conditional means (maskers.Impute)"
    return _finding_of("correlated", e.W, "exact", source=words)


_ORDERS: Final = 300
_ORDERS_OF_SHAP: Final = 1000


# ---- Shown by the sums of rows: another class, a factor


def _other_class(e: AuditEvidence) -> Diagnosis | None:
    """Rows add up to the prediction for another class."""
    if e.adds_up.mean() > MAJORITY:
        return None
    for name, f in e.other_outputs:
        if name.startswith("class") and adds_up_to(e.W.sum(axis=1), f):
            return _finding_of("another class", source=name)
    return None


def _constant_factor(e: AuditEvidence) -> Diagnosis | None:
    """Σ w = a f + c in all rows, for any background."""
    f = e.prediction
    if e.adds_up.mean() > MAJORITY or len(f) < MIN_ROWS or not np.ptp(f):
        return None
    sums = e.W.sum(axis=1)
    a, c = np.polyfit(f, sums, 1).tolist()
    if abs(a) < 1e-9 or (np.abs(a * f + c - sums) > e.row_tolerance).any():
        return None
    return _finding_of(
        _cause_of_factor(a), source=f"{_factor(a)} prediction + constant"
    )


def _cause_of_factor(a: float) -> str:
    return "signs" if abs(a + 1.0) < 1e-4 else "a constant factor"


def _factor(a: float) -> str:
    return minus(f"{a:.4g} ×")


# ---- Values of a source that were changed


_Candidate = tuple[int, Diagnosis]
"""The number of values that a change of a source leaves unexplained, and the change."""


def _changes_of(e: AuditEvidence, source: ReferenceHypothesis) -> Iterator[_Candidate]:
    """The changes of a source that give the values, but for a few."""
    W = e.W
    S = source.values
    tolerance = np.broadcast_to(source.tolerance, W.shape)

    def wrong(V: Attributions) -> Mask:
        return np.abs(W - V) > tolerance

    def size(V: Attributions) -> int:
        """The number of values that are not zero in both tables."""
        return int((np.maximum(np.abs(W), np.abs(V)) > tolerance).sum())

    unchanged = int(wrong(S).sum())
    for cause, V, where in _changed(e, S, tolerance):
        left = int(wrong(V).sum())
        is_change = int((np.abs(V - S) > tolerance).sum()) > _MAX_SLIPS
        if is_change and left <= min(_MOST_LEFT * size(V), 0.5 * unchanged):
            words = where.pop("source", source.words)
            yield left, _finding_of(cause, S, source=words, **where)
    # all other values agree, and so does the base: they are slips
    is_base = (
        e.base_of_rows is None or abs(e.base_of_rows - source.base) <= e.base_tolerance
    )
    if is_base and unchanged < MAJORITY * size(S):
        n, j = (int(x) for x in np.unravel_index(np.abs(W - S).argmax(), W.shape))
        slip = _finding_of(
            "single slips",
            S,
            source="" if source.is_given else source.words,
            count=unchanged,
            rows=(n,),
            features=(j,),
            value=float(W[n, j]),
            expected=float(S[n, j]),
        )
        yield unchanged, slip


_Changed = tuple[str, Attributions, dict[str, Any]]
"""The cause of changed values, these values, and where they show."""


def _changed(e: AuditEvidence, S: Attributions, tolerance: Array) -> Iterator[_Changed]:
    """What the values would be after each change of a source."""
    W = e.W
    N, D = W.shape
    differs = np.abs(W - S) > tolerance
    columns = np.flatnonzero(differs.any(axis=0))
    large = np.abs(S) > MAJORITY * largest_entry(S)
    a = float(np.median(W[large] / S[large])) if large.any() else 0.0
    if abs(a) > 1e-9:
        yield _cause_of_factor(a), a * S, {"source": f"{_factor(a)} values"}
    turned = differs & (np.abs(W + S) <= tolerance)
    cause = "signs" if (-tolerance > W).any() else "absolute values"
    places = tuple(np.flatnonzero(turned.any(axis=0)).tolist())
    yield (
        cause,
        np.where(turned, -S, S),
        {"count": int(turned.sum()), "features": places},
    )
    # columns and rows in another's place: the assignment that gives most values
    fit = np.stack(
        [(np.abs(W[:, [j]] - S) <= tolerance[:, [j]]).mean(axis=0) for j in range(D)]
    )
    _, match = linear_sum_assignment(-fit - 1e-6 * np.eye(D))
    moved = np.flatnonzero(match != np.arange(D))
    if len(moved):
        j = int(moved[np.abs(S[:, match[moved]]).sum(axis=0).argmax()])
        where = {"count": len(moved), "features": (j, int(match[j]))}
        yield "columns in another's place", S[:, match], where
    bad = np.flatnonzero(differs.any(axis=1))[:_MAX_ROWS]
    agrees = np.stack([(np.abs(W[n] - S) <= tolerance[n]).all(axis=1) for n in bad])
    has_match = agrees.any(axis=1) if len(bad) else np.zeros(0, bool)
    if D > 1 and has_match.any():
        bad = bad[has_match]
        agrees = agrees[has_match]
        # each bad row gets a different row if there is one, first among the bad ones
        cost = np.where(agrees, 0.0, 2.0)
        cost[:, np.setdiff1d(np.arange(N), bad)] += 0.5
        _, match = linear_sum_assignment(cost)
        is_match = agrees[np.arange(len(bad)), match]
        match = np.where(is_match, match, agrees.argmax(axis=1))
        V = S.copy()
        V[bad] = S[match]
        where = {"count": len(bad), "rows": (int(bad[0]), int(match[0]))}
        yield "rows in another's place", V, where
    blank = (np.abs(W) <= e.tolerance) & (np.abs(S) > tolerance)
    if (np.abs(W) > e.tolerance).any():
        where = {"count": int(blank.sum())}
        yield "blanked values", np.where(blank, 0.0, S), where
    filled = [j for j in columns if largest_entry(W[:, j]) > e.tolerance]
    if len(columns) > 1 and len(filled) == 1:
        V = S.copy()
        V[:, columns] = 0.0
        V[:, filled] = S[:, columns].sum(axis=1, keepdims=True)
        where = {"count": len(columns), "features": (int(filled[0]),)}
        yield "one-hot sums", V, where
    sizes = np.abs(S).sum(axis=1, keepdims=True)
    yield "normalised rows", quotient(S, sizes), {}
    if e.structure is not None and len(columns) and not e.used[columns].any():
        where = {"count": len(columns), "features": tuple(columns.tolist())}
        yield "unused columns", np.where(e.used, S, W), where
    V = np.empty(S.shape)
    np.put_along_axis(V, W.argsort(axis=1, kind="stable"), np.sort(S, axis=1), axis=1)
    rows = np.flatnonzero(differs.any(axis=1))
    where = {"count": len(rows), "rows": tuple(rows[:1].tolist())}
    yield "values permuted within rows", V, where


# ---- No source: draws


def _are_draws(e: AuditEvidence) -> bool:
    """Whether errors look like those of draws.

    Rows add up over the base of the background, no column that is used is exact, and
    errors depend neither on values, nor on interactions, nor on similar rows.
    """
    if not e.adds_up.all() or len(e.W) < MIN_ROWS or not e.has_similar_rows:
        return False
    given = next(e.hypotheses)
    if abs(float(np.median(e.implied_base)) - given.base) > e.base_tolerance:
        return False
    used = (np.abs(e.E) > e.tolerance).any(axis=0)
    errors = (e.W - e.E)[:, used]
    if ((np.abs(errors) <= e.tolerance).mean(axis=0) > MAJORITY).any():
        return False
    first, second = e.similar.edges.T
    alike = float(np.vdot(errors[first], errors[second]))
    alike /= 0.5 * float((errors[first] ** 2 + errors[second] ** 2).sum())
    interactions = e.E - e.main_effects.explanation.attributions
    size = float((errors**2).sum())
    for V in (e.E[:, used], interactions[:, used]):  # each column by its own factor
        squares = np.maximum((V**2).sum(axis=0), 1e-300)
        explained = float(((errors * V).sum(axis=0) ** 2 / squares).sum())
        if explained > _MAX_R2 * size:
            return False
    return alike <= _MAX_ALIKE


_MAX_R2: Final = 0.25
"""R² of errors by values of their column, at most .22 for draws of real tables."""

_MAX_ALIKE: Final = 0.1
"""The correlation of the errors of similar rows, 0 for draws."""
