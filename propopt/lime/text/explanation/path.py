"""Coefficients of one document over bandwidths."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array, Values
from propopt.errors import Refused
from propopt.lime.paths.path import read_widths


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordPath:
    """What LIME tends to for one document, at many bandwidths.

    Parameters
    ----------
    words : tuple of str (d,)
        The words.
    bandwidths : array (M,)
        ν, increasing.
    coefficients : array (M, d)
        β at each.
    intercept : array (M,)
        β_0.
    standard_errors : array (M, d) or None
        Of estimated coefficients; None where they are exact.
    """

    words: tuple[str, ...]
    bandwidths: Values
    coefficients: Array
    intercept: Values
    standard_errors: Array | None

    def __repr__(self) -> str:
        low, high = self.bandwidths[[0, -1]]
        return (
            f"{type(self).__name__}({len(self.bandwidths)} bandwidths from {low:.3g} "
            f"to {high:.3g}, {len(self.words)} words)"
        )


def path_of_document(
    explanation: TextLimeExplanation,
    row: Hashable | None = None,
    bandwidths: ArrayLike | None = None,
) -> WordPath:
    """Coefficients of a document at many bandwidths; the model is not asked again.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of a Series, or its position where documents had no names;
        by default the first.
    bandwidths : array (M,), optional
        ν, each positive and finite; by default 50 around that of the law.

    Raises
    ------
    InvalidInput
        If there is no such document, or a bandwidth is not positive.
    Refused
        If the explanation was loaded, or LIME says nothing of the document.
    """
    n = explanation.position(row)
    means = explanation.asked("path").means[n]
    if means is None:
        raise Refused(f"path: {explanation.rows[n].reason}")
    own = explanation.law.bandwidth
    grid = read_widths(bandwidths, own if np.isfinite(own) else 1.0)
    found = means.at(grid)
    return WordPath(
        explanation.rows[n].words,
        grid,
        found.coefficients,
        found.intercept,
        found.standard_errors,
    )
