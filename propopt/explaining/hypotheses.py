"""What could have happened to values: one hypothesis a cause, each with its own test.

An audit asks them in order, and the first that holds is its diagnosis: a cause, the
evidence, the next step. Values are right if every number agrees with somebody's exact
values. They are wrong only where a cause is named; all else is undetermined, with the
likely causes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

import numpy as np
from scipy.optimize import linear_sum_assignment

from propopt.base.arrays import Array, Attributions, Positions, Truths
from propopt.base.text import percent
from propopt.explaining.sources import PATHS
from propopt.results.audit import Verdict
from propopt.results.certain import plural


if TYPE_CHECKING:
    from propopt.explaining.audited import Audited


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


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KnownSource:
    """Somebody's values at all rows, with which the audited ones are compared."""

    words: str
    values: Attributions  # (N, D)
    room: Array  # (N, D) or (): what differs by less is the same
    base: float | None
    is_given: bool = False  # those against the given background
    is_fitted: bool = False  # a mixture that was fitted to the audited values

    @property
    def verdict(self) -> Verdict:
        return "right" if self.is_given else "depends on settings"

    def found(self, hypothesis: Hypothesis, headline: str, evidence: str) -> Diagnosis:
        """A diagnosis of values that are these, changed in some way."""
        return Diagnosis(
            cause=hypothesis.words,
            headline=headline,
            evidence=evidence,
            next_step=hypothesis.next_step,
            verdict="wrong",
            values=self.values,
            whose=self.words,
            base=self.base,
        )


class Hypothesis(ABC):
    """A cause, and the test whether it is that of a table of values."""

    words: ClassVar[str]
    next_step: ClassVar[str] = ""

    @abstractmethod
    def test(self, e: Audited) -> Diagnosis | None:
        """The diagnosis where the cause holds, else None."""


# ---- Right values: against the given background, another one, rounded, optimized


_ASK: Final = "Give the background that they were made with: data=."


@final
class ExactValues(Hypothesis):
    """Every number is that of a known source."""

    words = "exact values"

    def test(self, e: Audited) -> Diagnosis | None:
        for one in e.knowns:
            if (np.abs(e.V - one.values) <= e.tolerance).all():
                return _agreeing(e, one, self.words)
        return None


def _agreeing(e: Audited, one: KnownSource, cause: str, how: str = "") -> Diagnosis:
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

    def test(self, e: Audited) -> Diagnosis | None:
        if not e.step.any():
            return None
        for one in e.knowns:
            apart = e.V - one.values
            size = float(np.linalg.norm(one.values))
            if (np.abs(apart) > e.tolerance + e.step).any():
                continue
            if float(np.linalg.norm(apart)) > 0.5 * size:
                continue
            found = _agreeing(e, one, self.words, f", rounded to {e.digits}")
            return replace(found, cause=self.words)
        return None


@final
class OtherBackground(Hypothesis):
    """The values are a mixture of single-row values, and all rows add up."""

    words = "another background"
    next_step = "Name the background that they were made with, or give it: data=."

    def test(self, e: Audited) -> Diagnosis | None:
        found = e.mixture
        if found is None or found.left > AGREES or not e.adds_up.all():
            return None
        if (np.abs(e.V - found.values) > e.fitted_room).any():
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
class Optimized(Hypothesis):
    """An explanation of ours, which moved exact values on purpose."""

    words = "optimized contributions"

    def test(self, e: Audited) -> Diagnosis | None:
        if e.came.exact is None:
            return None
        own = replace(e, came=replace(e.came, values=e.came.exact, exact=None))
        inner = own.diagnosis
        if inner.verdict == "wrong":
            return replace(inner, headline=f"Before optimizing: {inner.headline}")
        moved = float(np.linalg.norm(e.W - e.came.exact))
        share = percent(moved / max(float(np.linalg.norm(e.came.exact)), 1e-300))
        return Diagnosis(
            cause=self.words,
            headline="They are optimized contributions of propopt",
            evidence=f"Exact values were moved by {share} % of their size, on purpose. "
            f"Of the exact ones: {inner.headline[0].lower()}{inner.headline[1:]}.",
            next_step="Report them as optimized; .contributions has the exact ones.",
            verdict="depends on settings"
            if inner.values is not None
            else "undetermined",
            values=e.W,
            whose="optimized contributions",
            base=inner.base,
        )


@final
class LocalWeights(Hypothesis):
    """Weights of LIME, which are no Shapley values and need not add up."""

    words = "LIME weights"

    def test(self, e: Audited) -> Diagnosis | None:
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

    def test(self, e: Audited) -> Diagnosis | None:
        if e.adds_up.mean() > _MOST:
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


