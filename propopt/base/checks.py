"""Checks of arguments: each is checked once, here, and trusted afterwards."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import enumerated


_Word = TypeVar("_Word", bound=str)
_Number = TypeVar("_Number", bound=np.generic)

_LARGEST = 1e140
"""The largest number that losses square; 1e28 remains for weights and term counts."""

_SMALLEST = 1e-140
"""The smallest: squares of 1e-14 of it, the size of a gap, keep their digits."""


@contextmanager
def errors_of(where: str) -> Iterator[None]:
    """Add where errors arise to those that are raised inside."""
    try:
        yield
    except (InvalidInput, Refused) as error:
        raise type(error)(f"{where}: {error}") from None


def read_array(values: object, label: str, *, ndim: int) -> Array:
    """``values`` as a finite, non-empty float64 array with ``ndim`` dimensions."""
    array = _read(values, label, ndim)
    refuse_any(~np.isfinite(array), array, label, "not finite")
    return read_only(array)


def read_with_missing(values: object, label: str) -> Array:
    """A table as by :func:`read_array`, but NaN stands for a missing number."""
    array = _read(values, label, 2)
    refuse_any(np.isinf(array), array, label, "infinite")
    return read_only(array)


def _read(values: object, label: str, ndim: int) -> Array:
    array = as_floats(values, label)
    if array.ndim != ndim:
        raise InvalidInput(
            f"{label}: expected {ndim} dimensions, got an array of shape {array.shape}"
            f"{target_hint(label, array)}"
            f"{_dimension_hint(values, label, array.ndim, ndim)}"
        )
    if array.size == 0:
        raise InvalidInput(f"{label}: the array is empty, of shape {array.shape}")
    return array


def _dimension_hint(values: object, label: str, actual: int, ndim: int) -> str:
    """How to make a table of one row, one column, one of several outputs, or images."""
    if (actual, ndim) == (1, 2) and hasattr(values, "to_frame"):
        return (
            f"; {label}.to_frame().T is a table of one row, {label}.to_frame() a column"
        )
    if (actual, ndim) == (1, 2):
        return "; reshape(1, -1) makes it a table of one row, reshape(-1, 1) a column"
    if ndim == 2 < actual and label.split(": ")[-1] in ("X", "data"):
        count, *shape = np.asarray(values).shape
        flat = f"np.reshape({label}, ({count}, {math.prod(shape)}))"
        return f"; give {flat}, and po.wrap(model, input_shape={tuple(shape)}) as model"
    if (actual, ndim) == (3, 2):
        one = f"{label}[k]" if isinstance(values, list | tuple) else f"{label}[..., k]"
        return f"; choose one of several classes, {one}"
    return ""


def refuse_any(wrong: NDArray[np.bool_], array: Array, label: str, word: str) -> None:
    """Refuse an array with wrong values; the message has their number and the first."""
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InvalidInput(
            f"{label}: {int(wrong.sum())} of {array.size} values are {word}; the first "
            f"is {array[index]} at index {index}"
        )


def as_floats(values: object, label: str) -> Array:
    """A float64 copy; refuses what NumPy converts with a loss, such as dates."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values.copy(order="K")
    if np.ma.is_masked(values):
        raise InvalidInput(
            f"{label}: expected numbers, got a masked array; give its filled(value)"
        )
    array = as_array(values, label)  # refuses sparse ones, some of which are mappings
    if values is None or isinstance(values, str | bytes | Path | Mapping):
        raise InvalidInput(f"{label}: expected numbers, got {_table_hint(values)}")
    try:
        if array.dtype.kind in _REFUSED_KINDS:
            raise TypeError(_REFUSED_KINDS[array.dtype.kind])
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise _no_numbers(values, label, error) from None


def as_array(values: object, label: str) -> NDArray[Any]:
    """A table without names as an array of any type; refuses sparse and ragged ones."""
    refuse_sparse(values, label)
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise _no_numbers(values, label, error) from None


def _no_numbers(values: object, label: str, error: Exception) -> InvalidInput:
    actual: object = _RAGGED if "inhomogeneous" in str(error) else error
    is_scalar = not isinstance(values, Sized) and not hasattr(values, "__array__")
    if is_scalar or is_foreign(values) or _holds_foreign(values):
        actual = f"{describe_type(values)}; {_hint(values)}"
    return InvalidInput(f"{label}: expected numbers, got {actual}")


