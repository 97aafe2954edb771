"""What came out: a number, what it had to be, and what follows from it.

An *invariant* is a check of ours: theory promises it (certificates, optimality, closed
forms), whatever a paper says. If it fails, something of ours is broken. A *claim* is a
statement of a paper. What follows for it has one of six words, the same in all papers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias, final


Sense: TypeAlias = Literal["<=", ">="]


class Verdict(Enum):
    """What follows from numbers: the first two for an invariant, the rest for a claim.

    ``CONFIRMED``: it holds wherever it was checked, under the paper's assumptions.
    ``IN_PART``: it holds in some panels and not in others.
    ``DEPENDS``: it holds under one choice and not under another, and the paper names
    none. ``REFUTED``: a counterexample or a proof shows that it is false.
    ``MISPRINT``: it is false as printed, and the right form is known. ``NOT_TESTED``: a
    stand-in or a theorem of ours takes its place, or there are too few repetitions.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    CONFIRMED = "confirmed"
    IN_PART = "in part"
    DEPENDS = "depends on a choice"
    REFUTED = "refuted"
    MISPRINT = "misprint"
    NOT_TESTED = "not tested"

    def __str__(self) -> str:
        return self.value


WORDS = tuple(v for v in Verdict if v not in (Verdict.PASS, Verdict.FAIL))
"""The six words for statements of papers."""


@final
@dataclass(frozen=True)
class Refuted:
    """Why a statement is false, in a line, under the paper's own assumptions.

    Parameters
    ----------
    proof : str
        A counterexample or a proof.
    """

    proof: str


@final
@dataclass(frozen=True)
class Misprint:
    """What a statement should be.

    Parameters
    ----------
    right : str
        The form that holds. A check of its own confirms it.
    """

    right: str


Mistake: TypeAlias = Refuted | Misprint


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
    """What theory promises of every result, optimality included.

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
        What stands in for the paper's set-up, if that bears on the statement. The
        statement itself is not tested then, whatever the value.
    choice : str
        What is chosen here where the paper names no choice. Claims with the same
        statement and other choices are judged together.
    if_false : Refuted or Misprint, optional
        What a value on the wrong side shows.
    between : (float, float), optional
        Where the value of infinitely many replicates is, at a level that the paper's
        pages state: only if both ends are on one side of the limit is the statement
        decided. By default the value has no error.

    Examples
    --------
    >>> def rises(value, **settings):
    ...     return Claim(
    ...         statement="it rises", value=value, sense=">=", limit=0.0, **settings
    ...     )
    >>> str(rises(1.0).verdict)
    'confirmed'
    >>> str(rises(-1.0, if_false=Misprint("it falls")).verdict)
    'misprint'
    >>> str(rises(1.0, between=(-0.5, 2.5)).verdict)
    'not tested'
    """

    difference: str = ""
    choice: str = ""
    if_false: Mistake | None = None
    between: tuple[float, float] | None = None

    @property
    def decided(self) -> bool:
        """True if both ends of its interval are on one side of the limit."""
        return len({self._allows(end) for end in self.between or (self.value,)}) == 1

    @property
    def verdict(self) -> Verdict:
        if self.difference or not self.decided:
            return Verdict.NOT_TESTED
        if self.holds:
            return Verdict.CONFIRMED
        is_misprint = isinstance(self.if_false, Misprint)
        return Verdict.MISPRINT if is_misprint else Verdict.REFUTED
