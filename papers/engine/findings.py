"""What came out: a number, what it had to be, and what follows from it.

An *invariant* is a promise of ours, which theory makes: certificates, dominance, closed
forms. If it does not hold, something is broken. A *claim* is a statement of the paper;
that it does not hold here is a finding like any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias, final


Sense: TypeAlias = Literal["<=", ">="]


class Verdict(Enum):
    """What follows from a number: of an invariant the first two, of a claim the rest.

    ``DIFFERS``: the statement holds, but in a set-up that differs from the paper's in
    something that bears on it. ``UNDECIDED``: the value scatters over replicates, and
    these are too few to say on which side of the limit it is.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    CONFIRMED = "confirmed"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    NOT_CONFIRMED = "not confirmed"

    def __str__(self) -> str:
        return self.value

    @property
    def holds(self) -> bool:
        """True if the statement does."""
        return self in (Verdict.PASS, Verdict.CONFIRMED, Verdict.DIFFERS)


@dataclass(frozen=True, kw_only=True)
class Finding(ABC):
    """A statement, and the number that decides it.

    Parameters
    ----------
    statement : str
        What is said.
    value : float
        What was measured.
    sense : {"<=", ">="}
        On which side of ``limit`` the value has to be.
    limit : float
        See ``sense``. A value that is no number is on neither side.
    note : str
        Where the value comes from.
    """

    statement: str
    value: float
    sense: Sense
    limit: float
    note: str = ""

    @property
    @abstractmethod
    def verdict(self) -> Verdict:
        """What follows."""

    @property
    def holds(self) -> bool:
        """True if the value is on the right side of the limit."""
        return self._allows(self.value)

    @property
    def condition(self) -> str:
        """What the value had to be."""
        return f"{self.sense} {self.limit:.3g}"

    @property
    def margin(self) -> float:
        """How far on the right side of the limit; below zero on the wrong one."""
        distance = self.limit - self.value
        return distance if self.sense == "<=" else -distance

    def _allows(self, value: float) -> bool:
        return value <= self.limit if self.sense == "<=" else value >= self.limit


@final
@dataclass(frozen=True, kw_only=True)
class Invariant(Finding):
    """What theory promises of every result.

    Examples
    --------
    >>> finding = Invariant(statement="no gap", value=0.1, sense="<=", limit=1e-6)
    >>> finding.holds, finding.condition, str(finding.verdict)
    (False, '<= 1e-06', 'FAIL')
    """

    @property
    def verdict(self) -> Verdict:
        return Verdict.PASS if self.holds else Verdict.FAIL


@final
@dataclass(frozen=True, kw_only=True)
class Claim(Finding):
    """What the paper states.

    Parameters
    ----------
    difference : str
        In what the set-up differs from the paper's, if that bears on the statement.
    between : (float, float), optional
        Where the value of infinitely many replicates is, at a level that the paper's
        pages state: only if both ends are on one side of the limit is the statement
        decided. By default the value has no error.

    Examples
    --------
    >>> finding = Claim(statement="it falls", value=0.9, sense="<=", limit=1.0)
    >>> str(finding.verdict)
    'confirmed'
    >>> few = Claim(
    ...     statement="it falls", value=0.9, sense="<=", limit=1.0, between=(0.7, 1.1)
    ... )
    >>> str(few.verdict)
    'undecided'
    """

    difference: str = ""
    between: tuple[float, float] | None = None

    @property
    def verdict(self) -> Verdict:
        sides = {self._allows(end) for end in self.between or (self.value,)}
        if len(sides) > 1:
            return Verdict.UNDECIDED
        if not sides.pop():
            return Verdict.NOT_CONFIRMED
        return Verdict.DIFFERS if self.difference else Verdict.CONFIRMED