def is_foreign(value: object) -> bool:
    """Whether an object comes from the package lime or shap."""
    return _package(value) in ("lime", "shap")


def _package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _holds_foreign(values: object) -> bool:
    return isinstance(values, list | tuple) and any(map(is_foreign, values))


def describe_type(value: object) -> str:
    """The class of an object, with the package if that is lime or shap; of lists too.

    Examples
    --------
    >>> describe_type([1, 2]), describe_type(3.5)
    ('list', 'float')
    """
    name = type(value).__name__
    if is_foreign(value):
        return f"{_package(value)}.{name}"
    if isinstance(value, list | tuple) and _holds_foreign(value):
        kinds = sorted({describe_type(one) for one in value})
        return f"{name} of {len(value):,} {enumerated(kinds, 'and')}"
    return name


def _hint(values: object) -> str:
    """How to pass an object that contains numbers but is no table."""
    if is_foreign(values) or _holds_foreign(values):
        return (
            "po.audit(attributions, model, X) reads a list of LIME's explanations, one "
            "for each row, and a shap.Explanation of all rows; elsewhere give an array "
            "or a DataFrame (N, D) of their numbers"
        )
    return "give an array or a DataFrame"


_RAGGED = "rows of several lengths, or several tables; give one table"


def refuse_sparse(values: object, label: str) -> None:
    """Refuse a sparse matrix: some models take its absent entries as missing."""
    if sp.issparse(values):
        name = label.split(": ")[-1]
        of_model = name in ("X", "data")
        remedy = f"po.functions.dense(model, {name})" if of_model else "its toarray()"
        raise InvalidInput(
            f"{label}: expected a dense table, got a sparse {type(values).__name__}; "
            f"give {remedy}"
        )


def _table_hint(values: object) -> str:
    """A value that is no table, and how to make a table of it."""
    if isinstance(values, Mapping):
        return f"a {type(values).__name__}; pandas.DataFrame(...) makes a table of it"
    if values is None:
        return "None; give an array or a DataFrame"
    return f"{str(values)!r:.80}; pandas.read_csv(path) reads the table of a file"


_REFUSED_KINDS = {"c": "complex ones", "M": "dates", "m": "lengths of time"}
"""Kinds of dtypes that NumPy would convert to floats, in words."""


def read_only(array: NDArray[_Number]) -> NDArray[_Number]:
    """Make an array read-only, and return it; nothing is copied."""
    array.setflags(write=False)
    return array


def largest_entry(array: Array) -> float:
    """The largest absolute value of an array; 0 if it is empty; nothing is copied."""
    return float(max(array.max(initial=0.0), -array.min(initial=0.0)))


def refuse_overflow(array: Array, label: str) -> None:
    """Refuse numbers so large that weighted sums of squares could overflow."""
    if array.max(initial=0.0) > _LARGEST or array.min(initial=0.0) < -_LARGEST:
        size = largest_entry(array)
        raise InvalidInput(
            f"{label}: sums of squares of numbers up to {size:.2g} overflow; divide "
            "them, or the output of the model, by a constant"
        )


def refuse_underflow(size: float, label: str, cost: float | None = None) -> None:
    """Refuse numbers, not all zero, so small that their squares underflow."""
    squares = size**2 if cost is None else cost
    if size == 0.0 or squares >= _SMALLEST**2:
        return
    if size >= _SMALLEST:
        raise InvalidInput(
            f"{label}: weights are too small, as weighted sums of squares up to "
            f"{squares:.2g} round to zero; multiply all weights by a constant"
        )
    factor = 1.0 / max(size, 1e-300)
    raise InvalidInput(
        f"{label}: numbers up to {size:.2g} are too small, as sums of their squares "
        "round to zero; multiply the numbers, or the output of the model, by a "
        f"constant such as {factor:.0e}"
    )


def read_positive(value: object, label: str) -> float:
    """Return ``value`` as a finite float above zero, or refuse it."""
    number = read_nonnegative(value, label)
    if number == 0.0:
        raise InvalidInput(f"{label}: expected a number > 0, got 0")
    return number


