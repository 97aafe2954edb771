"""Coefficients of one document over bandwidths."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from propopt.errors import Refused
from propopt.lime.paths.path import read_widths
from propopt.lime.text.paths import WordPath, word_path
from propopt.lime.text.paths.by_size import MeansBySize
from propopt.lime.text.sampled import SampledWords


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation


def path_of_document(
    explanation: TextLimeExplanation,
    row: Hashable | None = None,
    bandwidths: ArrayLike | None = None,
) -> WordPath:
    """Coefficients of a document at many bandwidths; the model is not asked again.

    Estimated ones have standard errors; where their signs change is estimated too.

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
    if not isinstance(means, SampledWords):
        return word_path(means, grid)
    limits = means.at(grid)
    known, errors = MeansBySize(means), limits.standard_errors
    return WordPath(grid, limits.coefficients, limits.intercept, known, errors)
