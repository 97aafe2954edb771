"""What models return: numbers, and how precisely they were computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Values
from propopt.errors import InvalidInput


DOUBLE: Final = float(np.finfo(np.float64).eps)
SINGLE: Final = float(np.finfo(np.float32).eps)

SHORT_BITS: Final = 12
"""Numbers of so few bits, such as 0.25 and 130, tell nothing of a precision."""

MOST_DIGITS_LOST: Final = 1e3
MOST_CHANGE: Final = 1e-2
"""Answers to the same question may differ by so many units of rounding, such as those
of sums in another order, but by no more than this."""

MOST_TERMS: Final = 1024
MOST_TERMS_SINGLE: Final = 168
"""Terms of a sum whose rounding is allowed for; single precision has few digits."""


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """Values, and the relative rounding ε of what they were made of.

    Parameters
    ----------
    values : array (n,)
        One for each row.
    epsilon : float
        That of the precision in which the model computed.
    """

    values: Values
    epsilon: float


def as_numbers(answer: object, source: str = "the model") -> Array:
    """What a model returned, in float64 and our own; refused if it is no numbers."""
    array = _plain(answer, source)
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{source} returned no numbers: {error}") from None


def precision_of(answer: object) -> float:
    """ε of the precision in which numbers were computed.

    It is that of their type; numbers in double precision that single precision holds
    exactly were computed in that and converted.
    """
    array = _plain(answer, "the model")
    if array.dtype.kind != "f":
        return DOUBLE
    epsilon = float(np.finfo(array.dtype).eps)
    return SINGLE if epsilon < SINGLE and _was_single(array) else epsilon


def refuse_other_answers(first: Answers, again: Answers, name: str) -> None:
    """Refuse a model that answers the same question twice, and not alike."""
    a, b = first.values, again.values
    size = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    most = min(MOST_DIGITS_LOST * first.epsilon, MOST_CHANGE) * size
    same = np.isclose(a, b, rtol=0.0, atol=most, equal_nan=True)
    if not same.all():
        n = int(np.argmin(same))
        raise InvalidInput(
            f"{name}: asked twice for the same row, the model answered {a[n]:.8g} and "
            f"then {b[n]:.8g}; fix its seed, switch what is random off, or explain its "
            "mean"
        )


def allowed_difference(
    values: Values, tolerance: float, epsilon: float, terms: Values | None = None
) -> Values:
    """How far what a model was read as may be from its answers f, (n,).

    tolerance · (max f − min f) + 1024 ε A: of the range of f, so that neither the unit
    of f nor a constant added to it hides an error, and besides what rounding makes of
    sums of 1024 terms (Higham 2002, Section 4.2), or 168 in single precision.

    Parameters
    ----------
    values : array (n,)
        f.
    tolerance : float
        Over the range.
    epsilon : float
        Of the precision in which the model computes.
    terms : array (n,), optional
        A, sums of the sizes of what f is a sum of; |f| where they are not known.
    """
    size = np.abs(values) if terms is None else np.maximum(terms, np.abs(values))
    most = MOST_TERMS_SINGLE if epsilon >= SINGLE else MOST_TERMS
    return np.asarray(tolerance * np.ptp(values) + most * epsilon * size)


def _plain(answer: object, source: str) -> NDArray[Any]:
    """Any array as NumPy has it; what would lose something on the way is refused."""
    _refuse_containers(answer, source)
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{source} returned no numbers: {error}") from None
    if array.dtype.kind == "c":
        raise InvalidInput(
            f"{source} returned complex numbers ({array.dtype}); return their real "
            "part or their absolute value"
        )
    if array.dtype.kind not in "biufO":
        raise InvalidInput(
            f"{source} returned no numbers, but {array.dtype}; return a number for "
            "each row, of a classifier a column of its predict_proba"
        )
    return array


def _refuse_containers(answer: object, source: str) -> None:
    """Those that NumPy would open without their mask, or not at all."""
    if isinstance(answer, np.ma.MaskedArray) and np.ma.is_masked(answer):
        raise InvalidInput(
            f"{source} returned a masked array, with {answer.mask.sum()} values "
            "masked; fill them, or explain other rows"
        )
    if sp.issparse(answer):
        raise InvalidInput(
            f"{source} returned a sparse {type(answer).__name__}; return its toarray()"
        )
    if getattr(answer, "requires_grad", False) is True:
        raise InvalidInput(
            f"{source} returned a torch tensor that requires grad; return its "
            "detach(), or wrap the torch.nn.Module itself for gradients by autograd"
        )


def _was_single(array: NDArray[Any]) -> bool:
    numbers = array[np.isfinite(array)].astype(np.float64)
    with np.errstate(over="ignore"):
        converted = numbers.astype(np.float32).astype(np.float64)
    if not np.array_equal(converted, numbers):
        return False
    significands, _ = np.frexp(numbers)
    return bool((np.ldexp(significands, SHORT_BITS) % 1.0 != 0.0).any())
