"""What a rule of diagnosis is: numbers at rows and columns, and what to say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar, final

import numpy as np

from propopt._typing import Array, Truths
from propopt.errors import Refused
from propopt.lime.diagnosis.finding import LimeFinding, QuietRule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Checked:
    """What one rule measured.

    Parameters
    ----------
    numbers : array (N, D), (N, 1), (1, D) or (1, 1)
        For rows and columns, rows, columns, or all; NaN where there is none.
    stakes : array
        How much of the largest coefficient of the row it is about, 0 to 1; of a shape
        that can be broadcast to that of ``numbers``.
    sentence : callable
        What it means at a row and a column.
    remedy : callable
        What would do there.
    excuses : dict of str to array of bool
        Why nothing is found at a place though its number passes the threshold, and
        where.
    also : array of bool, optional
        Where something is found though the number does not pass.
    """

    numbers: Array
    stakes: Array
    sentence: Callable[[int, int], str]
    remedy: Callable[[int, int], str]
    excuses: Mapping[str, Truths] = field(default_factory=dict)
    also: Truths | None = None


Looked = TypeVar("Looked")
"""What a rule looks at: the case of a table, or that of a text."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Rule(Generic[Looked]):
    """One thing to look for.

    Parameters
    ----------
    name : str
        In tables.
    threshold : float
        From where on something is found.
    below : bool
        Whether numbers below it are found, and not those above.
    weight : float
        How much it misleads where all is at stake, 0 to 1.
    per_row, per_column : bool
        Whether there is a number for each.
    check : callable
        Measures; gives a sentence in place of numbers where the rule does not apply.
    """

    name: str
    threshold: float
    below: bool = False
    weight: float
    per_row: bool = True
    per_column: bool = True
    check: Callable[[Looked], Checked | str]

    def findings(self, case: Looked) -> Iterator[LimeFinding | QuietRule]:
        """All that it finds; else one that is quiet."""
        try:
            checked = self.check(case)
        except Refused as refused:
            checked = str(refused)
        if isinstance(checked, str):
            yield self._quiet(None, None, np.nan, f"not looked for: {checked}")
            return
        found = self._passes(checked.numbers)
        for excused in checked.excuses.values():
            found &= ~excused
        if checked.also is not None:
            found |= checked.also
        for n, j in np.argwhere(found).tolist():
            yield self._found(checked, n, j)
        if not found.any():
            yield self._nearest(checked)

    def _passes(self, numbers: Array) -> Truths:
        with np.errstate(invalid="ignore"):
            if self.below:
                return np.asarray(numbers < self.threshold)
            return np.asarray(numbers > self.threshold)

    def _found(self, checked: Checked, n: int, j: int) -> LimeFinding:
        stakes = np.broadcast_to(checked.stakes, checked.numbers.shape)
        row, column = self._place(n, j)
        return LimeFinding(
            rule=self.name,
            row=row,
            column=column,
            number=float(checked.numbers[n, j]),
            threshold=self.threshold,
            sentence=checked.sentence(n, j),
            remedy=checked.remedy(n, j),
            severity=float(self.weight * np.clip(stakes[n, j], 0.0, 1.0)),
        )

    def _nearest(self, checked: Checked) -> QuietRule:
        if np.isnan(checked.numbers).all():
            return self._quiet(None, None, np.nan, "nothing found; nothing to look at")
        sign = -1.0 if self.below else 1.0
        place = int(np.nanargmax(sign * checked.numbers))
        n, j = divmod(place, checked.numbers.shape[1])
        number = float(checked.numbers[n, j])
        word = "smallest" if self.below else "largest"
        # a number that passes with nothing found was excused, and is told by what
        why = "".join(
            f", but {reason}"
            for reason, excused in checked.excuses.items()
            if excused[n, j] and self._passes(checked.numbers[n, j])
        )
        sentence = f"nothing found; {word} {number:.3g}{why}"
        return self._quiet(*self._place(n, j), number, sentence)

    def _quiet(
        self, row: int | None, column: int | None, number: float, sentence: str
    ) -> QuietRule:
        return QuietRule(
            rule=self.name,
            row=row,
            column=column,
            number=number,
            threshold=self.threshold,
            sentence=sentence,
        )

    def _place(self, n: int, j: int) -> tuple[int | None, int | None]:
        return n if self.per_row else None, j if self.per_column else None
