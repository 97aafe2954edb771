"""Records for signatures: model, data, date, versions and decision threshold.

A digest is a fingerprint: equal digests mean equal bytes. A model has one if it can be
written as text; other models are identified by their predictions.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date as Date
from importlib import metadata
from typing import Any, Final, final

import numpy as np
import pandas as pd

import propopt
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.structures.fitted_model import FittedModel
from propopt.structures.registry import reader_of


# ---- A threshold on predictions


@final
@suggests_arguments
@dataclass(frozen=True)
class Decision:
    """A threshold on predictions, with a word for either side.

    Parameters
    ----------
    threshold : float
        In the unit of the predictions, such as log-odds.
    below, above : str
        The decision below the threshold, and at the threshold or above.

    Examples
    --------
    >>> from propopt.results import Decision
    >>> Decision(0.5, "accepted", "refused").of(0.7)
    'refused'
    """

    threshold: float = field()
    below: str = "below"
    above: str = "at or above"

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold):
            raise InvalidInput(
                f"threshold: expected a finite number, got {self.threshold}"
            )

    def of(self, prediction: float) -> str:
        """The decision for one prediction, such as "approved" or "declined"."""
        return self.above if prediction >= self.threshold else self.below


# ---- The record: date, versions, digests


@final
@suggests_arguments
@dataclass(frozen=True)
class Record:
    """The date, versions and digests of one analysis, without model and data.

    Create it by :meth:`of`.

    Parameters
    ----------
    date : str
        The day, as in 2026-11-27.
    model : str
        The class of the model, with its package.
    versions : mapping
        The version of each library.
    digests : mapping
        By name, the first twelve digits of a SHA-256 and what it was computed from.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from propopt.results import Record
    >>> X = np.eye(3)
    >>> record = Record.of(LinearRegression().fit(X, X[:, 0]), X=X)
    >>> record.model, sorted(record.digests)
    ('sklearn.linear_model.LinearRegression', ['X'])
    """

    date: str = ""
    model: str = ""
    versions: Mapping[str, str] = field(factory=dict)
    digests: Mapping[str, str] = field(factory=dict)

    @classmethod
    @suggests_arguments
    def of(
        cls,
        model: Any = None,
        *,
        X: Any = None,
        data: Any = None,
        date: str | None = None,
        digests: Mapping[str, str] | None = None,
    ) -> Record:
        """Create the record of a model and of tables.

        Parameters
        ----------
        model : estimator, booster or callable, optional
            The explained model. Boosters have a digest of their text.
        X, data : DataFrame or array, optional
            The explained rows, and the background rows.
        date : str, optional
            Today by default.
        digests : mapping, optional
            Other digests, such as those of files.

        Returns
        -------
        Record
            With versions and digests computed now.
        """
        computed: dict[str, str] = {}
        model = FittedModel(model).native
        if (content := _text_of(model)) is not None:
            computed["model"] = f"{short_digest(content)}, its text"
        for name, table in (("X", X), ("data", data)):
            if table is not None:
                computed[name] = digest_of_table(table)
        return cls(
            date=Date.today().isoformat() if date is None else date,
            model="" if model is None else _name_of(type(model), model),
            versions=dict(_versions(model)),
            digests={**computed, **(digests or {})},
        )


def short_digest(content: bytes) -> str:
    """The first twelve digits of the SHA-256 of some bytes."""
    return f"sha256:{hashlib.sha256(content).hexdigest()[:_DIGITS]}"


_DIGITS: Final = 12


def digest_of_array(array: Any) -> str:
    """The digest of numbers in float64, row by row, with one NaN and one zero."""
    values = np.asarray(array, dtype="<f8")
    values = np.where(np.isnan(values), np.nan, values) + 0.0
    return short_digest(repr(values.shape).encode() + values.tobytes())


def digest_of_table(table: Any) -> str:
    """The digest of a table with its column names, and its size in words."""
    frame = (
        table if isinstance(table, pd.DataFrame) else pd.DataFrame(np.asarray(table))
    )
    digest = hashlib.sha256(repr((frame.shape, [*map(str, frame)])).encode())
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if column.dtype.kind in "biuf":
            content = digest_of_array(column.to_numpy(float))
        else:
            cells = ["" if pd.isna(x) else str(x) for x in column]
            content = repr(cells)
        digest.update(content.encode("utf-8", "surrogatepass"))
    rows, columns = frame.shape
    return f"sha256:{digest.hexdigest()[:_DIGITS]}, {rows:,} rows × {columns} columns"


def _text_of(model: Any) -> bytes | None:
    """The text of a booster as bytes, equal on all machines; else None."""
    write = reader_of(model).text
    with suppress(Exception):  # of the library of the model
        return None if write is None else write(model)
    return None


def _name_of(kind: type, model: Any) -> str:
    """The name of a class with its package, without private modules."""
    if kind.__name__ in ("function", "method", "builtin_function_or_method"):
        return f"the function {getattr(model, '__name__', '')}".strip()
    parts = [x for x in kind.__module__.split(".") if not x.startswith("_")]
    return ".".join([*parts, kind.__qualname__])


_LIBRARIES: Final = ("numpy", "pandas", "scipy", "scikit-learn")

_INSTALLED_AS: Final = {"sklearn": "scikit-learn"}


def _versions(model: Any) -> Iterator[tuple[str, str]]:
    """Versions of propopt, Python, numeric libraries and libraries of the model."""
    yield "propopt", propopt.__version__
    yield "Python", ".".join(map(str, sys.version_info[:3]))
    packages = [_INSTALLED_AS.get(name, name) for name in _packages(model)]
    for name in dict.fromkeys([*_LIBRARIES, *packages]):
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _packages(model: Any) -> Iterator[str]:
    """Top-level packages of the classes of a model and of its parts."""
    parts = [model]
    with suppress(Exception):  # get_params may be anything
        parts += model.get_params(deep=True).values()
    for part in parts:
        for kind in type(part).__mro__:
            top = kind.__module__.partition(".")[0]
            if top not in ("builtins", "__main__", "propopt", "abc"):
                yield top
