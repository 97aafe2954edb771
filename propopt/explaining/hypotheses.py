"""Hypotheses on what happened to the audited values, each with its own test.

They are tested in order, and the first that holds is the diagnosis: a cause, the
evidence and the next step. Values are right if every number agrees with the exact
values of some source. They are wrong only if a cause can be named; everything else is
undetermined, with the likely causes.
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
from propopt.base.text import percent, plural
from propopt.explaining.evidence import MAJORITY, AuditEvidence
from propopt.explaining.sources import (
    PATHS,
    RESCALED,
    SUMMED,
    ReferenceHypothesis,
    adds_up_to,
)
from propopt.results.audit import Verdict


@final
@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The cause of what the values are, with evidence and advice."""

    cause: str  # such as "another background"
    headline: str  # the cause in this table: "10 rows are permuted"
    evidence: str
    next_step: str = ""
    verdict: Verdict = "wrong"
    values: Attributions | None = None  # (N, D): what they are, or should be, if known
    source: str = ""  # of these values, in words

    @property
    def has_source(self) -> bool:
        """True if all values come from a known source."""
        return self.verdict in ("right", "depends on settings")

    @property
    def is_wrong(self) -> bool:
        """True if a known cause makes the values wrong."""
        return self.verdict == "wrong"


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


def _diagnosis(
    source: ReferenceHypothesis,
    cause: str,
    headline: str,
    evidence: str,
    **others: Any,
) -> Diagnosis:
    """The diagnosis for values that come from a source, with what was changed."""
    others.setdefault("next_step", _NEXT_STEPS.get(cause, ""))
    others |= {"values": source.values, "source": source.words}
    return Diagnosis(cause, headline, evidence, **others)


_NEXT_STEPS: Final = {
    "a constant factor": "Undo the factor, in the base too, then audit again.",
    "absolute values": "Export the values with their signs.",
    "another class": "Choose the class that is explained, then audit again.",
    "columns in another's place": "Put the columns in the order of the table, then "
    "audit again.",
    "one-hot sums": "Compare sums over the same columns, or export each column.",
    "rows in another's place": "Put the rows in the order of the table, then audit "
    "again.",
    "signs": "Turn the signs of these values, then audit again.",
    "single slips": "Take the exact values: audit.exact, or the file _exact.csv.",
    "unused columns": "Leave unused columns at zero; check the order of columns.",
}


# ---- Right values: of the given background or another, rounded, optimized


