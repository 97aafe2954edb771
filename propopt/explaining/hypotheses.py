"""What could have happened to values: one hypothesis a cause, each with its own test.

An audit asks them in order, and the first that holds is its diagnosis: a cause, the
evidence, the next step. Values are right if every number agrees with somebody's exact
values. They are wrong only where a cause is named; all else is undetermined, with the
likely causes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Positions
from propopt.base.text import percent, plural
from propopt.explaining.evidence import MAJORITY, AuditEvidence
from propopt.explaining.sources import PATHS, KnownSource, fits
from propopt.results.audit import Verdict


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """Why values are what they are."""

    cause: str  # of its hypothesis, such as "another background"
    headline: str  # the same of this table: "10 rows are permuted"
    evidence: str
    next_step: str = ""
    verdict: Verdict
    # (N, D): whose values they are, or should be; None where nobody's
    values: Attributions | None = None
    whose: str = ""  # in words
    base: float | None = None  # what those values are added to

    @property
    def sentence(self) -> str:
        """What was found, with its evidence."""
        return f"{self.headline}. {self.evidence}".removesuffix(" ")


class Hypothesis(ABC):
    """A cause, and the test whether it is that of a table of values."""

    words: ClassVar[str]
    next_step: ClassVar[str] = ""

    @abstractmethod
    def test(self, e: AuditEvidence) -> Diagnosis | None:
        """The diagnosis where the cause holds, else None."""

    def diagnosed(
        self,
        one: KnownSource,
        headline: str,
        evidence: str,
        verdict: Verdict = "wrong",
    ) -> Diagnosis:
        """This cause, of values that are a source's but for what it did to them."""
        return Diagnosis(
            cause=self.words,
            headline=headline,
            evidence=evidence,
            next_step=self.next_step,
            verdict=verdict,
            values=one.values,
            whose=one.words,
            base=one.base,
        )


# ---- Right values: against the given background, another one, rounded, optimized


@final
class ExactValues(Hypothesis):
    """Every number is that of a known source."""

    words = "exact values"

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        for one in e.knowns:
            if (np.abs(e.V - one.values) <= e.tolerance).all():
                return agreeing(e, one, self.words)
        return None


def agreeing(
    e: AuditEvidence, one: KnownSource, cause: str, how: str = ""
) -> Diagnosis:
    """Of values that are a source's in every number."""
    own = Diagnosis(
        cause=cause,
        headline=f"All {e.V.size:,} values are {one.words}{how}",
        evidence="",
        verdict=one.verdict,
        values=one.values,
        whose=one.words,
        base=one.base,
    )
    if one.is_given:
        return own
    if one.words == PATHS:
        return replace(
            own,
            cause="path-dependent",
            evidence="They are right, but for another question.",
            next_step="Say that they are path-dependent, or take audit.exact.",
        )
    is_other = "one-hot" in one.words
    return replace(
        own,
        cause="one-hot sums" if is_other else "another background",
        evidence="They are right, for another game."
        if is_other
        else "They are right, for another background than the one given.",
        next_step=f"Say that they are {one.words}.",
    )


@final
class RoundedValues(Hypothesis):
    """Every number is a source's to its last digit."""

    words = "rounding"

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        if not e.step.any():
            return None
        for one in e.knowns:
            apart = e.V - one.values
            size = float(np.linalg.norm(one.values))
            if (np.abs(apart) > e.tolerance + e.step).any():
                continue
            if float(np.linalg.norm(apart)) > 0.5 * size:
                continue
            found = agreeing(e, one, self.words, f", rounded to {e.digits}")
            return replace(found, cause=self.words)
        return None


@final
class OtherBackground(Hypothesis):
    """The values are a mixture of single-row values, and all rows add up."""

    words = "another background"
    next_step = "Name the background that they were made with, or give it: data=."

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        found = e.mixture
        if found is None or found.left > AGREES or not e.adds_up.all():
            return None
        if (np.abs(e.V - found.values) > e.room_beside(found, e.V)).any():
            return None
        near = plural(found.size, "row")
        return Diagnosis(
            cause=self.words,
            headline="All values agree with exact ones for another background",
            evidence=f"A weighted background of {near} leaves "
            f"{percent(found.left)} % of their size, and all rows add up; noise below "
            "2 % would pass, too.",
            next_step=self.next_step,
            verdict="depends on settings",
            values=e.V,  # their own background is not known to the last digit
            whose="values against another background",
            base=float(np.median(e.implied)),
        )


AGREES: Final = 0.06
"""Of the size of values: a mixture that leaves less agrees with them."""


@final
class LocalWeights(Hypothesis):
    """Weights of LIME, which are no Shapley values and need not add up."""

    words = "LIME weights"

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        if not e.came.source.startswith("lists of LIME"):
            return None
        return Diagnosis(
            cause=self.words,
            headline="They are weights of LIME, not Shapley values",
            evidence="They are compared with exact values, and need not equal them.",
            next_step="Judge them by fidelity, or take audit.exact.",
            verdict="undetermined",
        )


# ---- Found by the sums of rows: another class, another unit, a factor


