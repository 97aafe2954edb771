"""What a rule of diagnosis is: numbers at rows and columns, and what to say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar, final

import numpy as np

from propopt._typing import Array, Truths
from propopt.errors import Refused
from propopt.lime.diagnosis.finding import LimeFinding, QuietRule
from propopt.output.progress import progress_bar


Sentence: TypeAlias = str | Callable[[int, int], str]
"""A sentence, or what gives one for a row and a column."""


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
    sentence : str or callable
        What it means; of a row and a column where it depends on them.
    remedy : str or callable
        What would do there.
    excuses : dict of str to array of bool
        Why nothing is found at a place though its number passes the threshold, and
        where.
    also : array of bool, optional
        Where something is found though the number does not pass.
    """

    numbers: Array
    stakes: Array
    sentence: Sentence
    remedy: Sentence
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
    weight, least : float
        How much it misleads where all is at stake, 0 to 1, and where nothing is.
    per_row, per_column : bool
        Whether there is a number for each.
    check : callable
        Measures; gives a sentence in place of numbers where the rule does not apply.
    """

    name: str
    threshold: float
    below: bool = False
    weight: float
    least: float = 0.0
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
            sentence=_said(checked.sentence, n, j),
            remedy=_said(checked.remedy, n, j),
            severity=float(
                self.least + (self.weight - self.least) * np.clip(stakes[n, j], 0, 1)
            ),
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


def told_by(
    rules: Sequence[Rule[Looked]],
    find: Callable[[Rule[Looked]], Iterable[LimeFinding | QuietRule]],
    progress: bool | None,
) -> list[LimeFinding | QuietRule]:
    """What rules find, one after the other, with a bar."""
    told: list[LimeFinding | QuietRule] = []
    with progress_bar("diagnosis", len(rules), progress) as bar:
        for rule in rules:
            told += find(rule)
            bar.advance(bar.task_ids[0])
    return told


def _said(what: Sentence, n: int, j: int) -> str:
    return what if isinstance(what, str) else what(n, j)
