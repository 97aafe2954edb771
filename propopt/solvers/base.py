"""What a solver is: it refuses with a reason, prepares once, and solves many times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from propopt._typing import Array, Attributions
from propopt.losses import Program


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The answer of a solver for one vector of weights.

    Parameters
    ----------
    W : array (N, D)
        Attributions.
    duals : mapping of arrays
        By loss name, a subgradient of weight·φ at the residual, where one is known.
    multipliers : tuple of float
        One for each bound of the program.
    """

    W: Attributions
    duals: Mapping[str, Array] = field(default_factory=dict)
    multipliers: tuple[float, ...] = ()


class Prepared(ABC):
    """A program made ready: factorised, diagonalised or compiled, once."""

    @abstractmethod
    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        """Minimise the losses with these weights, in the order of the program.

        Parameters
        ----------
        weights : array (k,)
            One weight ≥ 0 for each loss.
        tolerance : float
            The relative gap that is wanted.
        start : Solution, optional
            The solution for weights nearby.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """The losses of the optimum for one vector of weights, known without forming it.

    Parameters
    ----------
    losses : array (k,)
        The value of each loss, in the order of the program.
    excess : float
        The objective of these losses is above the optimum by at most this.
    """

    losses: Array
    excess: float


class Curve(Prepared):
    """A prepared program that knows the losses for any weights without forming W."""

    @abstractmethod
    def measure(self, weights: Array, tolerance: float) -> Measurement:
        """The losses of the minimiser for these weights.

        Parameters
        ----------
        weights : array (k,)
            One weight ≥ 0 for each loss, that of gradient matching above zero.
        tolerance : float
            The relative error that is wanted.
        """


class Solver(ABC):
    """A method for some programs."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What results call it."""

    @abstractmethod
    def refusal(self, program: Program) -> str | None:
        """Why this solver cannot treat the program, in a sentence; None if it can."""

    def take(self, program: Program) -> Solver | str:
        """The solver that is to prepare the program, or why there is none.

        It is asked once: what it gives takes the program. By default it is this one,
        where that has no refusal.
        """
        reason = self.refusal(program)
        return self if reason is None else reason

    @abstractmethod
    def prepare(self, program: Program) -> Prepared:
        """Do all the work that does not depend on the weights."""


class Dispatcher(Solver):
    """A solver that hands programs on: it takes what another solver takes."""

    @abstractmethod
    def take(self, program: Program) -> Solver | str:
        """This solver, settled on the one that it hands the program to."""

    def refusal(self, program: Program) -> str | None:
        answer = self.take(program)
        return answer if isinstance(answer, str) else None
