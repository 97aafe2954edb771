"""The table of an explanation of texts, and its forms for other readers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from propopt.errors import Refused
from propopt.lime.explanation.table import write_plain_records
from propopt.results.explanation import Explanation
from propopt.tables.names import listed


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation


def words_frame(explanation: TextLimeExplanation) -> pd.DataFrame:
    """One row for each word of each document, with the units beside the numbers."""
    rows = explanation.rows
    sizes = [row.document.n_words for row in rows]
    places = np.repeat(np.arange(len(rows)), sizes)
    names = explanation.document_names

    def joined(parts: list[Any]) -> Any:
        return np.concatenate([*parts, np.empty(0)])

    of_words: dict[str, Any] = {
        "document": [names[n] for n in places],
        "word": pd.Series([word for row in rows for word in row.words], dtype=object),
        "count": joined([row.document.counts for row in rows]).astype(np.int64),
        "coefficient": joined([row.coefficients for row in rows]),
        "standard_error": joined([row.errors for row in rows]),
        "single_run_sd": joined(list(explanation.runs.deviations)),
        "expected": joined(list(explanation.runs.means)),
        "n_samples": explanation.n_samples,
    }
    of_documents = pd.DataFrame(
        {
            "intercept": [row.intercept for row in rows],
            "prediction": [row.value for row in rows],
            "surrogate_at_row": [row.at_row for row in rows],
            "source": [row.source for row in rows],
            "reason": [row.reason for row in rows],
        }
    )
    repeated = of_documents.iloc[places].reset_index(drop=True)
    frame = pd.concat([pd.DataFrame(of_words), repeated], axis=1)
    return frame.assign(units=explanation.units)


def write_words(path: str | Path, explanation: TextLimeExplanation) -> None:
    """The table as a list of objects; what is not known is null."""
    write_plain_records(path, words_frame(explanation))


def aligned_attributions(explanation: TextLimeExplanation) -> Explanation:
    """Coefficients as attributions (N, V) of all words of the documents.

    A word that a document does not have has the attribution 0 there.

    Returns
    -------
    Explanation
        In units of the output, with standard errors where a coefficient is estimated.

    Raises
    ------
    Refused
        If LIME says nothing of one of the documents; :meth:`of_rows` leaves it out.
    """
    rows, names = explanation.rows, explanation.document_names
    unknown = [names[n] for n, row in enumerate(rows) if not row.is_known]
    if unknown:
        raise Refused(
            f"to_attributions: LIME says nothing of the documents {listed(unknown)}; "
            "leave them out with of_rows"
        )
    words = explanation.vocabulary
    places = {word: j for j, word in enumerate(words)}
    W, errors = np.zeros((2, len(rows), len(words)))
    for n, row in enumerate(rows):
        columns = [places[word] for word in row.words]
        W[n, columns], errors[n, columns] = row.coefficients, row.errors
    is_exact = all(row.is_exact for row in rows)
    return Explanation(
        attributions=W,
        method="lime (limit)",
        labels=explanation.labels,
        parameters={"bandwidth": explanation.law.bandwidth},
        standard_errors=None if is_exact else errors,
        units="output",
        quantity=None
        if explanation.subject is None
        else explanation.subject.function.quantity,
        evaluations=explanation.evaluations,
    )
