"""Every error and warning that propopt raises on purpose, by kind."""

from __future__ import annotations


class PropoptError(Exception):
    """The base class of all errors that propopt raises."""

    part: tuple[str | int, ...] = ()
    """The part of a problem file that caused the error, by keys and positions."""


class InvalidInput(PropoptError, ValueError):
    """An argument cannot be used; the message has its name, its value and a remedy."""


class UnknownArgument(InvalidInput, TypeError):
    """A call has an unknown argument, or lacks one; the message has the valid ones."""


class WrongType(InvalidInput, TypeError):
    """An argument has a wrong type; the message has the expected type."""


class NoSuchName(PropoptError, AttributeError):
    """An object has no such attribute; the message suggests the right name."""


class Refused(PropoptError):
    """A solver or a loss cannot do what was requested; the message has the reason."""


class NoTradeOff(Refused):
    """A loss is equal at both ends of the trade-off curve, so nothing is traded off."""


class Infeasible(PropoptError):
    """No explanation satisfies all bounds; the message has the attainable values."""


class SolverFailure(PropoptError):
    """A solver stopped without a usable solution."""


class MissingExtra(PropoptError, ImportError):
    """An optional package is missing or broken; the message says how to install it."""


class WriteFailure(PropoptError, OSError):
    """A file could not be written; the message has its path and the reason.

    Parameters
    ----------
    message : str
        The path and the reason.
    result : object, optional
        The computed result of a run that could not write all its files.
    """

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


class ProblemFileError(PropoptError):
    """A problem file is not valid; the message is ``file:line: key: mistake``.

    Sections that are built in Python have keys only. Each mistake has its line of the
    message.
    """

    lines: tuple[tuple[int, str], ...] = ()
    """The line number and text of each mistake; empty without a file."""


class PropoptWarning(UserWarning):
    """The base class of all warnings that propopt issues."""


class TrivialObjectiveWarning(PropoptWarning):
    """No term of the objective depends on the model, so its optimum is meaningless."""


class UncertifiedWarning(PropoptWarning):
    """The certified gap of a result is larger than the requested tolerance."""


class UnsolvedWarning(PropoptWarning):
    """A solver failed for some weights of a sweep; the result has the others."""


class EdgeWarning(PropoptWarning):
    """A search for parameters ended at an edge of its range."""


class FlatFunctionWarning(PropoptWarning):
    """All numerical gradients are zero: the function is piecewise constant here."""


class JumpsWarning(FlatFunctionWarning):
    """A function jumps, so its numerical gradients miss much of its change."""


class ImpreciseWarning(PropoptWarning):
    """A sampling error is too large, or unknown: of a target, or of few minipatches."""


class MissingPatternsWarning(PropoptWarning):
    """Many rows are compared with rows whose missing values are in other columns."""


class InexactBoxesWarning(PropoptWarning):
    """The exact form of a model is unknown or wrong, so it is sampled."""


class EstimatedWarning(PropoptWarning):
    """Values are estimated, as no exact method applies to this function."""


class DegenerateVarianceWarning(PropoptWarning):
    """All rows have one score, so their spread gives no confidence interval."""


class InterruptedWarning(PropoptWarning):
    """A computation was interrupted; the result has the finished part."""


class AdditiveErrorWarning(PropoptWarning):
    """With the chosen measure of error, scores without interaction can be nonzero."""