def exact_values(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Every number agrees with a source."""
    if (np.abs(e.W - source.values) > e.tolerance).any():
        return None
    return _agreement(e, source)


def rounded_values(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Every number agrees with a source up to its last digit."""
    difference = e.W - source.values
    S = source.values
    if not e.half_digit.any() or (np.abs(difference) > source.tolerance).any():
        return None
    if float(np.linalg.norm(difference)) > 0.5 * float(np.linalg.norm(S)):
        return None
    rounded = _agreement(e, source, f", rounded to {e.digits}")
    return replace(rounded, cause="rounding")


def _agreement(
    e: AuditEvidence, source: ReferenceHypothesis, how: str = ""
) -> Diagnosis:
    """The diagnosis for values that agree with a source in every number."""
    cause = "exact values"
    evidence = ""
    step = ""
    if source.words == PATHS:
        cause = "path-dependent"
        evidence = "They are right, but for another question."
        step = "Report them as path-dependent, or take audit.exact."
    elif source.words == RESCALED:
        cause = "rescaled log-odds"
        evidence = "They add up, but are no Shapley values of the probability."
        step = "Report them as rescaled log-odds, or take audit.exact."
    elif not source.is_given:
        is_summed = source.words == SUMMED
        cause = "one-hot sums" if is_summed else "another background"
        other = "game" if is_summed else "background than the given one"
        evidence = f"They are right, for another {other}."
        step = f"Report them as {source.words}."
    return _diagnosis(
        *(source, cause, f"All {e.W.size:,} values are {source.words}{how}", evidence),
        verdict="right" if source.is_given else "depends on settings",
        next_step=step,
    )


def optimized(e: AuditEvidence, _: ReferenceHypothesis) -> Diagnosis | None:
    """An explanation of propopt, which changed exact values on purpose."""
    exact = e.imported.exact
    if exact is None:
        return None
    start = diagnose(replace(e, imported=replace(e.imported, values=exact, exact=None)))
    if start.is_wrong:
        return replace(start, headline=f"Before optimizing: {start.headline}")
    change = float(np.linalg.norm(e.W - exact))
    share = percent(change / max(float(np.linalg.norm(exact)), 1e-300))
    return Diagnosis(
        cause="optimized contributions",
        headline="They are optimized contributions of propopt",
        evidence=f"They differ from the exact values by {share} % of their size. "
        f"The exact values: {start.headline[0].lower()}{start.headline[1:]}.",
        next_step="Call them optimized contributions, not SHAP values; the exact "
        "values are in explanation.contributions.",
        verdict="undetermined" if start.values is None else "depends on settings",
        values=e.W,
        source="optimized contributions",
    )


def lime_weights(e: AuditEvidence, _: ReferenceHypothesis) -> Diagnosis | None:
    """Weights of LIME, which are no Shapley values and need not add up."""
    if not e.imported.source.startswith("lists of LIME"):
        return None
    return Diagnosis(
        cause=LIME,
        headline="They are weights of LIME, not Shapley values",
        evidence="They are compared with exact values, but need not equal them.",
        next_step="Judge them by fidelity, or take audit.exact.",
        verdict="undetermined",
    )


# ---- Shown by the sums of rows: another class, another unit, a factor


def other_class(e: AuditEvidence, _: ReferenceHypothesis) -> Diagnosis | None:
    """Rows add up to the prediction for another class."""
    if e.adds_up.mean() > MAJORITY:
        return None
    for name, f in e.other_outputs:
        if name.startswith("class") and adds_up_to(e.W.sum(axis=1), f):
            return Diagnosis(
                cause="another class",
                headline=f"They are parts of another output, {name}",
                evidence="The rows add up to that prediction.",
                next_step=_NEXT_STEPS["another class"],
            )
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
    share = float((missed <= e.row_tolerance / abs(a) + 1e-4 * np.ptp(f)).mean())
    if len(f) < MIN_ROWS:
        if relative_deviation(e.W, a * e.E) > 1e-4:
            return None
    elif share <= CLEARLY:
        return None
    factor = minus(f"{a:.4g}")
    evidence = f"In {percent(share)} % of the rows the sum is {factor} times the "
    evidence += "prediction, plus a constant."
    values = None
    for source in e.references:
        difference = np.abs(e.W / a - source.values)
        agrees = difference <= source.tolerance / min(abs(a), 1.0)
        if agrees.mean() > MAJORITY:
            evidence += f" Divided by it, they are {source.words}."
            values = source.values
            break
    factor_words = [words for y, words in _FACTORS if abs(a / y - 1.0) < 1e-3]
    headline = (
        f"All values are {factor} times what they should be{''.join(factor_words)}"
    )
    cause = "a constant factor"
    step = _NEXT_STEPS["a constant factor"]
    if abs(a + 1.0) < 1e-4:
        cause = "signs"
        headline = "All signs are turned, as for the other class"
        step = "Turn all signs, in the base too, then audit again."
    return Diagnosis(
        cause=cause,
        headline=headline,
        evidence=evidence,
        next_step=step,
        values=values,
    )


_FACTORS: Final = (
    (1.0 / np.log(2.0), ": logarithms to base 2"),
    (1.0 / np.log(10.0), ": logarithms to base 10"),
    (np.log(2.0), ": logarithms to base 2 taken for natural ones"),
    (100.0, ": per cent"),
    (0.01, ": per cent taken for shares"),
)


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
    evidence = f"They are the absolute values of {source.words}; "
    evidence += f"{plural(lost, 'minus sign')} are lost."
    headline = "The values have lost their signs"
    return _diagnosis(source, "absolute values", headline, evidence)


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
    names = e.labels.feature_names(D)
    return _diagnosis(
        source,
        "columns in another's place",
        f"{plural(len(moved), 'column')} are exchanged",
        f"{names[j]} holds the values of {names[match[j]]}; in the right order "
        f"they are {source.words}.",
    )


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
    steps = (*range(1, min(N, 30)), *range(-1, -min(N, 30), -1))
    shifts = [
        k for k in steps if agrees[np.arange(len(bad)), (bad - k) % N].mean() > CLEARLY
    ]
    if shifts and len(bad) > MAJORITY * N:
        headline = f"The rows are shifted by {shifts[0]}"
    elif set(match) == set(bad) and is_match.all() and (match != bad).all():
        headline = f"{plural(len(bad), 'row')} are permuted"
    else:
        headline = f"{plural(len(bad), 'row')} {'holds' if len(bad) == 1 else 'hold'}"
        headline += " the values of other rows"
    evidence = f"Row {e.row(int(bad[0]))} holds the values of row "
    evidence += f"{e.row(int(match[0]))}; in the right order they are {source.words}."
    return _diagnosis(source, "rows in another's place", headline, evidence)


def turned_signs(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Several values have the opposite sign."""
    W = e.W
    S = source.values
    differs = np.abs(W - S) > source.tolerance
    turned = differs & (np.abs(W + S) <= source.tolerance)
    count = int(turned.sum())
    if count <= _MAX_SLIPS or count < CLEARLY * differs.sum() or e.adds_up.all():
        return None
    n, j = (int(x) for x in np.argwhere(turned)[0])
    is_large = np.abs(S[:, j]) > e.tolerance
    headline = f"{plural(count, 'sign')} are turned"
    evidence = f"The first is {e.cell(n, j)}; all others are {source.words}."
    if turned[:, j].sum() == count and turned[is_large, j].mean() > CLEARLY:
        name = e.labels.feature_names(W.shape[1])[j]
        headline = f"The signs of {name} are turned"
        evidence = f"All others are {source.words}."
    return _diagnosis(source, "signs", headline, evidence)


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
    name = e.labels.feature_names(W.shape[1])[filled[0]]
    headline = f"{name} holds the sum of {plural(len(columns), 'column')}"
    evidence = f"Otherwise they are {source.words}."
    return _diagnosis(source, "one-hot sums", headline, evidence)


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
    count = int(differs.sum())
    n_rows = int(in_rows.sum())
    turned = int((differs & (np.abs(W + S) <= source.tolerance)).sum())
    verdict = "right" if source.is_given else source.words
    cell = e.cell(n, j)
    evidence = f"{W.size - count:,} of {W.size:,} values are {verdict}. "
    evidence += f"{cell[0].upper()}{cell[1:]}: "
    digits = _decimals(max(abs(W[n, j]), abs(S[n, j])), abs(W[n, j] - S[n, j]))
    evidence += minus(f"{W[n, j]:+.{digits}f} should be {S[n, j]:+.{digits}f}.")
    if turned:
        verb = "is" if turned == 1 else "are"
        evidence += f" {plural(turned, 'sign')} {verb} turned."
    headline = "One value is wrong"
    if count > 1:
        where = f"{n_rows:,} rows" if n_rows > 1 else "one row"
        headline = f"{count:,} values are wrong in {where}"
    step = "Compute these values again, in the same way as the others."
    if source.is_given:
        step = _NEXT_STEPS["single slips"]
    return _diagnosis(source, "single slips", headline, evidence, next_step=step)


def unused_columns(e: AuditEvidence, source: ReferenceHypothesis) -> Diagnosis | None:
    """Only columns that the model does not use differ from a source."""
    if e.structure is None:
        return None
    differs = (np.abs(e.W - source.values) > source.tolerance).any(axis=0)
    if not differs.any() or (differs & e.used).any():
        return None
    headline = f"{plural(int(differs.sum()), 'column')} that the model does not use "
    headline += "have values" if differs.sum() > 1 else "has values"
    evidence = f"All other columns are {source.words}."
    return _diagnosis(source, "unused columns", headline, evidence)


def _decimals(size: float, difference: float) -> int:
    """Decimals that show three digits of a size, and two of a difference."""
    exponents = [math.floor(math.log10(max(x, 1e-300))) for x in (size, difference)]
    return max(2 - exponents[0], 1 - exponents[1], 0)


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
    return Diagnosis(
        cause="another version of the model",
        headline="They are values of another version of the model, or noisy",
        evidence=f"{int((~e.adds_up).sum()):,} of {len(e.W):,} rows do not add up to "
        f"the prediction of this model; the correlation with {source.words} is "
        f"{min(r, 0.9999):.4g}.",
        next_step="Compute them again with this model; compare versions and files.",
        values=e.E,
    )


def undetermined(e: AuditEvidence) -> Diagnosis:
    """No hypothesis holds; the evidence names the likely causes."""
    likely = "another model, another output or another order"
    step = "Compare model, class, output and order of rows with their source."
    if e.adds_up.mean() > CLEARLY:
        likely = "another background, few samples, or smoothing"
        step = "Give the background that they were made with: data=."
    return Diagnosis(
        cause="undetermined",
        headline="Their origin could not be determined",
        evidence=f"Likely: {likely}. They differ from exact values by "
        f"{percent(relative_deviation(e.W, e.E))} % of their size.",
        next_step=step,
        verdict="undetermined",
    )


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
    if not e.is_exact:
        return Diagnosis(
            cause="undetermined",
            headline="Undetermined, because the model can only be called",
            evidence="",
            next_step="Give the fitted model instead of a function. Exact values exist "
            "for linear and kernel models, and for the log-odds of tree ensembles.",
            verdict="undetermined",
        )
    for with_each, *tests in HYPOTHESES:
        for test in tests:
            for source in e.references if with_each else e.references[:1]:
                if (diagnosis := test(e, source)) is not None:
                    return diagnosis
    return undetermined(e)
