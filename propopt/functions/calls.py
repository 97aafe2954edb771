"""Calls of a model, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, final


Hearer: TypeAlias = Callable[[int], None]


@final
@dataclass
class Calls:
    """How often a model was asked; not exact if several threads ask at once.

    Parameters
    ----------
    rows : int
        Rows given to the model.
    batches : int
        Tables that they were given in.
    trials : int
        Rows that it was given besides, when it was asked for the first time, to see
        how precise its answers are, whether they are the same twice, and whether they
        jump between the rows.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> function = po.wrap(lambda X: X[:, 0] * X[:, 1])
    >>> _ = function.gradient(np.ones((10, 2)))
    >>> function.calls
    Calls(rows=40, batches=1, trials=6)
    """

    rows: int = 0
    batches: int = 0
    trials: int = 0
    is_trial: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether what is asked now is a trial, of a few rows."""

    _hearer: Hearer | None = field(default=None, init=False, repr=False, compare=False)

    def add(self, rows: int) -> None:
        """Count one table of so many rows, which the model is given next."""
        if self._hearer is not None:
            self._hearer(self.rows)
        self.rows += rows
        self.batches += 1

    @contextmanager
    def trying_out(self) -> Iterator[None]:
        """Count what is asked meanwhile as a trial."""
        before, was_trial = (self.rows, self.batches), self.is_trial
        self.is_trial = True
        try:
            with self.heard_by(None):
                yield
        finally:
            self.is_trial = was_trial
            self.trials += self.rows - before[0]
            self.rows, self.batches = before

    @contextmanager
    def heard_by(self, hearer: Hearer | None) -> Iterator[None]:
        """Within, tell before each call how many rows the model was given."""
        before, self._hearer = self._hearer, hearer
        try:
            yield
        finally:
            self._hearer = before

    def try_out(self, rows: int) -> None:
        """Count so many rows of a trial."""
        self.trials += rows
