"""What tells one ensemble from another: table, target, learner, scheme and seed."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final, TypeAlias

import joblib
import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import clone

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
    classes = refits.classes
    weights = refits.sample_weight
    return {
        "table": _of_table(refits.table),
        "target": _of_arrays(refits.y) + _of_labels(classes),
        "sample_weight": "none" if weights is None else _of_arrays(weights),
        "features": _digest(repr(refits.features.columns)),
        "error": _of_arrays(_probe(refits)),
        "learner": _named(refits.estimator),
        "learner's parameters": _of_learner(refits.estimator),
        "versions": ", ".join(f"{name} {version(name)}" for name in packages),
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
    for part, value in now.items():
        old = then.get(part)
        if old == value:
            continue
        if value.startswith(DIGEST):
            words.append(f"the {part} is another")
        else:
            words.append(f"the {part} is {value} and was {old}")
    return words


def _named(learner: Any) -> str:
    with config_context(print_changed_only=True):
        return " ".join(repr(learner).split())


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


def _of_learner(learner: Any) -> str:
    try:
        return _digest(joblib.hash(clone(learner, safe=False)))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"folder: the learner cannot be told from others ({error}); functions in "
            "it have to be defined in a module"
        ) from None


def _of_arrays(array: Any) -> str:
    plain = np.ascontiguousarray(array)
    return _digest(f"{plain.dtype.str} {plain.shape} ".encode() + plain.tobytes())


def _digest(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return DIGEST + sha256(data).hexdigest()