def read_nonnegative(value: object, label: str) -> float:
    """Return ``value`` as a finite float that is not negative, or refuse it."""
    try:
        number = float(value)  # type: ignore[arg-type]  # any float-like is welcome
    except (TypeError, ValueError):
        raise InvalidInput(f"{label}: expected a number, got {value!r}") from None
    if not (np.isfinite(number) and number >= 0):
        raise InvalidInput(f"{label}: expected a finite number >= 0, got {value!r}")
    return number


def read_each_nonnegative(values: object, label: str) -> Array:
    """Return a number, or a sequence of them, as finite floats ≥ 0, shape (n,)."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except ValueError as error:  # rows of several lengths
        raise InvalidInput(f"{label}: expected numbers, got {error}") from None
    if array.ndim > 1 or array.dtype.kind not in "biuf":
        numbers = [read_nonnegative(value, label) for value in array.tolist()]
        return np.array(numbers, dtype=np.float64)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        raise InvalidInput(
            f"{label}: expected a finite number >= 0, got {array[wrong][0].item()!r}"
        )
    return array.astype(np.float64)


def read_share(share: object, label: str) -> float:
    """Return a reduction such as ``"-50%"`` of a loss as a share, 0.5."""
    match = re.fullmatch(r"\s*[-−]\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*", str(share))
    value = float(match[1]) / 100.0 if match and isinstance(share, str) else math.nan
    if not 0.0 < value <= 1.0:
        raise InvalidInput(
            f"{label}: expected a reduction from '-0%' to '-100%', such as "
            f"'-50%', got {share!r}"
        )
    return value


def read_count(value: object, label: str) -> int:
    """Return ``value`` as an integer of at least one, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{label}: expected an integer >= 1, got {value!r}")
    return int(value)


def read_level(level: object) -> float:
    """Return the level of intervals, between 0 and 1, or refuse it."""
    if isinstance(level, bool) or not isinstance(level, int | float):
        raise InvalidInput(f"level: expected a number, got {level!r}")
    if not 0.0 < level < 1.0:
        raise InvalidInput(
            f"level: expected a number between 0 and 1, such as 0.9, got {level!r}"
        )
    return float(level)


def read_flag(value: object, label: str) -> bool:
    """Return ``value`` if it is true or false, or refuse it."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{label}: expected True or False, got {value!r}")
    return bool(value)


def evenly_spaced(count: int, most: int) -> list[int]:
    """Up to ``most`` evenly spaced indices below ``count``, both ends included."""
    ends = np.linspace(0, max(count - 1, 0), min(count, most))
    return [int(index) for index in ends.round()]


def read_seed(rng: object, what: str = "rng") -> int:
    """The seed ``rng``, 0 for None; drawn from it if it is a generator."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    seed = 0 if rng is None else rng
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(
            f"{what}: expected an integer >= 0 or a numpy.random.Generator, got {rng!r}"
        )
    return int(seed)


def read_rng(rng: object, what: str = "rng") -> np.random.Generator:
    """A given generator, which is advanced; else a new one from :func:`read_seed`."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(read_seed(rng, what))


def read_option(user_word: _Word, kinds: Any, label: str) -> _Word:
    """Return ``user_word`` if it is one of the words of a ``Literal``, or refuse it."""
    words = list(get_args(kinds))
    if user_word in words:
        return user_word
    raise InvalidInput(
        f"{label}: expected {enumerated([*map(repr, words)], 'or')}, got {user_word!r}"
        f"{did_you_mean(user_word, words)}"
    )


_SHORT = 60
_MANY = 1_000
"""Characters of a word that are compared, and names that it is compared with."""


def did_you_mean(word: object, names: Sequence[str]) -> str:
    """A hint at the most similar name, in brackets; empty if there is none."""
    by_lower = {name.lower(): name for name in reversed(names[:_MANY])}
    close = get_close_matches(str(word).lower()[:_SHORT], list(by_lower), n=1)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def target_hint(label: str, table: Any) -> str:
    """A hint if a column of numbers, such as a target, is given as background rows."""
    if label.split(": ")[-1] != "data" or as_array(table, label).ndim != 1:
        return ""
    return ", as a target y has; give the table of columns that the model was fitted on"
