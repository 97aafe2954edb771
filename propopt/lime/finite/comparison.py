"""Runs of the ``lime`` package beside what they should give in their mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import pandas as pd

from propopt._typing import Array


_INTERCEPT: Final = "(intercept)"

Coefficients: TypeAlias = Array
"""The intercept and the coefficients, (1 + D,)."""


@final
@dataclass(frozen=True, eq=False)
class PackageComparison:
    """What runs of the ``lime`` package gave, and what theory says that they give.

    Arrays have the intercept first.

    Parameters
    ----------
    runs : array (R, 1 + D)
        Each run; 0 for columns that it did not keep.
    expected : array (1 + D,)
        The mean of such runs: ridge 1, the row as first sample, the package's bins.
    without : mapping of str to array (1 + D,)
        The same without one of what makes it: ``"row"``, ``"ridge"`` (and row: the
        limit), ``"frequencies"`` (bins of equal shares), ``"width"`` (the paper's
        √(0.75 D)), ``"leverage"`` (of texts: that samples pull the fit to themselves).
    labels : tuple of str (D,)
        Names of the columns, or the words.

    Examples
    --------
    >>> runs = np.array([[0.9, 2.1], [1.1, 1.9], [1.0, 2.3]])
    >>> found = PackageComparison(runs, np.array([1.0, 2.0]), {}, ("age",))
    >>> found.z.round(2)
    array([0.  , 0.87])
    """

    runs: Array
    expected: Coefficients
    without: Mapping[str, Coefficients]
    labels: tuple[str, ...]

    @property
    def mean(self) -> Coefficients:
        """Of the runs."""
        return np.asarray(self.runs.mean(axis=0))

    @property
    def error(self) -> Coefficients:
        """The standard error of the mean."""
        return np.asarray(self.runs.std(axis=0, ddof=1) / np.sqrt(len(self.runs)))

    @property
    def z(self) -> Coefficients:
        """How many errors the mean is off what is expected; 0 where nothing moves."""
        return self.z_of(self.expected)

    def z_of(self, coefficients: Coefficients) -> Coefficients:
        """How many errors the mean is off any coefficients (1 + D,)."""
        error = self.error
        moves = error > 1e-12 * np.abs(self.mean).max(initial=0.0)
        off = self.mean - coefficients
        return np.divide(off, error, out=np.zeros_like(off), where=moves)

    def to_frame(self) -> pd.DataFrame:
        """A row for each coefficient: the runs, what is expected, and its parts.

        ``expected`` is the ``limit`` and what ``ridge``, the first ``row`` among the
        samples and, of texts, their ``leverage`` add; ``frequencies`` and ``width`` are
        what it is off bins of equal shares and the paper's width: parts of a gap that
        such a theory has.
        """
        columns = {
            "package": self.mean,
            "error": self.error,
            "expected": self.expected,
            "z": self.z,
        }
        if "ridge" in self.without:
            limit, no_row = self.without["ridge"], self.without["row"]
            columns |= {
                "limit": limit,
                "ridge": no_row - limit,
                "row": self.without.get("leverage", self.expected) - no_row,
            }
        for name in ("leverage", "frequencies", "width"):
            if name in self.without:
                columns[name] = self.expected - self.without[name]
        return pd.DataFrame(columns, index=pd.Index([_INTERCEPT, *self.labels]))

    @property
    def root_mean_squares(self) -> dict[str, float]:
        """Of z: as expected, about 1, and without each of what makes it."""
        theories = {"expected": self.expected} | {
            f"without {name}": found for name, found in self.without.items()
        }
        return {
            name: float(np.sqrt((self.z_of(found) ** 2).mean()))
            for name, found in theories.items()
        }
