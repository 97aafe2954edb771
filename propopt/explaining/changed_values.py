"""Values of a source that were changed: sizes, columns, rows, signs, sums, slips."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

import numpy as np
from scipy.optimize import linear_sum_assignment

from propopt.base.arrays import Attributions, Positions, Truths
from propopt.base.text import plural
from propopt.explaining.evidence import MAJORITY, AuditEvidence
from propopt.explaining.hypotheses import (
    AGREES,
    CLEARLY,
    FEWEST_ROWS,
    Diagnosis,
    Hypothesis,
)
from propopt.explaining.mixtures import Mixture
from propopt.explaining.sources import KnownSource


Compared: TypeAlias = Callable[[AuditEvidence], Iterator[KnownSource]]


def known(e: AuditEvidence) -> Iterator[KnownSource]:
    """Sources with names."""
    yield from e.knowns


def of_mixtures(e: AuditEvidence) -> Iterator[KnownSource]:
    """The fitted mixture, where rows that add up agree with it."""
    yield from _fitted(e, e.V, e.mixture)


def _fitted(
    e: AuditEvidence, V: Attributions, found: Mixture | None
) -> Iterator[KnownSource]:
    """A mixture as a source, where it agrees with V, to which it was fitted."""
    if found is None or found.left > AGREES or e.adds_up.mean() <= MAJORITY:
        return
    yield KnownSource(
        words="values against another background",
        values=found.values,
        room=e.room_beside(found, V),
        base=float(np.median(e.implied)),
        is_fitted=True,
    )


def of_sorted_columns(e: AuditEvidence) -> Iterator[KnownSource]:
    """The mixture fitted to columns in the order that is most like the exact values."""
    V, S = e.V, e.E
    with np.errstate(invalid="ignore", divide="ignore"):
        alike = V.T @ S / np.linalg.norm(V, axis=0)[:, None] / np.linalg.norm(S, axis=0)
    alike = np.nan_to_num(alike) + 1e-6 * np.eye(V.shape[1])
    _, place = linear_sum_assignment(-alike)
    if (place != np.arange(len(place))).any():
        V = V[:, np.argsort(place)]
        yield from _fitted(e, V, e.nearest_mixture(V))


@dataclass(frozen=True)
class Changed(Hypothesis):
    """A source's values of which something was changed."""

    sources: Compared = known

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        for one in self.sources(e):
            if (found := self.of(e, one)) is not None:
                return found
        return None

    @abstractmethod
    def of(self, e: AuditEvidence, one: KnownSource) -> Diagnosis | None:
        """The diagnosis where the values are these, changed."""


@final
class AbsoluteValues(Changed):
    """All values are sizes."""

    words = "absolute values"
    next_step = "Export the values with their signs."

    def of(self, e: AuditEvidence, one: KnownSource) -> Diagnosis | None:
        if (-e.tolerance > e.V).any() or not (one.values < -e.tolerance).any():
            return None
        if e.adds_up.all():
            return None
        same = np.abs(np.abs(one.values) - e.V) <= one.room
        if same.mean() <= CLEARLY:
            return None
        lost = int((one.values < -e.tolerance).sum())
        told = f"They are the sizes of {one.words}; {plural(lost, 'sign')} are lost."
        return self.diagnosed(one, "The values have lost their signs", told)


