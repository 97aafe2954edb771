"""What can go wrong, by kind: every error that propopt raises on purpose."""

from __future__ import annotations


class PropoptError(Exception):
    """Base of all errors raised by propopt."""

    part: tuple[str | int, ...] = ()
    """Of a problem, by keys and positions, where one was read or run."""


class InvalidInput(PropoptError, ValueError):
    """An argument cannot be used; the message names it, what came and what would do."""


class UnknownArgument(InvalidInput, TypeError):
    """A call has no such argument, or lacks one; the message gives those it has."""


class WrongType(InvalidInput, TypeError):
    """Something of a type that does not do here; the message says what would do."""


class NoSuchName(PropoptError, AttributeError):
    """An object has no such attribute; the message gives the name that it has."""


class Refused(PropoptError):
    """A solver or a loss cannot do what was asked of it; the message is the reason."""


class NoTradeOff(Refused):
    """A loss is the same at both ends of the front, so that it has no shares."""


class Infeasible(PropoptError):
    """No explanation satisfies all bounds; the message gives what is attainable."""


class SolverFailure(PropoptError):
    """A backend stopped without a usable answer."""


class MissingExtra(PropoptError, ImportError):
    """An optional package is needed, or is broken; the message says what would do."""


class WriteFailure(PropoptError, OSError):
    """A file could not be written; the message names it, and says why."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


class ProblemFileError(PropoptError):
    """A problem is not valid; the message is ``file:line: key: what is wrong``.

    File and line are those of a problem file; sections from Python have keys alone.
    Of several mistakes each has a line of its own.
    """

    lines: tuple[tuple[int, str], ...] = ()
    """Each mistake after the number of its line, where there are lines."""


class PropoptWarning(UserWarning):
    """Base of all warnings issued by propopt."""


class TrivialObjectiveWarning(PropoptWarning):
    """No term ties the explanation to the function, so its optimum says nothing."""


class UncertifiedWarning(PropoptWarning):
    """The certified gap of a result is larger than the tolerance that was asked for."""


class UnsolvedWarning(PropoptWarning):
    """A solver gave no answer for some weights of a sweep; the others are there."""


class EdgeWarning(PropoptWarning):
    """A search for parameters ended at an edge of the range that it looks in."""


class FlatFunctionWarning(PropoptWarning):
    """Every numerical gradient is zero: the function is piecewise constant here."""


class JumpsWarning(FlatFunctionWarning):
    """A function jumps, so that its numerical gradients miss much of its change."""


class ImpreciseWarning(PropoptWarning):
    """The error of a target is larger than was wanted, or is not known."""


class MissingPatternsWarning(PropoptWarning):
    """Many rows are compared with rows in which other columns are missing."""


class InexactBoxesWarning(PropoptWarning):
    """A model cannot be read, or what was read differs from what it answers."""


class EstimatedWarning(PropoptWarning):
    """What is exact of other functions is estimated here; the message says why."""


class DegenerateVarianceWarning(PropoptWarning):
    """All rows have one score, so that no interval can be had from their spread."""


class InterruptedWarning(PropoptWarning):
    """Work was interrupted; the result holds what had been finished."""


class AdditiveErrorWarning(PropoptWarning):
    """Features that do not interact have scores other than zero under this error."""


class FewPatchesWarning(PropoptWarning):
    """Some predictions are means of few minipatches; the message says how many do."""
