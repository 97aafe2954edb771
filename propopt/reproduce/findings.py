"""What was found about a statement: a number, and what it had to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


Sense: TypeAlias = Literal["<=", ">="]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement, and the number that decides it.

    Parameters
    ----------
    statement : str
        What is claimed.
    value : float
        What was measured.
    sense : {"<=", ">="}
        On which side of ``limit`` the value has to be.
    limit : float
        See ``sense``. A value that is no number is on neither side.
    note : str
        Where the value comes from.

    Examples
    --------
    >>> found = Finding(statement="pi is small", value=3.14, sense="<=", limit=4.0)
    >>> found.passed, found.condition
    (True, '<= 4')
    """

    statement: str
    value: float
    sense: Sense
    limit: float
    note: str = ""

    @property
    def passed(self) -> bool:
        """True if the value is on the right side of the limit."""
        if self.sense == "<=":
            return self.value <= self.limit
        return self.value >= self.limit

    @property
    def condition(self) -> str:
        """What the value had to be."""
        return f"{self.sense} {self.limit:.3g}"

    @property
    def verdict(self) -> str:
        """``PASS`` or ``FAIL``."""
        return "PASS" if self.passed else "FAIL"

    @property
    def margin(self) -> float:
        """How far on the right side of the limit; below zero on the wrong one."""
        distance = self.limit - self.value
        return distance if self.sense == "<=" else -distance