@final
class MovedColumns(Changed):
    """Columns stand in each other's place."""

    words = "columns in another's place"
    next_step = "Put the columns in the order of the table, then audit again."

    def of(self, e: AuditEvidence, one: KnownSource) -> Diagnosis | None:
        V, S, D = e.V, one.values, e.V.shape[1]
        room = np.broadcast_to(one.room, V.shape)
        fit = np.stack(
            [(np.abs(V[:, [j]] - S) <= room[:, [j]]).mean(axis=0) for j in range(D)]
        )  # (D, D): shares of rows in which column j has the values of column k
        weight = fit + 1e-6 * np.eye(D)
        _, place = linear_sum_assignment(-weight)
        moved = np.flatnonzero(place != np.arange(D))
        if not len(moved) or fit[np.arange(D), place].min() <= MAJORITY:
            return None
        if (fit[moved, place[moved]] - fit[moved, moved]).mean() <= _GAINED:
            return None  # numbers of few digits are alike by accident
        j = int(moved[np.abs(S[:, place[moved]]).sum(axis=0).argmax()])
        names = e.labels.feature_names(D)
        return self.diagnosed(
            one,
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

    def of(self, e: AuditEvidence, one: KnownSource) -> Diagnosis | None:
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
        steps = (place - bad) % N
        n, m = int(bad[0]), int(place[0])
        held = f"Row {e.row(n)} holds the values of row {e.row(m)}"
        told = f"{held}; in the right order they are {one.words}."
        shift = self._shift(near, bad, N)
        if shift and len(bad) > MAJORITY * N:
            words = f"The rows are shifted by {shift}"
        elif set(place.tolist()) == set(bad.tolist()) and is_own.all() and steps.all():
            words = f"{plural(len(bad), 'row')} are permuted"
        else:
            words = f"{plural(len(bad), 'row')} {'holds' if len(bad) == 1 else 'hold'}"
            words += " the values of other rows"
        return self.diagnosed(one, words, told)

    @staticmethod
    def _shift(near: Truths, bad: Positions, N: int) -> int:
        """The step by which nearly all rows are moved, with a sign; 0 where none."""
        for step in (*range(1, min(N, 30)), *range(-1, -min(N, 30), -1)):
            if near[np.arange(len(bad)), (bad - step) % N].mean() > CLEARLY:
                return step
        return 0


_MOST_ROWS: Final = 1000
"""Rows that are assigned."""


@final
class TurnedSigns(Changed):
    """Several values have the other sign."""

    words = "signs"
    next_step = "Turn the signs of these values, then audit again."

    def of(self, e: AuditEvidence, one: KnownSource) -> Diagnosis | None:
        V, S = e.V, one.values
        other = np.abs(V - S) > one.room
        turned = other & (np.abs(V + S) <= one.room)
        count = int(turned.sum())
        if count <= _FEW_SLIPS or count < CLEARLY * other.sum() or e.adds_up.all():
            return None
        names = e.labels.feature_names(V.shape[1])
        for j in np.flatnonzero(turned.any(axis=0)).tolist():
            where = np.abs(S[:, j]) > e.tolerance
            if turned[:, j].sum() == count and turned[where, j].mean() > CLEARLY:
                told = f"All others are {one.words}."
                return self.diagnosed(one, f"The signs of {names[j]} are turned", told)
        n, j = (int(x) for x in np.argwhere(turned)[0])
        told = f"The first is {e.place(n, j)}; all others are {one.words}."
        return self.diagnosed(one, f"{plural(count, 'sign')} are turned", told)


_FEW_SLIPS: Final = 3
"""Turned signs that count as single slips."""


@final
class SummedColumns(Changed):
    """Columns hold nothing, and their sum stands in one of them."""

    words = "one-hot sums"
    next_step = "Compare sums over the same columns, or export each column."

    def of(self, e: AuditEvidence, one: KnownSource) -> Diagnosis | None:
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
        if (apart <= room).mean() <= CLEARLY:
            return None
        (own,) = (j for j in columns if j not in empty)
        names = e.labels.feature_names(V.shape[1])
        told = f"{names[own]} holds the sum of {plural(len(columns), 'column')}"
        return self.diagnosed(one, told, f"Otherwise they are {one.words}.")


@final
class SingleSlips(Changed):
    """Some values are wrong, and all others a source's."""

    words = "single slips"
    next_step = "Take the exact values: audit.exact, or the file _exact.csv."

    def of(self, e: AuditEvidence, one: KnownSource) -> Diagnosis | None:
        V, S = e.V, one.values
        room = one.room
        other = np.abs(V - S) > room
        in_rows = other.any(axis=1)
        limit = _FITTED if one.is_fitted else 1.0 - MAJORITY
        if not other.any() or other.mean() >= limit:
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
        found = self.diagnosed(one, head, told)
        if not one.is_given:
            step = "Compute these values again, as the others were."
            return replace(found, next_step=step)
        return found


_BALANCED: Final = 3
"""Rows with slips that may still add up."""

_FITTED: Final = 0.05
"""Of values that may differ from a fitted mixture."""

_FEW_ROWS: Final = 0.2
"""Of rows in which they may: what is in more is no slip, but another model."""