def fits(sums: Array, f: Array) -> bool:
    """Whether most rows add up to f less one number."""
    spread = float(np.std(f))
    misses = sums - f
    scatter = float(np.median(np.abs(misses - np.median(misses))))
    return bool(np.isfinite(spread)) and spread > 0.0 and scatter <= OF_ANOTHER * spread


OF_ANOTHER: Final = 1e-3
"""Of the spread of predictions: rows that miss by so little are parts of these."""


@final
class ConstantFactor(Hypothesis):
    """Rows add up to a multiple of the predictions, or each to its own."""

    words = "a constant factor"
    next_step = "Undo the factor, in the base too, then audit again."

    def test(self, e: Audited) -> Diagnosis | None:
        if e.adds_up.mean() > _MOST:
            return None
        turned = self._of_sums(e)
        return turned if turned is not None else self._of_rows(e)

    def _of_sums(self, e: Audited) -> Diagnosis | None:
        """Σ w = a f + c in most rows, whatever the background."""
        sums, f = e.V.sum(axis=1), e.prediction
        if len(f) < _FEWEST or not np.ptp(f):
            factors = [_slope(e.V, e.E)]
        else:
            left, right = _pairs(len(f), e.seed)
            rise = f[left] - f[right]
            usable = np.abs(rise) > 0.1 * float(np.std(f))
            if not usable.any():
                return None
            factors = [float(np.median(((sums[left] - sums[right]) / rise)[usable]))]
        for a in factors:
            if not np.isfinite(a) or abs(a) < 1e-9 or abs(a - 1.0) < 1e-4:
                return None
            missed = sums / a - f
            missed = np.abs(missed - np.median(missed))
            share = float((missed <= e.room / abs(a) + 1e-4 * np.ptp(f)).mean())
            if share <= _CLEARLY and len(f) >= _FEWEST:
                return None
            if len(f) < _FEWEST and _unexplained(e.V, a * e.E) > 1e-4:
                return None
            known = next(
                (
                    one
                    for one in e.knowns
                    if (
                        np.abs(e.V / a - one.values) <= one.room / min(abs(a), 1.0)
                    ).mean()
                    > _MOST
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

    def _of_rows(self, e: Audited) -> Diagnosis | None:
        """Each row is a multiple of a source's."""
        for one in e.knowns:
            S = one.values
            size = (S * S).sum(axis=1)
            own = (e.V * S).sum(axis=1) / np.maximum(size, 1e-300)
            rest = np.abs(e.V - own[:, None] * S)
            room = np.maximum(one.room, 1e-6 * np.abs(e.V).max())
            if not (size > 0).sum() >= min(_FEWEST, len(S)) or (own <= 0).any():
                continue
            same = (rest <= room * np.maximum(own[:, None], 1.0)).all(axis=1)
            if same.mean() <= _CLEARLY or S.shape[1] < 2:
                continue
            for words, norm in _NORMS.items():
                sizes = norm(e.V)
                if np.ptp(sizes) <= 1e-4 * max(float(sizes.mean()), 1e-300):
                    return one.found(
                        self,
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

_FEWEST: Final = 5
"""Rows from which their sums alone tell a factor."""

_MOST: Final = 0.5
"""Of rows or values: what holds for more is the rule, the others exceptions."""

_CLEARLY: Final = 0.9
"""Of rows: what holds for more is no accident."""


def _pairs(count: int, seed: int) -> tuple[Positions, Positions]:
    """Pairs of rows whose differences have no base."""
    order = np.random.default_rng(seed).permutation(count)
    pairs = np.concatenate([np.roll(order, k) for k in (1, 2, 3, 5, 7)])
    return np.tile(order, 5), pairs


def _slope(V: Array, S: Array) -> float:
    return float((V * S).sum() / max(float((S * S).sum()), 1e-300))


def _unexplained(V: Array, S: Array) -> float:
    """‖V − S‖ / ‖V‖."""
    return float(np.linalg.norm(V - S)) / max(float(np.linalg.norm(V)), 1e-300)


# ---- A source's values, changed: sizes, columns, rows, signs, sums, slips


Compared: TypeAlias = Callable[["Audited"], Iterator[KnownSource]]


def known(e: Audited) -> Iterator[KnownSource]:
    """Sources with names."""
    yield from e.knowns


def of_mixtures(e: Audited) -> Iterator[KnownSource]:
    """The fitted mixture, where rows that add up agree with it."""
    found = e.mixture
    if found is None or found.left > AGREES or e.adds_up.mean() <= _MOST:
        return
    yield KnownSource(
        words="values against another background",
        values=found.values,
        room=e.fitted_room,
        base=float(np.median(e.implied)),
        is_fitted=True,
    )


@dataclass(frozen=True)
class Changed(Hypothesis):
    """A source's values of which something was changed."""

    sources: Compared = known

    def test(self, e: Audited) -> Diagnosis | None:
        for one in self.sources(e):
            if (found := self.of(e, one)) is not None:
                return found
        return None

    @abstractmethod
    def of(self, e: Audited, one: KnownSource) -> Diagnosis | None:
        """The diagnosis where the values are these, changed."""


@final
class AbsoluteValues(Changed):
    """All values are sizes."""

    words = "absolute values"
    next_step = "Export the values with their signs."

    def of(self, e: Audited, one: KnownSource) -> Diagnosis | None:
        if (-e.tolerance > e.V).any() or not (one.values < -e.tolerance).any():
            return None
        if e.adds_up.all():
            return None
        same = np.abs(np.abs(one.values) - e.V) <= one.room
        if same.mean() <= _CLEARLY:
            return None
        lost = int((one.values < -e.tolerance).sum())
        told = f"They are the sizes of {one.words}; {plural(lost, 'sign')} are lost."
        return one.found(self, "The values have lost their signs", told)


@final
class MovedColumns(Changed):
    """Columns stand in each other's place."""

    words = "columns in another's place"
    next_step = "Put the columns in the order of the table, then audit again."

    def of(self, e: Audited, one: KnownSource) -> Diagnosis | None:
        V, S, D = e.V, one.values, e.V.shape[1]
        room = np.broadcast_to(one.room, V.shape)
        fit = np.stack(
            [(np.abs(V[:, [j]] - S) <= room[:, [j]]).mean(axis=0) for j in range(D)]
        )  # (D, D): shares of rows in which column j has the values of column k
        weight = fit + 1e-6 * np.eye(D)
        _, place = linear_sum_assignment(-weight)
        moved = np.flatnonzero(place != np.arange(D))
        if not len(moved) or fit[np.arange(D), place].min() <= _MOST:
            return None
        if (fit[moved, place[moved]] - fit[moved, moved]).mean() <= _GAINED:
            return None  # numbers of few digits are alike by accident
        j = int(moved[np.abs(S[:, place[moved]]).sum(axis=0).argmax()])
        names = e.labels.feature_names(D)
        return one.found(
            self,
            f"{plural(len(moved), 'column')} stand in another's place",
            f"{names[j]} holds the values of {names[place[j]]}; in the right order "
            f"they are {one.words}.",
        )


_GAINED: Final = 0.2
"""Of the rows: moved columns agree in so many more in the right order."""


@final
class MovedRows(Changed):
    """Rows stand in each other's place, or twice."""

    words = "rows in another's place"
    next_step = "Put the rows in the order of the table, then audit again."

    def of(self, e: Audited, one: KnownSource) -> Diagnosis | None:
        V, S, N = e.V, one.values, len(e.V)
        room = np.broadcast_to(one.room, V.shape)
        bad = np.flatnonzero((np.abs(V - S) > room).any(axis=1))[:_MOST_ROWS]
        if not len(bad) or V.shape[1] < 2 or e.adds_up.all():
            return None
        near = np.stack([(np.abs(V[n] - S) <= room[n]).all(axis=1) for n in bad])
        holds = near.any(axis=1)
        if holds.mean() <= _MOST:
            return None
        bad, near = bad[holds], near[holds]
        # each bad row gets a row of its own if there is one, first among the bad ones
        cost = np.where(near, 0.0, 2.0)
        cost[:, np.setdiff1d(np.arange(N), bad)] += 0.5
        _, place = linear_sum_assignment(cost)
        is_own = near[np.arange(len(bad)), place]
        place = np.where(is_own, place, near.argmax(axis=1))
        steps = (place - bad) % N
        n, m = int(bad[0]), int(place[0])
        held = f"Row {e.row(n)} holds the values of row {e.row(m)}"
        told = f"{held}; in the right order they are {one.words}."
        shift = self._shift(near, bad, N)
        if shift and len(bad) > _MOST * N:
            words = f"The rows are shifted by {shift}"
        elif set(place.tolist()) == set(bad.tolist()) and is_own.all() and steps.all():
            words = f"{plural(len(bad), 'row')} are permuted"
        else:
            words = f"{plural(len(bad), 'row')} {'holds' if len(bad) == 1 else 'hold'}"
            words += " the values of other rows"
        return one.found(self, words, told)

    @staticmethod
    def _shift(near: Truths, bad: Positions, N: int) -> int:
        """The step by which nearly all rows are moved, with a sign; 0 where none."""
        for step in (*range(1, min(N, 30)), *range(-1, -min(N, 30), -1)):
            if near[np.arange(len(bad)), (bad - step) % N].mean() > _CLEARLY:
                return step
        return 0


_MOST_ROWS: Final = 1000
"""Rows that are assigned."""


@final
class TurnedSigns(Changed):
    """Several values have the other sign."""

    words = "signs"
    next_step = "Turn the signs of these values, then audit again."

    def of(self, e: Audited, one: KnownSource) -> Diagnosis | None:
        V, S = e.V, one.values
        other = np.abs(V - S) > one.room
        turned = other & (np.abs(V + S) <= one.room)
        count = int(turned.sum())
        if count <= _FEW_SLIPS or count < _CLEARLY * other.sum() or e.adds_up.all():
            return None
        names = e.labels.feature_names(V.shape[1])
        for j in np.flatnonzero(turned.any(axis=0)).tolist():
            where = np.abs(S[:, j]) > e.tolerance
            if turned[:, j].sum() == count and turned[where, j].mean() > _CLEARLY:
                told = f"All others are {one.words}."
                return one.found(self, f"The signs of {names[j]} are turned", told)
        n, j = (int(x) for x in np.argwhere(turned)[0])
        told = f"The first is {e.place(n, j)}; all others are {one.words}."
        return one.found(self, f"{plural(count, 'sign')} are turned", told)


_FEW_SLIPS: Final = 3
"""Turned signs that count as single slips."""


@final
class SummedColumns(Changed):
    """Columns hold nothing, and their sum stands in one of them."""

    words = "one-hot sums"
    next_step = "Compare sums over the same columns, or export each column."

    def of(self, e: Audited, one: KnownSource) -> Diagnosis | None:
        V, S = e.V, one.values
        other = (np.abs(V - S) > one.room).any(axis=0)
        columns = np.flatnonzero(other)
        if len(columns) < 2:
            return None
        empty = [j for j in columns if np.abs(V[:, j]).max() <= e.tolerance]
        if len(empty) != len(columns) - 1:
            return None
        apart = np.abs(V[:, columns].sum(axis=1) - S[:, columns].sum(axis=1))
        room = np.broadcast_to(one.room, V.shape)[:, columns].sum(axis=1)
        if (apart <= room).mean() <= _CLEARLY:
            return None
        (own,) = (j for j in columns if j not in empty)
        names = e.labels.feature_names(V.shape[1])
        told = f"{names[own]} holds the sum of {plural(len(columns), 'column')}"
        return one.found(self, told, f"Otherwise they are {one.words}.")


@final
class SingleSlips(Changed):
    """Some values are wrong, and all others a source's."""

    words = "single slips"
    next_step = "Take the exact values: audit.exact, or the file _exact.csv."

    def of(self, e: Audited, one: KnownSource) -> Diagnosis | None:
        V, S = e.V, one.values
        room = one.room
        other = np.abs(V - S) > room
        limit = _FITTED if one.is_fitted else 1.0 - _MOST
        if not other.any() or other.mean() >= limit:
            return None
        balanced = int(e.adds_up[other.any(axis=1)].sum())
        if balanced > (0 if one.is_fitted else min(_BALANCED, 0.1 * len(V))):
            return None  # these rows add up: they are of another background
        if len(V) >= _FEWEST and other.any(axis=1).mean() > _CLEARLY > e.adds_up.mean():
            return None  # no slip is in every row
        n, j = (int(x) for x in np.unravel_index(np.abs(V - S).argmax(), V.shape))
        count, lines = int(other.sum()), int(other.any(axis=1).sum())
        turned = int((other & (np.abs(V + S) <= room)).sum())
        told = f"{e.place(n, j)}: {V[n, j]:+.3g} should be {S[n, j]:+.3g}."
        told = told[0].upper() + told[1:]
        if turned:
            told += f" {plural(turned, 'sign')} turned."
        told += f" {V.size - count:,} of {V.size:,} values are {one.words}."
        head = "One value is wrong"
        if count > 1:
            head = f"{count:,} values are wrong"
            head += f" in {lines:,} rows" if lines > 1 else " in one row"
        found = one.found(self, head, told)
        if not one.is_given:
            step = "Compute these values again, as the others were."
            return replace(found, next_step=step)
        return found


_BALANCED: Final = 3
"""Rows with slips that may still add up."""

_FITTED: Final = 0.05
"""Of values that may differ from a fitted mixture."""


# ---- What has no exact source: draws, another model, nothing that is known


@final
class SampledValues(Hypothesis):
    """Rows add up, and errors are spread as those of sampled values are."""

    words = "draws"
    next_step = "Draw more samples, or take the exact values: audit.exact."

    def test(self, e: Audited) -> Diagnosis | None:
        if e.adds_up.mean() <= _CLEARLY or len(e.V) < _FEWEST:
            return None
        for one in e.knowns:
            R, S = e.V - one.values, one.values
            size = max(float(np.linalg.norm(S)), 1e-300)
            share = float(np.linalg.norm(R)) / size
            if share > _LARGEST or abs(_slope(e.V, S) - 1.0) > 0.1:
                continue
            drift = np.abs(R.mean(axis=0)) * np.sqrt(len(R))
            if (drift > _DRIFT * np.maximum(R.std(axis=0), e.tolerance)).any():
                continue
            like = e.like_draws(R)
            if like is None:
                continue
            return Diagnosis(
                cause=self.words,
                headline="They are sampled values, such as those of KernelSHAP",
                evidence=f"They scatter around {one.words} by {percent(share)} % of "
                f"their size, without drift, like means of {like:,.0f} orders.",
                next_step=self.next_step,
                verdict="depends on settings",
                values=one.values,
                whose=one.words,
                base=one.base,
            )
        return None


_LARGEST: Final = 0.6
"""Of the size of values: sampled values with a larger error tell nothing."""

_DRIFT: Final = 5.0
"""Standard errors by which the mean error of a column may differ from 0."""


@final
class OtherModel(Hypothesis):
    """No row adds up, and values are near the exact ones."""

    words = "another version of the model"
    next_step = "Compute them again with this model; compare versions and files."

    def test(self, e: Audited) -> Diagnosis | None:
        if len(e.V) < _FEWEST or e.adds_up.mean() > 1.0 - _CLEARLY:
            return None
        for one in e.knowns:
            a, b = e.V.ravel(), one.values.ravel()
            if not a.any() or not b.any():
                continue
            r = float(a @ b / np.sqrt((a @ a) * (b @ b)))
            if r < _CLEARLY or not 0.5 < _slope(e.V, one.values) < 2.0:
                continue
            missing = int((~e.adds_up).sum())
            return Diagnosis(
                cause=self.words,
                headline="They are values of another version of the model, or noisy",
                evidence=f"{missing:,} of {len(e.V):,} rows miss the prediction of "
                f"this one; the correlation with {one.words} is {min(r, 0.9999):.4g}.",
                next_step=self.next_step,
                verdict="wrong",
                values=e.E,
            )
        return None


@final
class Undetermined(Hypothesis):
    """Nothing that is known."""

    words = "undetermined"

    def test(self, e: Audited) -> Diagnosis | None:
        share = _unexplained(e.V, e.E)
        if e.adds_up.mean() > _CLEARLY:
            likely = (
                "a background far from the rows given, few samples, or values that "
            )
            likely += "were smoothed"
            step = _ASK
        else:
            likely = "another model, another output or another order"
            step = "Compare model, class, output and order of rows with their source."
        return Diagnosis(
            cause=self.words,
            headline="Their origin could not be determined",
            evidence=f"Likely: {likely}. They differ from exact values by "
            f"{percent(share)} % of their size.",
            next_step=step,
            verdict="undetermined",
        )


HYPOTHESES: Final[tuple[Hypothesis, ...]] = (
    *(Optimized(), LocalWeights(), ExactValues(), RoundedValues()),
    *(OtherClass(), ConstantFactor(), AbsoluteValues(), MovedColumns(), MovedRows()),
    *(TurnedSigns(), SummedColumns(), SingleSlips()),
    OtherBackground(),
    *(MovedRows(of_mixtures), TurnedSigns(of_mixtures), SingleSlips(of_mixtures)),
    *(SampledValues(), OtherModel(), Undetermined()),
)
"""In the order in which they are asked; the first that holds is the diagnosis."""


def diagnosed(e: Audited) -> Diagnosis:
    """The first hypothesis that holds."""
    found = (one.test(e) for one in HYPOTHESES)
    return next(one for one in found if one is not None)
