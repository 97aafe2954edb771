"""Linear models of texts, read from fitted pipelines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from propopt.structures.pipelines import UNREADABLE, unreadable
from propopt.structures.readers.trees.scores import TreeOutput
from propopt.structures.subsets import (
    NormalisedSum,
    NoSetFunction,
    PlainSum,
    SetFunction,
)
from propopt.structures.tfidf.features import document_features
from propopt.structures.tfidf.linear.models import linear_row
from propopt.structures.tfidf.linear.norms import Normed, last_norm
from propopt.structures.tfidf.linear.rows import LinearRow
from propopt.structures.tfidf.linear.words import word_blocks
from propopt.structures.tfidf.vectorisers import Vectoriser
from propopt.tables.text import Document


_LONGEST: Final = 4e9
"""Q d² of a document: of 5,000 words they are 2e9, and need about 20 s."""


@final
@dataclass(frozen=True, eq=False)
class TextLinear:
    """A linear output of the features of a vectoriser, on any document.

    Parameters
    ----------
    vectoriser : Vectoriser
        Fitted.
    row : LinearRow
        The output, of its features behind the norm.
    """

    vectoriser: Vectoriser
    row: LinearRow

    def at(self, document: Document, /) -> SetFunction | NoSetFunction:
        """The function of which words of a document are kept."""
        if document.n_words == 0:
            return NoSetFunction("the document has no word")
        found = document_features(self.vectoriser, document)
        if isinstance(found, NoSetFunction):
            return found
        blocks = word_blocks(self.vectoriser, self.row, found)
        if isinstance(blocks, NoSetFunction):
            return blocks
        if self.vectoriser.norm is None:
            return PlainSum(self.row.intercept, blocks, document.n_words)
        power = 0.5 if self.vectoriser.norm == "l2" else 1.0
        function = NormalisedSum(self.row.intercept, blocks, power)
        if function.n_steps > _LONGEST:
            return NoSetFunction(
                f"the norm of {document.n_words:,} words takes more than 40 s to treat "
                "exactly; with norm=None it takes no time"
            )
        return function


def read_text_linear(
    model: Any, output: str, index: int | None
) -> TextLinear | NoSetFunction | None:
    """Linear outputs behind counts or tf-idf, with a norm or without.

    Parameters
    ----------
    model : estimator
        A pipeline that begins with a vectoriser.
    output : str
        ``"value"``, ``"probability"``, ``"log_odds"`` or ``"margin"``.
    index : int or None
        The class, or the column of the output; None where there is only one.

    Returns
    -------
    TextLinear, NoSetFunction or None
        The reason where the output of a linear model is not linear; None where the
        model is none.
    """
    vectoriser = Vectoriser.of(model)
    if isinstance(vectoriser, NoSetFunction) or vectoriser.rest is None:
        return None
    try:
        normed = last_norm(vectoriser)
        if isinstance(normed, NoSetFunction):
            return normed
        row = linear_row(normed.vectoriser.rest, TreeOutput(output, index))
    except UNREADABLE as error:
        return NoSetFunction(unreadable(vectoriser.rest, error))
    if not isinstance(row, LinearRow):
        return row
    return _at_features(normed, row)


def _at_features(normed: Normed, row: LinearRow) -> TextLinear | NoSetFunction:
    """A row of what is passed on, by the features of the vectoriser."""
    if not _is_finite(row) or len(row.coefficients) != len(normed.columns):
        return NoSetFunction("a weight of a feature is not finite, or there is none")
    wide = row.placed(normed.columns, normed.vectoriser.n_features)
    if row.thresholds is None:
        return TextLinear(normed.vectoriser, wide)
    return _of_presence(normed.vectoriser, wide)


def _is_finite(row: LinearRow) -> bool:
    return bool(np.isfinite(row.coefficients).all() and np.isfinite(row.intercept))


def _of_presence(vectoriser: Vectoriser, row: LinearRow) -> TextLinear | NoSetFunction:
    """Of features that are compared with thresholds: a norm must not matter."""
    used = row.coefficients != 0.0
    assert row.thresholds is not None
    thresholds = row.thresholds[used]
    if (thresholds < 0.0).any():
        return NoSetFunction("a threshold below 0 is passed by features that are 0")
    if vectoriser.norm is not None and (thresholds > 0.0).any():
        return NoSetFunction(
            f"features are compared with a threshold behind norm={vectoriser.norm!r}, "
            "which is a sum over all words; with norm=None it is exact"
        )
    return TextLinear(replace(vectoriser, norm=None), row)
