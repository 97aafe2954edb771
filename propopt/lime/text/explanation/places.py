"""Methods of an explanation of texts: a row, its words, the model behind it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from propopt.errors import Refused
from propopt.lime.explanation.like_lime import largest_first
from propopt.lime.explanation.places import place_of_row, places_of_rows
from propopt.lime.text.explanation.row import DocumentLimits
from propopt.lime.text.explanation.subject import TextSubject


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation


def row_of_document(
    explanation: TextLimeExplanation, row: Hashable | None = None
) -> DocumentLimits:
    """What is known of one document; the first by default.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of a Series, or its position where documents had no names.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    return explanation.rows[place_of_row(explanation, row)]


def explanation_of_documents(
    explanation: TextLimeExplanation, rows: Sequence[Hashable]
) -> TextLimeExplanation:
    """The same of some documents alone; nothing is computed.

    Parameters
    ----------
    rows : sequence of labels or int
        Their names in the index of a Series, or positions where they had no names.

    Raises
    ------
    InvalidInput
        If there is no such document, or none is asked for.
    """
    places = places_of_rows(explanation, rows)
    subject = explanation.subject
    scatter = vars(explanation).get("runs", explanation.scatter)
    return replace(
        explanation,
        rows=tuple(explanation.rows[n] for n in places),
        names=tuple(explanation.document_names[n] for n in places),
        scatter=None if scatter is None else scatter.of_rows(places),
        subject=None if subject is None else subject.of_rows(places),
    )


def list_of_document(
    explanation: TextLimeExplanation, row: Hashable | None = None
) -> list[tuple[str, float]]:
    """Words and coefficients; the largest first, as the package ``lime`` has it.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of a Series, or its position where documents had no names;
        by default the first.
    """
    words = row_of_document(explanation, row).words
    return [(words[j], weight) for j, weight in explanation.as_map(row)[1]]


def map_of_document(
    explanation: TextLimeExplanation, row: Hashable | None = None
) -> dict[int, list[tuple[int, float]]]:
    """Under the key 1 positions of words and coefficients, the largest first.

    Words are numbered in the order in which they first come, as ``lime`` does it.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of a Series, or its position where documents had no names;
        by default the first.
    """
    return {1: largest_first(row_of_document(explanation, row).coefficients)}


def asked_texts(explanation: TextLimeExplanation, what: str) -> TextSubject:
    """The model, the law and what was found.

    Parameters
    ----------
    what : str
        What they are needed for.

    Raises
    ------
    Refused
        If the explanation was loaded.
    """
    if explanation.subject is None:
        raise Refused(
            f"{what}: the model is not saved with an explanation; make it anew with "
            "propopt.lime.text_limits"
        )
    return explanation.subject