@final
class OtherClass(Hypothesis):
    """Rows add up to what the model predicts for another class."""

    words = "another class"
    next_step = "Choose the class that is explained, then audit again."

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        if e.adds_up.mean() > MAJORITY:
            return None
        sums = e.V.sum(axis=1)
        for name, f in e.other_outputs:
            if name.startswith("class") and fits(sums, f):
                return Diagnosis(
                    cause=self.words,
                    headline=f"They are parts of another output: {name}",
                    evidence="The rows add up to that prediction.",
                    next_step=self.next_step,
                    verdict="wrong",
                )
        return None


@final
class ConstantFactor(Hypothesis):
    """Rows add up to a multiple of the predictions, or each to its own."""

    words = "a constant factor"
    next_step = "Undo the factor, in the base too, then audit again."

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        if e.adds_up.mean() > MAJORITY:
            return None
        turned = self._of_sums(e)
        return turned if turned is not None else self._of_rows(e)

    def _of_sums(self, e: AuditEvidence) -> Diagnosis | None:
        """Σ w = a f + c in most rows, whatever the background."""
        sums, f = e.V.sum(axis=1), e.prediction
        if len(f) < FEWEST_ROWS or not np.ptp(f):
            factors = [slope_of(e.V, e.E)]
        else:
            left, right = _pairs(len(f), e.seed)
            rise = f[left] - f[right]
            usable = np.abs(rise) > 0.1 * float(np.std(f))
            if not usable.any():
                return None
            apart = sums[left] - sums[right]
            factors = [float(np.median(apart[usable] / rise[usable]))]
        for a in factors:
            if not np.isfinite(a) or abs(a) < 1e-9 or abs(a - 1.0) < 1e-4:
                return None
            missed = sums / a - f
            missed = np.abs(missed - np.median(missed))
            share = float((missed <= e.room / abs(a) + 1e-4 * np.ptp(f)).mean())
            if share <= CLEARLY and len(f) >= FEWEST_ROWS:
                return None
            if len(f) < FEWEST_ROWS and unexplained(e.V, a * e.E) > 1e-4:
                return None
            known = next(
                (
                    one
                    for one in e.knowns
                    if (
                        np.abs(e.V / a - one.values) <= one.room / min(abs(a), 1.0)
                    ).mean()
                    > MAJORITY
                ),
                None,
            )
            told = f"Rows add up to {a:.4g} times the prediction less a constant"
            told += f" in {percent(share)} % of rows (slope {a:.4g}, R² above .999)."
            if known is not None:
                told += f" Divided by it, they are {known.words}."
            values = None if known is None else known.values
            if abs(a + 1.0) < 1e-4:
                return Diagnosis(
                    cause="signs",
                    headline="All signs are turned, as for the other class",
                    evidence=told,
                    next_step="Turn all signs, in the base too, then audit again.",
                    verdict="wrong",
                    values=values,
                )
            name = next((x for y, x in _FACTORS if abs(a / y - 1.0) < 1e-3), "")
            return Diagnosis(
                cause=self.words,
                headline=f"All values are {a:.4g} times what they should be{name}",
                evidence=told,
                next_step=self.next_step,
                verdict="wrong",
                values=values,
            )
        return None

    def _of_rows(self, e: AuditEvidence) -> Diagnosis | None:
        """Each row is a multiple of a source's."""
        for one in e.knowns:
            S = one.values
            size = (S * S).sum(axis=1)
            own = (e.V * S).sum(axis=1) / np.maximum(size, 1e-300)
            rest = np.abs(e.V - own[:, None] * S)
            room = np.maximum(one.room, 1e-6 * np.abs(e.V).max())
            if not (size > 0).sum() >= min(FEWEST_ROWS, len(S)) or (own <= 0).any():
                continue
            same = (rest <= room * np.maximum(own[:, None], 1.0)).all(axis=1)
            if same.mean() <= CLEARLY or S.shape[1] < 2:
                continue
            for words, norm in _NORMS.items():
                sizes = norm(e.V)
                if np.ptp(sizes) <= 1e-4 * max(float(sizes.mean()), 1e-300):
                    return self.diagnosed(
                        one,
                        f"Each row is scaled so that {words}",
                        f"Row by row they are multiples of {one.words}, by "
                        f"{own.min():.3g} to {own.max():.3g}.",
                    )
        return None


_FACTORS: Final = (
    (1.0 / np.log(2.0), ": logarithms to base 2"),
    (1.0 / np.log(10.0), ": logarithms to base 10"),
    (np.log(2.0), ": logarithms to base 2 taken for natural ones"),
    (100.0, ": per cent"),
    (0.01, ": per cent taken for shares"),
)

_NORMS: Final[dict[str, Callable[[Array], Array]]] = {
    "sizes add up to one number": lambda V: np.abs(V).sum(axis=1),
    "values add up to one number": lambda V: V.sum(axis=1),
    "the largest size is one number": lambda V: np.abs(V).max(axis=1),
    "lengths are one number": lambda V: np.linalg.norm(V, axis=1),
}

FEWEST_ROWS: Final = 5
"""Rows from which their sums alone tell a factor."""

CLEARLY: Final = 0.9
"""Of rows: what holds for more is no accident."""


def _pairs(count: int, seed: int) -> tuple[Positions, Positions]:
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
