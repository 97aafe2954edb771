"""What tells one ensemble from another: table, target, learner, scheme and seed."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.metadata import version
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from sklearn import config_context

from propopt.errors import InvalidInput
from propopt.interactions.refits import Refits
from propopt.tables.frames import as_frame


Fingerprint: TypeAlias = Mapping[str, str]
"""By part, its text where that says all, or a digest of it."""

DIGEST: Final = "sha256:"
"""What digests begin with."""


def fingerprint(refits: Refits, drawn: Mapping[str, object]) -> Fingerprint:
    """What predictions of patches depend on, part by part.

    Two errors of which the same is kept of a prediction, such as the squared and the
    absolute one, make no difference.

    Parameters
    ----------
    refits : Refits
        Learner, table, target.
    drawn : mapping of a part to its value
        How patches are drawn.

    Raises
    ------
    InvalidInput
        If the learner, or what is in the table, cannot be told from others.
    """
    packages = ("propopt", "numpy", "scikit-learn")
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    classes = refits.classes
    weights = refits.sample_weight
    return {
        "table": _of_table(refits.table),
        "target": _of_arrays(refits.y) + _of_labels(classes),
        "sample_weight": "none" if weights is None else _of_arrays(weights),
        "features": _digest(repr(refits.features.columns)),
        "error": _of_arrays(_probe(refits)),
        "learner": _named(refits.estimator),
        "learner's parameters": of_learner(refits.estimator),
        "versions": ", ".join((python, *(f"{p} {version(p)}" for p in packages))),
        **{part: str(value) for part, value in drawn.items()},
    }


def changed_parts(then: Mapping[str, Any], now: Fingerprint) -> list[str]:
    """In words, which parts are others now.

    Examples
    --------
    >>> changed_parts(
    ...     {"seed": "0", "table": "sha256:a1"}, {"seed": "1", "table": "sha256:b2"}
    ... )
    ['the seed is 1 and was 0', 'the table is another']
    """
    words = []
    own = "learner's parameters"  # its name is for readers: sets have no order in it
    same = own in now and then.get(own) == now[own]
    for part, value in now.items():
        old = then.get(part)
        if old == value or (part == "learner" and same):
            continue
        if value.startswith(DIGEST):
            words.append(f"the {part} is another")
        else:
            words.append(f"the {part} is {value} and was {old}")
    return words


def _named(learner: Any) -> str:
    """For messages: functions and objects without the address that they have here."""
    with config_context(print_changed_only=True):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(learner).split()))


def _probe(refits: Refits) -> Any:
    """What the error keeps of predictions that differ everywhere."""
    n_classes = () if refits.classes is None else (len(refits.classes),)
    shape = (refits.n_rows, *n_classes)
    return refits.error.known(np.arange(np.prod(shape)).reshape(shape) + 0.5, refits.y)


def _of_table(table: Any) -> str:
    frame = as_frame(table, "X")
    if frame is None:
        array = np.asarray(table)
        if not array.dtype.hasobject:
            return _of_arrays(array)
        columns = pd.DataFrame(array)
    else:
        columns = frame.table
    parts = [
        f"{name!r} {column.dtype} {_of_column(column)}"
        for name, column in columns.items()
    ]
    return _digest("\n".join(parts))


def _of_column(column: Any) -> str:
    try:
        hashes = pd.util.hash_pandas_object(column, index=False)
    except TypeError as error:
        raise InvalidInput(
            f"folder: the column {column.name!r} cannot be told from another: {error}"
        ) from None
    return _of_arrays(hashes.to_numpy())


def _of_labels(classes: Any) -> str:
    return "" if classes is None else _digest(repr(classes.tolist()))


def of_learner(learner: Any) -> str:
    """A digest of a learner, by what it is made of: see :func:`_content`."""
    return _digest("\n".join(_content(learner, ())))


def _content(value: Any, within: tuple[int, ...]) -> Iterator[str]:
    """What a parameter is made of, the same in every process.

    Estimators are their class and parameters, functions their name, code and what they
    have bound, arrays their numbers; all else is what a pickle of it would be made of.
    """
    if id(value) in within:
        yield f"the one {within[::-1].index(id(value))} levels above"
        return
    inner = (*within, id(value))
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__}"
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            yield repr(value)
        case np.ndarray() if not value.dtype.hasobject:
            yield _of_arrays(value)
        case pd.DataFrame() | pd.Series():
            yield _of_table(pd.DataFrame(value))
        case list() | tuple() | np.ndarray():
            yield str(len(value))
            for own in value:
                yield from _content(own, inner)
        case dict():
            yield from _unordered(value.items(), inner)
        case set() | frozenset():
            yield from _unordered(value, inner)
        case CodeType():
            # line numbers and the place of the file say nothing of what it does
            yield _digest(value.co_code)
            yield from _content((value.co_names, value.co_varnames), inner)
            yield from _content(value.co_consts, inner)
        case FunctionType():
            yield _name_of(value)
            yield from _content((value.__code__, value.__defaults__), inner)
            yield from _content(value.__kwdefaults__, inner)
            cells = value.__closure__ or ()
            yield from _content([cell.cell_contents for cell in cells], inner)
        case MethodType():
            yield from _content((value.__self__, value.__func__), inner)
        case BuiltinFunctionType() | type() | np.ufunc():
            yield _name_of(value)
        case _ if hasattr(value, "get_params"):
            yield from _content(value.get_params(deep=False), inner)
        case _:
            yield from _content(_parts_of(value), inner)


def _unordered(values: Iterable[Any], within: tuple[int, ...]) -> list[str]:
    return sorted(_digest("\n".join(_content(own, within))) for own in values)


def _name_of(value: Any) -> str:
    module = getattr(value, "__module__", "")
    return f"{module}.{getattr(value, '__qualname__', value.__name__)}"


def _parts_of(value: Any) -> Any:
    """What a pickle would make it of: a function, arguments, and what is set then."""
    try:
        parts = value.__reduce_ex__(4)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"folder: the learner cannot be told from others ({error}); no pickle can "
            "be made of one of its parameters"
        ) from None
    if isinstance(parts, str):  # the name of a global
        return parts
    made, arguments, *rest = parts
    return made, arguments, [p if isinstance(p, dict) else _listed(p) for p in rest]


def _listed(part: Any) -> Any:
    """Items of lists and mappings come as iterators."""
    return list(part) if isinstance(part, Iterator) else part


def _of_arrays(array: Any) -> str:
    plain = np.ascontiguousarray(array)
    return _digest(f"{plain.dtype.str} {plain.shape} ".encode() + plain.tobytes())


def _digest(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return DIGEST + sha256(data).hexdigest()
